//! What happened. An event commits together with the change it tells of, never before and never without it.

use crate::{
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
        #[serde(default, skip_serializing_if = "crate::is_default")]
        message: Arc<str>,
    },
    Completed {
        job: JobId,
    },
    Failed {
        job: JobId,
        reason: Reason,
        #[serde(default, skip_serializing_if = "crate::is_default")]
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

impl What {
    /// The job this is about, if it is about one.
    pub fn job(&self) -> Option<JobId> {
        match self {
            What::Submitted { job }
            | What::Ready { job }
            | What::Claimed { job, .. }
            | What::Started { job }
            | What::Progress { job, .. }
            | What::Completed { job }
            | What::Failed { job, .. }
            | What::Requeued { job, .. }
            | What::Released { job }
            | What::CancelRequested { job, .. }
            | What::Cancelled { job, .. }
            | What::Skipped { job } => Some(*job),
            What::WorkerRegistered { .. }
            | What::WorkerOnline { .. }
            | What::WorkerUnreachable { .. }
            | What::WorkerOffline { .. }
            | What::WorkerDraining { .. }
            | What::WorkerUndrained { .. }
            | What::WorkerDeleted { .. }
            | What::RunStarted { .. }
            | What::RunGrew { .. }
            | What::RunFinished { .. }
            | What::DefinitionPut { .. }
            | What::DefinitionDeleted { .. }
            | What::RecordPut { .. }
            | What::RecordDeleted { .. }
            | What::Told { .. }
            | What::Audit { .. } => None,
        }
    }

    /// The worker that should hear of it at once.
    pub(crate) fn concerns(&self) -> Option<&WorkerId> {
        match self {
            What::WorkerDraining { worker } | What::WorkerUndrained { worker } | What::WorkerDeleted { worker } => {
                Some(worker)
            }
            _ => None,
        }
    }

    /// Whether this ends its job.
    pub fn ends_job(&self) -> bool {
        matches!(self, What::Completed { .. } | What::Failed { .. } | What::Cancelled { .. } | What::Skipped { .. })
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
            What::RecordPut { .. } => "record_put",
            What::RecordDeleted { .. } => "record_deleted",
            What::Told { .. } => "told",
            What::Audit { .. } => "audit",
        }
    }
}
