//! Logs: sent under a lease, read as the chunks they were sent in, followed live.

use super::{
    body::{Json, No, Sent, Who},
    namespace, status,
    wire::{LogChunk, Logs, Stream},
};
use crate::{app::App, log_view};
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
    Chunk, Job, LogAppend, LogForm, LogStream, Payload,
    commands::{append_log::AppendLog, holder::Holder},
    log::{self, CHUNK_HEAD_MAX},
    log_count::LogCount,
};

/// Executions whose logs are shown together.
const EXECUTIONS_MAX: usize = 100;
const READ_BYTES: usize = 1 << 20;
/// More than this is put into pieces by a thread that may block.
const ASIDE_BYTES: usize = 64 << 10;
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
    let pieces = if body.chunks.iter().map(|chunk| chunk.data.len() + CHUNK_HEAD_MAX).sum::<usize>() <= ASIDE_BYTES {
        pieces(&body.chunks, most)
    } else {
        let aside = tokio::task::spawn_blocking(move || pieces(&body.chunks, most)).await;
        aside.map_err(|_| No::bare(StatusCode::INTERNAL_SERVER_ERROR))?
    };
    let append = |data| AppendLog { holder: holder.clone(), form: LogForm::Chunks, data }.into();
    let replies = app.engine.run_many(pieces.into_iter().map(append).collect()).await?;
    match replies.into_iter().find_map(Result::err) {
        Some(_) => Err(No::bare(StatusCode::CONFLICT)),
        None => Ok(StatusCode::OK),
    }
}

/// As many chunks as fit into a piece share one; each keeps its bounds, its number, its time and its stream.
fn pieces(chunks: &[LogChunk], most: usize) -> Vec<Payload> {
    let told = chunks.iter().map(|chunk| Chunk {
        stream: Some(match chunk.stream {
            Stream::Stdout => LogStream::Out,
            Stream::Stderr => LogStream::Err,
        }),
        time: Some(chunk.timestamp_ms),
        sequence: Some(chunk.sequence),
        continues: false,
        data: chunk.data.as_bytes(),
    });
    log::pieces_of(told, most)
}

/// Gives chunks back as they were sent. Text that was kept without them is cut into lines, and those are numbered within their
/// attempt.
struct Lines {
    workflow: String,
    job: String,
    /// What there is of the log, as far as known.
    log: LogCount,
    after: u64,
    attempt: u32,
    sequence: u64,
    /// The beginning of a chunk whose rest is in the next piece.
    open: Option<LogChunk>,
}

impl Lines {
    fn new(workflow: &str, job: &str, execution: Option<&Job>) -> Self {
        let log = execution.map(|job| job.live.log.clone()).unwrap_or_default();
        let (workflow, job) = (workflow.to_owned(), job.to_owned());
        Self { workflow, job, log, after: 0, attempt: 0, sequence: 0, open: None }
    }

    fn of(&mut self, piece: &LogAppend) -> Vec<LogChunk> {
        let gap = self.log.gap(self.after, piece.piece);
        self.after = piece.piece;
        let mut found = Vec::new();
        if gap.is_some() || piece.attempt != self.attempt {
            found.extend(self.open.take());
        }
        if piece.attempt != self.attempt {
            (self.attempt, self.sequence) = (piece.attempt, 0);
        }
        if let Some(gap) = gap {
            found.push(self.chunk(piece, LogStream::Err, log_view::missing(gap)));
        }
        for chunk in piece.chunks() {
            self.take(piece, &chunk, &mut found);
        }
        found
    }

    fn take(&mut self, piece: &LogAppend, chunk: &Chunk<'_>, found: &mut Vec<LogChunk>) {
        let text = String::from_utf8_lossy(chunk.data);
        let stream = chunk.stream.unwrap_or(LogStream::Out);
        if piece.form != LogForm::Chunks {
            found.extend(text.split_inclusive('\n').map(|line| self.chunk(piece, stream, line.to_owned())));
            return;
        }
        let mut whole = match self.open.take() {
            Some(open) => LogChunk { data: open.data + &text, ..open },
            None => self.chunk(piece, stream, text.into_owned()),
        };
        whole.sequence = chunk.sequence.unwrap_or(whole.sequence);
        whole.timestamp_ms = chunk.time.unwrap_or(whole.timestamp_ms);
        if chunk.continues {
            self.open = Some(whole);
        } else {
            found.push(whole);
        }
    }

    /// With the next number and the server's time.
    fn chunk(&mut self, piece: &LogAppend, stream: LogStream, data: String) -> LogChunk {
        let sequence = self.sequence;
        self.sequence += 1;
        LogChunk {
            workflow_id: self.workflow.clone(),
            job_id: self.job.clone(),
            sequence,
            data,
            timestamp_ms: piece.at.0.max(0) as u64,
            stream: match stream {
                LogStream::Out => Stream::Stdout,
                LogStream::Err => Stream::Stderr,
            },
        }
    }
}

pub async fn list(
    State(app): State<App>,
    Path((workflow, job)): Path<(String, String)>,
) -> Result<Json<Vec<LogChunk>>, No> {
    let mut chunks = Vec::new();
    for execution in status::executions(&app, &workflow, &job, EXECUTIONS_MAX).await? {
        let mut lines = Lines::new(&workflow, &job, Some(&execution));
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
    let lines = Lines::new(&workflow, &job, ahead.last());
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
        self.lines = Lines::new(&self.workflow, &self.job, self.ahead.last());
    }
}

/// JSON escapes line ends, so an event is always one line of data.
fn event(chunk: &LogChunk) -> String {
    format!("event: log\ndata: {}\n\n", serde_json::to_string(chunk).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::{JobId, JobKey, Namespace, Timestamp};

    fn chunk(sequence: u64, stream: Stream, data: &str) -> LogChunk {
        let (workflow_id, job_id) = ("w".into(), "j".into());
        LogChunk { workflow_id, job_id, sequence, data: data.into(), timestamp_ms: 1_000 + sequence * 7, stream }
    }

    fn kept(piece: u64, attempt: u32, form: LogForm, data: Payload) -> LogAppend {
        let job = JobKey::new(&Namespace::default(), JobId::from_u128(1));
        LogAppend { job, piece, attempt, at: Timestamp(5), form, data }
    }

    fn shown(pieces: &[LogAppend]) -> Vec<LogChunk> {
        let mut lines = Lines::new("w", "j", None);
        pieces.iter().flat_map(|piece| lines.of(piece)).collect()
    }

    #[test]
    fn chunks_come_back_as_they_were_sent_however_they_are_cut() {
        let sent = [
            chunk(0, Stream::Stdout, "one\ntwo\n"),
            chunk(1, Stream::Stderr, ""),
            chunk(9, Stream::Stdout, &"é".repeat(500)),
            chunk(3, Stream::Stdout, "no line end"),
            chunk(3, Stream::Stderr, "\n"),
        ];
        for most in [40, 64, 100, 1 << 18] {
            let pieces = pieces(&sent, most);
            assert!(pieces.iter().all(|piece| piece.len() <= most));
            let stored: Vec<LogAppend> =
                (1u64..).zip(pieces).map(|(at, data)| kept(at, 1, LogForm::Chunks, data)).collect();
            assert_eq!(shown(&stored), sent, "{most}");
        }
    }

    #[test]
    fn text_without_chunks_is_cut_into_lines_and_a_gap_is_told() {
        let text = |piece, attempt, data: &str| kept(piece, attempt, LogForm::default(), Payload::from(data));
        let found = shown(&[text(1, 1, "a\nb"), text(2, 2, "c\n"), text(9, 2, "d\n")]);
        let found: Vec<(u64, &str)> = found.iter().map(|chunk| (chunk.sequence, chunk.data.as_str())).collect();
        assert_eq!(found[..3], [(0, "a\n"), (1, "b"), (0, "c\n")]);
        assert!(found[3].1.contains("missing here"), "{found:?}");
        assert_eq!(found[4].1, "d\n");
    }
}
