//! `/api/v1/runs`: start, list, read, wait, cancel, retry, and what runs wait for.

use super::jobs::{IDEMPOTENCY_KEY, REFUSED, page_size};
use crate::{
    app::App,
    ask::{Answer, Ask, LARGE, Path, Query, Sent, ok},
    auth::hash,
    convert,
    flows::{
        retry,
        start::{self, Started, Wanted},
    },
    problem::{Code, Problem, Result},
    route::{Access, Route},
    wire_time::{maybe, text},
};
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use windlass_api::{
    Json, Uuid,
    job::WaitJob,
    page::{Page, Paging},
    workflow::{Decide, InlineRun, ListRuns, Run, RunState, Signal, Signalled, StartedRun, Step, WaitsFor},
};
use windlass_core::{
    Facet, Job, JobId, Namespace, Payload, Record, RunId,
    commands::{
        cancel_run::CancelRun,
        signal::{Judge, Signal as Tell},
    },
    record::Kind,
    reply::KnownRun,
    run::{Run as Row, RunState as State_},
    stage::{Hold, RunIndex},
};
use windlass_engine::store::{JobQuery, RecordQuery};
use windlass_plan::meter::weight_of_text;

/// Memory that an input may take while it is read.
const INPUT_READ_MAX: u64 = 128 << 20;
const STEPS: usize = 1_000;
const WAIT_MS: u64 = 30_000;
/// Runs looked at for one page of a list with a state.
const SCAN_MAX: usize = 5_000;

pub fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/v1/runs", Access::Editor, begin)
            .behind()
            .says("Start a run of the definition in the request")
            .reads(IDEMPOTENCY_KEY)
            .takes::<InlineRun>()
            .answers::<StartedRun>(201)
            .answers::<StartedRun>(200)
            .refuses(&REFUSED)
            .body_max(2 * windlass_plan::format::BYTES_MAX),
        Route::get("/api/v1/runs", Access::Viewer, list)
            .says("List runs, newest first")
            .query::<ListRuns>()
            .answers::<Page<Run>>(200)
            .refuses(&[Code::Invalid]),
        Route::get("/api/v1/runs/{id}", Access::Viewer, show)
            .says("One run, with its steps")
            .answers::<Run>(200)
            .refuses(&[Code::NotFound]),
        Route::get("/api/v1/runs/{id}/steps", Access::Viewer, steps)
            .says("The steps of a run, newest first")
            .query::<Paging>()
            .answers::<Page<Step>>(200)
            .refuses(&[Code::NotFound, Code::Invalid]),
        Route::get("/api/v1/runs/{id}/wait", Access::Viewer, wait)
            .says("Wait until a run has ended, or the time is up; returns the run")
            .query::<WaitJob>()
            .answers::<Run>(200)
            .refuses(&[Code::NotFound]),
        Route::post("/api/v1/runs/{id}/cancel", Access::Editor, cancel)
            .says("Cancel a run: waiting steps end at once, the workers of running steps are told")
            .answers::<Run>(200)
            .refuses(&[Code::NotFound]),
        Route::post("/api/v1/runs/{id}/retry", Access::Editor, again)
            .behind()
            .says("Run again what did not complete, as a new run that reuses the results of completed steps")
            .answers::<StartedRun>(201)
            .refuses(&[Code::NotFound, Code::Invalid, Code::TooLarge]),
        Route::post("/api/v1/runs/{id}/steps/{step}/approve", Access::Editor, approve)
            .says("Approve a step that waits for approval")
            .takes::<Decide>()
            .answers::<Step>(200)
            .refuses(&[Code::NotFound, Code::Invalid, Code::TooLarge]),
        Route::post("/api/v1/runs/{id}/steps/{step}/reject", Access::Editor, reject)
            .says("Reject a step that waits for approval; the step fails")
            .takes::<Decide>()
            .answers::<Step>(200)
            .refuses(&[Code::NotFound, Code::Invalid, Code::TooLarge]),
        Route::post("/api/v1/runs/{id}/events", Access::Editor, signal)
            .says("Send an event to a run; it is kept until a step waits for it")
            .takes::<Signal>()
            .answers::<Signalled>(200)
            .refuses(&[Code::NotFound, Code::Invalid, Code::TooLarge]),
    ]
}

/// The key of a request that may be repeated, and what stands for its body.
pub async fn key_of(
    app: &App,
    namespace: &Namespace,
    headers: &HeaderMap,
    body: Option<&str>,
    whole: impl Serialize + Send,
) -> Result<Option<(String, String)>> {
    let Some(key) = body.or(IDEMPOTENCY_KEY.of(headers)?) else { return Ok(None) };
    if key.is_empty() || key.len() > 256 {
        return Err(Problem::invalid("idempotency_key", "must have 1 to 256 bytes"));
    }
    let text = serde_json::to_string(&whole).map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    let hash = if text.len() <= LARGE { hash(&text) } else { app.aside.run(namespace, move || hash(&text)).await? };
    Ok(Some((key.to_owned(), hash)))
}

/// Read aside if it is large, and not at all if it could take more memory than is sensible.
pub async fn input(app: &App, namespace: &Namespace, input: Option<&Json>) -> Result<Value> {
    let Some(text) = input.map(|input| input.get()) else { return Ok(Value::Null) };
    let read = |text: &str| serde_json::from_str(text).map_err(|error| Problem::invalid("input", error.to_string()));
    if text.len() <= LARGE {
        return read(text);
    }
    let text = text.to_owned();
    let work = move || match weight_of_text(text.as_bytes()) {
        0..=INPUT_READ_MAX => read(&text),
        room => Err(Problem::new(
            Code::TooLarge,
            format!("reading it takes up to {room} bytes of memory; at most {INPUT_READ_MAX}"),
        )
        .at("input")),
    };
    app.aside.run(namespace, work).await?
}

pub fn started(started: Started) -> Answer<StartedRun> {
    let status = if started.existing { StatusCode::OK } else { StatusCode::CREATED };
    Answer(status, StartedRun { id: started.id.0, state: state(started.state), existing: started.existing })
}

fn state(state: State_) -> RunState {
    match state {
        State_::Running => RunState::Running,
        State_::Completed => RunState::Completed,
        State_::Failed => RunState::Failed,
        State_::Cancelled => RunState::Cancelled,
    }
}

fn wire(namespace: &Namespace, id: RunId, row: &Row) -> Run {
    Run {
        id: id.0,
        namespace: namespace.to_string(),
        state: state(row.state()),
        workflow: row.definition.as_ref().map(convert::definition),
        owner: row.owner.as_deref().map(str::to_owned),
        created_at: text(row.created_at),
        finished_at: maybe(row.finished_at),
        total: row.total,
        open: row.open,
        completed: row.completed,
        failed: row.failed,
        cancelled: row.cancelled,
        skipped: row.skipped,
        cancelled_by: row.cancel.as_ref().map(|cancel| cancel.by.to_string()),
        retry_of: row.retry_of.map(|id| id.0),
        steps: Vec::new(),
        steps_next: None,
    }
}

fn waits_for(job: &Job) -> Option<WaitsFor> {
    let wait = job.spec.stage.wait.as_ref();
    // Before its turn it waits for others only.
    let turn = job.live.waiting == 1;
    match job.live.hold.filter(|hold| turn || *hold == Hold::Members)? {
        Hold::Plan => Some(WaitsFor::Plan),
        Hold::Members => Some(WaitsFor::Members),
        Hold::Event if wait.is_some_and(|wait| wait.approval) => Some(WaitsFor::Approval),
        Hold::Event if wait.is_some_and(|wait| wait.event.is_some()) => Some(WaitsFor::Event),
        Hold::Event => Some(WaitsFor::Time),
    }
}

fn step(job: &Job) -> Step {
    let shown = convert::job(job);
    let (spec, live) = (&job.spec, &job.live);
    let took = live.finished_at.zip(live.claimed_at).map(|(end, begin)| (end - begin).0.max(0).unsigned_abs());
    Step {
        name: shown.node.unwrap_or_default(),
        job: shown.id,
        state: shown.state,
        waits_for: waits_for(job),
        event: spec.stage.wait.as_ref().and_then(|wait| wait.event.as_deref()).map(str::to_owned),
        after: shown.after,
        error: shown.error,
        attempt: shown.attempt,
        worker: shown.worker,
        started_at: shown.started_at.or(shown.claimed_at),
        finished_at: shown.finished_at,
        duration_ms: took,
        has_result: live.has_result,
        kept_from: spec.retry_of.map(|id| id.0).filter(|_| live.kept),
    }
}

async fn begin(
    State(app): State<App>,
    ask: Ask,
    headers: HeaderMap,
    Sent(body): Sent<InlineRun>,
) -> Result<Answer<StartedRun>> {
    let whole = (&body.source, &body.definition, &body.input);
    let idempotency = key_of(&app, &ask.namespace, &headers, body.idempotency_key.as_deref(), whole).await?;
    let source = match (&body.source, &body.definition) {
        (Some(source), None) => source.clone(),
        (None, Some(definition)) => definition.get().to_owned(),
        _ => return Err(Problem::invalid("source", "give exactly one of source and definition")),
    };
    let wanted = Wanted {
        namespace: &ask.namespace,
        source,
        workflow: None,
        input: input(&app, &ask.namespace, body.input.as_ref()).await?,
        owner: ask.caller.name.clone(),
        idempotency,
    };
    Ok(started(start::start(&app, wanted).await?))
}

async fn row(app: &App, namespace: &Namespace, id: Uuid) -> Result<Row> {
    let found = app.engine.read_record::<Row>(namespace, &RunId(id).to_string()).await?;
    found.ok_or_else(|| Problem::not_found("run", id))
}

async fn list(State(app): State<App>, ask: Ask, Query(query): Query<ListRuns>) -> Result<Answer<Page<Run>>> {
    let limit = page_size(query.limit)?;
    let mut records = RecordQuery {
        facet: query.workflow.as_deref().map(|name| Facet::new("workflow", name)),
        after: query.cursor.as_deref().map(Into::into),
        limit,
        ..RecordQuery::all(ask.namespace.clone(), RunIndex::KIND)
    };
    let (mut items, mut seen) = (Vec::new(), 0);
    loop {
        let found = app.engine.store().records(&records).await?;
        for record in &found {
            records.after = Some(record.key.key.clone());
            let run = indexed(&app, &ask.namespace, record).await?;
            items.extend(run.filter(|run| query.state.is_none_or(|wanted| wanted == run.state)));
            if items.len() == limit {
                break;
            }
        }
        seen += found.len();
        let more = found.len() == limit;
        if !more || items.len() == limit || seen >= SCAN_MAX {
            let next = records.after.filter(|_| more).map(|key| key.to_string());
            return Ok(ok(Page { items, next }));
        }
    }
}

async fn indexed(app: &App, namespace: &Namespace, record: &Record) -> Result<Option<Run>> {
    let Ok(index) = serde_json::from_str::<RunIndex>(&record.value) else { return Ok(None) };
    let row = app.engine.read_record::<Row>(namespace, &index.run.to_string()).await?;
    Ok(row.map(|row| wire(namespace, index.run, &row)))
}

async fn show(State(app): State<App>, ask: Ask, Path(id): Path<Uuid>) -> Result<Answer<Run>> {
    whole(&app, &ask.namespace, id).await.map(ok)
}

async fn whole(app: &App, namespace: &Namespace, id: Uuid) -> Result<Run> {
    // The steps after the run: so a run that has ended is never shown with a step that has not.
    let row = row(app, namespace, id).await?;
    let (steps, next) = page(app, namespace, id, None, STEPS).await?;
    Ok(Run { steps, steps_next: next, ..wire(namespace, RunId(id), &row) })
}

/// Steps, the latest made first.
async fn page(
    app: &App,
    namespace: &Namespace,
    id: Uuid,
    cursor: Option<&str>,
    limit: usize,
) -> Result<(Vec<Step>, Option<String>)> {
    let before =
        cursor.map(|cursor| cursor.parse().map_err(|_| Problem::invalid("cursor", "hand back `next` as it came")));
    let before: Option<JobId> = before.transpose()?;
    let query = JobQuery {
        namespace: Some(namespace.clone()),
        run: Some(RunId(id)),
        before: before.map(|id| (namespace.clone(), id)),
        limit,
        ..JobQuery::default()
    };
    let found = app.engine.store().jobs(&query).await?;
    let next = (found.len() == limit).then(|| found.last().map(|job| job.key.id.to_string())).flatten();
    Ok((found.iter().map(step).collect(), next))
}

async fn steps(
    State(app): State<App>,
    ask: Ask,
    Path(id): Path<Uuid>,
    Query(query): Query<Paging>,
) -> Result<Answer<Page<Step>>> {
    row(&app, &ask.namespace, id).await?;
    let (items, next) = page(&app, &ask.namespace, id, query.cursor.as_deref(), page_size(query.limit)?).await?;
    Ok(ok(Page { items, next }))
}

async fn wait(
    State(app): State<App>,
    ask: Ask,
    Path(id): Path<Uuid>,
    Query(query): Query<WaitJob>,
) -> Result<Answer<Run>> {
    let wait = query.wait_ms.unwrap_or(WAIT_MS).min(super::jobs::WAIT_MS_MAX);
    ask.waits();
    let row = app.engine.watch_run(&ask.namespace, RunId(id), Duration::from_millis(wait)).await?;
    row.ok_or_else(|| Problem::not_found("run", id))?;
    whole(&app, &ask.namespace, id).await.map(ok)
}

async fn cancel(State(app): State<App>, ask: Ask, Path(id): Path<Uuid>) -> Result<Answer<Run>> {
    let cancel = CancelRun { namespace: ask.namespace.clone(), run: RunId(id), by: ask.caller.name.clone() };
    let KnownRun { id, run } = app.engine.run(cancel).await?;
    Ok(ok(wire(&ask.namespace, id, &run)))
}

async fn again(State(app): State<App>, ask: Ask, Path(id): Path<Uuid>) -> Result<Answer<StartedRun>> {
    Ok(started(retry::retry(&app, &ask.namespace, RunId(id), &ask.caller.name).await?))
}

async fn approve(
    State(app): State<App>,
    ask: Ask,
    Path((id, step)): Path<(Uuid, String)>,
    Sent(body): Sent<Decide>,
) -> Result<Answer<Step>> {
    let payload = input(&app, &ask.namespace, body.payload.as_ref()).await?;
    let result = json!({"approved": true, "by": &*ask.caller.name, "comment": body.comment, "payload": payload});
    judge(&app, &ask, id, &step, Some(Payload::from(result.to_string().as_str())), String::new()).await
}

async fn reject(
    State(app): State<App>,
    ask: Ask,
    Path((id, step)): Path<(Uuid, String)>,
    Sent(body): Sent<Decide>,
) -> Result<Answer<Step>> {
    let comment = if body.comment.is_empty() { String::new() } else { format!(": {}", body.comment) };
    judge(&app, &ask, id, &step, None, format!("rejected by {}{comment}", ask.caller.name)).await
}

async fn judge(
    app: &App,
    ask: &Ask,
    id: Uuid,
    name: &str,
    approved: Option<Payload>,
    why: String,
) -> Result<Answer<Step>> {
    let (namespace, name): (_, Arc<str>) = (ask.namespace.clone(), name.into());
    let judge = Judge { namespace, run: RunId(id), step: name, approved, why: why.into() };
    Ok(ok(step(&*app.engine.run(judge).await?)))
}

async fn signal(
    State(app): State<App>,
    ask: Ask,
    Path(id): Path<Uuid>,
    Sent(body): Sent<Signal>,
) -> Result<Answer<Signalled>> {
    let payload = convert::payload(body.payload.as_ref());
    let tell = Tell { namespace: ask.namespace.clone(), run: RunId(id), event: body.name.into(), payload };
    let told = app.engine.run(tell).await?;
    Ok(ok(Signalled { steps: told.steps, kept: told.kept }))
}
