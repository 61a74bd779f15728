//! What was read of versions of definitions. A version never changes, so what was read once can be kept.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
use windlass_core::Namespace;

const VERSIONS_MAX: usize = 10_000;

type Key = (TypeId, Namespace, Arc<str>, u32);

/// As whoever reads them understands them: dialects have words of their own.
#[derive(Default)]
pub struct Versions(Mutex<HashMap<Key, Arc<dyn Any + Send + Sync>>>);

impl Versions {
    pub fn get<T: Any + Clone>(&self, namespace: &Namespace, name: &Arc<str>, number: u32) -> Option<T> {
        let key = (TypeId::of::<T>(), namespace.clone(), name.clone(), number);
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()?;
        kept.downcast_ref::<T>().cloned()
    }

    pub fn put<T: Any + Send + Sync>(&self, namespace: &Namespace, name: &Arc<str>, number: u32, read: T) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= VERSIONS_MAX {
            kept.clear();
        }
        kept.insert((TypeId::of::<T>(), namespace.clone(), name.clone(), number), Arc::new(read));
    }
}
