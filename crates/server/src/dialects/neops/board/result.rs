//! What came of a job: pushed once by whoever claimed it, and read back whole.

use super::show;
use crate::{
    app::App,
    ask,
    auth::Caller,
    dialects::neops::{
        HttpError, Neops, Result,
        body::{Json, Path, empty, id, ok},
        namespace,
        results::{self, StoredResult},
        runs::{ahead, reported},
    },
};
use axum::{
    extract::{Request, State as Shared},
    response::Response,
};
use http::{StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use windlass_core::{
    Command, JobId, JobKey, Payload, Refusal, State,
    commands::{
        all::All,
        ask::Both,
        complete::Complete,
        fail::Fail,
        holder::{Address, Holder},
        progress::ReportProgress,
    },
};
use windlass_engine::Error;
use windlass_plan::neops::secrets::Masked;

/// A body above this is taken in only a few at a time.
const LARGE: u64 = 1 << 20;
/// Characters of a message that lists show.
pub const MESSAGE_MAX: usize = 1_000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Push {
    job_execution_id: String,
    status: Status,
    result: Outcome,
    acquires: Option<Box<RawValue>>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Status {
    Success,
    SuccessAck,
    Failed,
    FailedAck,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    success: bool,
    message: Option<String>,
    data: Option<Box<RawValue>>,
    db_updates: Option<Box<RawValue>>,
    retryable: Option<bool>,
}

/// As much as lists show.
pub fn cut(message: &str) -> &str {
    message.char_indices().nth(MESSAGE_MAX).map_or(message, |(end, _)| &message[..end])
}

fn holder(job: JobId, who: &crate::auth::Caller) -> Holder {
    Holder { namespace: namespace(), address: Address::Job(job), principal: Some(who.name.clone()) }
}

pub async fn push(Shared(neops): Shared<Neops>, caller: Caller, request: Request) -> Result<Response> {
    let told = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let _turn = match told {
        Some(told) if told <= LARGE => None,
        _ => Some(neops.own.large.acquire().await.map_err(|_| HttpError::bad("the server stops"))?),
    };
    let bytes = ask::read(request.into_body()).await?;
    let size = bytes.len();
    let sent: Push = ask::parse(&neops, namespace, bytes).await?;
    let job = JobId(id("jobExecutionId", &sent.job_execution_id)?);
    for (place, value, opening) in [
        ("result.data", &sent.result.data, '{'),
        ("result.dbUpdates", &sent.result.db_updates, '{'),
        ("acquires", &sent.acquires, '['),
    ] {
        if value.as_ref().is_some_and(|value| !value.get().starts_with(opening)) {
            let kind = if opening == '{' { "an object" } else { "a list" };
            return Err(HttpError::bad(format!("{place}: must be {kind}")));
        }
    }
    let done = matches!(sent.status, Status::Success | Status::SuccessAck);
    let message = sent.result.message.clone().unwrap_or_default();
    let retryable = sent.result.retryable != Some(false);
    let kept = StoredResult {
        success: sent.result.success,
        message: sent.result.message,
        data: sent.result.data,
        db_updates: sent.result.db_updates,
        retryable: sent.result.retryable,
        acquires: sent.acquires,
    };
    let (text, masked) = write(&neops, kept, size).await?;
    let secrets = reported::keep(&neops, job, &masked).await?;
    let holder = holder(job, &caller);
    // Before anything large is written for it, it is asked whether it will be taken.
    if text.len() > LARGE as usize {
        let holds = windlass_core::commands::holds::Holds { holder: holder.clone() };
        neops.engine.run(holds).await.map_err(refused(job))?;
    }
    if done && secrets.is_none() && went_ahead(&neops, job, &holder, &message, &text).await? {
        return Ok(empty(StatusCode::CREATED));
    }
    let result = results::keep(&neops, job, text).await?;
    let reported = match secrets.filter(|_| done) {
        Some(secrets) => report_with(&neops, holder, &message, result.clone(), secrets).await,
        None => report(&neops, holder, done, &message, retryable, result.clone()).await,
    };
    match reported {
        Ok(()) => Ok(empty(StatusCode::CREATED)),
        Err(error) => {
            results::forget(&neops, &result).await;
            Err(refused(job)(error))
        }
    }
}

/// Reports a success together with what the run makes of it, where that is known already. False: nothing was done.
async fn went_ahead(neops: &Neops, job: JobId, holder: &Holder, message: &str, text: &[u8]) -> Result<bool> {
    let Some(ahead) = ahead::decide(neops, job, text, neops.engine.now().await?) else { return Ok(false) };
    let mut commands: Vec<Command> = said(holder, cut(message)).map(Into::into).into_iter().collect();
    commands.push(Complete { holder: holder.clone(), result: Payload::from(text.to_vec()) }.into());
    commands.extend(ahead.commands.iter().cloned());
    match neops.engine.run(All { commands }).await {
        Ok(_) => ahead::done(neops, job, ahead),
        // Whatever it was, the report by itself says it.
        Err(Error::Refused(_)) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    Ok(true)
}

fn said(holder: &Holder, text: &str) -> Option<ReportProgress> {
    let message = Some(text.into());
    (!text.is_empty()).then(|| ReportProgress { holder: holder.clone(), percent: 100.0, message })
}

/// As it is kept, and the passwords that are masked in it.
async fn write(app: &App, mut kept: StoredResult, told: usize) -> Result<(Vec<u8>, Masked)> {
    let mut write = move || {
        let masked = kept.db_updates.as_deref().map(reported::mask).transpose()?.flatten();
        let masked = masked.map(|(updates, masked)| {
            kept.db_updates = Some(updates);
            masked
        });
        let text = serde_json::to_vec(&kept).map_err(|error| HttpError::bad(error.to_string()))?;
        Ok((text, masked.unwrap_or_default()))
    };
    match told <= results::SMALL {
        true => write(),
        false => app.aside.run(&namespace(), write).await?,
    }
}

/// Reports a success together with the passwords that its result brought.
async fn report_with(app: &App, holder: Holder, message: &str, result: Payload, secrets: Command) -> Result<(), Error> {
    let said = said(&holder, cut(message)).map(Into::into);
    let commands = said.into_iter().chain([secrets, Complete { holder, result }.into()]).collect();
    match app.engine.run(All { commands }).await {
        Err(Error::Refused(Refusal::Exists { .. })) => Err(Error::Refused(Refusal::Final { state: State::Completed })),
        reported => reported.map(drop),
    }
}

/// What was said about a success stands where progress does, so that lists need not read results.
async fn report(
    app: &App,
    holder: Holder,
    done: bool,
    message: &str,
    retryable: bool,
    result: Payload,
) -> Result<(), Error> {
    let text = cut(message);
    let ended = match done {
        false => app.engine.run(Fail { holder, message: text.into(), retryable, result }).await?,
        true => match said(&holder, text) {
            None => app.engine.run(Complete { holder, result }).await?,
            Some(progress) => app.engine.run(Both(progress, Complete { holder, result })).await?.1,
        },
    };
    match ended.replayed {
        true => Err(Error::Refused(Refusal::Final { state: ended.job.state })),
        false => Ok(()),
    }
}

/// A job has one result: whatever comes after it changes nothing.
fn refused(job: JobId) -> impl Fn(Error) -> HttpError {
    move |error| match error {
        Error::Refused(Refusal::NotFound { .. }) => not_found(job),
        Error::Refused(Refusal::NotHolder) => {
            HttpError::new(StatusCode::FORBIDDEN, format!("Job {job} was claimed by somebody else"))
        }
        Error::Refused(Refusal::LeaseLost { .. } | Refusal::NotHeld { .. } | Refusal::Final { .. }) => {
            HttpError::conflict(format!("Job {job} is not waiting for a result"))
        }
        other => other.into(),
    }
}

pub fn not_found(job: JobId) -> HttpError {
    HttpError::not_found(format!("Job with id {job} not found"))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobResultData {
    job_id: String,
    result_status: Option<String>,
    message: Option<String>,
    data: Option<Box<RawValue>>,
    retryable: Option<bool>,
}

pub async fn get(Shared(app): Shared<App>, Path(job): Path<String>) -> Result<Json<JobResultData>> {
    let id = JobId(id("jobId", &job)?);
    let key = JobKey::new(&namespace(), id);
    let job = app.engine.store().job(&key).await?.ok_or_else(|| not_found(id))?;
    let row = show::row(&app, &job).await?.ok_or_else(|| not_found(id))?;
    let kept = results::outline(&app, &key).await?.unwrap_or_default();
    Ok(ok(JobResultData {
        job_id: id.to_string(),
        message: kept.message.or(row.result_message),
        result_status: row.result_status,
        data: kept.data,
        retryable: kept.retryable,
    }))
}
