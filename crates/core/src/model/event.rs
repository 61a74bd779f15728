//! What happened. An event commits together with the change it tells of, never before and never without it.

use crate::model::{
    id::{JobId, RunId},
    job::Reason,
    name::{Namespace, WorkerId},
    run::RunState,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    #[serde(rename = "ns")]
    pub namespace: Namespace,
    pub at: Timestamp,
    #[serde(flatten)]
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum What {
    Submitted {
        job: JobId,
    },
    /// Left blocked or scheduled for pending.
    Ready {
        job: JobId,
    },
    Claimed {
        job: JobId,
        worker: WorkerId,
        attempt: u32,
    },
    Started {
        job: JobId,
    },
    Progress {
        job: JobId,
        percent: f64,
        #[serde(default, skip_serializing_if = "crate::model::is_default")]
        message: Arc<str>,
    },
    Completed {
        job: JobId,
    },
    Failed {
        job: JobId,
        reason: Reason,
        #[serde(default, skip_serializing_if = "crate::model::is_default")]
        message: Arc<str>,
    },
    Requeued {
        job: JobId,
        reason: Reason,
    },
    Released {
        job: JobId,
    },
    CancelRequested {
        job: JobId,
        by: Arc<str>,
    },
    Cancelled {
        job: JobId,
        by: Arc<str>,
        #[serde(default, skip_serializing_if = "crate::model::is_default")]
        message: Arc<str>,
    },
    Skipped {
        job: JobId,
    },
    WorkerRegistered {
        worker: WorkerId,
    },
    WorkerOnline {
        worker: WorkerId,
    },
    WorkerUnreachable {
        worker: WorkerId,
    },
    WorkerOffline {
        worker: WorkerId,
    },
    WorkerDraining {
        worker: WorkerId,
    },
    /// It may claim again.
    WorkerUndrained {
        worker: WorkerId,
    },
    WorkerDeleted {
        worker: WorkerId,
    },
    RunStarted {
        run: RunId,
    },
    /// Jobs were added to it. Told before they are.
    RunGrew {
        run: RunId,
        jobs: u32,
    },
    RunFinished {
        run: RunId,
        state: RunState,
    },
    DefinitionPut {
        name: Arc<str>,
        version: u32,
    },
    DefinitionDeleted {
        name: Arc<str>,
    },
    /// A worker serves this definition; told again whenever it says so again.
    Linked {
        definition: Arc<str>,
        worker: WorkerId,
    },
    /// The worker is gone, and does not serve this definition any more.
    Unlinked {
        definition: Arc<str>,
        worker: WorkerId,
    },
    RecordPut {
        kind: Arc<str>,
        key: Arc<str>,
    },
    RecordDeleted {
        kind: Arc<str>,
        key: Arc<str>,
    },
    /// In a dialect's own words: what is made of records that only it understands. The rules never look into it.
    Told {
        topic: Arc<str>,
        /// JSON text.
        data: Arc<str>,
    },
    /// An operator did this; the change it made is told beside it.
    Audit {
        by: Arc<str>,
        act: Arc<str>,
        on: Arc<str>,
    },
}

/// What an event is about, and whether it is the end of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About<'a> {
    Job(JobId),
    JobEnd(JobId),
    Run(RunId),
    RunEnd(RunId),
    Worker(&'a WorkerId),
    /// The worker itself should hear of it at once.
    WorkerOrder(&'a WorkerId),
    Definition,
    Record,
    /// A dialect's own.
    Told,
    /// For those who may read the audit trail.
    Audit,
}

impl What {
    pub fn about(&self) -> About<'_> {
        match self {
            What::Submitted { job }
            | What::Ready { job }
            | What::Claimed { job, .. }
            | What::Started { job }
            | What::Progress { job, .. }
            | What::Requeued { job, .. }
            | What::Released { job }
            | What::CancelRequested { job, .. } => About::Job(*job),
            What::Completed { job }
            | What::Failed { job, .. }
            | What::Cancelled { job, .. }
            | What::Skipped { job } => About::JobEnd(*job),
            What::WorkerRegistered { worker }
            | What::WorkerOnline { worker }
            | What::WorkerUnreachable { worker }
            | What::WorkerOffline { worker } => About::Worker(worker),
            What::WorkerDraining { worker } | What::WorkerUndrained { worker } | What::WorkerDeleted { worker } => {
                About::WorkerOrder(worker)
            }
            What::RunStarted { run } | What::RunGrew { run, .. } => About::Run(*run),
            What::RunFinished { run, .. } => About::RunEnd(*run),
            What::DefinitionPut { .. }
            | What::DefinitionDeleted { .. }
            | What::Linked { .. }
            | What::Unlinked { .. } => About::Definition,
            What::RecordPut { .. } | What::RecordDeleted { .. } => About::Record,
            What::Told { .. } => About::Told,
            What::Audit { .. } => About::Audit,
        }
    }

    /// The job this is about, if it is about one.
    pub fn job(&self) -> Option<JobId> {
        match self.about() {
            About::Job(job) | About::JobEnd(job) => Some(job),
            _ => None,
        }
    }

    /// The run this is about, if it is about one.
    pub fn run(&self) -> Option<RunId> {
        match self.about() {
            About::Run(run) | About::RunEnd(run) => Some(run),
            _ => None,
        }
    }

    /// Whether this ends its job.
    pub fn ends_job(&self) -> bool {
        matches!(self.about(), About::JobEnd(_))
    }

    /// Stable, for filters and scenario texts.
    pub fn name(&self) -> &'static str {
        match self {
            What::Submitted { .. } => "submitted",
            What::Ready { .. } => "ready",
            What::Claimed { .. } => "claimed",
            What::Started { .. } => "started",
            What::Progress { .. } => "progress",
            What::Completed { .. } => "completed",
            What::Failed { .. } => "failed",
            What::Requeued { .. } => "requeued",
            What::Released { .. } => "released",
            What::CancelRequested { .. } => "cancel_requested",
            What::Cancelled { .. } => "cancelled",
            What::Skipped { .. } => "skipped",
            What::WorkerRegistered { .. } => "worker_registered",
            What::WorkerOnline { .. } => "worker_online",
            What::WorkerUnreachable { .. } => "worker_unreachable",
            What::WorkerOffline { .. } => "worker_offline",
            What::WorkerDraining { .. } => "worker_draining",
            What::WorkerUndrained { .. } => "worker_undrained",
            What::WorkerDeleted { .. } => "worker_deleted",
            What::RunStarted { .. } => "run_started",
            What::RunGrew { .. } => "run_grew",
            What::RunFinished { .. } => "run_finished",
            What::DefinitionPut { .. } => "definition_put",
            What::DefinitionDeleted { .. } => "definition_deleted",
            What::Linked { .. } => "linked",
            What::Unlinked { .. } => "unlinked",
            What::RecordPut { .. } => "record_put",
            What::RecordDeleted { .. } => "record_deleted",
            What::Told { .. } => "told",
            What::Audit { .. } => "audit",
        }
    }
}
