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
    /// Number of steps in the definition; maps and sub-workflows add more at run time.
    pub steps: u32,
    /// Steps are decided at run time: it has conditions, templates, maps, sub-workflows or compensation.
    #[serde(default, skip_serializing_if = "is_default")]
    pub staged: bool,
    /// The definition as it was written. Not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// How to store a workflow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PutWorkflow {
    /// Only check the definition; nothing is stored, and the version in the answer is 0.
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
    /// The run's input. It must match the workflow's `input_schema`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    /// Default: the latest version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Idempotency key: for a day, the same key with the same body returns the first run. Also as header `Idempotency-Key`.
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
    /// The idempotency key was used before; this is the run created then.
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
    /// Number of jobs so far; maps and sub-workflows add theirs later.
    pub total: u32,
    /// Number of jobs that have not ended.
    pub open: u32,
    pub completed: u32,
    pub failed: u32,
    pub cancelled: u32,
    pub skipped: u32,
    /// Who cancelled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<String>,
    /// The run that this run retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<Uuid>,
    /// The first thousand steps. Not in lists.
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
    /// What the step waits for, other than steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<WaitsFor>,
    /// The name of the event it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Jobs that must end first.
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
    /// The job of the earlier run whose result is reused.
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
    /// A point in time.
    Time,
    /// Its own items or steps.
    Members,
    /// The planner, which evaluates its condition or template.
    Plan,
}

/// Which runs to list, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ListRuns {
    /// Only runs of this workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// `running`, `completed`, `failed` or `cancelled`. A page may then be short although more follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<RunState>,
    /// 1 to 1000. Default: 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// `next` of the previous page.
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
    /// Becomes part of the step's output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
}

/// An event for a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Signal {
    pub name: String,
    /// Becomes the output of the step that waits for the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
}

/// The effect of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Signalled {
    /// Steps that continued.
    pub steps: u32,
    /// No step waits for it yet; it is kept for the first that does.
    pub kept: bool,
}
