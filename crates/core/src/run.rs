//! Runs: one execution of a graph of jobs. The planner is the dependency rule of [`crate::life`], applied in the very
//! transaction that ends a job; a run only keeps the count, and its state follows from it.

use crate::{
    concurrency,
    desk::{Desk, Stop},
    event::What,
    id::RunId,
    is_default,
    job::{CancelRequest, DefinitionRef, Job, Outcome, Reason, State},
    keys::RecordKey,
    life,
    name::Namespace,
    policy::CancelPolicy,
    record::{Kind, key_of},
    stage,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "is_default")]
    pub owner: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub definition: Option<DefinitionRef>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub finished_at: Option<Timestamp>,
    pub total: u32,
    /// Jobs that have not ended.
    pub open: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    pub completed: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    pub failed: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    pub cancelled: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    pub skipped: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    pub cancel: Option<CancelRequest>,
    /// When the sweep removes it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub purge_at: Option<Timestamp>,
    /// Not removed before this time, whatever the retention.
    #[serde(default, skip_serializing_if = "is_default")]
    pub keep_until: Option<Timestamp>,
    /// Some of its steps can be undone: if it fails, the planner says what is.
    #[serde(default, skip_serializing_if = "is_default")]
    pub compensates: bool,
    /// The planner has said it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub undone: bool,
    /// The run whose results it kept.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry_of: Option<RunId>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub extra: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    Running,
    Completed,
    Failed,
    Cancelled,
}

impl Kind for Run {
    const KIND: &'static str = "run";
    fn due(&self) -> Option<Timestamp> {
        self.purge_at
    }
}

impl Run {
    pub fn state(&self) -> RunState {
        if self.finished_at.is_none() {
            RunState::Running
        } else if self.failed > 0 {
            RunState::Failed
        } else if self.cancelled > 0 || self.cancel.is_some() {
            RunState::Cancelled
        } else {
            RunState::Completed
        }
    }
}

/// The record of the run a job belongs to: whoever ends the job writes it.
pub fn key_for(job: &Job) -> Option<RecordKey> {
    Some(key_of::<Run>(&job.key.namespace, &job.run()?.to_string()))
}

/// Counts a job that has ended, and ends the run with its last one.
pub(crate) fn job_ended(desk: &mut Desk, job: &Job) -> Result<(), Stop> {
    let Some(id) = job.run() else { return Ok(()) };
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
        stage::call(desk, &namespace, id, None)?;
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

pub(crate) fn cancel_all(desk: &mut Desk, namespace: &Namespace, run: RunId, by: &Arc<str>) -> Result<Vec<Job>, Stop> {
    let mut ended = Vec::new();
    let open = desk.open_jobs(namespace, run)?;
    desk.for_all(open, |desk, job| {
        // The end of an earlier one may have let this one go on.
        let Some(mut job) = desk.job(&job.key)? else { return Ok(()) };
        let drains = job.spec.policy.cancel == CancelPolicy::Drain && job.state.is_held();
        if drains && job.overdue(desk.now()).is_none() {
            if job.live.cancel.is_none() {
                job.live.cancel = Some(CancelRequest { by: by.clone(), at: desk.now() });
                desk.tell(namespace, What::CancelRequested { job: job.key.id, by: by.clone() });
                desk.put_job(job);
            }
            return Ok(());
        }
        job.live.cancel.get_or_insert(CancelRequest { by: by.clone(), at: desk.now() });
        if job.overdue(desk.now()).is_none() {
            concurrency::keep_place(desk, &mut job)?;
        }
        ended.push(life::close(desk, job, State::Cancelled, Some(Outcome::new(Reason::Cancelled, by.clone())))?);
        Ok(())
    })?;
    Ok(ended)
}
