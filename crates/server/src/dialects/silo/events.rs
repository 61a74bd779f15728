//! The event stream: what the engine tells, in this protocol's words.
//!
//! Numbers are the engine's own, so they grow over restarts and a reader that comes back with the last one it saw gets
//! everything since, from the store if need be.

use super::{Silo, body::Params, error::Result, namespace, runners, show};
use crate::{
    app::App,
    auth::Caller,
    sse::{self, Closed, Sink},
};
use axum::{extract::State, response::Response};
use http::{HeaderMap, HeaderValue, header};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::time::{Instant, sleep_until};
use windlass_core::{Event, Job, JobId, JobKey, What, WorkerId, job::Outcome, worker::Worker};
use windlass_engine::{FeedItem, Subscription};

pub const SUMMARY_CHARACTERS: usize = 200;

/// Counts open streams for as long as it is held.
struct Counted(Silo);

impl Counted {
    fn new(app: &Silo) -> Self {
        app.own.listeners.fetch_add(1, Ordering::Relaxed);
        Self(app.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.own.listeners.fetch_sub(1, Ordering::Relaxed);
    }
}

pub fn listeners(count: &AtomicUsize) -> usize {
    count.load(Ordering::Relaxed)
}

pub async fn listen(State(app): State<Silo>, caller: Caller, headers: HeaderMap, params: Params) -> Result<Response> {
    let header = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    // What is no number says nothing.
    let after = header.or_else(|| params.get("last_event_id")).and_then(|id| id.trim().parse().ok());
    let subscription = app.engine.subscribe(after).await?;
    let counted = Counted::new(&app);
    let mut response = sse::open(&app, &caller, |sink| async move {
        // However it ends, the reader comes back where it was.
        drop(pump(&counted.0, sink, subscription).await);
    })?;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

async fn pump(app: &Silo, mut sink: Sink, mut events: Subscription) -> Result<(), Closed> {
    let every = app.own.settings.heartbeat;
    let mut next_beat = Instant::now() + every;
    sink.send("retry: 3000\n: welcome\n\n".to_owned()).await?;
    loop {
        let item = tokio::select! {
            () = sink.over() => return Ok(()),
            () = sleep_until(next_beat) => None,
            item = events.next() => Some(item.map_err(|error| {
                tracing::warn!(%error, "a stream of events ends because the store cannot be read");
                Closed
            })?),
        };
        match item {
            None => {
                sink.send(sse::frame(None, "heartbeat", "{}")).await?;
                next_beat = Instant::now() + every;
            }
            Some(FeedItem::Gap { requested, oldest }) => {
                let data = json!({"requested": requested, "oldest": oldest});
                sink.send(sse::frame(None, "stream.gap", &data.to_string())).await?;
            }
            Some(FeedItem::Event(number, event)) => {
                if let Some((name, data)) = translate(app, &event).await.map_err(|_| Closed)? {
                    sink.send(sse::frame(Some(number), &name, &data.to_string())).await?;
                }
            }
        }
    }
}

/// Name and data; none for what this protocol does not tell.
async fn translate(app: &App, event: &Event) -> Result<Option<(String, Value)>> {
    if event.namespace != namespace() {
        return Ok(None);
    }
    let told = |name: &str, data: Value| Ok(Some((name.to_owned(), data)));
    match &event.what {
        What::Submitted { job } => told("job.created", created(*job, find(app, *job).await?)),
        What::Claimed { job, worker, .. } => {
            let (name, id) = show::runner(worker);
            told("job.claimed", json!({"id": job.to_string(), "runner_id": id, "runner_name": name}))
        }
        What::Progress { job, percent, message } => {
            let progress = *percent as i64;
            told("job.progress", json!({"id": job.to_string(), "progress": progress, "progress_message": message}))
        }
        What::Completed { job } => told("job.completed", completed(app, *job).await?),
        What::Failed { job, reason, message } => {
            let outcome = Outcome::new(*reason, message.clone());
            told("job.failed", json!({"id": job.to_string(), "error_message": show::error_message(&outcome)}))
        }
        What::Cancelled { job, by, .. } => told("job.cancelled", json!({"id": job.to_string(), "cancelled_by": by})),
        What::WorkerOnline { worker } => told("runner.online", online(app, worker).await?),
        What::WorkerOffline { worker } => {
            let (name, id) = show::runner(worker);
            told("runner.offline", json!({"id": id, "name": name}))
        }
        What::Told { topic, data } => Ok(serde_json::from_str(data).ok().map(|data| (topic.to_string(), data))),
        What::Ready { .. }
        | What::Started { .. }
        | What::Requeued { .. }
        | What::Released { .. }
        | What::CancelRequested { .. }
        | What::Skipped { .. }
        | What::WorkerRegistered { .. }
        | What::WorkerUnreachable { .. }
        | What::WorkerDraining { .. }
        | What::WorkerUndrained { .. }
        | What::WorkerDeleted { .. }
        | What::RunStarted { .. }
        | What::RunGrew { .. }
        | What::RunFinished { .. }
        | What::DefinitionPut { .. }
        | What::DefinitionDeleted { .. }
        | What::Linked { .. }
        | What::Unlinked { .. }
        | What::RecordPut { .. }
        | What::RecordDeleted { .. }
        | What::Audit { .. } => Ok(None),
    }
}

/// Jobs outlive their events, unless somebody made them short-lived.
async fn find(app: &App, id: JobId) -> Result<Option<Job>> {
    Ok(app.engine.store().job(&JobKey::new(&namespace(), id)).await?)
}

fn created(id: JobId, job: Option<Job>) -> Value {
    let extra = job.as_ref().and_then(|job| show::extra(job).ok());
    json!({
        "id": id.to_string(),
        "definition_name": job.as_ref().and_then(|job| job.spec.definition.as_ref()).map(|definition| &definition.name),
        "item_id": extra.as_ref().and_then(|extra| extra.item_id),
        "part_number": extra.as_ref().and_then(|extra| extra.part_number.clone()),
        "status": "pending",
        "priority": job.as_ref().map(|job| job.priority),
        "retry_of": job.as_ref().and_then(|job| job.spec.retry_of).map(|id| id.to_string()),
    })
}

async fn completed(app: &App, id: JobId) -> Result<Value> {
    let job = find(app, id).await?;
    let body = app.engine.store().body(&JobKey::new(&namespace(), id)).await?.unwrap_or_default();
    let summary = summary(&show::result(body.result.as_ref()));
    let seconds = job.as_ref().map_or(0.0, show::duration_seconds);
    Ok(json!({"id": id.to_string(), "result_summary": summary, "duration_seconds": seconds}))
}

pub fn summary(result: &Value) -> String {
    match (result, result.get("summary")) {
        (Value::Null, _) => String::new(),
        (_, Some(Value::String(summary))) => summary.clone(),
        _ => result.to_string().chars().take(SUMMARY_CHARACTERS).collect(),
    }
}

async fn online(app: &App, worker: &WorkerId) -> Result<Value> {
    let known = app.engine.read_record::<Worker>(&namespace(), worker.as_str()).await?;
    let tags = known.as_ref().map(runners::tags).unwrap_or_default();
    let (name, id) = show::runner(worker);
    Ok(json!({"id": id, "name": name, "tags": tags}))
}
