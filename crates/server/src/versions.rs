//! What was read of versions of definitions. A version never changes, so what was read once can be kept.

use parking_lot::Mutex;
use std::{
    any::{Any, TypeId},
    sync::Arc,
};
use windlass_core::{Namespace, cache::Cache};

/// Versions in each generation of the cache.
const VERSIONS_MAX: usize = 5_000;

type Key = (TypeId, Namespace, Arc<str>, u32);

/// As whoever reads them understands them: dialects have words of their own.
pub struct Versions(Mutex<Cache<Key, Arc<dyn Any + Send + Sync>>>);

impl Default for Versions {
    fn default() -> Self {
        Self(Mutex::new(Cache::new(VERSIONS_MAX, VERSIONS_MAX)))
    }
}

impl Versions {
    pub fn get<T: Any + Clone>(&self, namespace: &Namespace, name: &Arc<str>, number: u32) -> Option<T> {
        let key = (TypeId::of::<T>(), namespace.clone(), name.clone(), number);
        let kept = self.0.lock().get(&key)?;
        kept.downcast_ref::<T>().cloned()
    }

    pub fn put<T: Any + Send + Sync>(&self, namespace: &Namespace, name: &Arc<str>, number: u32, read: T) {
        let key = (TypeId::of::<T>(), namespace.clone(), name.clone(), number);
        self.0.lock().put(key, Arc::new(read), 1);
    }
}
