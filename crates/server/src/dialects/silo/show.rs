//! A job as this protocol's clients see it.

use super::{
    body::time,
    definitions::ScopeKind,
    error::{HttpError, Result},
    namespace,
};
use crate::app::App;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use windlass_api::Uuid;
use windlass_core::{
    Job, JobId, JobKey, Payload, State, Timestamp, WorkerId,
    job::{Outcome, Reason},
};

/// Rides on the job: everything a list shows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Extra {
    pub definition_id: Uuid,
    pub definition_version: u32,
    pub trigger_type: String,
    pub item_id: Option<Uuid>,
    pub part_number: Option<String>,
    pub revision_number: Option<u32>,
    pub project: Option<String>,
    pub scope_type: ScopeKind,
    pub scope_part: Option<String>,
    pub compute_type: String,
    pub compute_command: String,
    pub args: Map<String, Value>,
    pub timeout: u64,
    pub max_retries: u32,
    /// As the definition lists them. Absent in jobs of an earlier version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runner_tags: Vec<String>,
}

/// The job's payload: what is too large for lists.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Detail {
    pub definition: Value,
    pub items: Vec<ScopeItem>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScopeItem {
    pub part_number: String,
    pub item_id: Uuid,
    pub item_type: String,
    pub revision_number: u32,
    pub depth: u32,
    pub quantity: Value,
}

/// No `_` arm: a new state must be named here before anything compiles.
pub fn status(state: State) -> &'static str {
    match state {
        State::Blocked | State::Scheduled | State::Pending => "pending",
        State::Claimed => "claimed",
        State::Running => "running",
        State::Completed => "completed",
        State::Failed => "failed",
        State::Cancelled | State::Skipped => "cancelled",
    }
}

/// States behind a word; none for a word there is not.
pub fn states(word: &str) -> Option<Vec<State>> {
    let found: Vec<State> = State::ALL.into_iter().filter(|state| status(*state) == word).collect();
    (!found.is_empty()).then_some(found)
}

pub fn extra(job: &Job) -> Result<Extra> {
    let text = job.spec.extra.as_deref().unwrap_or("");
    serde_json::from_str(text)
        .map_err(|error| HttpError::internal(format!("job {} cannot be read: {error}", job.key.id)))
}

pub fn detail(payload: &Payload) -> Result<Detail> {
    let read = serde_json::from_slice(payload.as_bytes());
    read.map_err(|error| HttpError::internal(format!("a job's payload cannot be read: {error}")))
}

/// Runners are called `name/id`.
pub fn runner(worker: &WorkerId) -> (&str, &str) {
    worker.as_str().rsplit_once('/').unwrap_or((worker.as_str(), ""))
}

pub fn error_message(outcome: &Outcome) -> &str {
    match outcome.reason {
        Reason::WorkerRemoved => "runner deleted",
        _ => &outcome.message,
    }
}

/// When work on it began, as far as anybody said.
fn started(job: &Job) -> Option<Timestamp> {
    let ended = job.live.finished_at.filter(|_| matches!(job.state, State::Completed | State::Failed));
    job.live.started_at.or(ended)
}

/// From the start, or from the claim where no progress came before the end.
pub fn duration_seconds(job: &Job) -> f64 {
    let began = job.live.started_at.filter(|at| Some(*at) != job.live.finished_at).or(job.live.claimed_at);
    match (began, job.live.finished_at) {
        (Some(began), Some(ended)) => (ended - began).0.max(0) as f64 / 1_000.0,
        _ => 0.0,
    }
}

/// `items`: none leaves them out, as lists do.
pub fn job(job: &Job, items: Option<&[ScopeItem]>, result: Value) -> Result<Value> {
    let extra = extra(job)?;
    let live = &job.live;
    let lease = live.lease.as_ref();
    let (runner_name, runner_id) = lease.map(|lease| runner(&lease.worker)).unzip();
    let mut scope = json!({"type": extra.scope_type, "part_number": extra.scope_part, "project": extra.project});
    if let Some(items) = items {
        scope["items"] = json!(items);
    }
    // A failed attempt is counted on the job that failed; what a client counts are those before it.
    let retries = live.spent.saturating_sub(u32::from(job.state == State::Failed));
    let runner_tags: Vec<&str> = match extra.runner_tags.is_empty() {
        true => job.spec.tags.iter().collect(),
        false => extra.runner_tags.iter().map(String::as_str).collect(),
    };
    let progress = live.progress.as_ref();
    let percent =
        if job.state == State::Completed { 100 } else { progress.map_or(0, |progress| progress.percent as i64) };
    let outcome = live.outcome.as_ref();
    Ok(json!({
        "id": job.key.id.to_string(),
        "definition_id": extra.definition_id,
        "definition_name": job.spec.definition.as_ref().map(|definition| &definition.name),
        "definition_version": extra.definition_version,
        "status": status(job.state),
        "priority": job.priority,
        "trigger_type": extra.trigger_type,
        "item_id": extra.item_id,
        "part_number": extra.part_number,
        "revision_number": extra.revision_number,
        "project": extra.project,
        "scope": scope,
        "compute_type": extra.compute_type,
        "compute_command": extra.compute_command,
        "args": extra.args,
        "runner_tags": runner_tags,
        "runner_id": runner_id,
        "runner_name": runner_name,
        "timeout_seconds": extra.timeout,
        "expires_at": lease.and_then(|lease| lease.deadline).map(time),
        "retry_count": retries,
        "max_retries": extra.max_retries,
        "retry_of": job.spec.retry_of.map(|id| id.to_string()),
        "retry_job_id": live.retry_job.map(|id| id.to_string()),
        "progress": percent,
        "progress_message": progress.map_or("", |progress| &*progress.message),
        "result": result,
        "error_message": outcome.filter(|_| job.state == State::Failed).map(error_message),
        "created_by": job.spec.owner,
        "created_at": time(job.spec.created_at),
        "claimed_at": live.claimed_at.map(time),
        "started_at": started(job).map(time),
        "completed_at": live.finished_at.map(time),
        "cancelled_by": outcome.filter(|_| status(job.state) == "cancelled").map(|outcome| &outcome.message),
    }))
}

pub async fn find(app: &App, id: &str) -> Result<Job> {
    let missing = || HttpError::missing("job", id);
    let parsed = Uuid::parse_str(id).map_err(|_| missing())?;
    app.engine.store().job(&JobKey::new(&namespace(), JobId(parsed))).await?.ok_or_else(missing)
}

/// With everything that is kept apart from its row.
pub async fn whole(app: &App, row: &Job) -> Result<Value> {
    let body = app.engine.store().body(&row.key).await?.unwrap_or_default();
    let detail = detail(&body.payload)?;
    job(row, Some(&detail.items), result(body.result.as_ref()))
}

pub async fn in_list(app: &App, row: &Job) -> Result<Value> {
    let body = if row.live.has_result { app.engine.store().body(&row.key).await? } else { None };
    job(row, None, result(body.and_then(|body| body.result).as_ref()))
}

pub fn result(result: Option<&Payload>) -> Value {
    result.and_then(|result| serde_json::from_slice(result.as_bytes()).ok()).unwrap_or(Value::Null)
}
