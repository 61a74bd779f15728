//! `/api/v1/jobs/{id}/logs/search`: the lines of a log that contain a text or have a level, found where the log is.
//!
//! One call looks at a bounded part of a log and tells where to go on. A line may lie in several pieces; a call that ends within
//! one goes on at its beginning.

use super::log_line;
use crate::{
    app::App,
    ask::{Answer, Ask, Path, Query, ok},
    problem::{Code, Problem, Result},
    route::{Access, Route},
    wire_time::text,
};
use axum::extract::State;
use windlass_api::{
    Uuid,
    log::{LogLevel, LogMatch, LogMatches, LogStream, SearchLog},
};
use windlass_core::{JobId, JobKey, LogAppend, Timestamp};

/// Of a log, looked at by one call.
pub const SEARCHED_MAX: usize = 4 << 20;
const PAGE_BYTES: usize = 1 << 20;
const LINES_MAX: usize = 1_000;
const LINES: usize = 200;
const TEXT_CHARS_MAX: usize = 200;
/// Of a line, what is looked at and told.
const LINE_MAX: usize = 10_000;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/jobs/{id}/logs/search", Access::Viewer, search)
            .says("Find the lines of a job's log that contain a text or have a level")
            .query::<SearchLog>()
            .answers::<LogMatches>(200)
            .refuses(&[Code::NotFound, Code::Invalid]),
    ]
}

/// Where a search goes on: behind a piece, so many bytes into the next one, with so many lines before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    pub after: u64,
    skip: usize,
    lines: u64,
}

impl Position {
    pub fn read(cursor: &str) -> Option<Self> {
        let mut parts = cursor.split('.');
        let position = Self {
            after: parts.next()?.parse().ok()?,
            skip: parts.next()?.parse().ok()?,
            lines: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(position)
    }

    fn write(self) -> String {
        format!("{}.{}.{}", self.after, self.skip, self.lines)
    }
}

async fn search(
    State(app): State<App>,
    ask: Ask,
    Path(id): Path<Uuid>,
    Query(query): Query<SearchLog>,
) -> Result<Answer<LogMatches>> {
    let chars = query.text.chars().count();
    if chars > TEXT_CHARS_MAX || (chars == 0 && query.level.is_none()) {
        let why = format!("{chars} characters; it may have 1 to {TEXT_CHARS_MAX}, or none if there is a level");
        return Err(Problem::invalid("text", why));
    }
    let limit = query.limit.map_or(LINES, |limit| limit as usize);
    if !(1..=LINES_MAX).contains(&limit) {
        return Err(Problem::invalid("limit", format!("{limit} is not between 1 and {LINES_MAX}")));
    }
    let unknown = || Problem::invalid("cursor", "must be `next` of an answer to the same search");
    let from =
        query.cursor.as_deref().map_or(Ok(Position::default()), |text| Position::read(text).ok_or_else(unknown))?;
    let key = JobKey::new(&ask.namespace, JobId(id));
    app.engine.store().job(&key).await?.ok_or_else(|| Problem::not_found("job", key.id))?;
    let mut found = Search::new(&query.text, query.level, limit, from);
    while !found.is_done() {
        let pieces = app.engine.store().read_log(&key, found.after, PAGE_BYTES).await?;
        if pieces.is_empty() {
            found.end();
            break;
        }
        // Reading through a megabyte takes longer than a moment.
        found = app.aside.run(&ask.namespace, move || found.with(&pieces)).await?;
    }
    Ok(ok(found.told()))
}

/// A search on its way.
pub struct Search {
    wanted: String,
    level: Option<LogLevel>,
    limit: usize,
    /// Pieces up to here were looked at.
    after: u64,
    skip: usize,
    seen: usize,
    line: Line,
    /// Where the line that is not over begins.
    open: Position,
    /// It began where this call did.
    is_first: bool,
    found: Vec<LogMatch>,
    /// There is enough, or no more.
    is_full: bool,
    is_over: bool,
}

#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    attempt: u32,
    at: Timestamp,
    stream: Option<LogStream>,
}

impl Search {
    pub fn new(text: &str, level: Option<LogLevel>, limit: usize, from: Position) -> Self {
        Self {
            wanted: text.to_lowercase(),
            level,
            limit,
            after: from.after,
            skip: from.skip,
            seen: 0,
            line: Line::default(),
            open: from,
            is_first: true,
            found: Vec::new(),
            is_full: false,
            is_over: false,
        }
    }

    pub fn is_done(&self) -> bool {
        self.is_over || self.is_full || self.seen >= SEARCHED_MAX
    }

    pub fn with(mut self, pieces: &[LogAppend]) -> Self {
        for append in pieces {
            if self.is_done() {
                break;
            }
            self.piece(append);
        }
        self
    }

    fn piece(&mut self, append: &LogAppend) {
        let mut offset = 0;
        // The piece to begin within may have been dropped since.
        if append.piece != self.after + 1 {
            self.skip = 0;
        }
        for chunk in append.chunks() {
            let skipped = self.skip.saturating_sub(offset).min(chunk.data.len());
            offset += skipped;
            let stream = chunk.stream.map(|stream| match stream {
                windlass_core::LogStream::Out => LogStream::Stdout,
                windlass_core::LogStream::Err => LogStream::Stderr,
            });
            for part in chunk.data[skipped..].split_inclusive(|byte| *byte == b'\n') {
                offset += part.len();
                self.seen += part.len();
                self.line.take(part, append, stream);
                if part.ends_with(b"\n") {
                    self.line_ends(Position { after: append.piece - 1, skip: offset, lines: self.open.lines + 1 });
                }
                if self.is_full {
                    return;
                }
            }
        }
        (self.after, self.skip) = (append.piece, 0);
    }

    fn line_ends(&mut self, next: Position) {
        let line = std::mem::take(&mut self.line);
        self.is_first = false;
        self.open = next;
        let shown = String::from_utf8_lossy(line.bytes.trim_ascii_end()).into_owned();
        let plain = log_line::plain(&shown);
        let has_level = self.level.is_none_or(|level| log_line::level(&plain) == Some(level));
        if !has_level || !plain.to_lowercase().contains(&self.wanted) {
            return;
        }
        let (attempt, at) = (line.attempt, text(line.at));
        self.found.push(LogMatch { line: next.lines, attempt, at, stream: line.stream, text: shown });
        self.is_full = self.found.len() >= self.limit;
    }

    /// There is no more: what has no end yet is a line as well.
    pub fn end(&mut self) {
        if !self.line.bytes.is_empty() {
            self.line_ends(Position { after: self.after, skip: 0, lines: self.open.lines + 1 });
        }
        self.is_over = true;
    }

    pub fn told(mut self) -> LogMatches {
        // A line longer than a whole call: its beginning was looked at, and its rest counts as another line.
        if !self.is_over && self.is_first && !self.line.bytes.is_empty() {
            self.line_ends(Position { after: self.after, skip: 0, lines: self.open.lines + 1 });
        }
        let next = (!self.is_over).then(|| self.open.write());
        LogMatches { lines: self.found, searched: self.open.lines, next }
    }
}

impl Line {
    fn take(&mut self, part: &[u8], append: &LogAppend, stream: Option<LogStream>) {
        let room = LINE_MAX.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&part[..part.len().min(room)]);
        (self.attempt, self.at, self.stream) = (append.attempt, append.at, stream);
    }
}
