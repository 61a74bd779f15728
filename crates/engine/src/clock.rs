//! The only reader of the operating system's clock.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use windlass_core::{Millis, Timestamp};

pub trait Clock: Send + Sync + 'static {
    /// Never earlier than what it said before.
    fn now(&self) -> Timestamp;
}

/// The system clock, held still while the system sets it back.
#[derive(Default)]
pub struct System {
    latest: AtomicI64,
}

impl Clock for System {
    fn now(&self) -> Timestamp {
        let read = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_millis() as i64;
        Timestamp(self.latest.fetch_max(read, Ordering::AcqRel).max(read))
    }
}

/// A clock that tests move.
pub struct Simulated {
    now: AtomicI64,
}

impl Simulated {
    pub fn at(start: Timestamp) -> Self {
        Self { now: AtomicI64::new(start.0) }
    }
    pub fn advance(&self, length: Millis) {
        self.now.fetch_add(length.0, Ordering::AcqRel);
    }
    pub fn set(&self, now: Timestamp) {
        self.now.store(now.0, Ordering::Release);
    }
}

impl Clock for Simulated {
    fn now(&self) -> Timestamp {
        Timestamp(self.now.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_never_runs_backwards() {
        let clock = System { latest: AtomicI64::new(i64::MAX - 5) };
        assert_eq!(clock.now(), Timestamp(i64::MAX - 5));
        let clock = System::default();
        let first = clock.now();
        assert!(clock.now() >= first);
    }
}
