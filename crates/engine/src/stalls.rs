//! Notices when this server did not respond: one batch took long, the runtime was blocked, or the process was stopped. Workers
//! could not renew meanwhile; what follows for their leases is decided by `windlass_core::stall`.
//!
//! The batcher comes by before every batch, and is rung once a second where there is none. When it comes by late, nothing
//! was answered since it last did. Other servers on the same store judge by their own stalls: to them this one was gone.

use crate::{after::After, queue::Queue};
use parking_lot::Mutex;
use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};
use tokio::time::sleep;
use windlass_core::{
    Millis,
    stall::{Stall, Stalls},
};

const EVERY: Duration = Duration::from_secs(1);
/// Longer than this between two visits is a stall.
const LONGEST: Duration = Duration::from_millis(1_500);
/// By then every worker has renewed, or is gone.
const REMEMBERED: Duration = Duration::from_secs(300);
const REMEMBERED_MAX: usize = 4;

#[derive(Default)]
pub struct StallWatch(Mutex<Visits>);

#[derive(Default)]
struct Visits {
    /// None: no timer wakes the batcher, so its silence says nothing.
    last: Option<Instant>,
    stalls: VecDeque<(Instant, Instant)>,
}

impl StallWatch {
    /// From now on the batcher is rung.
    fn begin(&self) {
        self.0.lock().last = Some(Instant::now());
    }

    /// The batcher comes by.
    pub fn visit(&self) {
        self.0.lock().visit(Instant::now());
    }

    pub fn recent(&self) -> Stalls {
        self.0.lock().recent(Instant::now())
    }
}

impl Visits {
    fn visit(&mut self, now: Instant) {
        let Some(last) = self.last else { return };
        self.last = Some(now);
        let gap = now.saturating_duration_since(last);
        if gap <= LONGEST {
            return;
        }
        tracing::warn!(
            ms = gap.as_millis() as u64,
            "the server did not respond for a while: leases get their full length again"
        );
        if self.stalls.len() == REMEMBERED_MAX {
            self.stalls.pop_front();
        }
        self.stalls.push_back((last, now));
    }

    fn recent(&mut self, now: Instant) -> Stalls {
        let age = |at: Instant| now.saturating_duration_since(at);
        self.stalls.retain(|(_, ended)| age(*ended) < REMEMBERED);
        let millis = |at: Instant| Millis(age(at).as_millis() as i64);
        let mut stalls = Stalls::default();
        for (began, ended) in &self.stalls {
            stalls.add(Stall { began: millis(*began), ended: millis(*ended) });
        }
        stalls
    }
}

/// Rings the batcher until the engine stops.
pub fn spawn(stalls: &StallWatch, queue: Arc<Queue>, after: Arc<After>) {
    stalls.begin();
    tokio::spawn(async move {
        while !after.alarm.stopped.load(Ordering::Acquire) {
            queue.ring();
            sleep(EVERY).await;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batcher_that_comes_by_late_has_answered_nobody_since_it_last_did() {
        let (start, mut visits) = (Instant::now(), Visits::default());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        visits.visit(at(50));
        assert!(visits.recent(at(50)).is_empty(), "no timer wakes it");
        visits.last = Some(at(50));
        visits.visit(at(51));
        assert!(visits.recent(at(51)).is_empty());
        visits.visit(at(60));
        let mut expected = Stalls::default();
        expected.add(Stall { began: Millis(19_000), ended: Millis(10_000) });
        assert_eq!(visits.recent(at(70)), expected);
        assert!(visits.recent(at(361)).is_empty(), "forgotten");
        for number in 0..20 {
            visits.visit(at(400 + 10 * number));
        }
        assert_eq!(visits.stalls.len(), REMEMBERED_MAX);
    }
}
