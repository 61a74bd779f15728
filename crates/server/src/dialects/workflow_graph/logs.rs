//! Logs: sent under a lease, read as chunks of one line, followed live.

use super::{
    body::{No, Sent, Who},
    namespace, status,
    wire::{LogChunk, Logs, Stream},
};
use crate::{
    app::App,
    auth::Caller,
    sse::{self, Closed, Sink},
};
use axum::{
    Extension,
    body::Body,
    extract::{Path, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::time::Duration;
use tokio::sync::mpsc;
use windlass_api::Uuid;
use windlass_core::{
    Job, JobId, LogAppend, Payload,
    commands::{append_log::AppendLog, holder::Holder},
};
use windlass_engine::StoreError;

/// Executions whose logs are shown together.
const EXECUTIONS_MAX: usize = 100;
const READ_BYTES: usize = 256 << 10;
/// Of an answer: what is written at a time, and how many of these may wait for the reader.
const PART_BYTES: usize = 32 << 10;
const PARTS_WAITING: usize = 2;
const KEEP_ALIVE: &str = ": keep-alive\n\n";
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
    /// One at a time: a piece of nothing but line ends would become many times its size.
    fn of<'a>(&'a mut self, piece: &'a LogAppend) -> impl Iterator<Item = LogChunk> + Send + 'a {
        if piece.attempt != self.attempt {
            (self.attempt, self.sequence) = (piece.attempt, 0);
        }
        let stream = match piece.stream {
            windlass_core::LogStream::Out => Stream::Stdout,
            windlass_core::LogStream::Err => Stream::Stderr,
        };
        piece.data.as_bytes().split_inclusive(|byte| *byte == b'\n').map(move |line| {
            let sequence = self.sequence;
            self.sequence += 1;
            LogChunk {
                workflow_id: self.workflow.clone(),
                job_id: self.job.clone(),
                sequence,
                data: String::from_utf8_lossy(line).into_owned(),
                timestamp_ms: piece.at.0.max(0) as u64,
                stream,
            }
        })
    }
}

/// The answer is written while it is read, so that a long log takes no more memory than a short one.
pub async fn list(State(app): State<App>, Path((workflow, job)): Path<(String, String)>) -> Result<Response, No> {
    let executions = status::executions(&app, &workflow, &job, EXECUTIONS_MAX).await?;
    let (parts, queue) = mpsc::channel(PARTS_WAITING);
    tokio::spawn(async move {
        let written = write_list(&app, &workflow, &job, executions, &parts).await;
        if let Err(error) = written {
            // Half a list is none: the connection ends with it.
            drop(parts.send(Err(error)).await);
        }
    });
    let parts = stream::unfold(queue, |mut queue| async move { queue.recv().await.map(|part| (part, queue)) });
    let mut response = Body::from_stream(parts).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

type Part = Result<Bytes, StoreError>;

/// Ends early if nobody reads any more.
async fn write_list(
    app: &App,
    workflow: &str,
    job: &str,
    executions: Vec<Job>,
    parts: &mpsc::Sender<Part>,
) -> Result<(), StoreError> {
    let (mut text, mut between) = (String::from("["), "");
    for execution in executions {
        let mut lines = Lines { workflow: workflow.into(), job: job.into(), attempt: 0, sequence: 0 };
        let mut after = 0;
        loop {
            let pieces = app.engine.store().read_log(&execution.key, after, READ_BYTES).await?;
            let Some(last) = pieces.last() else { break };
            after = last.piece;
            for piece in &pieces {
                for chunk in lines.of(piece) {
                    text += std::mem::replace(&mut between, ",");
                    text += &serde_json::to_string(&chunk).unwrap_or_default();
                    if text.len() >= PART_BYTES && parts.send(Ok(std::mem::take(&mut text).into())).await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }
    text += "]";
    drop(parts.send(Ok(text.into())).await);
    Ok(())
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

/// How far a reader had come, as it was told in an event's id.
struct Place {
    execution: JobId,
    piece: u64,
    attempt: u32,
    sequence: u64,
}

impl Place {
    /// A line of the last event of a piece.
    fn id(&self) -> String {
        format!("id: {}.{}.{}.{}\n", self.execution, self.piece, self.attempt, self.sequence)
    }

    /// Something else is no error: not every client keeps to what it was told.
    fn of(headers: &HeaderMap) -> Option<Self> {
        let mut parts = headers.get("last-event-id")?.to_str().ok()?.trim().split('.');
        Some(Self {
            execution: JobId(Uuid::parse_str(parts.next()?).ok()?),
            piece: parts.next()?.parse().ok()?,
            attempt: parts.next()?.parse().ok()?,
            sequence: parts.next()?.parse().ok()?,
        })
    }
}

/// What a follower finds at its next look.
enum Found {
    Pieces(Vec<LogAppend>),
    /// Another execution begins.
    Another,
    Nothing,
}

/// Everything stored, then everything new, for ever: also for jobs that have ended or are not known yet. As with every other
/// stream, a principal may have so many, and they end when a token is revoked.
pub async fn stream(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Path((workflow, job)): Path<(String, String)>,
) -> Result<Response, No> {
    let mut ahead = status::executions(&app, &workflow, &job, EXECUTIONS_MAX).await?;
    ahead.reverse();
    let lines = Lines { workflow: workflow.clone(), job: job.clone(), attempt: 0, sequence: 0 };
    let mut follower = Follower { app: app.clone(), workflow, job, ahead, lines, after: 0 };
    if let Some(place) = Place::of(&headers) {
        follower.go_on(place);
    }
    let opened = sse::open(&app, &caller, |sink| async move {
        // However it ends, the reader comes back.
        drop(follower.pump(sink).await);
    });
    let mut response = opened?;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

impl Follower {
    async fn pump(mut self, mut sink: Sink) -> Result<(), Closed> {
        loop {
            let found = tokio::select! {
                () = sink.over() => return Ok(()),
                found = self.next() => found.ok_or(Closed)?,
            };
            match found {
                Found::Pieces(pieces) => self.tell(&pieces, &mut sink).await?,
                Found::Another => {}
                Found::Nothing => sink.send(KEEP_ALIVE.to_owned()).await?,
            }
        }
    }

    /// From the start if the execution is not there any more.
    fn go_on(&mut self, place: Place) {
        if let Some(at) = self.ahead.iter().position(|job| job.key.id == place.execution) {
            self.ahead.truncate(at + 1);
            self.after = place.piece;
            (self.lines.attempt, self.lines.sequence) = (place.attempt, place.sequence);
        }
    }

    async fn tell(&mut self, pieces: &[LogAppend], sink: &mut Sink) -> Result<(), Closed> {
        let mut text = String::new();
        for piece in pieces {
            let mut chunks = self.lines.of(piece).peekable();
            while let Some(chunk) = chunks.next() {
                let (attempt, sequence) = (piece.attempt, chunk.sequence + 1);
                let place = Place { execution: piece.job.id, piece: piece.piece, attempt, sequence };
                text += &event(&chunk, chunks.peek().is_none().then_some(&place));
                if text.len() >= sse::TOGETHER {
                    sink.send(std::mem::take(&mut text)).await?;
                }
            }
        }
        if text.is_empty() { Ok(()) } else { sink.send(text).await }
    }

    /// None ends the stream.
    async fn next(&mut self) -> Option<Found> {
        let Some(job) = self.ahead.last() else { return self.look().await };
        let pieces = self.app.engine.follow_log(&job.key, self.after, READ_BYTES, TURN).await.ok()?;
        if let Some(last) = pieces.last() {
            self.after = last.piece;
            return Some(Found::Pieces(pieces));
        }
        self.look().await
    }

    /// Nothing new in this execution: go on to the next one, if there is one by now.
    async fn look(&mut self) -> Option<Found> {
        if self.ahead.len() > 1 {
            self.ahead.pop();
            self.begin();
            return Some(Found::Another);
        }
        let latest = status::executions(&self.app, &self.workflow, &self.job, 1).await.ok()?.pop();
        match (latest, self.ahead.last()) {
            (Some(latest), present) if present.is_none_or(|present| present.key != latest.key) => {
                self.ahead = vec![latest];
                self.begin();
                Some(Found::Another)
            }
            (_, present) => {
                // An ended job is not waited for by its log.
                if present.is_none_or(|job| job.state.is_final()) || self.ended().await {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                Some(Found::Nothing)
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
fn event(chunk: &LogChunk, place: Option<&Place>) -> String {
    let data = serde_json::to_string(chunk).unwrap_or_default();
    format!("event: log\ndata: {data}\n{}\n", place.map(Place::id).unwrap_or_default())
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
