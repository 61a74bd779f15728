//! A job as this protocol's clients see it: a task.

use super::{body::time, error::Result, names::FullName, namespace};
use crate::app::App;
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap, HashSet};
use windlass_api::Uuid;
use windlass_core::{Job, JobKey, Lane, Payload, Reason, State, WorkerId, reply::Seen, worker::Worker};

/// The facets that tasks are listed by.
pub const ROOM: &str = "room";
pub const ROOM_AND_JOB: &str = "room_job";

/// No position in a queue is counted further: a submit must not cost more the more tasks wait.
pub const AHEAD_MAX: usize = 10_000;

/// Of payloads and results on one page: the task with which there are more is the last.
const PAGE_BYTES_MAX: usize = 8 << 20;

pub const STATUSES: [&str; 6] = ["pending", "claimed", "running", "completed", "failed", "cancelled"];

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

/// The states that are shown as this status.
pub fn states(wanted: &str) -> Vec<State> {
    State::ALL.into_iter().filter(|state| status(*state) == wanted).collect()
}

/// The room a task was submitted to.
pub fn room_of(job: &Job) -> &str {
    job.spec.facets.iter().find(|facet| &*facet.name == ROOM).map_or("", |facet| &*facet.value)
}

/// The full name of its job.
pub fn name_of(job: &Job) -> &str {
    job.spec.definition.as_ref().map_or("", |definition| &*definition.name)
}

pub const DISCONNECTED: &str = "Worker disconnected";

/// What a task that was completed with words keeps as its result.
#[derive(Serialize, serde::Deserialize)]
struct Words {
    error: String,
}

/// The result that keeps what was said with a completion; empty where nothing was.
pub fn result_of(said: &str) -> Payload {
    match said {
        "" => Payload::default(),
        said => serde_json::to_string(&Words { error: said.into() }).unwrap_or_default().as_str().into(),
    }
}

/// What was said with a completion.
pub fn words(result: &Payload) -> Option<String> {
    serde_json::from_slice::<Words>(result.as_bytes()).ok().map(|words| words.error)
}

/// What a failed or cancelled task says about it. A completed one keeps it with its result.
pub fn error_of(job: &Job) -> Option<String> {
    let said = match job.state {
        State::Failed => job.live.outcome.as_ref().map(|outcome| failure(outcome.reason, &outcome.message)),
        State::Cancelled => job.live.cancel.as_ref().map(|cancel| cancel.message.to_string()),
        _ => None,
    };
    said.filter(|said| !said.is_empty())
}

/// Why a task failed: it makes no difference whether its worker was lost or removed.
pub fn failure(reason: Reason, message: &str) -> String {
    match reason {
        Reason::WorkerLost | Reason::WorkerRemoved => DISCONNECTED.into(),
        _ => message.into(),
    }
}

#[derive(Debug, Serialize)]
pub struct Task {
    id: Uuid,
    job_name: String,
    room_id: String,
    status: &'static str,
    created_at: String,
    started_at: Option<String>,
    completed_at: Option<String>,
    worker_id: Option<String>,
    error: Option<String>,
    payload: Box<RawValue>,
    queue_position: Option<usize>,
}

/// What a task is shown with, beside its row.
#[derive(Default)]
pub struct Beside {
    pub payload: Payload,
    pub result: Option<Payload>,
    /// Its worker is still there.
    pub worker: bool,
    pub ahead: Option<usize>,
}

pub fn task(job: &Job, beside: Beside) -> Task {
    let worker = job.live.lease.as_ref().filter(|_| beside.worker).map(|lease| lease.worker.to_string());
    Task {
        id: job.key.id.0,
        job_name: name_of(job).into(),
        room_id: room_of(job).into(),
        status: status(job.state),
        created_at: time(job.spec.created_at),
        started_at: job.live.started_at.map(time),
        completed_at: job.live.finished_at.map(time),
        worker_id: worker,
        error: error_of(job).or_else(|| beside.result.as_ref().and_then(words)),
        payload: raw(&beside.payload),
        queue_position: beside.ahead.map(|ahead| ahead + 1),
    }
}

/// As it was sent.
fn raw(payload: &Payload) -> Box<RawValue> {
    let sent = serde_json::from_slice(payload.as_bytes()).ok();
    sent.unwrap_or_else(|| RawValue::from_string("{}".into()).expect("an object"))
}

/// One task, with all that is shown of it.
pub async fn one(app: &App, job: &Job) -> Result<Task> {
    Ok(several(app, std::slice::from_ref(job)).await?.remove(0))
}

/// A task that was just submitted with this payload.
pub async fn submitted(app: &App, job: &Job, payload: Payload) -> Result<Task> {
    let ahead = positions(app, std::slice::from_ref(job)).await?.remove(&job.key);
    Ok(task(job, Beside { payload, result: None, worker: true, ahead }))
}

/// A task that was just moved on by its worker. What was said with a completion is in the result that it was just given.
pub fn seen(seen: Seen, said: &str) -> Task {
    let result = (seen.job.state == State::Completed).then(|| result_of(said));
    task(&seen.job, Beside { payload: seen.payload, result, worker: seen.worker.is_some(), ahead: None })
}

/// A task whose worker was just heard.
pub async fn with_worker(app: &App, job: &Job) -> Result<Task> {
    let body = app.engine.store().body(&job.key).await?.unwrap_or_default();
    Ok(task(job, Beside { payload: body.payload, result: body.result, worker: true, ahead: None }))
}

/// The tasks of a page: each worker and each lane is looked at once. There are fewer of them where payloads are large.
pub async fn several(app: &App, jobs: &[Job]) -> Result<Vec<Task>> {
    let workers = present(app, jobs).await?;
    let mut ahead = positions(app, jobs).await?;
    let (mut tasks, mut bytes) = (Vec::with_capacity(jobs.len()), 0);
    for job in jobs {
        if bytes > PAGE_BYTES_MAX {
            break;
        }
        let body = app.engine.store().body(&job.key).await?.unwrap_or_default();
        bytes += body.payload.len() + body.result.as_ref().map_or(0, Payload::len);
        let worker = job.live.lease.as_ref().is_some_and(|lease| workers.contains(&lease.worker));
        let ahead = ahead.remove(&job.key);
        tasks.push(task(job, Beside { payload: body.payload, result: body.result, worker, ahead }));
    }
    Ok(tasks)
}

/// Workers of these tasks that have not gone.
async fn present(app: &App, jobs: &[Job]) -> Result<HashSet<WorkerId>> {
    let named: HashSet<&WorkerId> = jobs.iter().filter_map(|job| Some(&job.live.lease.as_ref()?.worker)).collect();
    let mut found = HashSet::new();
    for worker in named {
        if app.engine.read_record::<Worker>(&namespace(), worker.as_str()).await?.is_some() {
            found.insert(worker.clone());
        }
    }
    Ok(found)
}

/// How many go before each pending one. Where a page shows all of a lane between two of its tasks, what lies between them is
/// counted on the page.
async fn positions(app: &App, jobs: &[Job]) -> Result<HashMap<JobKey, usize>> {
    let mut lanes: BTreeMap<Lane, Vec<&Job>> = BTreeMap::new();
    for job in jobs.iter().filter(|job| job.state == State::Pending) {
        lanes.entry(job.lane).or_default().push(job);
    }
    let mut found = HashMap::new();
    for (_, mut jobs) in lanes {
        jobs.sort_by_key(|job| (job.priority, job.seq));
        let first = app.engine.store().ahead(jobs[0], AHEAD_MAX).await?;
        let last = match jobs.len() {
            1 => first,
            _ => app.engine.store().ahead(jobs[jobs.len() - 1], AHEAD_MAX).await?,
        };
        let whole = last == first + jobs.len() - 1;
        let mut before = first;
        for (at, job) in jobs.into_iter().enumerate() {
            before = match whole {
                true => first + at,
                // Nobody behind one whose place is not told any more has a place that is.
                false if before >= AHEAD_MAX => AHEAD_MAX,
                false => app.engine.store().ahead(job, AHEAD_MAX).await?,
            };
            found.insert(job.key.clone(), before);
        }
    }
    Ok(found)
}

/// The value of the facet by which the tasks of a job in a room are listed.
pub fn room_and_job(room: &str, job: &FullName) -> String {
    windlass_api::hex(&Sha256::digest(format!("{room}\n{job}")))
}
