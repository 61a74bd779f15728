//! Turns that cannot be decided yet, because somebody else holds what they need. They stay written down, are looked at again
//! after pauses that grow, and at once when they are told again ([`windlass_core::commands::remind::Remind`]). Nothing here has
//! to outlive the server: another one looks at every turn that it knows nothing about.

use super::Unit;
use parking_lot::Mutex;
use std::{collections::HashMap, time::Duration};
use tokio::time::Instant;
use windlass_core::{Namespace, RunId};

const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(300);
/// Runs that wait at a time. What is forgotten is looked at once more.
const KEPT: usize = 10_000;

#[derive(Default)]
pub struct Later(Mutex<HashMap<(Namespace, RunId), Wait>>);

struct Wait {
    /// Of the turns as they were.
    mark: u64,
    times: u32,
    until: Instant,
}

impl Later {
    /// Not yet: until its pause is over, or its turns are told again.
    pub fn note(&self, unit: &Unit, now: Instant) {
        let mut waits = self.0.lock();
        let key = (unit.namespace.clone(), unit.run);
        if waits.len() >= KEPT && !waits.contains_key(&key) {
            waits.clear();
        }
        let before = waits.get(&key).filter(|wait| wait.mark == unit.mark).map_or(0, |wait| wait.times);
        waits.insert(key, Wait { mark: unit.mark, times: before + 1, until: now + pause(before) });
    }

    pub fn forget(&self, namespace: &Namespace, run: RunId) {
        self.0.lock().remove(&(namespace.clone(), run));
    }

    pub fn waits(&self, unit: &Unit, now: Instant) -> bool {
        let waits = self.0.lock();
        let wait = waits.get(&(unit.namespace.clone(), unit.run));
        wait.is_some_and(|wait| wait.mark == unit.mark && wait.until > now)
    }

    /// When the first pause is over.
    pub fn next(&self) -> Option<Instant> {
        self.0.lock().values().map(|wait| wait.until).min()
    }

    /// What has no turn any more waits for nothing.
    pub fn retain(&self, all: &[Vec<Unit>]) {
        let mut waits = self.0.lock();
        if waits.is_empty() {
            return;
        }
        let found: std::collections::HashSet<(&Namespace, RunId)> =
            all.iter().flatten().map(|unit| (&unit.namespace, unit.run)).collect();
        waits.retain(|(namespace, run), _| found.contains(&(namespace, *run)));
    }
}

fn pause(times: u32) -> Duration {
    PAUSE.saturating_mul(1 << times.min(20)).min(PAUSE_MAX)
}
