//! Plans of runs that were decided for lately. A run's plan never changes.

use crate::aside::Large;
use parking_lot::Mutex;
use std::sync::Arc;
use windlass_core::{RunId, cache::Cache};
use windlass_plan::plan::Plan;

/// Plans kept for the next turn of their run, in each generation of the cache: so many, and of so many bytes of
/// definitions and inputs. A plan takes a multiple of these in memory. The one used last stays, however large it is.
const KEPT: usize = 32;
const KEPT_BYTES: usize = 4 << 20;

/// Runs of which it is remembered who reads their plans.
const READERS: usize = 10_000;

pub struct Plans {
    plans: Mutex<Cache<RunId, Arc<Large<Plan>>>>,
    readers: Mutex<Cache<RunId, Arc<str>>>,
}

impl Default for Plans {
    fn default() -> Self {
        Self { plans: Mutex::new(Cache::new(KEPT, KEPT_BYTES)), readers: Mutex::new(Cache::new(READERS, usize::MAX)) }
    }
}

impl Plans {
    pub fn get(&self, run: RunId) -> Option<Arc<Large<Plan>>> {
        self.plans.lock().get(&run)
    }

    pub fn put(&self, run: RunId, bytes: usize, plan: Arc<Large<Plan>>) {
        self.plans.lock().put(run, plan, bytes);
    }

    pub fn reader(&self, run: RunId) -> Option<Arc<str>> {
        self.readers.lock().get(&run)
    }

    pub fn put_reader(&self, run: RunId, reader: Arc<str>) {
        self.readers.lock().put(run, reader, 0);
    }
}
