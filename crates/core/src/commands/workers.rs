//! Register, heartbeat, drain and unregister workers.

use super::{Decided, release, submit::check_size};
use crate::{
    desk::{Desk, Stop},
    model::{
        event::What,
        job::Reason,
        keys::{Keys, WorkerKey},
        link::{Link, TIED},
        name::{Namespace, Tags, WorkerId},
        policy::{OnlineFrom, Unregister, WorkerPolicy},
        record::{self, Kind},
        refusal::Refusal,
        reply::Unregistered,
        worker::{Liveness, Worker},
    },
    moves::{concurrency::KeptPlace, liveness},
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
    /// Who says so, where tokens are in force: nobody gives signs of life in another's name.
    pub principal: Option<Arc<str>>,
}

/// The worker finishes what it holds and claims no more.
#[derive(Clone, Debug)]
pub struct DrainWorker {
    pub namespace: Namespace,
    pub worker: WorkerId,
    pub draining: bool,
    /// None: an operator.
    pub principal: Option<Arc<str>>,
}

/// What becomes of the worker and its jobs is its policy's to say; `how` overrides it (an operator deleting a worker).
#[derive(Clone, Debug)]
pub struct UnregisterWorker {
    pub namespace: Namespace,
    pub worker: WorkerId,
    pub how: Option<Unregister>,
    /// Only if it is offline still: whoever cleans up does not race with a sign of life.
    pub only_offline: bool,
    /// None: an operator.
    pub principal: Option<Arc<str>>,
}

pub(crate) fn want(namespace: &Namespace, worker: &WorkerId, keys: &mut Keys) {
    keys.want_record(record::key_of::<Worker>(namespace, worker.as_str()), true);
}

/// The worker, if there is one and the caller may act for it.
pub(crate) fn known(
    desk: &mut Desk,
    namespace: &Namespace,
    worker: &WorkerId,
    principal: Option<&Arc<str>>,
) -> Result<Worker, Stop> {
    let found = desk.get::<Worker>(namespace, worker.as_str())?;
    let found = found.ok_or_else(|| Refusal::not_found("worker", worker))?;
    found.check_owner(principal)?;
    Ok(found)
}

impl RegisterWorker {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        want(&self.namespace, &self.worker, keys);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Box<Worker>> {
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
            doubt_until: None,
            declared: before.as_ref().map_or(declared, |before| before.declared),
            away: before.as_ref().map_or(absent, |before| before.away),
            draining: false,
            unregistered: false,
            policy: self.policy,
            extra: self.extra.clone(),
        };
        desk.tell(&self.namespace, What::WorkerRegistered { worker: self.worker.clone() });
        match self.policy.online_from {
            OnlineFrom::Registration => liveness::seen(desk, &self.namespace, &mut worker)?,
            OnlineFrom::FirstSign => desk.put(&self.namespace, self.worker.as_str(), &worker)?,
        }
        Ok(Ok(Box::new(worker)))
    }
}

impl Heartbeat {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        want(&self.namespace, &self.worker, keys);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Box<Worker>> {
        let mut worker = known(desk, &self.namespace, &self.worker, self.principal.as_ref())?;
        liveness::seen(desk, &self.namespace, &mut worker)?;
        Ok(Ok(Box::new(worker)))
    }
}

impl DrainWorker {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        want(&self.namespace, &self.worker, keys);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Box<Worker>> {
        let mut worker = known(desk, &self.namespace, &self.worker, self.principal.as_ref())?;
        if worker.draining != self.draining {
            worker.draining = self.draining;
            let id = self.worker.clone();
            let told =
                if self.draining { What::WorkerDraining { worker: id } } else { What::WorkerUndrained { worker: id } };
            desk.tell(&self.namespace, told);
            desk.put(&self.namespace, self.worker.as_str(), &worker)?;
        }
        Ok(Ok(Box::new(worker)))
    }
}

impl UnregisterWorker {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        want(&self.namespace, &self.worker, keys);
        keys.held.insert(WorkerKey { namespace: self.namespace.clone(), worker: self.worker.clone() });
        for kind in [KeptPlace::KIND, Link::KIND, TIED] {
            keys.siblings.insert((self.namespace.clone(), kind.into(), self.worker.as_str().into()));
        }
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Unregistered> {
        let mut worker = known(desk, &self.namespace, &self.worker, self.principal.as_ref())?;
        if self.only_offline && worker.liveness(desk.now()) != Liveness::Offline {
            let why = format!("the worker {} is not offline any more", self.worker);
            return Err(Refusal::Forbidden { why }.into());
        }
        let mut lost = 0;
        match self.how.unwrap_or(worker.policy.unregister) {
            Unregister::Requeue => {
                let release = |desk: &mut Desk, job| release::release(desk, job).map(drop);
                liveness::for_each_held(desk, &self.namespace, &self.worker, false, release)?;
                liveness::delete(desk, &self.namespace, &self.worker, Reason::WorkerRemoved)?;
            }
            Unregister::Fail => lost = liveness::delete(desk, &self.namespace, &self.worker, Reason::WorkerRemoved)?,
            Unregister::Offline => {
                // The next sweep declares it, a ping brings it back.
                worker.away = true;
                worker.last_seen = desk.now();
                desk.put(&self.namespace, self.worker.as_str(), &worker)?;
            }
        }
        Ok(Ok(Unregistered { lost }))
    }
}
