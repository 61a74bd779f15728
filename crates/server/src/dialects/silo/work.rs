//! What a runner does: give signs of life, claim, report.

use super::{
    body::{Json, Path, Raw, created, ok, time},
    dag,
    error::{HttpError, Result},
    jobs::{self, Entry},
    namespace, products, runners, show,
};
use crate::{app::App, auth::Caller};
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::time::Duration;
use windlass_core::{
    Job, Leased, Refusal, Tags, WorkerId,
    commands::{
        append_log::AppendLog,
        claim::{Claim, Offer, Unknown},
        complete::Complete,
        fail::Fail,
        holder::{Address, Holder},
        holds::Holds,
        progress::ReportProgress,
        release::Release,
        workers::Heartbeat,
    },
    reply::Ended,
};
use windlass_engine::ids;

const TEXT_BYTES_MAX: usize = 64 << 10;
const LEVELS: [&str; 4] = ["debug", "info", "warn", "error"];

fn worker(caller: &Caller) -> WorkerId {
    WorkerId::trusted(&caller.name)
}

pub async fn heartbeat(State(app): State<App>, caller: Caller) -> Result<Json<Value>> {
    let sign = Heartbeat { namespace: namespace(), worker: worker(&caller), principal: Some(caller.name.clone()) };
    let worker = app.engine.run(sign).await?;
    let (name, id) = show::runner(&worker.id);
    Ok(ok(json!({
        "status": "online",
        "runner_id": id,
        "name": name,
        "tags": runners::tags(&worker),
        "server_time": time(worker.last_seen),
    })))
}

#[derive(Deserialize)]
struct Offered {
    tags: Option<Vec<String>>,
    /// Ours: asking again under the same name gives the same job, for runners that did not hear the answer.
    request_id: Option<String>,
}

pub async fn claim(State(app): State<App>, caller: Caller, raw: Raw) -> Result<Response> {
    let body: Offered = raw.parse(&app).await?;
    let offer = match &body.tags {
        Some(tags) => Offer::Narrowed(tags.iter().map(String::as_str).filter(|tag| !tag.is_empty()).collect::<Tags>()),
        None => Offer::Registered,
    };
    let claim = Claim {
        namespace: namespace(),
        worker: worker(&caller),
        offer,
        secrets: ids::secrets(1),
        lease: None,
        unknown: Unknown::Refuse,
        principal: Some(caller.name.clone()),
        request_id: body.request_id.map(Into::into),
    };
    let Some(leased) = app.engine.claim(claim, Duration::ZERO).await?.pop() else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    match claimed(&app, &leased).await {
        Ok(shown) => Ok(ok(shown).into_response()),
        // A runner that cannot be told its job must not hold it.
        Err(error) => {
            drop(app.engine.run(Release { holder: holder(&caller, &leased.job) }).await);
            Err(error)
        }
    }
}

async fn claimed(app: &App, leased: &Leased) -> Result<Value> {
    let detail = show::detail(&leased.payload)?;
    let job = show::job(&leased.job, Some(&detail.items), Value::Null)?;
    let mut shown = json!({"job": job, "definition": detail.definition});
    let extra = show::extra(&leased.job)?;
    // So that a validation rebuilds what has to be rebuilt and nothing else.
    if let Some(part) = extra.part_number.filter(|_| matches!(extra.compute_type.as_str(), "validate" | "rebuild")) {
        shown["dirty"] = dag::dirty_of(&products(app), &part).await?;
    }
    Ok(shown)
}

fn holder(caller: &Caller, job: &Job) -> Holder {
    let address = Address::Worker { job: job.key.id, worker: worker(caller) };
    Holder { namespace: namespace(), address, principal: Some(caller.name.clone()) }
}

/// What has to be true when something is written for the job, in the transaction that writes it.
pub fn holds(caller: &Caller, job: &Job) -> Holds {
    Holds { holder: holder(caller, job) }
}

/// The job, if this runner holds it now: before it is shown what only its holder may see, and before long uploads.
pub async fn held(app: &App, caller: &Caller, id: &str) -> Result<Job> {
    let job = show::find(app, id).await?;
    Ok(*app.engine.run(holds(caller, &job)).await?)
}

#[derive(Deserialize)]
struct Progress {
    progress: i64,
    #[serde(alias = "progress_message")]
    message: Option<String>,
}

pub async fn progress(State(app): State<App>, caller: Caller, Path(id): Path<String>, raw: Raw) -> Result<Json<Value>> {
    let job = show::find(&app, &id).await?;
    let body: Progress = raw.parse(&app).await?;
    if !(0..=100).contains(&body.progress) {
        return Err(HttpError::invalid("progress: must be between 0 and 100"));
    }
    check_text("message", body.message.as_deref().unwrap_or(""))?;
    let message = body.message.map(Into::into);
    let report = ReportProgress { holder: holder(&caller, &job), percent: body.progress as f64, message };
    app.engine.run(report).await?;
    again(&app, &id).await
}

fn check_text(field: &str, text: &str) -> Result<()> {
    if text.len() <= TEXT_BYTES_MAX {
        return Ok(());
    }
    Err(HttpError::invalid(format!("{field}: may have {TEXT_BYTES_MAX} bytes")))
}

async fn again(app: &App, id: &str) -> Result<Json<Value>> {
    let job = show::find(app, id).await?;
    Ok(ok(show::whole(app, &job).await?))
}

/// A second final report is refused, also when it says the same.
fn final_report(report: Ended) -> Result<()> {
    if report.replayed { Err(Refusal::LeaseLost { state: report.job.state }.into()) } else { Ok(()) }
}

#[derive(Deserialize)]
struct Completed {
    #[serde(default)]
    result: Value,
}

pub async fn complete(State(app): State<App>, caller: Caller, Path(id): Path<String>, raw: Raw) -> Result<Json<Value>> {
    let job = show::find(&app, &id).await?;
    let body: Completed = raw.parse(&app).await?;
    let report = Complete { holder: holder(&caller, &job), result: body.result.to_string().as_str().into() };
    final_report(app.engine.run(report).await?)?;
    again(&app, &id).await
}

#[derive(Deserialize)]
struct Failed {
    #[serde(alias = "error")]
    error_message: String,
}

pub async fn fail(State(app): State<App>, caller: Caller, Path(id): Path<String>, raw: Raw) -> Result<Json<Value>> {
    let job = show::find(&app, &id).await?;
    let body: Failed = raw.parse(&app).await?;
    check_text("error_message", &body.error_message)?;
    if body.error_message.is_empty() {
        return Err(HttpError::invalid("error_message: must say what went wrong"));
    }
    let report = Fail {
        holder: holder(&caller, &job),
        message: body.error_message.into(),
        retryable: true,
        result: Default::default(),
    };
    final_report(app.engine.run(report).await?)?;
    again(&app, &id).await
}

#[derive(Deserialize)]
struct Log {
    level: Option<String>,
    message: String,
    metadata: Option<Map<String, Value>>,
}

pub async fn log(State(app): State<App>, caller: Caller, Path(id): Path<String>, raw: Raw) -> Result<Json<Value>> {
    let job = show::find(&app, &id).await?;
    let body: Log = raw.parse(&app).await?;
    let level = body.level.unwrap_or_else(|| "info".into());
    if !LEVELS.contains(&level.as_str()) {
        return Err(HttpError::invalid(format!("level: {level:?} is none of {}", LEVELS.join(", "))));
    }
    check_text("message", &body.message)?;
    if body.message.is_empty() {
        return Err(HttpError::invalid("message: must not be empty"));
    }
    let entry = Entry { level, message: body.message, metadata: body.metadata.unwrap_or_default() };
    let text = serde_json::to_string(&entry).map_err(|error| HttpError::internal(error.to_string()))?;
    let logged = app.engine.run(AppendLog::new(holder(&caller, &job), text.as_str())).await?;
    Ok(created(jobs::show_entry(&job.key.id.to_string(), logged.piece, logged.at, &entry)))
}
