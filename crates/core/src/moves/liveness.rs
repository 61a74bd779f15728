//! What follows from a worker's signs of life, and from their absence.

use crate::{
    desk::{Desk, Stop},
    model::{
        event::What,
        job::{Job, Outcome, Reason},
        keys::WorkerKey,
        name::{Namespace, WorkerId},
        policy::AliveBy,
        refusal::Refusal,
        time::Millis,
        worker::{FormerWorker, Liveness, Worker},
    },
    moves::{concurrency, life, links},
};

/// A sign of life. Brings a worker back that was declared unreachable or offline.
pub(crate) fn seen(desk: &mut Desk, namespace: &Namespace, worker: &mut Worker) -> Result<(), Stop> {
    worker.last_seen = desk.now();
    worker.doubt_until = None;
    worker.away = false;
    if worker.declared != Liveness::Online {
        worker.declared = Liveness::Online;
        desk.tell(namespace, What::WorkerOnline { worker: worker.id.clone() });
    }
    desk.put(namespace, worker.id.clone().as_str(), worker)
}

/// Lifts a doubt. True: there was one.
pub(crate) fn trust(worker: &mut Worker) -> bool {
    worker.doubt_until.take().is_some()
}

/// Does not hold a silence against a worker that nobody was there to hear.
pub(crate) fn excuse(desk: &mut Desk, namespace: &Namespace, id: &WorkerId) -> Result<(), Stop> {
    match desk.get::<Worker>(namespace, id.as_str())? {
        Some(mut worker) if !worker.away && worker.declared != Liveness::Offline => {
            worker.last_seen = desk.now();
            worker.doubt_until = None;
            desk.put(namespace, id.as_str(), &worker)
        }
        _ => Ok(()),
    }
}

/// Counts any call of a worker as a sign of life where its policy says so; written at most every tenth of the threshold.
pub(crate) fn called(desk: &mut Desk, namespace: &Namespace, worker: &Worker) -> Result<(), Stop> {
    let threshold = worker.policy.unreachable_after.unwrap_or(worker.policy.offline_after);
    let stale = desk.now() - worker.last_seen >= Millis(threshold.0 / 10);
    let news = stale || worker.away || worker.declared != Liveness::Online || worker.doubt_until.is_some();
    let counts = worker.policy.alive_by == AliveBy::AnyCall && news;
    if !counts && worker.doubt_until.is_none() {
        return Ok(());
    }
    let Some(mut worker) = desk.get::<Worker>(namespace, worker.id.as_str())? else { return Ok(()) };
    if counts {
        seen(desk, namespace, &mut worker)
    } else if trust(&mut worker) {
        desk.put(namespace, worker.id.clone().as_str(), &worker)
    } else {
        Ok(())
    }
}

/// Ties a lease to the life of its worker: the worker's row is locked, so that it cannot be removed meanwhile, and one
/// that was declared offline is put before the sweep again, which would otherwise never come to end the lease.
pub(crate) fn bind(desk: &mut Desk, namespace: &Namespace, id: &WorkerId) -> Result<(), Stop> {
    let found = desk.get::<Worker>(namespace, id.as_str())?;
    let mut worker = found.ok_or_else(|| Refusal::not_found("worker", id))?;
    if worker.declared == Liveness::Offline {
        worker.declared = Liveness::Unreachable;
        desk.put(namespace, id.as_str(), &worker)?;
    }
    Ok(())
}

/// What the sweep does when a worker's time has come.
pub(crate) fn age(desk: &mut Desk, namespace: &Namespace, id: &str) -> Result<(), Stop> {
    let Some(mut worker) = desk.get::<Worker>(namespace, id)? else { return Ok(()) };
    let now = desk.now();
    let last_seen = desk.stalls().last_seen(worker.last_seen, now);
    if last_seen > worker.last_seen && !worker.away && worker.declared != Liveness::Offline {
        (worker.last_seen, worker.doubt_until) = (last_seen, None);
    }
    let liveness = worker.liveness(now);
    if liveness == Liveness::Unreachable && worker.declared == Liveness::Online {
        worker.declared = Liveness::Unreachable;
        desk.tell(namespace, What::WorkerUnreachable { worker: worker.id.clone() });
    }
    if liveness == Liveness::Offline && worker.declared != Liveness::Offline {
        worker.declared = Liveness::Offline;
        desk.tell(namespace, What::WorkerOffline { worker: worker.id.clone() });
        lose_jobs(desk, namespace, &worker.id, Reason::WorkerLost, true)?;
        concurrency::free_places(desk, namespace, &worker.id, true)?;
    }
    let gone = worker.declared == Liveness::Offline
        && worker.policy.delete_after.is_some_and(|after| worker.silence(now) >= after);
    if gone {
        // A lease with a time of its own was granted until then, and is not taken away because its worker is quiet.
        return remove(desk, namespace, &worker.id);
    }
    // Also where nothing happened: this moves the due time on.
    desk.put(namespace, id, &worker)
}

/// Removes the worker; jobs it still holds are lost. Answers how many.
pub(crate) fn delete(desk: &mut Desk, namespace: &Namespace, id: &WorkerId, reason: Reason) -> Result<u32, Stop> {
    let lost = lose_jobs(desk, namespace, id, reason, false)?;
    concurrency::free_places(desk, namespace, id, false)?;
    remove(desk, namespace, id)?;
    Ok(lost)
}

/// With all that hangs on it.
fn remove(desk: &mut Desk, namespace: &Namespace, id: &WorkerId) -> Result<(), Stop> {
    links::remove_all(desk, namespace, id)?;
    remember(desk, namespace, id)?;
    desk.remove::<Worker>(namespace, id.as_str())?;
    desk.tell(namespace, What::WorkerDeleted { worker: id.clone() });
    Ok(())
}

/// Where its policy says so.
fn remember(desk: &mut Desk, namespace: &Namespace, id: &WorkerId) -> Result<(), Stop> {
    let Some(worker) = desk.get::<Worker>(namespace, id.as_str())? else { return Ok(()) };
    let Some(kept) = worker.policy.kept_after else { return Ok(()) };
    let deleted_at = desk.now();
    desk.put(namespace, id.as_str(), &FormerWorker { worker, deleted_at, until: deleted_at + kept })
}

/// Answers how many. `only_bound`: only jobs whose lease lives and dies with the worker.
fn lose_jobs(
    desk: &mut Desk,
    namespace: &Namespace,
    id: &WorkerId,
    reason: Reason,
    only_bound: bool,
) -> Result<u32, Stop> {
    let mut lost = 0;
    let message = if reason == Reason::WorkerRemoved { "worker removed" } else { "worker lost" };
    for_each_held(desk, namespace, id, only_bound, |desk, job| {
        lost += 1;
        life::attempt_failed(desk, job, Outcome::new(reason, message), true).map(drop)
    })?;
    Ok(lost)
}

/// Hands over the jobs the worker holds, one by one, but for those whose lease had run out before.
pub(crate) fn for_each_held(
    desk: &mut Desk,
    namespace: &Namespace,
    id: &WorkerId,
    only_bound: bool,
    mut each: impl FnMut(&mut Desk, Job) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let held = desk.held(&WorkerKey { namespace: namespace.clone(), worker: id.clone() })?;
    desk.for_all(held, |desk, job| {
        // Looked at again, because the end of one may have been the end of the next: it may have cancelled their run.
        let meant = |job: &Job| job.holder() == Some(id) && (!only_bound || job.lives_with_worker());
        let Some(job) = desk.job(&job.key)?.filter(meant) else { return Ok(()) };
        match life::expire(desk, &job)? {
            Some(_) => Ok(()),
            None => each(desk, job),
        }
    })
}
