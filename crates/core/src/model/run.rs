//! Runs: one execution of a graph of jobs. Its state follows from how its jobs ended.

use crate::model::{
    id::RunId,
    is_default,
    job::{CancelRequest, DefinitionRef, Job},
    keys::RecordKey,
    record::{Kind, key_of},
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
