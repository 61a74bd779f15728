//! Workflows, and the runs made from them.

use crate::{
    Json, is_default,
    job::{JobError, State},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// One version of a workflow. Versions never change; a changed definition is a new version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Workflow {
    pub name: String,
    pub namespace: String,
    pub version: u32,
    pub created_at: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub description: String,
    /// How many steps it says itself; maps and sub-workflows make more.
    pub steps: u32,
    /// Decided while it runs: it has conditions, templates, maps, sub-workflows, or compensation.
    #[serde(default, skip_serializing_if = "is_default")]
    pub staged: bool,
    /// The definition as it was written. Lists leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// How to write a workflow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PutWorkflow {
    /// Only check it; nothing is written, and the version in the answer is 0.
    #[serde(skip_serializing_if = "is_default")]
    pub dry_run: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Starts a run of a stored workflow.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct StartRun {
    /// What the workflow's expressions see as `input`. Must meet the workflow's `input_schema`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    /// The latest where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The same key with the same body answers with the first run, for a day. The header `Idempotency-Key` is the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Starts a run of a definition that is not stored: exactly one of `source` and `definition`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct InlineRun {
    /// The definition as YAML or JSON text. Errors name its lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The definition as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StartedRun {
    pub id: Uuid,
    pub state: RunState,
    /// The idempotency key was used before; this is the run it made.
    #[serde(default, skip_serializing_if = "is_default")]
    pub existing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    Running,
    Completed,
    Failed,
    Cancelled,
}

impl RunState {
    pub fn is_final(self) -> bool {
        self != RunState::Running
    }
    pub fn name(self) -> &'static str {
        match self {
            RunState::Running => "running",
            RunState::Completed => "completed",
            RunState::Failed => "failed",
            RunState::Cancelled => "cancelled",
        }
    }
}

/// One execution of a workflow. Its state follows from its jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    pub id: Uuid,
    pub namespace: String,
    pub state: RunState,
    /// `name@version`; absent for an inline definition that has no name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    pub created_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
    /// Jobs so far; maps and sub-workflows add theirs when their turn comes.
    pub total: u32,
    /// Jobs that have not ended.
    pub open: u32,
    pub completed: u32,
    pub failed: u32,
    pub cancelled: u32,
    pub skipped: u32,
    /// Who asked for its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<String>,
    /// The run this one goes on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<Uuid>,
    /// The first thousand steps. Lists leave them out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// There are more steps: the `cursor` for `/api/v1/runs/{id}/steps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps_next: Option<String>,
}

/// A step of a run. Its payload, result, log and attempts are its job's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// Unique in the run. `resize[3]` is the fourth item of the map `resize`, `deploy/check` a step of the sub-workflow
    /// `deploy`, `~undo/book` what compensates `book`.
    pub name: String,
    pub job: Uuid,
    pub state: State,
    /// What it waits for beside other steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<WaitsFor>,
    /// The event's name, where it waits for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Jobs that had to end first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Uuid>,
    /// Why it was skipped, cancelled, or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<JobError>,
    pub attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
    /// From the claim to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The job has a result: read it at `/api/v1/jobs/{job}`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub has_result: bool,
    /// The job of the earlier run whose result was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_from: Option<Uuid>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WaitsFor {
    /// `POST /api/v1/runs/{id}/steps/{step}/approve` or `reject`.
    Approval,
    /// `POST /api/v1/runs/{id}/events`.
    Event,
    /// A time.
    Time,
    /// Its own items or steps.
    Members,
    /// Its condition or template is being worked out.
    Plan,
}

/// Which runs to list: newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ListRuns {
    /// Of this workflow only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// `running`, `completed`, `failed`, `cancelled`. A page may then be short with more to come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<RunState>,
    /// 1 to 1000; 100 where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// `next` of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// An answer to a step that waits for approval.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Decide {
    #[serde(skip_serializing_if = "is_default")]
    pub comment: String,
    /// Handed to the steps behind it, as part of the step's result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
}

/// Something happened that a run may wait for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Signal {
    pub name: String,
    /// The result of the step that waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
}

/// What an event came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Signalled {
    /// Steps that went on.
    pub steps: u32,
    /// No step waits for it yet; the first that does will have it.
    pub kept: bool,
}
