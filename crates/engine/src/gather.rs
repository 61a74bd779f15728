//! How long to wait for company before a commit.
//!
//! Callers that were just answered come back a moment after the next commit has begun, so on a slow disk they would
//! always miss it and every other commit would be nearly empty. Waiting about 15 % of a commit's time catches them. On
//! a fast disk any wait loses, and a lone caller must never wait, so the window follows what is measured.

use std::time::Duration;

const WORTH_IT: Duration = Duration::from_micros(200);
const SHARE: f64 = 0.15;
/// A batch that takes long must not hold up those behind it.
const PATIENCE_MAX: Duration = Duration::from_millis(20);

#[derive(Default)]
pub struct Gather {
    /// Smoothed time of a commit, in seconds.
    commit: f64,
    /// Smoothed time of a batch from its start to its answers, in seconds.
    flight: f64,
    /// Commands in the last batch.
    company: usize,
}

impl Gather {
    pub fn learn(&mut self, commit: Duration, flight: Duration, commands: usize) {
        let smooth = |known: f64, new: f64| if known == 0.0 { new } else { known * 0.8 + new * 0.2 };
        self.commit = smooth(self.commit, commit.as_secs_f64());
        self.flight = smooth(self.flight, flight.as_secs_f64());
        self.company = commands;
    }

    /// How long a batch may wait for others to join it while another one is on its way.
    pub fn patience(&self) -> Duration {
        Duration::from_secs_f64(self.flight).min(PATIENCE_MAX)
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
        gather.learn(Duration::from_micros(50), Duration::from_millis(1), 40);
        assert_eq!(gather.window(1), None, "fast disk");
        let mut gather = Gather::default();
        gather.learn(Duration::from_millis(2), Duration::from_millis(3), 1);
        assert_eq!(gather.window(1), None, "alone");
    }

    #[test]
    fn a_slow_disk_gathers_a_share_of_its_commit() {
        let mut gather = Gather::default();
        gather.learn(Duration::from_millis(2), Duration::from_millis(3), 40);
        assert_eq!(gather.window(3), Some(Duration::from_micros(300)));
        assert_eq!(gather.window(40), None, "everybody is here already");
    }

    #[test]
    fn nobody_waits_long_for_a_batch_that_takes_long() {
        let mut gather = Gather::default();
        assert_eq!(gather.patience(), Duration::ZERO, "nothing is known yet");
        gather.learn(Duration::from_millis(1), Duration::from_millis(4), 40);
        assert_eq!(gather.patience(), Duration::from_millis(4));
        gather.learn(Duration::from_millis(1), Duration::from_secs(10), 1);
        assert_eq!(gather.patience(), PATIENCE_MAX);
    }
}
