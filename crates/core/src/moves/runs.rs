//! What becomes of a run when its jobs end, and of its jobs when it ends. The planner is the dependency rule of
//! [`crate::moves::life`], applied in the very transaction that ends a job; a run only keeps the count.

use crate::{
    desk::{Desk, Stop},
    model::{
        event::What,
        id::RunId,
        job::{CancelRequest, Job, Outcome, Reason, State},
        name::Namespace,
        policy::CancelPolicy,
        run::Run,
    },
    moves::{concurrency, life, steps},
};
use std::sync::Arc;

/// Counts a job that has ended, and ends the run with its last one.
pub(crate) fn job_ended(desk: &mut Desk, job: &Job) -> Result<(), Stop> {
    // What was replaced goes on as its copy, which is counted in its place.
    let Some(id) = job.run().filter(|_| job.live.retry_job.is_none()) else { return Ok(()) };
    let namespace = job.key.namespace.clone();
    let Some(mut run) = desk.get::<Run>(&namespace, &id.to_string())? else { return Ok(()) };
    run.open = run.open.saturating_sub(1);
    match job.state {
        State::Completed => run.completed += 1,
        State::Failed => run.failed += 1,
        State::Cancelled => run.cancelled += 1,
        State::Skipped => run.skipped += 1,
        State::Blocked | State::Scheduled | State::Pending | State::Claimed | State::Running => {}
    }
    if run.open == 0 && run.compensates && !run.undone && run.failed > 0 && run.cancel.is_none() {
        steps::call(desk, &namespace, id, None)?;
    } else if run.open == 0 {
        finish(desk, &namespace, id, &mut run);
    }
    desk.put(&namespace, &id.to_string(), &run)
}

/// Ends the run; the caller writes it.
pub(crate) fn finish(desk: &mut Desk, namespace: &Namespace, id: RunId, run: &mut Run) {
    run.finished_at = Some(desk.now());
    run.purge_at = Some(desk.now() + desk.limits().retention).max(run.keep_until);
    desk.tell(namespace, What::RunFinished { run: id, state: run.state() });
}

/// Cancels every unfinished job of the run `member` belongs to. Gives back the jobs that ended by it.
pub(crate) fn cancel_open(desk: &mut Desk, member: &Job, why: &Arc<str>) -> Result<Vec<Job>, Stop> {
    let run = member.run().expect("the caller looked");
    cancel_all(desk, &member.key.namespace, run, why)
}

/// One of its jobs has failed, and the others need not begin any more. Gives back the jobs that ended by it.
pub(crate) fn cancel_pending(desk: &mut Desk, failed: &Job) -> Result<Vec<Job>, Stop> {
    let Some(run) = failed.run() else { return Ok(Vec::new()) };
    let begins = |job: &Job| match job.state {
        State::Pending | State::Scheduled => true,
        State::Blocked => job.live.waiting == 0,
        _ => false,
    };
    let why = life::parent_outcome(failed).message;
    cancel_some(desk, &failed.key.namespace, run, &why, begins)
}

pub(crate) fn cancel_all(desk: &mut Desk, namespace: &Namespace, run: RunId, by: &Arc<str>) -> Result<Vec<Job>, Stop> {
    cancel_some(desk, namespace, run, by, |_| true)
}

pub(crate) fn cancel_some(
    desk: &mut Desk,
    namespace: &Namespace,
    run: RunId,
    by: &Arc<str>,
    which: impl Fn(&Job) -> bool,
) -> Result<Vec<Job>, Stop> {
    let mut ended = Vec::new();
    let mut open = desk.open_jobs(namespace, run)?;
    open.retain(which);
    desk.for_all(open, |desk, job| {
        // The end of an earlier one may have let this one go on, or ended it.
        let Some(mut job) = desk.job(&job.key)?.filter(|job| !job.state.is_final()) else { return Ok(()) };
        let drains = job.spec.policy.cancel == CancelPolicy::Drain && job.state.is_held();
        if drains && job.overdue(desk.now()).is_none() {
            if job.live.cancel.is_none() {
                job.live.cancel = Some(CancelRequest::new(by, desk.now()));
                desk.tell(namespace, What::CancelRequested { job: job.key.id, by: by.clone() });
                desk.put_job(job);
            }
            return Ok(());
        }
        job.live.cancel.get_or_insert(CancelRequest::new(by, desk.now()));
        if job.overdue(desk.now()).is_none() {
            concurrency::keep_place(desk, &mut job)?;
        }
        ended.push(life::close(desk, job, State::Cancelled, Some(Outcome::new(Reason::Cancelled, by.clone())))?);
        Ok(())
    })?;
    Ok(ended)
}
