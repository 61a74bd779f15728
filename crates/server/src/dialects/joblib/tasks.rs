//! Tasks: submitted to a room, claimed by a worker of their job, moved by its owner.

use super::{
    Joblib, Own,
    body::{Json, Params, Path, Sent, ok, page, paging, path_id},
    error::{
        FORBIDDEN, HttpError, INTERNAL_JOB_NOT_CONFIGURED, INVALID_TASK_TRANSITION, Result, TASK_NOT_FOUND,
        WORKER_NOT_FOUND,
    },
    fault::Fault,
    jobs,
    names::{INTERNAL, check_room, check_writable},
    namespace, prefer,
    show::{self, ROOM, ROOM_AND_JOB, STATUSES, Task, states, status},
    who::Who,
    workers::{owner, worker_id},
};
use crate::{
    app::App,
    dialect::Mount,
    route::{Access, Route},
};
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use std::time::Duration;
use windlass_core::{
    Facet, Job, JobId, JobKey, LeaseId, Payload, Refusal, State as Stage,
    commands::{
        ask::Both,
        cancel::Cancel,
        claim::{Claim, Offer, Unknown},
        complete::Complete,
        doubt::Doubt,
        fail::Fail,
        holder::{Address, Holder},
        holds::Holds,
        look::Look,
        start::Start,
        submit::{NewJob, Submit},
    },
    job::DefinitionRef,
    link::tags_of,
    policy::{CancelPolicy, JobPolicy, LeaseEnd, RetryPolicy, StartPolicy},
    reply::{Ended, Seen},
    worker::Worker,
};
use windlass_engine::{Engine, Error, ids, store::JobQuery};

pub fn routes(on: &Mount<Own>) -> Vec<Route> {
    vec![
        on.post("/v1/joblib/rooms/{room_id}/tasks/{*job_name}", Access::EditorOrWorker, submit).says("Submit a task"),
        on.get("/v1/joblib/rooms/{room_id}/tasks", Access::Any, in_room).says("Tasks of a room"),
        on.post("/v1/joblib/tasks/claim", Access::EditorOrWorker, claim).says("Claim a task"),
        on.get("/v1/joblib/tasks/claim", Access::Any, no_task).says("No task is called so"),
        on.patch("/v1/joblib/tasks/claim", Access::EditorOrWorker, no_task).says("No task is called so"),
        on.get("/v1/joblib/tasks/{task_id}", Access::Any, get).says("A task; waits for its end if asked to"),
        on.patch("/v1/joblib/tasks/{task_id}", Access::EditorOrWorker, change).says("Move a task on"),
    ]
}

/// Tried once; lost when its worker is.
pub fn policy() -> JobPolicy {
    let mut policy = JobPolicy {
        start: StartPolicy::Required,
        retry: RetryPolicy { attempts: 1, ..RetryPolicy::default() },
        cancel: CancelPolicy::Revoke,
        ..JobPolicy::default()
    };
    policy.lease.ends = LeaseEnd::WithWorker;
    policy
}

async fn submit(
    State(joblib): State<Joblib>,
    Path((room, name)): Path<(String, String)>,
    who: Who,
    Sent(mut body): Sent,
) -> Result<Response> {
    check_writable(&joblib.own.settings, &room)?;
    let payload = body.object(&["payload"]);
    body.done()?;
    let full = jobs::parse(&name)?;
    if full.room == INTERNAL {
        jobs::find(&joblib, &name).await?;
        let why = format!("Internal job '{full}' is registered but no executor is available");
        return Err(INTERNAL_JOB_NOT_CONFIGURED.error(why));
    }
    let mut job = NewJob::new(ids::job_id());
    job.tags = tags_of(&name);
    job.payload = payload.map_or_else(|| Payload::from("{}"), |sent| sent.get().into());
    job.policy = policy();
    (job.definition, job.newest) = (Some(DefinitionRef { name: name.as_str().into(), version: 0 }), true);
    job.facets = vec![Facet::new(ROOM, &room), Facet::new(ROOM_AND_JOB, &show::room_and_job(&room, &full))];
    job.owner = Some(owner(&who));
    let (id, payload) = (job.id, job.payload.clone());
    let submit = Both(Submit { namespace: namespace(), job }, look(id, false));
    let (_, seen) = joblib.engine.run(submit).await.map_err(|error| match error {
        Error::Refused(Refusal::NotFound { what: "definition", .. }) => jobs::not_found(&full),
        other => other.into(),
    })?;
    let task = show::submitted(&joblib, &seen.job, payload).await?;
    let mut response = Json(StatusCode::ACCEPTED, task).into_response();
    let place = HeaderValue::from_str(&format!("/v1/joblib/tasks/{id}"));
    response.headers_mut().insert(header::LOCATION, place.expect("an id is printable"));
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(1));
    Ok(response)
}

fn key(id: JobId) -> JobKey {
    JobKey::new(&namespace(), id)
}

fn not_found(id: JobId) -> HttpError {
    TASK_NOT_FOUND.error(format!("Task '{id}' not found"))
}

/// What has become of a task, behind the command that moved it.
fn look(job: JobId, payload: bool) -> Look {
    Look { namespace: namespace(), job, payload }
}

pub async fn find(engine: &Engine, id: JobId) -> Result<Job> {
    engine.store().job(&key(id)).await?.ok_or_else(|| not_found(id))
}

async fn in_room(State(app): State<App>, Path(room): Path<String>, params: Params) -> Result<Response> {
    check_room(&room)?;
    list(&app, Facet::new(ROOM, &room), &params).await
}

/// The tasks of a job that were submitted to a room.
pub async fn of_job(app: &App, room: &str, name: &str, params: &Params) -> Result<Response> {
    paging(params)?;
    wanted_states(params)?;
    let (full, _) = jobs::find(app, name).await?;
    list(app, Facet::new(ROOM_AND_JOB, &show::room_and_job(room, &full)), params).await
}

fn wanted_states(params: &Params) -> Result<Vec<Stage>> {
    match params.get("status") {
        None => Ok(Vec::new()),
        Some(wanted) if STATUSES.contains(&wanted) => Ok(states(wanted)),
        Some(other) => Err(Fault::word(&["query", "status"], &STATUSES, json!(other)).into()),
    }
}

/// Jobs are read in pages of this size while those before the offset are passed over.
const PAGE: usize = 500;
/// No list is counted further.
const TOTAL_MAX: usize = 10_000_000;

/// Newest first.
async fn list(app: &App, facet: Facet, params: &Params) -> Result<Response> {
    let (paging, states) = (paging(params)?, wanted_states(params)?);
    let mut query = JobQuery { namespace: Some(namespace()), states, facet: Some(facet), ..JobQuery::default() };
    let total = app.engine.store().count(&query, TOTAL_MAX).await?;
    let (mut skip, mut jobs) = (paging.offset, Vec::new());
    while paging.offset < total && jobs.len() < paging.limit {
        query.limit = PAGE.min(skip + paging.limit - jobs.len());
        let found = app.engine.store().jobs(&query).await?;
        let Some(last) = found.last() else { break };
        query.go_on_after(last);
        let passed = skip.min(found.len());
        skip -= passed;
        let room = paging.limit - jobs.len();
        jobs.extend(found.into_iter().skip(passed).take(room));
    }
    Ok(page(show::several(app, &jobs).await?, total, paging).into_response())
}

/// Never held open: a worker that gets none asks again, or is woken.
async fn claim(State(app): State<App>, who: Who, Sent(mut body): Sent) -> Result<Json<Value>> {
    let id = body.id("worker_id");
    body.done()?;
    let claim = Claim {
        namespace: namespace(),
        worker: worker_id(id),
        offer: Offer::Registered,
        secrets: ids::secrets(1),
        lease: None,
        unknown: Unknown::Refuse,
        principal: Some(owner(&who)),
        request_id: None,
    };
    let claimed = app.engine.claim(claim, Duration::ZERO).await.map_err(|error| match error {
        Error::Refused(Refusal::NotFound { .. }) => WORKER_NOT_FOUND.error(format!("Worker {id} not found")),
        Error::Refused(Refusal::Forbidden { .. }) => FORBIDDEN.error("Worker belongs to a different user"),
        other => other.into(),
    })?;
    let task = claimed.into_iter().next().map(|leased| {
        let beside = show::Beside { payload: leased.payload, worker: true, ..Default::default() };
        show::task(&leased.job, beside)
    });
    Ok(ok(json!({"task": task})))
}

async fn get(State(joblib): State<Joblib>, Path(id): Path<String>, headers: HeaderMap) -> Result<Response> {
    let id = JobId(path_id("task_id", &id)?);
    let job = find(&joblib.engine, id).await?;
    let wait = prefer::wait(&headers).map(|wait| prefer::bounded(wait, joblib.own.settings.wait_max));
    let Some(wait) = wait.filter(|wait| !wait.is_zero() && !job.state.is_final()) else {
        return Ok(ok(show::one(&joblib, &job).await?).into_response());
    };
    let job = joblib.engine.watch(&key(id), wait).await?.ok_or_else(|| not_found(id))?;
    let mut response = ok(show::one(&joblib, &job).await?).into_response();
    response.headers_mut().insert("preference-applied", prefer::applied(wait));
    Ok(response)
}

/// What is a call of its own for one method is an id for the others, and no good one.
async fn no_task() -> HttpError {
    path_id("task_id", "claim").map_or_else(|error| error, |id| not_found(JobId(id)))
}

async fn change(State(app): State<App>, Path(id): Path<String>, who: Who, Sent(mut body): Sent) -> Result<Json<Task>> {
    let id = JobId(path_id("task_id", &id)?);
    let (to, error) = (body.word("status", &STATUSES), body.maybe_text("error").unwrap_or_default());
    body.done()?;
    let to = to.unwrap_or_default();
    if let Some(seen) = report(&app, id, to, &error, &who).await? {
        lift_doubt(&app, seen.worker.as_deref(), &who).await?;
        return Ok(ok(show::seen(seen, &error)));
    }
    let job = find(&app.engine, id).await?;
    let worker = match &job.live.lease {
        Some(lease) => app.engine.read_record::<Worker>(&namespace(), lease.worker.as_str()).await?,
        None => None,
    };
    if !who.superuser {
        check_owner(&job, worker.as_ref(), &who)?;
    }
    let from = status(job.state);
    if !allowed(from, to) {
        return Err(wrong_move(from, to));
    }
    let moved = shift(&app.engine, &job, to, &error, &who).await;
    let moved = match moved {
        Ok(moved) => moved,
        // Somebody was faster, or the worker went: what it has become says why it cannot.
        Err(Error::Refused(refusal)) if is_late(&refusal) => {
            return Err(wrong_move(status(find(&app.engine, id).await?.state), to));
        }
        Err(error) => return Err(error.into()),
    };
    lift_doubt(&app, worker.as_ref(), &who).await?;
    let shown = if worker.is_some() { show::with_worker(&app, &moved).await? } else { show::one(&app, &moved).await? };
    Ok(ok(shown))
}

/// What nearly every call is: whoever holds the task moves it on, and that takes one command. None: it was refused, and what is
/// stored has to say in which order of checks.
async fn report(app: &App, id: JobId, to: &str, error: &str, who: &Who) -> Result<Option<Seen>, Error> {
    let address = Address::Owner { job: id, principal: owner(who) };
    let holder = Holder { namespace: namespace(), address, principal: None };
    let look = look(id, true);
    let fresh = |(ended, seen): (Ended, Seen)| (!ended.replayed).then_some(seen);
    let reported = match to {
        "running" => app.engine.run(Both(Start { holder }, look)).await.map(|(_, seen)| Some(seen)),
        "completed" => app.engine.run(Both(Complete { holder, result: show::result_of(error) }, look)).await.map(fresh),
        "failed" => app
            .engine
            .run(Both(Fail { holder, message: error.into(), retryable: false, result: Payload::default() }, look))
            .await
            .map(fresh),
        _ => return Ok(None),
    };
    match reported {
        Err(Error::Refused(_)) => Ok(None),
        other => other,
    }
}

fn check_owner(job: &Job, worker: Option<&Worker>, who: &Who) -> Result<()> {
    if job.live.lease.is_none() {
        return Err(FORBIDDEN.error("Task not claimed by any worker"));
    }
    match worker {
        Some(worker) if worker.owner.as_ref() == Some(&owner(who)) => Ok(()),
        _ => Err(FORBIDDEN.error("Not authorized to update this task")),
    }
}

/// `pending → claimed` would leave a task that nobody works on.
pub fn allowed(from: &str, to: &str) -> bool {
    matches!(
        (from, to),
        ("pending", "cancelled")
            | ("claimed", "running" | "failed" | "cancelled")
            | ("running", "completed" | "failed" | "cancelled")
    )
}

fn wrong_move(from: &str, to: &str) -> HttpError {
    INVALID_TASK_TRANSITION.error(format!("Cannot transition from '{from}' to '{to}'"))
}

pub fn is_late(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::LeaseLost { .. }
            | Refusal::NotHeld { .. }
            | Refusal::NotHolder
            | Refusal::Final { .. }
            | Refusal::NotStarted
            | Refusal::AlreadyStarted
    )
}

/// Moves the very attempt that was looked at: should another worker hold the task by now, this is refused.
pub async fn shift(engine: &Engine, job: &Job, to: &str, error: &str, who: &Who) -> Result<Job, Error> {
    let id = job.key.id;
    let cancel = || {
        let (mode, message) = (Some(CancelPolicy::Revoke), error.into());
        Cancel { namespace: namespace(), job: id, by: owner(who), mode, message }
    };
    let Some(lease) = &job.live.lease else { return Ok(*engine.run(cancel()).await?) };
    let holder = Holder::lease(&namespace(), LeaseId::new(id, lease.secret));
    Ok(*match to {
        "running" => engine.run(Start { holder }).await?,
        "completed" => engine.run(Complete { holder, result: show::result_of(error) }).await?.job,
        "failed" => {
            engine.run(Fail { holder, message: error.into(), retryable: false, result: Default::default() }).await?.job
        }
        _ => engine.run(Both(Holds { holder }, cancel())).await?.1,
    })
}

/// A report is a call of the worker, and whoever calls is there.
async fn lift_doubt(app: &App, worker: Option<&Worker>, who: &Who) -> Result<()> {
    let Some(worker) = worker.filter(|worker| worker.doubt_until.is_some()) else { return Ok(()) };
    if worker.owner.as_ref() != Some(&owner(who)) {
        return Ok(());
    }
    let trust = Doubt { namespace: namespace(), worker: worker.id.clone(), silence: None, principal: None };
    match app.engine.run(trust).await {
        Ok(()) | Err(Error::Refused(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
