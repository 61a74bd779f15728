//! Typed records on the desk.

use super::{Desk, Stop};
use crate::model::{
    keys::Access,
    name::Namespace,
    record::{Decoded, Kind, Record, decode, decode_once, encode, key_of},
};

impl Desk {
    /// Reads a typed record without locking it: for facts the command only looks at.
    pub(crate) fn peek<T: Kind + Clone + Send + Sync + 'static>(
        &mut self,
        namespace: &Namespace,
        key: &str,
    ) -> Result<Option<T>, Stop> {
        Ok(self.record(&key_of::<T>(namespace, key), false)?.map(|record| decode_once(&record)).transpose()?)
    }

    /// Reads a typed record that must stay as it is until this batch is committed.
    pub(crate) fn share<T: Kind>(&mut self, namespace: &Namespace, key: &str) -> Result<Option<T>, Stop> {
        Ok(self.access(&key_of::<T>(namespace, key), Access::Share)?.map(|record| decode(&record)).transpose()?)
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
            decoded: Decoded::default(),
        });
        Ok(())
    }

    pub(crate) fn remove<T: Kind>(&mut self, namespace: &Namespace, key: &str) -> Result<(), Stop> {
        self.delete_record(&key_of::<T>(namespace, key))
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::{
        testing::{Story, code, ns, once, worker},
        workers::DrainWorker,
    };
    use crate::model::policy::WorkerPolicy;

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

    #[test]
    fn a_worker_is_read_again_once_it_was_written() {
        let mut story = Story::new();
        story.register("w", WorkerPolicy::default()).unwrap();
        for number in 1..=2 {
            story.submit(once(number));
        }
        assert_eq!(story.claims("w", 1).len(), 1, "and now its record is read");
        story.run(DrainWorker { namespace: ns(), worker: worker("w"), draining: true, principal: None }).unwrap();
        let claim = story.claim_command("w", 1);
        assert_eq!(code(&story.run(claim)), "worker-draining");
    }
}
