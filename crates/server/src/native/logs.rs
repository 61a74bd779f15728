//! `/api/v1/jobs/{id}/logs`: what a job wrote, in pages, as plain text, or followed live.

use crate::{
    app::App,
    ask::{Answer, Ask, Path, Query, ok},
    problem::Problem,
    route::{Access, Route},
    sse::{self, Closed, Sink},
    wire_time::text,
};
use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, header};
use std::time::Duration;
use windlass_api::{
    Uuid,
    log::{FollowLog, LogPage, LogPiece, ReadLog},
};
use windlass_core::{Job, JobId, JobKey, LogAppend};
use windlass_engine::Error;

const PAGE_BYTES: usize = 1 << 20;
const WAIT_MS_MAX: u64 = 60_000;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/jobs/{id}/logs", Access::Viewer, read)
            .says("A job's log: a page of it, waiting for news if asked to, or all of it as text")
            .query::<ReadLog>()
            .answers::<LogPage>(200)
            .answers_with(200, "text/plain")
            .refuses(&["not-found", "invalid"]),
        Route::get("/api/v1/jobs/{id}/logs/stream", Access::Viewer, follow)
            .says("Follow a job's log as server-sent events `log`, until `end`")
            .query::<FollowLog>()
            .reads(sse::LAST_EVENT_ID)
            .answers_with(200, "text/event-stream")
            .refuses(&["not-found", "invalid", "too-many"]),
    ]
}

async fn job(app: &App, key: &JobKey) -> Result<Job, Problem> {
    app.engine.store().job(key).await?.ok_or_else(|| Problem::not_found("job", key.id))
}

async fn read(
    State(app): State<App>,
    ask: Ask,
    Path(id): Path<Uuid>,
    headers: HeaderMap,
    Query(query): Query<ReadLog>,
) -> Result<Response, Problem> {
    let key = JobKey::new(&ask.namespace, JobId(id));
    let accepts = |what: &str| {
        let value = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| value.split(',').any(|part| part.trim().split(';').next() == Some(what)))
    };
    match query.format.as_deref() {
        Some("text") => plain(app, key).await,
        None if accepts("text/plain") && !accepts("application/json") => plain(app, key).await,
        Some("json") | None => Ok(page(&app, &key, &query).await?.into_response()),
        Some(other) => Err(Problem::invalid("format", format!("{other:?} is not json or text"))),
    }
}

async fn page(app: &App, key: &JobKey, query: &ReadLog) -> Result<Answer<LogPage>, Problem> {
    job(app, key).await?;
    let after = query.after.unwrap_or(0);
    let wait = Duration::from_millis(query.wait_ms.unwrap_or(0).min(WAIT_MS_MAX));
    let pieces = app.engine.follow_log(key, after, PAGE_BYTES, wait).await?;
    let next = pieces.last().map_or(after, |last| last.piece);
    // Read after the pieces: the row counts what was written before the job ended.
    let job = job(app, key).await?;
    Ok(ok(LogPage {
        pieces: pieces.iter().map(piece).collect(),
        next,
        ended: over(&job, next),
        dropped_bytes: job.live.log.dropped_bytes,
    }))
}

fn over(job: &Job, next: u64) -> bool {
    job.state.is_final() && next >= job.live.log.pieces
}

fn piece(append: &LogAppend) -> LogPiece {
    let data = String::from_utf8_lossy(append.data.as_bytes()).into_owned();
    LogPiece { attempt: append.attempt, at: text(append.at), data }
}

/// What is said where the log was cut off.
fn truncated(dropped: u64) -> String {
    format!("\n[windlass: {dropped} bytes were dropped here, because the log had reached its limit]\n")
}

async fn plain(app: App, key: JobKey) -> Result<Response, Problem> {
    let dropped = job(&app, &key).await?.live.log.dropped_bytes;
    let pages = stream::try_unfold(Some(0), move |after| {
        let (app, key) = (app.clone(), key.clone());
        async move {
            let Some(after) = after else { return Ok(None) };
            let pieces = app.engine.store().read_log(&key, after, PAGE_BYTES).await.map_err(Error::from)?;
            let Some(last) = pieces.last().map(|last| last.piece) else {
                let marker = (dropped > 0).then(|| (Bytes::from(truncated(dropped)), None));
                return Ok::<_, Error>(marker);
            };
            let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.data.as_bytes()).copied().collect();
            Ok(Some((Bytes::from(bytes), Some(last))))
        }
    });
    let mut response = Body::from_stream(pages).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Ok(response)
}

async fn follow(
    State(app): State<App>,
    ask: Ask,
    Path(id): Path<Uuid>,
    headers: HeaderMap,
    Query(query): Query<FollowLog>,
) -> Result<Response, Problem> {
    let key = JobKey::new(&ask.namespace, JobId(id));
    job(&app, &key).await?;
    let after = sse::last_event(&headers)?.or(query.after).unwrap_or(0);
    let inner = app.clone();
    sse::open(&app, &ask.caller, |sink| async move {
        // However it ends, the reader comes back where it was.
        drop(pump(inner, sink, key, after).await);
    })
}

async fn pump(app: App, mut sink: Sink, key: JobKey, mut after: u64) -> Result<(), Closed> {
    sink.send(sse::beat(None)).await?;
    loop {
        let pieces = tokio::select! {
            () = sink.over() => return Ok(()),
            pieces = app.engine.follow_log(&key, after, PAGE_BYTES, sse::BEAT) => pieces.map_err(|_| Closed)?,
        };
        for append in &pieces {
            after = append.piece;
            let data = serde_json::to_string(&piece(append)).map_err(|_| Closed)?;
            sink.send(sse::frame(Some(after), "log", &data)).await?;
        }
        let job = app.engine.store().job(&key).await.map_err(|_| Closed)?.ok_or(Closed)?;
        if over(&job, after) {
            let data = serde_json::json!({"state": job.state.name(), "dropped_bytes": job.live.log.dropped_bytes});
            return sink.send(sse::frame(None, "end", &data.to_string())).await;
        }
        if pieces.is_empty() {
            sink.send(sse::beat(None)).await?;
        }
    }
}
