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

pub struct Plans(Mutex<Cache<RunId, Arc<Large<Plan>>>>);

impl Default for Plans {
    fn default() -> Self {
        Self(Mutex::new(Cache::new(KEPT, KEPT_BYTES)))
    }
}

impl Plans {
    pub fn get(&self, run: RunId) -> Option<Arc<Large<Plan>>> {
        self.0.lock().get(&run)
    }

    pub fn put(&self, run: RunId, bytes: usize, plan: Arc<Large<Plan>>) {
        self.0.lock().put(run, plan, bytes);
    }
}
