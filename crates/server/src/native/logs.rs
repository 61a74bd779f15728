//! `/api/v1/jobs/{id}/logs`: what a job wrote, in pages, as plain text, or followed live.

use crate::{
    app::App,
    ask::{Answer, Ask, Path, Query, ok},
    log_view,
    problem::{Code, Problem, Result},
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
    log::{FollowLog, LogPage, LogPiece, LogStream, ReadLog},
};
use windlass_core::{Chunk, Job, JobId, JobKey, LogAppend, Timestamp, log_count::LogGap};
use windlass_engine::Error;

const PAGE_BYTES: usize = 1 << 20;
/// Each is an object of its own in the answer. The last piece of a page may exceed it.
const PAGE_CHUNKS: usize = 8_192;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/jobs/{id}/logs", Access::Viewer, read)
            .says("A job's log: one page, optionally waiting for more, or the whole log as text")
            .query::<ReadLog>()
            .answers::<LogPage>(200)
            .answers_with(200, "text/plain")
            .refuses(&[Code::NotFound, Code::Invalid]),
        Route::get("/api/v1/jobs/{id}/logs/stream", Access::Viewer, follow)
            .says("Follow a job's log as server-sent events `log`, until `end`")
            .query::<FollowLog>()
            .reads(sse::LAST_EVENT_ID)
            .answers_with(200, "text/event-stream")
            .refuses(&[Code::NotFound, Code::Invalid, Code::TooMany]),
    ]
}

async fn job(app: &App, key: &JobKey) -> Result<Job> {
    app.engine.store().job(key).await?.ok_or_else(|| Problem::not_found("job", key.id))
}

async fn read(
    State(app): State<App>,
    ask: Ask,
    Path(id): Path<Uuid>,
    headers: HeaderMap,
    Query(query): Query<ReadLog>,
) -> Result<Response> {
    let key = JobKey::new(&ask.namespace, JobId(id));
    let accepts = |what: &str| {
        let value = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| value.split(',').any(|part| part.trim().split(';').next() == Some(what)))
    };
    match query.format.as_deref() {
        Some("text") => plain(app, key).await,
        None if accepts("text/plain") && !accepts("application/json") => plain(app, key).await,
        Some("json") | None => Ok(page(&app, &ask, &key, &query).await?.into_response()),
        Some(other) => Err(Problem::invalid("format", format!("{other:?} is not json or text"))),
    }
}

async fn page(app: &App, ask: &Ask, key: &JobKey, query: &ReadLog) -> Result<Answer<LogPage>> {
    job(app, key).await?;
    let after = query.after.unwrap_or(0);
    let wait = Duration::from_millis(query.wait_ms.unwrap_or(0).min(super::jobs::WAIT_MS_MAX));
    if !wait.is_zero() {
        ask.waits();
    }
    let pieces = app.engine.follow_log(key, after, PAGE_BYTES, wait).await?;
    // Read after the pieces: the row counts what was written before the job ended.
    let job = job(app, key).await?;
    let (mut next, mut shown) = (after, Vec::new());
    for append in &pieces {
        if shown.len() >= PAGE_CHUNKS {
            break;
        }
        shown.extend(gap(&job, next, append));
        shown.extend(append.chunks().map(|chunk| piece(append, &chunk)));
        next = append.piece;
    }
    let ended = over(&job, next);
    if ended && job.live.log.ends_short() {
        let at = job.live.finished_at.unwrap_or_default();
        shown.push(note(LogGap { bytes: Some(job.live.log.dropped_bytes) }, job.live.attempt, at));
    }
    Ok(ok(LogPage { pieces: shown, next, ended, dropped_bytes: job.live.log.dropped_bytes }))
}

fn over(job: &Job, next: u64) -> bool {
    job.state.is_final() && next >= job.live.log.pieces
}

fn piece(append: &LogAppend, chunk: &Chunk<'_>) -> LogPiece {
    LogPiece {
        attempt: append.attempt,
        at: text(append.at),
        stream: chunk.stream.map(|stream| match stream {
            windlass_core::LogStream::Out => LogStream::Stdout,
            windlass_core::LogStream::Err => LogStream::Stderr,
        }),
        worker_at: chunk.time.and_then(|time| i64::try_from(time).ok()).map(|time| text(Timestamp(time))),
        data: String::from_utf8_lossy(chunk.data).into_owned(),
        missing_bytes: None,
    }
}

/// What is said before a piece that does not follow the one before.
fn gap(job: &Job, after: u64, append: &LogAppend) -> Option<LogPiece> {
    let gap = job.live.log.gap(after, append.piece)?;
    Some(note(gap, append.attempt, append.at))
}

fn note(gap: LogGap, attempt: u32, at: Timestamp) -> LogPiece {
    LogPiece {
        attempt,
        at: text(at),
        stream: Some(LogStream::Windlass),
        worker_at: None,
        data: marker(gap),
        missing_bytes: gap.bytes.filter(|bytes| *bytes > 0),
    }
}

async fn plain(app: App, key: JobKey) -> Result<Response> {
    let job = job(&app, &key).await?;
    let pages = stream::try_unfold(Some(0), move |after| {
        let (app, key, log) = (app.clone(), key.clone(), job.live.log.clone());
        async move {
            let Some(mut after) = after else { return Ok(None) };
            let pieces = app.engine.store().read_log(&key, after, PAGE_BYTES).await.map_err(Error::from)?;
            if pieces.is_empty() {
                let short = log.ends_short().then(|| marker(LogGap { bytes: Some(log.dropped_bytes) }));
                return Ok::<_, Error>(short.map(|marker| (Bytes::from(marker), None)));
            }
            let mut bytes = Vec::new();
            for append in &pieces {
                bytes.extend(log.gap(after, append.piece).into_iter().flat_map(|gap| marker(gap).into_bytes()));
                bytes.extend_from_slice(&append.text());
                after = append.piece;
            }
            Ok(Some((Bytes::from(bytes), Some(after))))
        }
    });
    let mut response = Body::from_stream(pages).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Ok(response)
}

/// On a line of its own, wherever the text before ended.
fn marker(gap: LogGap) -> String {
    format!("\n{}", log_view::missing(gap))
}

async fn follow(
    State(app): State<App>,
    ask: Ask,
    Path(id): Path<Uuid>,
    headers: HeaderMap,
    Query(query): Query<FollowLog>,
) -> Result<Response> {
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
        let job = app.engine.store().job(&key).await.map_err(|_| Closed)?.ok_or(Closed)?;
        for append in &pieces {
            let mut told: Vec<LogPiece> = gap(&job, after, append).into_iter().collect();
            told.extend(append.chunks().map(|chunk| piece(append, &chunk)));
            after = append.piece;
            for (left, one) in (0..told.len()).rev().zip(&told) {
                let data = serde_json::to_string(one).map_err(|_| Closed)?;
                // Only the last of a piece is a place to go on from.
                sink.send(sse::frame((left == 0).then_some(after), "log", &data)).await?;
            }
        }
        if over(&job, after) {
            let data = serde_json::json!({"state": job.state.name(), "dropped_bytes": job.live.log.dropped_bytes});
            return sink.send(sse::frame(None, "end", &data.to_string())).await;
        }
        if pieces.is_empty() {
            sink.send(sse::beat(None)).await?;
        }
    }
}
