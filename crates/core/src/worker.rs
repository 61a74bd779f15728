//! Workers and whether they are believed to be alive.
//!
//! `online → unreachable → offline → deleted`, each after so long without a sign of life. What a reader sees is derived
//! from the last sign of life; what follows from it (jobs lost, events) happens once, when the sweep declares it.

use crate::{
    desk::{Desk, Stop},
    event::What,
    is_default,
    job::{Outcome, Reason},
    keys::WorkerKey,
    life,
    name::{Namespace, Tags, WorkerId},
    policy::{AliveBy, WorkerPolicy},
    record::Kind,
    time::{Millis, Timestamp},
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Worker {
    pub id: WorkerId,
    #[serde(default, skip_serializing_if = "is_default")]
    pub tags: Tags,
    #[serde(default, skip_serializing_if = "is_default")]
    pub slots: u32,
    /// The principal that registered it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub owner: Option<Arc<str>>,
    pub registered_at: Timestamp,
    pub last_seen: Timestamp,
    pub declared: Liveness,
    #[serde(default, skip_serializing_if = "is_default")]
    pub draining: bool,
    pub policy: WorkerPolicy,
    #[serde(default, skip_serializing_if = "is_default")]
    pub extra: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Liveness {
    Online,
    Unreachable,
    Offline,
}

impl Liveness {
    pub fn name(self) -> &'static str {
        match self {
            Liveness::Online => "online",
            Liveness::Unreachable => "unreachable",
            Liveness::Offline => "offline",
        }
    }
}

impl Kind for Worker {
    const KIND: &'static str = "worker";
    fn due(&self) -> Option<Timestamp> {
        let after = match self.declared {
            Liveness::Online => Some(self.policy.unreachable_after.unwrap_or(self.policy.offline_after)),
            Liveness::Unreachable => Some(self.policy.offline_after),
            Liveness::Offline => self.policy.delete_after,
        };
        after.map(|after| self.last_seen + after)
    }
}

impl Worker {
    /// What a reader sees now, whether or not a sweep ran.
    pub fn liveness(&self, now: Timestamp) -> Liveness {
        let silent = now - self.last_seen;
        if silent >= self.policy.offline_after {
            Liveness::Offline
        } else if self.policy.unreachable_after.is_some_and(|after| silent >= after) {
            Liveness::Unreachable
        } else {
            Liveness::Online
        }
    }
}

/// A sign of life. Brings a worker back that was declared unreachable or offline.
pub(crate) fn seen(desk: &mut Desk, namespace: &Namespace, worker: &mut Worker) -> Result<(), Stop> {
    worker.last_seen = desk.now();
    if worker.declared != Liveness::Online {
        worker.declared = Liveness::Online;
        desk.tell(namespace, What::WorkerOnline { worker: worker.id.clone() });
    }
    desk.put(namespace, worker.id.clone().as_str(), worker)
}

/// Counts any call of a worker as a sign of life where its policy says so; written at most every tenth of the threshold.
pub(crate) fn called(desk: &mut Desk, namespace: &Namespace, id: &WorkerId) -> Result<(), Stop> {
    match desk.peek::<Worker>(namespace, id.as_str())? {
        Some(worker) => called_by(desk, namespace, &worker),
        None => Ok(()),
    }
}

/// As [`called`], for those who have looked the worker up already.
pub(crate) fn called_by(desk: &mut Desk, namespace: &Namespace, worker: &Worker) -> Result<(), Stop> {
    let threshold = worker.policy.unreachable_after.unwrap_or(worker.policy.offline_after);
    let stale = desk.now() - worker.last_seen >= Millis(threshold.0 / 10);
    if worker.policy.alive_by == AliveBy::AnyCall && (stale || worker.declared != Liveness::Online) {
        if let Some(mut worker) = desk.get::<Worker>(namespace, worker.id.as_str())? {
            seen(desk, namespace, &mut worker)?;
        }
    }
    Ok(())
}

/// What the sweep does when a worker's time has come.
pub(crate) fn age(desk: &mut Desk, namespace: &Namespace, id: &str) -> Result<(), Stop> {
    let Some(mut worker) = desk.get::<Worker>(namespace, id)? else { return Ok(()) };
    let now = desk.now();
    let liveness = worker.liveness(now);
    if liveness == Liveness::Unreachable && worker.declared == Liveness::Online {
        worker.declared = Liveness::Unreachable;
        desk.tell(namespace, What::WorkerUnreachable { worker: worker.id.clone() });
    }
    if liveness == Liveness::Offline && worker.declared != Liveness::Offline {
        worker.declared = Liveness::Offline;
        desk.tell(namespace, What::WorkerOffline { worker: worker.id.clone() });
        lose_jobs(desk, namespace, &worker.id, Reason::WorkerLost, true)?;
    }
    let gone = worker.declared == Liveness::Offline
        && worker.policy.delete_after.is_some_and(|after| now - worker.last_seen >= after);
    if gone {
        return delete(desk, namespace, &worker.id, Reason::WorkerLost);
    }
    // Also where nothing happened: this moves the due time on.
    desk.put(namespace, id, &worker)
}

/// Removes the worker; jobs it still holds are lost.
pub(crate) fn delete(desk: &mut Desk, namespace: &Namespace, id: &WorkerId, reason: Reason) -> Result<(), Stop> {
    lose_jobs(desk, namespace, id, reason, false)?;
    desk.remove::<Worker>(namespace, id.as_str())?;
    desk.tell(namespace, What::WorkerDeleted { worker: id.clone() });
    Ok(())
}

/// `only_bound`: only jobs whose lease lives and dies with the worker.
fn lose_jobs(
    desk: &mut Desk,
    namespace: &Namespace,
    id: &WorkerId,
    reason: Reason,
    only_bound: bool,
) -> Result<(), Stop> {
    let holder = WorkerKey { namespace: namespace.clone(), worker: id.clone() };
    for job in desk.held(&holder)? {
        if !only_bound || job.lives_with_worker() {
            let message = if reason == Reason::WorkerRemoved { "worker removed" } else { "worker lost" };
            life::attempt_failed(desk, job, Outcome::new(reason, message), true)?;
        }
    }
    Ok(())
}
