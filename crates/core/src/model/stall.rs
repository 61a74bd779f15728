//! Times in which a server did not respond. Its workers could not renew meanwhile, so these times do not count against them:
//! a lease that was valid when a stall began is valid for its full length after the stall ended, as it is after a restart.

use crate::model::{
    job::Lease,
    time::{Millis, Timestamp},
};

/// How many are remembered. Older ones are forgotten: every live worker has renewed since.
const STALLS_MAX: usize = 4;

/// Told as how long ago, so that it is right by whatever clock the batch is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    pub began: Millis,
    pub ended: Millis,
}

/// The latest ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls([Option<Stall>; STALLS_MAX]);

impl Stalls {
    pub fn add(&mut self, stall: Stall) {
        self.0.rotate_right(1);
        self.0[0] = Some(stall);
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// Until when the lease is valid, if these make it longer. The hard deadline stays.
    pub fn extend(&self, lease: &Lease, now: Timestamp) -> Option<Timestamp> {
        let until = lease.until?;
        let valid = |stall: &&Stall| until > before(now, stall.began);
        let full = self.0.iter().flatten().filter(valid).map(|stall| before(now, stall.ended) + lease.length);
        full.max().filter(|full| *full > until)
    }

    /// When a worker counts as last seen that was seen then.
    pub fn last_seen(&self, seen: Timestamp, now: Timestamp) -> Timestamp {
        self.0.iter().flatten().map(|stall| before(now, stall.ended)).fold(seen, Timestamp::max)
    }
}

fn before(now: Timestamp, age: Millis) -> Timestamp {
    Timestamp(now.0.saturating_sub(age.0))
}
