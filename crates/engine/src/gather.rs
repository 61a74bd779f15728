//! How long to wait for company before a transaction, or before the sync where that is apart.
//!
//! Callers that were just answered come back a moment after the next commit has begun, so they would always miss it, and
//! every other commit would be nearly empty. On a slow disk about 15 % of a sync's time catches them; on a fast one any wait loses.
//! A transaction on a database costs much the same for two commands as for twenty, on both sides, so there it pays to wait for as many
//! as came together lately: at most as long as a transaction takes, and only while they keep coming. A lone caller never waits.

use std::time::Duration;

const WORTH_IT: Duration = Duration::from_micros(200);
/// A sync that takes less is not handed over to a thread of its own. Where all cores are busy, a sync also waits for its turn
/// on one of them, so that this is well above what fast disks need.
const HAND_OVER: Duration = Duration::from_micros(400);
const WINDOW_MAX: Duration = Duration::from_millis(5);

/// If nobody came for half of the window, nobody else is expected.
const QUIET: u32 = 2;

/// The shortest sleep worth its system call.
pub const NAP: Duration = Duration::from_micros(50);

pub struct Gather {
    /// The window as a share of the time of a commit.
    share: f64,
    /// How much of the expected company remains after a smaller batch.
    fade: f64,
    /// Smoothed time of a commit, in seconds.
    commit: f64,
    /// Commands that are expected to come together.
    company: usize,
}

impl Default for Gather {
    fn default() -> Self {
        Self::before_a_sync()
    }
}

impl Gather {
    pub fn before_a_sync() -> Self {
        Self { share: 0.15, fade: 0.0, commit: 0.0, company: 0 }
    }

    pub fn before_a_transaction() -> Self {
        Self { share: 1.0, fade: 0.95, ..Self::before_a_sync() }
    }

    pub fn learn(&mut self, commit: Duration, commands: usize) {
        self.commit =
            if self.commit == 0.0 { commit.as_secs_f64() } else { self.commit * 0.8 + commit.as_secs_f64() * 0.2 };
        self.company = commands.max((self.company as f64 * self.fade) as usize);
    }

    /// Whether handing a sync over to another thread would take longer than the sync.
    pub fn is_fast(&self) -> bool {
        self.commit < HAND_OVER.as_secs_f64()
    }

    /// Whether to wait longer: `waiting` are here, it waited for `waited` so far, and the last one came `quiet` ago.
    pub fn waits(&self, waiting: usize, waited: Duration, quiet: Duration) -> bool {
        self.window(waiting).is_some_and(|window| waited < window && quiet * QUIET < window)
    }

    /// None: go at once.
    fn window(&self, waiting: usize) -> Option<Duration> {
        let alone = self.company < 2;
        let all_here = waiting >= self.company;
        if alone || all_here || self.commit < WORTH_IT.as_secs_f64() {
            return None;
        }
        Some(Duration::from_secs_f64(self.commit * self.share).min(WINDOW_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_on_a_fast_disk_or_alone() {
        let mut gather = Gather::before_a_sync();
        assert_eq!(gather.window(1), None);
        gather.learn(Duration::from_micros(50), 40);
        assert_eq!(gather.window(1), None, "fast disk");
        let mut gather = Gather::before_a_sync();
        gather.learn(Duration::from_millis(2), 1);
        assert_eq!(gather.window(1), None, "alone");
    }

    #[test]
    fn a_slow_disk_gathers_a_share_of_its_commit() {
        let mut gather = Gather::before_a_sync();
        gather.learn(Duration::from_millis(2), 40);
        assert!(!gather.is_fast());
        assert_eq!(gather.window(3), Some(Duration::from_micros(300)));
        assert_eq!(gather.window(40), None, "everybody is here already");
    }

    #[test]
    fn a_transaction_waits_for_those_who_came_together_lately_and_forgets_them() {
        let mut gather = Gather::before_a_transaction();
        gather.learn(Duration::from_millis(2), 40);
        assert_eq!(gather.window(3), Some(Duration::from_millis(2)));
        gather.learn(Duration::from_millis(2), 3);
        assert!(gather.window(37).is_some() && gather.window(38).is_none(), "some of the company were late");
        let batches = (0..).take_while(|_| {
            gather.learn(Duration::from_millis(2), 1);
            gather.window(1).is_some()
        });
        assert!(batches.count() < 40, "whoever is alone again does not wait for ever");
        gather.learn(Duration::from_secs(1), 40);
        assert_eq!(gather.window(1), Some(WINDOW_MAX));
    }

    #[test]
    fn it_waits_only_while_callers_keep_coming() {
        let mut gather = Gather::before_a_transaction();
        gather.learn(Duration::from_millis(2), 40);
        let waits =
            |waiting, waited, quiet| gather.waits(waiting, Duration::from_micros(waited), Duration::from_micros(quiet));
        assert!(waits(3, 1_900, 900));
        assert!(!waits(3, 1_900, 1_000), "nobody comes any more");
        assert!(!waits(3, 2_000, 0), "not longer than a transaction takes");
        assert!(!waits(40, 0, 0), "everybody is here");
    }
}
