//! What commits tell the sweeper.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use tokio::sync::Notify;
use windlass_core::Timestamp;

/// The store is not away, or has never answered.
const THERE: i64 = i64::MIN;

/// When the sweeper means to wake up, and the bell that wakes it earlier.
pub struct Alarm {
    pub set_for: AtomicI64,
    pub bell: Notify,
    pub dirty: AtomicBool,
    pub stopped: AtomicBool,
    /// So often was grace granted because the clock had been set forward.
    pub steps_seen: AtomicU64,
    /// When the store last answered, by its clock, if it has not since.
    away_since: AtomicI64,
    answered: AtomicI64,
}

impl Default for Alarm {
    fn default() -> Self {
        Self {
            set_for: AtomicI64::new(i64::MIN),
            bell: Notify::new(),
            dirty: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            steps_seen: AtomicU64::new(0),
            away_since: AtomicI64::new(THERE),
            answered: AtomicI64::new(THERE),
        }
    }
}

impl Alarm {
    pub fn hear_of(&self, due: Option<Timestamp>) {
        if due.is_some_and(|due| due.0 < self.set_for.load(Ordering::Acquire)) {
            self.bell.notify_one();
        }
    }

    pub fn wrote(&self, events: bool) {
        if events && !self.dirty.load(Ordering::Relaxed) {
            self.dirty.store(true, Ordering::Relaxed);
        }
    }

    pub fn store_is_away(&self) {
        let answered = self.answered.load(Ordering::Acquire);
        self.away_since.compare_exchange(THERE, answered, Ordering::AcqRel, Ordering::Acquire).ok();
    }

    /// Since when it was away, if it was.
    pub fn store_is_back(&self, now: Timestamp) -> Option<Timestamp> {
        self.answered.store(now.0, Ordering::Release);
        let since = self.away_since.swap(THERE, Ordering::AcqRel);
        (since != THERE).then_some(Timestamp(since))
    }

    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.bell.notify_one();
    }
}
