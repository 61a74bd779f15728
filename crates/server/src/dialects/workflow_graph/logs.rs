//! Logs: sent under a lease, read as chunks of one line, followed live.

use super::{
    body::{Json, No, Sent, Who},
    namespace, status,
    wire::{LogChunk, Logs, Stream},
};
use crate::app::App;
use axum::{
    body::Body,
    extract::{Path, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, StatusCode, header};
use std::{convert::Infallible, time::Duration};
use windlass_core::{
    Job, LogAppend, Payload,
    commands::{append_log::AppendLog, holder::Holder},
};

/// Executions whose logs are shown together.
const EXECUTIONS_MAX: usize = 100;
const READ_BYTES: usize = 1 << 20;
/// Between looks for a newer execution, and between comments that keep the connection open.
const TURN: Duration = Duration::from_secs(10);

/// Filed by the lease, whatever the chunks say about themselves.
pub async fn append(
    State(app): State<App>,
    who: Who,
    Path(lease): Path<String>,
    Sent(body): Sent<Logs>,
) -> Result<StatusCode, No> {
    let lease = lease.parse().map_err(|_| No::bare(StatusCode::CONFLICT))?;
    let holder = Holder { principal: who.0, ..Holder::lease(&namespace(), lease) };
    let most = app.engine.settings().limits.log_piece_bytes_max;
    let pieces = pieces(body.chunks, most);
    let commands = pieces.into_iter().map(|(stream, data)| {
        AppendLog { holder: holder.clone(), stream: stream.into(), data: Payload::from(data.into_bytes()) }.into()
    });
    let replies = app.engine.run_many(commands.collect()).await?;
    match replies.into_iter().find_map(Result::err) {
        Some(_) => Err(No::bare(StatusCode::CONFLICT)),
        None => Ok(StatusCode::OK),
    }
}

/// Neighbours of one stream go together; nothing is longer than a piece may be.
fn pieces(chunks: Vec<LogChunk>, most: usize) -> Vec<(Stream, String)> {
    let mut pieces: Vec<(Stream, String)> = Vec::new();
    for chunk in chunks {
        let mut rest = chunk.data.as_str();
        while !rest.is_empty() {
            let same = pieces.last().is_some_and(|(stream, data)| *stream == chunk.stream && data.len() < most);
            if !same {
                pieces.push((chunk.stream, String::new()));
            }
            let (_, data) = pieces.last_mut().expect("one was just made sure of");
            let mut end = rest.len().min(most - data.len());
            while !rest.is_char_boundary(end) {
                end -= 1;
            }
            if end == 0 {
                pieces.push((chunk.stream, String::new()));
                continue;
            }
            data.push_str(&rest[..end]);
            rest = &rest[end..];
        }
    }
    pieces.retain(|(_, data)| !data.is_empty());
    pieces
}

impl From<Stream> for windlass_core::LogStream {
    fn from(stream: Stream) -> Self {
        match stream {
            Stream::Stdout => windlass_core::LogStream::Out,
            Stream::Stderr => windlass_core::LogStream::Err,
        }
    }
}

/// Cuts what was stored into lines again and numbers them within their attempt.
struct Lines {
    workflow: String,
    job: String,
    attempt: u32,
    sequence: u64,
}

impl Lines {
    fn of(&mut self, piece: &LogAppend) -> Vec<LogChunk> {
        if piece.attempt != self.attempt {
            (self.attempt, self.sequence) = (piece.attempt, 0);
        }
        let text = String::from_utf8_lossy(piece.data.as_bytes()).into_owned();
        let stream = match piece.stream {
            windlass_core::LogStream::Out => Stream::Stdout,
            windlass_core::LogStream::Err => Stream::Stderr,
        };
        let chunk = |line: &str| {
            let sequence = self.sequence;
            self.sequence += 1;
            LogChunk {
                workflow_id: self.workflow.clone(),
                job_id: self.job.clone(),
                sequence,
                data: line.to_owned(),
                timestamp_ms: piece.at.0.max(0) as u64,
                stream,
            }
        };
        text.split_inclusive('\n').map(chunk).collect()
    }
}

pub async fn list(
    State(app): State<App>,
    Path((workflow, job)): Path<(String, String)>,
) -> Result<Json<Vec<LogChunk>>, No> {
    let mut chunks = Vec::new();
    for execution in status::executions(&app, &workflow, &job, EXECUTIONS_MAX).await? {
        let mut lines = Lines { workflow: workflow.clone(), job: job.clone(), attempt: 0, sequence: 0 };
        let mut after = 0;
        loop {
            let pieces = app.engine.store().read_log(&execution.key, after, READ_BYTES).await?;
            let Some(last) = pieces.last() else { break };
            after = last.piece;
            chunks.extend(pieces.iter().flat_map(|piece| lines.of(piece)));
        }
    }
    Ok(Json(StatusCode::OK, chunks))
}

/// Where a follower has come to.
struct Follower {
    app: App,
    workflow: String,
    job: String,
    /// Executions still to be read, the present one first.
    ahead: Vec<Job>,
    lines: Lines,
    after: u64,
}

/// Everything stored, then everything new, for ever: also for jobs that have ended or are not known yet.
pub async fn stream(State(app): State<App>, Path((workflow, job)): Path<(String, String)>) -> Result<Response, No> {
    let mut ahead = status::executions(&app, &workflow, &job, EXECUTIONS_MAX).await?;
    ahead.reverse();
    let lines = Lines { workflow: workflow.clone(), job: job.clone(), attempt: 0, sequence: 0 };
    let follower = Follower { app, workflow, job, ahead, lines, after: 0 };
    let events = stream::unfold(follower, |mut follower| async move {
        let text = follower.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(text)), follower))
    });
    let mut response = Body::from_stream(events).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

impl Follower {
    /// The next events as text; a comment where there is nothing to tell. None ends the stream.
    async fn next(&mut self) -> Option<String> {
        let Some(job) = self.ahead.last() else { return self.look().await };
        let pieces = self.app.engine.follow_log(&job.key, self.after, READ_BYTES, TURN).await.ok()?;
        if let Some(last) = pieces.last() {
            self.after = last.piece;
            let chunks = pieces.iter().flat_map(|piece| self.lines.of(piece)).collect::<Vec<_>>();
            return Some(chunks.iter().map(event).collect());
        }
        self.look().await
    }

    /// Nothing new in this execution: go on to the next one, if there is one by now.
    async fn look(&mut self) -> Option<String> {
        if self.ahead.len() > 1 {
            self.ahead.pop();
            self.begin();
            return Some(String::new());
        }
        let latest = status::executions(&self.app, &self.workflow, &self.job, 1).await.ok()?.pop();
        match (latest, self.ahead.last()) {
            (Some(latest), present) if present.is_none_or(|present| present.key != latest.key) => {
                self.ahead = vec![latest];
                self.begin();
                Some(String::new())
            }
            (_, present) => {
                // An ended job is not waited for by its log.
                if present.is_none_or(|job| job.state.is_final()) || self.ended().await {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                Some(": keep-alive\n\n".into())
            }
        }
    }

    async fn ended(&self) -> bool {
        let Some(job) = self.ahead.last() else { return true };
        let job = self.app.engine.store().job(&job.key).await.ok().flatten();
        job.is_none_or(|job| job.state.is_final())
    }

    fn begin(&mut self) {
        self.after = 0;
        (self.lines.attempt, self.lines.sequence) = (0, 0);
    }
}

/// JSON escapes line ends, so an event is always one line of data.
fn event(chunk: &LogChunk) -> String {
    format!("event: log\ndata: {}\n\n", serde_json::to_string(chunk).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(stream: Stream, data: &str) -> LogChunk {
        LogChunk {
            workflow_id: "w".into(),
            job_id: "j".into(),
            sequence: 0,
            data: data.into(),
            timestamp_ms: 0,
            stream,
        }
    }

    #[test]
    fn neighbours_of_one_stream_go_together_and_long_ones_are_cut() {
        use Stream::*;
        type Case<'a> = (Vec<LogChunk>, &'a [(Stream, &'a str)]);
        let table: [Case; 4] = [
            (vec![chunk(Stdout, "a\n"), chunk(Stdout, "b\n")], &[(Stdout, "a\nb\n")]),
            (vec![chunk(Stdout, "a\n"), chunk(Stderr, "b\n")], &[(Stdout, "a\n"), (Stderr, "b\n")]),
            (vec![chunk(Stdout, "0123456789")], &[(Stdout, "01234567"), (Stdout, "89")]),
            (vec![chunk(Stdout, "1234567é"), chunk(Stdout, "")], &[(Stdout, "1234567"), (Stdout, "é")]),
        ];
        for (chunks, expected) in table {
            let found = pieces(chunks, 8);
            let found: Vec<(Stream, &str)> = found.iter().map(|(stream, data)| (*stream, data.as_str())).collect();
            assert_eq!(found, expected);
        }
    }
}
