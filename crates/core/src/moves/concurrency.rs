//! Concurrency keys: at most so many jobs with the same key are pending or held at a time.
//!
//! The others are blocked, not pending, so a claim never steps over them; whoever frees a place promotes the next.

use crate::{
    desk::{Desk, Stop},
    model::{
        job::Job,
        keys::JobKey,
        name::{Namespace, WorkerId},
        record::Kind,
    },
    moves::life,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyUse {
    pub used: u32,
}

impl Kind for KeyUse {
    const KIND: &'static str = "concurrency";
}

/// Kept under the id of a job that was taken from its holder and still has its place: so that the place is found when that worker goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptPlace {
    pub worker: Arc<str>,
}

impl Kind for KeptPlace {
    const KIND: &'static str = "kept_place";
    fn parent(&self) -> Option<Arc<str>> {
        Some(self.worker.clone())
    }
}

/// Takes a place for the job if there is one. True as well for a job without a key, or that has its place already.
pub(crate) fn take(desk: &mut Desk, job: &mut Job) -> Result<bool, Stop> {
    let Some(concurrency) = job.spec.concurrency.clone().filter(|_| !job.live.has_place) else { return Ok(true) };
    let namespace = job.key.namespace.clone();
    let used = desk.get::<KeyUse>(&namespace, &concurrency.key)?.map_or(0, |key| key.used);
    if used >= concurrency.limit {
        return Ok(false);
    }
    desk.put(&namespace, &concurrency.key, &KeyUse { used: used + 1 })?;
    job.live.has_place = true;
    Ok(true)
}

/// Gives the job's place back and hands it to the next in line; where limits differ, to as many as there is room for.
pub(crate) fn release(desk: &mut Desk, job: &mut Job) -> Result<(), Stop> {
    let Some(concurrency) = job.spec.concurrency.clone().filter(|_| job.live.has_place) else { return Ok(()) };
    job.live.has_place = false;
    let namespace = job.key.namespace.clone();
    if job.live.place_until.take().is_some() {
        desk.remove::<KeptPlace>(&namespace, &job.key.id.to_string())?;
    }
    let used = desk.get::<KeyUse>(&namespace, &concurrency.key)?.map_or(0, |key| key.used).saturating_sub(1);
    if used == 0 {
        desk.remove::<KeyUse>(&namespace, &concurrency.key)?;
    } else {
        desk.put(&namespace, &concurrency.key, &KeyUse { used })?;
    }
    let (mut used, mut limit) = (used, concurrency.limit);
    while let Some(next) = desk.next_in_key_queue(&namespace, &concurrency.key)? {
        limit = limit.max(next.spec.concurrency.as_ref().map_or(0, |next| next.limit));
        // Strict order: nobody overtakes the first in line, however small its limit.
        let promoted = life::requeue_waiting(desk, next)?.live.has_place;
        used += u32::from(promoted);
        if !promoted || used >= limit {
            break;
        }
    }
    Ok(())
}

/// Keeps the place of a job that is taken from its holder: until the holder says that its work has stopped, at most as long as
/// the lease would have lasted.
pub(crate) fn keep_place(desk: &mut Desk, job: &mut Job) -> Result<(), Stop> {
    let Some(lease) = job.live.lease.as_ref().filter(|_| job.live.has_place && job.state.is_held()) else {
        return Ok(());
    };
    let over = lease.until.unwrap_or_else(|| desk.now() + lease.length);
    let kept = KeptPlace { worker: lease.worker.as_str().into() };
    job.live.place_until = Some(lease.deadline.map_or(over, |deadline| over.min(deadline)));
    desk.put(&job.key.namespace, &job.key.id.to_string(), &kept)
}

/// A worker is gone, and with it whatever it may still have been at. `only_bound`: only where its leases lived and died with it.
pub(crate) fn free_places(
    desk: &mut Desk,
    namespace: &Namespace,
    worker: &WorkerId,
    only_bound: bool,
) -> Result<(), Stop> {
    let kept = desk.siblings(namespace, KeptPlace::KIND, worker.as_str())?;
    desk.for_all(kept, |desk, kept| {
        let Ok(id) = kept.key.parse() else { return Ok(()) };
        let meant = |job: &Job| job.live.place_until.is_some() && (!only_bound || job.lives_with_worker());
        match desk.job(&JobKey::new(namespace, id))?.filter(meant) {
            Some(job) => free_place(desk, job).map(drop),
            None => Ok(()),
        }
    })
}

/// The place that an ended job still has is free: its holder confirmed, or its time is over.
pub(crate) fn free_place(desk: &mut Desk, mut job: Job) -> Result<Job, Stop> {
    release(desk, &mut job)?;
    desk.put_job(job.clone());
    Ok(job)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::testing::{Story, after, id, keyed};

    #[test]
    fn a_key_lets_through_so_many_in_order() {
        let mut story = Story::new();
        let mut urgent = keyed(4, 2);
        urgent.priority = 1;
        for job in [keyed(1, 2), keyed(2, 2), keyed(3, 2), urgent] {
            story.submit(job);
        }
        assert_eq!(story.states(4), ["pending", "pending", "blocked", "blocked"]);
        let leases = story.claims("w", 5);
        assert_eq!(leases.len(), 2, "what is blocked is never stepped over");
        story.complete(leases[0]).unwrap();
        assert_eq!(story.states(4)[2..], ["blocked", "pending"], "the urgent one first");
        story.fail(leases[1]).unwrap();
        assert_eq!(story.states(4)[2..], ["pending", "pending"]);
    }

    #[test]
    fn many_places_freed_in_one_batch_go_to_as_many() {
        let mut story = Story::new();
        for number in 1..=40 {
            story.submit(keyed(number, 10));
        }
        let leases = story.claims("w", 40);
        let commands = leases.iter().map(|&lease| crate::commands::testing::failure(lease).into()).collect();
        let before = story.tables.loads;
        story.batch(commands);
        assert_eq!(story.claims("w", 40).len(), 10);
        assert!(story.tables.loads - before < 10, "{} loads", story.tables.loads - before);
    }

    #[test]
    fn where_limits_differ_every_free_place_is_used() {
        let mut story = Story::new();
        for number in 1..=3 {
            story.submit(keyed(number, 3));
        }
        let leases = story.claims("w", 3);
        story.submit(keyed(4, 1));
        story.submit(keyed(5, 3));
        story.submit(keyed(6, 3));
        story.complete(leases[0]).unwrap();
        assert_eq!(story.states(6)[3..], ["blocked", "blocked", "blocked"], "nobody overtakes the first in line");
        story.complete(leases[1]).unwrap();
        story.complete(leases[2]).unwrap();
        assert_eq!(story.states(6)[3..], ["pending", "pending", "pending"]);
    }

    #[test]
    fn a_job_that_waits_for_others_takes_no_place() {
        let mut story = Story::new();
        let lease = story.submit_and_claim(crate::commands::testing::once(1));
        let mut child = after(2, &[1]);
        child.concurrency = keyed(2, 1).concurrency;
        story.submit(child);
        story.submit(keyed(3, 1));
        assert_eq!(story.states(3)[1..], ["blocked", "pending"]);
        story.complete(lease).unwrap();
        assert_eq!(story.states(3)[1..], ["blocked", "pending"]);
        let lease = story.claim("w");
        assert_eq!(lease.job, id(3));
        story.cancel(3).unwrap();
        assert_eq!(story.states(3)[1..], ["blocked", "cancelled"], "its holder may still be at it");
        assert!(story.release(lease).is_err());
        assert_eq!(story.states(3)[1..], ["pending", "cancelled"]);
        story.cancel(2).unwrap();
        assert!(story.typed::<KeyUse>("k").is_none(), "an unused key leaves nothing behind");
    }
}
