//! Concurrency keys: at most so many jobs with the same key are pending or held at a time.
//!
//! The others are blocked, not pending, so a claim never steps over them; whoever frees a place promotes the next.

use crate::{
    desk::{Desk, Stop},
    job::Job,
    life,
    record::Kind,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyUse {
    pub used: u32,
}

impl Kind for KeyUse {
    const KIND: &'static str = "concurrency";
}

/// Takes a place for the job if there is one. True as well for a job without a key, or that has its place already.
pub(crate) fn take(desk: &mut Desk, job: &mut Job) -> Result<bool, Stop> {
    let Some(concurrency) = job.spec.concurrency.clone().filter(|_| !job.live.slot) else { return Ok(true) };
    let namespace = job.key.namespace.clone();
    let used = desk.get::<KeyUse>(&namespace, &concurrency.key)?.map_or(0, |key| key.used);
    if used >= concurrency.limit {
        return Ok(false);
    }
    desk.put(&namespace, &concurrency.key, &KeyUse { used: used + 1 })?;
    job.live.slot = true;
    Ok(true)
}

/// Gives the job's place back and hands it to the next in line; where limits differ, to as many as there is room for.
pub(crate) fn release(desk: &mut Desk, job: &mut Job) -> Result<(), Stop> {
    let Some(concurrency) = job.spec.concurrency.clone().filter(|_| job.live.slot) else { return Ok(()) };
    job.live.slot = false;
    let namespace = job.key.namespace.clone();
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
        let promoted = life::requeue_waiting(desk, next)?.live.slot;
        used += u32::from(promoted);
        if !promoted || used >= limit {
            break;
        }
    }
    Ok(())
}
