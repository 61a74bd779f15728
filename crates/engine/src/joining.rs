//! Waiting claims that go along with the batch that makes their jobs ready: one commit between a submit and its pickup.
//!
//! The rules decide them last, so that they see the jobs and everything older. One that finds nothing writes nothing and keeps
//! its place in line; it looks once more, since it could not be woken meanwhile. What is left over wakes whoever waits, after the
//! commit, here and on other servers.

use crate::{
    ids,
    intake::Intake,
    store::StoreError,
    waiters::{TakenAlong, Waiters},
};
use parking_lot::Mutex;
use std::sync::Arc;
use windlass_core::{
    Job, Refusal, Reply,
    decider::{WaitingClaim, WaitingClaims},
};

/// Claims that go along with one batch; everybody else in it waits for them.
const CLAIMS_MAX: usize = 64;
/// Jobs that somebody is looked for.
const JOBS_MAX: usize = 1_000;

pub struct Joining {
    waiters: Arc<Waiters>,
    joined: Mutex<Vec<Joined>>,
}

struct Joined {
    taken: TakenAlong,
    claim: WaitingClaim,
    /// Jobs it can still take, if it gets those that it was taken along for.
    room: usize,
}

impl Joined {
    fn fits(&self, job: &Job) -> bool {
        let query = &self.taken.query;
        self.room > 0 && job.key.namespace == query.namespace && job.spec.tags.subset_of(&query.offered)
    }
}

impl std::fmt::Debug for Joining {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Joining({})", self.joined.lock().len())
    }
}

impl WaitingClaims for Joining {
    fn joined(&self) -> Vec<WaitingClaim> {
        self.joined.lock().iter().map(|joined| joined.claim.clone()).collect()
    }

    fn join(&self, ready: &mut dyn Iterator<Item = &Job>) -> Vec<WaitingClaim> {
        if self.waiters.is_empty() {
            return Vec::new();
        }
        let mut joined = self.joined.lock();
        let first = joined.len();
        for job in ready.take(JOBS_MAX) {
            let fitting = joined.iter_mut().filter(|joined| joined.fits(job));
            let earlier = fitting.min_by_key(|joined| joined.taken.id);
            let before = earlier.as_ref().map_or(u64::MAX, |joined| joined.taken.id);
            let Some(taken) = self.waiters.take(job, before) else {
                earlier.into_iter().for_each(|joined| joined.room -= 1);
                continue;
            };
            let (claim, by, line) = (taken.parked.claim.clone(), taken.parked.by.clone(), taken.query.clone());
            let room = claim.secrets.len().saturating_sub(1);
            joined.push(Joined { taken, claim: WaitingClaim { claim, seed: ids::seed(), line, by }, room });
            if joined.len() >= CLAIMS_MAX {
                break;
            }
        }
        // Who has waited longest takes first, also where others would take the same.
        joined[first..].sort_by_key(|joined| joined.taken.id);
        joined[first..].iter().map(|joined| joined.claim.clone()).collect()
    }
}

impl Joining {
    pub fn new(waiters: &Arc<Waiters>) -> Self {
        Self { waiters: waiters.clone(), joined: Mutex::default() }
    }

    /// The batch is committed: whoever got something hears of it, and the others stand in line again.
    pub fn committed(&self, replies: Vec<Result<Reply, Refusal>>, intake: &Intake) {
        let mut replies = replies.into_iter();
        for Joined { taken, .. } in std::mem::take(&mut *self.joined.lock()) {
            let Some(reply) = replies.next().filter(|reply| !is_nothing(reply)) else {
                self.waiters.put_back(taken);
                continue;
            };
            let TakenAlong { parked, query, .. } = taken;
            let abandon = parked.claim.request_id.is_none();
            if let (Err(Ok(undelivered)), true) = (parked.reply.send(Ok(vec![reply])), abandon) {
                intake.take_back(&query.namespace, undelivered);
            }
        }
    }

    /// The batch failed. Whether something was written for a claim has to be known before it goes on waiting.
    pub fn failed(&self, error: &StoreError) {
        let nothing_written = matches!(error, StoreError::Conflict(_) | StoreError::Full(_));
        for Joined { taken, .. } in std::mem::take(&mut *self.joined.lock()) {
            if nothing_written {
                self.waiters.put_back(taken);
            } else {
                drop(taken.parked.reply.send(Err(error.clone())));
            }
        }
    }
}

fn is_nothing(reply: &Result<Reply, Refusal>) -> bool {
    matches!(reply, Ok(Reply::Leases(leases)) if leases.is_empty())
}
