//! Records: every fact that is not a job. Workers, runs, definitions, keys, principals and tokens are typed values
//! kept as records, so that a new kind of fact needs no new table in any store.

use crate::{
    desk::{Desk, Stop},
    keys::RecordKey,
    name::{Facet, Namespace},
    refusal::Refusal,
    time::Timestamp,
};
use serde::{Serialize, de::DeserializeOwned};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub key: RecordKey,
    /// Grows by one with each write, from 1.
    pub version: u64,
    /// Groups records under another one; indexed.
    pub parent: Option<Arc<str>>,
    /// JSON text.
    pub value: Arc<str>,
    pub facets: Vec<Facet>,
    /// When something has to happen to this record: expiry, ageing, firing. A lower bound, as for jobs.
    pub due: Option<Timestamp>,
}

/// A typed value kept as a record of one kind.
pub trait Kind: Serialize + DeserializeOwned {
    const KIND: &'static str;
    /// Whether its due time may stay behind what [`Kind::due`] says, so that frequent writes touch no index. What is
    /// done about it when it is due must then look at the exact time.
    const DUE_MAY_LAG: bool = false;
    /// When the sweep should look at it.
    fn due(&self) -> Option<Timestamp> {
        None
    }
    fn parent(&self) -> Option<Arc<str>> {
        None
    }
    fn facets(&self) -> Vec<Facet> {
        Vec::new()
    }
}

pub(crate) fn key_of<T: Kind>(namespace: &Namespace, key: &str) -> RecordKey {
    RecordKey { namespace: namespace.clone(), kind: T::KIND.into(), key: key.into() }
}

/// Only this module writes these kinds, so a value it cannot read means that the store was tampered with. That is
/// refused to whoever needs it, and does not take the rest of the batch down.
pub(crate) fn decode<T: Kind>(record: &Record) -> Result<T, Refusal> {
    serde_json::from_str(&record.value).map_err(|error| Refusal::Damaged {
        what: T::KIND,
        name: record.key.key.to_string(),
        why: error.to_string(),
    })
}

pub(crate) fn encode<T: Kind>(value: &T) -> Arc<str> {
    serde_json::to_string(value).expect("records hold plain data with string keys").into()
}

impl Desk {
    /// Reads a typed record without locking it: for facts the command only looks at.
    pub(crate) fn peek<T: Kind>(&mut self, namespace: &Namespace, key: &str) -> Result<Option<T>, Stop> {
        Ok(self.record(&key_of::<T>(namespace, key), false)?.map(|record| decode(&record)).transpose()?)
    }

    /// Reads a typed record in order to change it.
    pub(crate) fn get<T: Kind>(&mut self, namespace: &Namespace, key: &str) -> Result<Option<T>, Stop> {
        Ok(self.record(&key_of::<T>(namespace, key), true)?.map(|record| decode(&record)).transpose()?)
    }

    /// Writes a typed record that was read with [`Desk::get`].
    pub(crate) fn put<T: Kind>(&mut self, namespace: &Namespace, key: &str, value: &T) -> Result<(), Stop> {
        let key = key_of::<T>(namespace, key);
        let old = self.record(&key, true)?;
        let due = match (old.as_ref().and_then(|old| old.due), value.due()) {
            (Some(kept), Some(exact)) if T::DUE_MAY_LAG && kept <= exact && kept > self.now() => Some(kept),
            (_, exact) => exact,
        };
        self.put_record(Record {
            key,
            version: old.map_or(1, |old| old.version + 1),
            parent: value.parent(),
            value: encode(value),
            facets: value.facets(),
            due,
        });
        Ok(())
    }

    pub(crate) fn remove<T: Kind>(&mut self, namespace: &Namespace, key: &str) -> Result<(), Stop> {
        self.delete_record(&key_of::<T>(namespace, key))
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{Story, code, once, worker};
    use crate::policy::WorkerPolicy;

    #[test]
    fn a_damaged_record_is_refused_to_those_who_need_it_and_to_nobody_else() {
        let mut story = Story::new();
        story.register("w", WorkerPolicy::default()).unwrap();
        story.submit(once(1));
        let record = story.tables.records.values_mut().next().unwrap();
        record.value = "{".into();
        let (needs, other) = (story.claim_command("w", 1), story.claim_command("x", 1));
        let answers = story.batch(vec![needs.into(), other.into()]);
        assert_eq!((code(&answers[0]), code(&answers[1])), ("damaged", "ok"));
        assert_eq!(story.job(1).holder(), Some(&worker("x")));
    }
}
