//! Plans of runs that were decided for lately. A run's plan never changes.

use crate::aside::Large;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};
use windlass_core::RunId;
use windlass_plan::plan::Plan;

/// Plans kept for the next turn of their run: so many, and of so many bytes of definitions and inputs. A plan takes a
/// multiple of these in memory. The one used last stays, however large it is.
const KEPT: usize = 64;
const KEPT_BYTES: usize = 8 << 20;

#[derive(Default)]
pub struct Plans(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    uses: u64,
    bytes: usize,
    plans: HashMap<RunId, (u64, usize, Arc<Large<Plan>>)>,
}

impl Plans {
    pub fn get(&self, run: RunId) -> Option<Arc<Large<Plan>>> {
        let mut kept = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        kept.uses += 1;
        let now = kept.uses;
        let (used, _, plan) = kept.plans.get_mut(&run)?;
        *used = now;
        Some(plan.clone())
    }

    pub fn put(&self, run: RunId, bytes: usize, plan: Arc<Large<Plan>>) {
        let mut kept = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        kept.uses += 1;
        let now = kept.uses;
        kept.remove(run);
        kept.bytes += bytes;
        kept.plans.insert(run, (now, bytes, plan));
        while kept.plans.len() > KEPT || (kept.bytes > KEPT_BYTES && kept.plans.len() > 1) {
            let oldest = kept.plans.iter().min_by_key(|(_, (used, ..))| *used).map(|(run, _)| *run);
            let Some(oldest) = oldest else { return };
            kept.remove(oldest);
        }
    }
}

impl Kept {
    fn remove(&mut self, run: RunId) {
        if let Some((_, bytes, _)) = self.plans.remove(&run) {
            self.bytes -= bytes;
        }
    }
}
