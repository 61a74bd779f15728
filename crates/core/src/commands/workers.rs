//! Register, heartbeat, drain and unregister workers.

use super::{Decided, release, submit::check_size};
use crate::{
    desk::{Desk, Stop},
    event::What,
    job::Reason,
    keys::{Keys, WorkerKey},
    life,
    name::{Namespace, Tags, WorkerId},
    policy::{OnlineFrom, Unregister, WorkerPolicy},
    record,
    refusal::Refusal,
    reply::Reply,
    worker::{self, Liveness, Worker},
};
use std::sync::Arc;

/// Registering again replaces what was registered, and is a sign of life.
#[derive(Clone, Debug)]
pub struct RegisterWorker {
    pub namespace: Namespace,
    pub worker: WorkerId,
    pub tags: Tags,
    pub slots: u32,
    pub owner: Option<Arc<str>>,
    pub policy: WorkerPolicy,
    pub extra: Option<Arc<str>>,
}

#[derive(Clone, Debug)]
pub struct Heartbeat {
    pub namespace: Namespace,
    pub worker: WorkerId,
}

/// The worker finishes what it holds and claims no more.
#[derive(Clone, Debug)]
pub struct DrainWorker {
    pub namespace: Namespace,
    pub worker: WorkerId,
    pub draining: bool,
}

/// What becomes of the worker and its jobs is its policy's to say; `how` overrides it (an operator deleting a worker).
#[derive(Clone, Debug)]
pub struct UnregisterWorker {
    pub namespace: Namespace,
    pub worker: WorkerId,
    pub how: Option<Unregister>,
}

fn want(namespace: &Namespace, worker: &WorkerId, keys: &mut Keys) {
    keys.want_record(record::key_of::<Worker>(namespace, worker.as_str()), true);
}

fn known(desk: &mut Desk, namespace: &Namespace, worker: &WorkerId) -> Result<Worker, Stop> {
    let found = desk.get::<Worker>(namespace, worker.as_str())?;
    found.ok_or_else(|| Refusal::not_found("worker", worker).into())
}

impl RegisterWorker {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        want(&self.namespace, &self.worker, keys);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        let limits = desk.limits();
        self.tags.check("tags", limits.worker_tags_max, &limits)?;
        self.policy.check(&limits)?;
        check_size("extra", self.extra.as_ref().map_or(0, |extra| extra.len()), limits.extra_bytes_max)?;
        let before = desk.get::<Worker>(&self.namespace, self.worker.as_str())?;
        let foreign = before.as_ref().is_some_and(|before| before.owner.is_some() && before.owner != self.owner);
        if foreign {
            return Err(
                Refusal::Forbidden { why: format!("the worker {} belongs to somebody else", self.worker) }.into()
            );
        }
        let absent = self.policy.online_from == OnlineFrom::FirstSign;
        let declared = if absent { Liveness::Offline } else { Liveness::Online };
        let mut worker = Worker {
            id: self.worker.clone(),
            tags: self.tags.clone(),
            slots: self.slots,
            owner: self.owner.clone(),
            registered_at: desk.now(),
            last_seen: before.as_ref().map_or(desk.now(), |before| before.last_seen),
            declared: before.as_ref().map_or(declared, |before| before.declared),
            away: before.as_ref().map_or(absent, |before| before.away),
            draining: false,
            policy: self.policy,
            extra: self.extra.clone(),
        };
        desk.tell(&self.namespace, What::WorkerRegistered { worker: self.worker.clone() });
        match self.policy.online_from {
            OnlineFrom::Registration => worker::seen(desk, &self.namespace, &mut worker)?,
            OnlineFrom::FirstSign => desk.put(&self.namespace, self.worker.as_str(), &worker)?,
        }
        Ok(Ok(Reply::Worker(Box::new(worker))))
    }
}

impl Heartbeat {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        want(&self.namespace, &self.worker, keys);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        let mut worker = known(desk, &self.namespace, &self.worker)?;
        worker::seen(desk, &self.namespace, &mut worker)?;
        Ok(Ok(Reply::Worker(Box::new(worker))))
    }
}

impl DrainWorker {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        want(&self.namespace, &self.worker, keys);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        let mut worker = known(desk, &self.namespace, &self.worker)?;
        if worker.draining != self.draining {
            worker.draining = self.draining;
            if self.draining {
                desk.tell(&self.namespace, What::WorkerDraining { worker: self.worker.clone() });
            }
            desk.put(&self.namespace, self.worker.as_str(), &worker)?;
        }
        Ok(Ok(Reply::Worker(Box::new(worker))))
    }
}

impl UnregisterWorker {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        want(&self.namespace, &self.worker, keys);
        keys.held.insert(WorkerKey { namespace: self.namespace.clone(), worker: self.worker.clone() });
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        let mut worker = known(desk, &self.namespace, &self.worker)?;
        match self.how.unwrap_or(worker.policy.unregister) {
            Unregister::Requeue => {
                let holder = WorkerKey { namespace: self.namespace.clone(), worker: self.worker.clone() };
                let held = desk.held(&holder)?;
                desk.for_all(held, |desk, job| match life::expire(desk, &job)? {
                    Some(_) => Ok(()),
                    None => release::release(desk, job).map(drop),
                })?;
                worker::delete(desk, &self.namespace, &self.worker, Reason::WorkerRemoved)?;
            }
            Unregister::Fail => worker::delete(desk, &self.namespace, &self.worker, Reason::WorkerRemoved)?,
            Unregister::Offline => {
                // The next sweep declares it, a ping brings it back.
                worker.away = true;
                desk.put(&self.namespace, self.worker.as_str(), &worker)?;
            }
        }
        Ok(Ok(Reply::Done))
    }
}
