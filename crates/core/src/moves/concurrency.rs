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
