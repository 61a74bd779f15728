//! Logs: sent under a lease, read as the chunks they were sent in, followed live.

use super::{
    array::{self, Array},
    body::{HttpError, Path, Result, Sent},
    namespace, status,
    wire::{LogChunk, Logs, Stream},
};
use crate::{
    app::App,
    auth::Caller,
    log_view,
    sse::{self, Closed, Sink},
};
use axum::{extract::State, response::Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::time::Duration;
use windlass_api::Uuid;
use windlass_core::{
    Chunk, Job, JobId, LogAppend, LogForm, LogStream, Payload,
    commands::{append_log::AppendLog, holder::Holder},
    log::{self, CHUNK_HEAD_MAX},
    log_count::LogCount,
};

/// Executions whose logs are shown together.
const EXECUTIONS_MAX: usize = 100;
const READ_BYTES: usize = 256 << 10;
const KEEP_ALIVE: &str = ": keep-alive\n\n";
/// More than this is put into pieces by a thread that may block.
const ASIDE_BYTES: usize = 64 << 10;
/// Between looks for a newer execution, and between comments that keep the connection open.
const TURN: Duration = Duration::from_secs(10);

/// Filed by the lease, whatever the chunks say about themselves.
pub async fn append(
    State(app): State<App>,
    caller: Caller,
    Path(lease): Path<String>,
    Sent(body): Sent<Logs>,
) -> Result<StatusCode> {
    let lease = lease.parse().map_err(|_| HttpError::bare(StatusCode::CONFLICT))?;
    let holder = Holder { principal: Some(caller.name.clone()), ..Holder::lease(&namespace(), lease) };
    let most = app.engine.settings().limits.log_piece_bytes_max;
    let pieces = if body.chunks.iter().map(|chunk| chunk.data.len() + CHUNK_HEAD_MAX).sum::<usize>() <= ASIDE_BYTES {
        pieces(&body.chunks, most)
    } else {
        let aside = tokio::task::spawn_blocking(move || pieces(&body.chunks, most)).await;
        aside.map_err(|_| HttpError::bare(StatusCode::INTERNAL_SERVER_ERROR))?
    };
    let append = |data| AppendLog { holder: holder.clone(), form: LogForm::Chunks, data };
    let replies = app.engine.run_many(pieces.into_iter().map(append).collect()).await?;
    match replies.into_iter().find_map(Result::err) {
        Some(_) => Err(HttpError::bare(StatusCode::CONFLICT)),
        None => Ok(StatusCode::OK),
    }
}

/// As many chunks as fit into a piece share one; each keeps its bounds, its number, its time and its stream.
pub fn pieces(chunks: &[LogChunk], most: usize) -> Vec<Payload> {
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
pub struct Lines {
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
    pub fn new(workflow: &str, job: &str, execution: Option<&Job>) -> Self {
        let log = execution.map(|job| job.live.log.clone()).unwrap_or_default();
        let (workflow, job) = (workflow.to_owned(), job.to_owned());
        Self { workflow, job, log, after: 0, attempt: 0, sequence: 0, open: None }
    }

    /// One at a time: a piece of nothing but line ends would become many times its size.
    pub fn of<'a>(&'a mut self, piece: &'a LogAppend) -> impl Iterator<Item = LogChunk> + Send + 'a {
        let gap = self.log.gap(self.after, piece.piece);
        self.after = piece.piece;
        let cut_off = if gap.is_some() || piece.attempt != self.attempt { self.open.take() } else { None };
        if piece.attempt != self.attempt {
            (self.attempt, self.sequence) = (piece.attempt, 0);
        }
        let gap = gap.map(|gap| self.chunk(piece, LogStream::Err, log_view::missing(gap)));
        let is_text = piece.form != LogForm::Chunks;
        let parts = piece.chunks().flat_map(move |chunk| {
            let lines = chunk.data.split_inclusive(move |byte| is_text && *byte == b'\n');
            let empty = (chunk.data.is_empty() && !is_text).then_some(chunk.data);
            lines.chain(empty).map(move |data| Chunk { data, ..chunk })
        });
        cut_off.into_iter().chain(gap).chain(parts.filter_map(move |part| self.whole(piece, part)))
    }

    /// What comes of a part: nothing yet, if the rest of it is in the next piece.
    fn whole(&mut self, piece: &LogAppend, part: Chunk<'_>) -> Option<LogChunk> {
        let text = String::from_utf8_lossy(part.data).into_owned();
        let mut whole = match self.open.take() {
            Some(open) => LogChunk { data: open.data + &text, ..open },
            None => self.chunk(piece, part.stream.unwrap_or(LogStream::Out), text),
        };
        whole.sequence = part.sequence.unwrap_or(whole.sequence);
        whole.timestamp_ms = part.time.unwrap_or(whole.timestamp_ms);
        if part.continues {
            self.open = Some(whole);
            return None;
        }
        Some(whole)
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

/// The answer is written while it is read, so that a long log takes no more memory than a short one.
pub async fn list(State(app): State<App>, Path((workflow, job)): Path<(String, String)>) -> Result<Response> {
    let executions = status::executions(&app, &workflow, &job, EXECUTIONS_MAX).await?;
    Ok(array::answer(move |list| async move { write_list(&app, &workflow, &job, executions, list).await }))
}

async fn write_list(app: &App, workflow: &str, job: &str, executions: Vec<Job>, mut list: Array) -> Result<()> {
    for execution in executions {
        let mut lines = Lines::new(workflow, job, Some(&execution));
        let mut after = 0;
        loop {
            let pieces = app.engine.store().read_log(&execution.key, after, READ_BYTES).await?;
            let Some(last) = pieces.last() else { break };
            after = last.piece;
            for piece in &pieces {
                for chunk in lines.of(piece) {
                    list.push(&chunk).await?;
                }
            }
        }
    }
    list.end().await
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
struct Position {
    execution: JobId,
    piece: u64,
    attempt: u32,
    sequence: u64,
}

impl Position {
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
    caller: Caller,
    headers: HeaderMap,
    Path((workflow, job)): Path<(String, String)>,
) -> Result<Response> {
    let mut ahead = status::executions(&app, &workflow, &job, EXECUTIONS_MAX).await?;
    ahead.reverse();
    let lines = Lines::new(&workflow, &job, ahead.last());
    let mut follower = Follower { app: app.clone(), workflow, job, ahead, lines, after: 0 };
    if let Some(position) = Position::of(&headers) {
        follower.go_on(position);
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
    fn go_on(&mut self, position: Position) {
        if let Some(at) = self.ahead.iter().position(|job| job.key.id == position.execution) {
            self.ahead.truncate(at + 1);
            self.after = position.piece;
            self.lines = Lines::new(&self.workflow, &self.job, self.ahead.last());
            self.lines.after = position.piece;
            (self.lines.attempt, self.lines.sequence) = (position.attempt, position.sequence);
        }
    }

    async fn tell(&mut self, pieces: &[LogAppend], sink: &mut Sink) -> Result<(), Closed> {
        let mut text = String::new();
        for piece in pieces {
            // Whoever comes back with the number of a piece needs nothing of it for the next one.
            let is_whole = piece.chunks().last().is_none_or(|last| !last.continues);
            let mut chunks = self.lines.of(piece).peekable();
            while let Some(chunk) = chunks.next() {
                let (attempt, sequence) = (piece.attempt, chunk.sequence + 1);
                let position = Position { execution: piece.job.id, piece: piece.piece, attempt, sequence };
                text += &event(&chunk, (is_whole && chunks.peek().is_none()).then_some(&position));
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
        self.lines = Lines::new(&self.workflow, &self.job, self.ahead.last());
    }
}

/// JSON escapes line ends, so an event is always one line of data.
fn event(chunk: &LogChunk, position: Option<&Position>) -> String {
    let data = serde_json::to_string(chunk).unwrap_or_default();
    format!("event: log\ndata: {data}\n{}\n", position.map(Position::id).unwrap_or_default())
}
