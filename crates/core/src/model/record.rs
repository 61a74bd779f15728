//! Records: every fact that is not a job. Workers, runs, definitions, keys, principals and tokens are typed values
//! kept as records, so that a new kind of fact needs no new table in any store.

use crate::model::{
    keys::RecordKey,
    name::{Facet, Namespace},
    refusal::Refusal,
    time::Timestamp,
};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    any::Any,
    sync::{Arc, OnceLock},
};

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
    pub decoded: Decoded,
}

/// The value as its kind reads it, once somebody has: a record that is kept in memory is read once and looked at for every claim of a
/// worker. It follows from the text, so that records are equal whether or not they were read.
#[derive(Clone, Default)]
pub struct Decoded(Arc<OnceLock<Box<dyn Any + Send + Sync>>>);

impl std::fmt::Debug for Decoded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.get().is_some() { "Decoded" } else { "not decoded" })
    }
}

impl PartialEq for Decoded {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Record {
    /// What has expired is gone, even if no sweep ran yet: a lock whose holder vanished can be taken at once. Said of kinds that
    /// the rules do not know; to theirs, a due time is when something has to be looked at.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.due.is_some_and(|due| due <= now)
    }
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

pub fn key_of<T: Kind>(namespace: &Namespace, key: &str) -> RecordKey {
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

/// The same, from memory where it was read before.
pub(crate) fn decode_once<T: Kind + Clone + Send + Sync + 'static>(record: &Record) -> Result<T, Refusal> {
    if let Some(known) = record.decoded.0.get().and_then(|known| known.downcast_ref::<T>()) {
        return Ok(known.clone());
    }
    let value: T = decode(record)?;
    // Of two that read it at once the first is kept; both read the same.
    let _ = record.decoded.0.set(Box::new(value.clone()));
    Ok(value)
}

pub(crate) fn encode<T: Kind>(value: &T) -> Arc<str> {
    serde_json::to_string(value).expect("records hold plain data with string keys").into()
}
