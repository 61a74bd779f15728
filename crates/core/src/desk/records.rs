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
