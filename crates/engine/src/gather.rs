//! How long to wait for company before a commit, or before the sync where that is apart.
//!
//! Callers that were just answered come back a moment after the next commit has begun, so on a slow disk they would
//! always miss it and every other commit would be nearly empty. Waiting about 15 % of a commit's time catches them. On
//! a fast disk any wait loses, and a lone caller must never wait, so the window follows what is measured.

use std::time::Duration;

const WORTH_IT: Duration = Duration::from_micros(200);
const SHARE: f64 = 0.15;
/// A sync that takes less is not handed over to a thread of its own. Where all cores are busy, a sync also waits for its turn
/// on one of them, so that this is well above what fast disks need.
const HAND_OVER: Duration = Duration::from_micros(400);

/// The shortest sleep worth its system call.
pub const NAP: Duration = Duration::from_micros(50);

#[derive(Default)]
pub struct Gather {
    /// Smoothed time of a commit, in seconds.
    commit: f64,
    /// Commands in the last batch.
    company: usize,
}

impl Gather {
    pub fn learn(&mut self, commit: Duration, commands: usize) {
        self.commit =
            if self.commit == 0.0 { commit.as_secs_f64() } else { self.commit * 0.8 + commit.as_secs_f64() * 0.2 };
        self.company = commands;
    }

    /// Whether handing a sync over to another thread would take longer than the sync.
    pub fn is_fast(&self) -> bool {
        self.commit < HAND_OVER.as_secs_f64()
    }

    /// None: go at once.
    pub fn window(&self, waiting: usize) -> Option<Duration> {
        let alone = self.company < 2;
        let all_here = waiting >= self.company;
        if alone || all_here || self.commit < WORTH_IT.as_secs_f64() {
            return None;
        }
        Some(Duration::from_secs_f64(self.commit * SHARE).min(Duration::from_millis(5)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_on_a_fast_disk_or_alone() {
        let mut gather = Gather::default();
        assert_eq!(gather.window(1), None);
        gather.learn(Duration::from_micros(50), 40);
        assert_eq!(gather.window(1), None, "fast disk");
        let mut gather = Gather::default();
        gather.learn(Duration::from_millis(2), 1);
        assert_eq!(gather.window(1), None, "alone");
    }

    #[test]
    fn a_slow_disk_gathers_a_share_of_its_commit() {
        let mut gather = Gather::default();
        gather.learn(Duration::from_millis(2), 40);
        assert!(!gather.is_fast());
        assert_eq!(gather.window(3), Some(Duration::from_micros(300)));
        assert_eq!(gather.window(40), None, "everybody is here already");
    }
}
