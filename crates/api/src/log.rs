//! Logs.

use serde::{Deserialize, Serialize};

/// Which part of a job's log to read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ReadLog {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// `next` of the previous page. Default: from the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// If there is nothing new, wait this long, at most 60000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// `json` for a page; `text` for the whole log as plain text, like `Accept: text/plain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogPage {
    pub pieces: Vec<LogPiece>,
    /// Send this as `after` to get the next page.
    pub next: u64,
    /// The job has ended, and this is the end of its log.
    pub ended: bool,
    /// Bytes that were dropped in the middle because of the log's limit.
    pub dropped_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogPiece {
    pub attempt: u32,
    /// When the server received it.
    pub at: String,
    /// The stream, if the worker sent it. `windlass`: a line by the server that says what is missing here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<LogStream>,
    /// When it was written, by the worker's clock, if the worker sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_at: Option<String>,
    pub data: String,
    /// On a line by the server: bytes that were dropped here because of the log's limit. Absent if they were dropped while this
    /// reader was reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_bytes: Option<u64>,
}

/// What to look for in a job's log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct SearchLog {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Lines that contain this text, 1 to 200 characters, are found. Upper and lower case are the same; colours are ignored. May be
    /// left out if there is a `level`.
    pub text: String,
    /// Only lines of this level, as far as their words tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<LogLevel>,
    /// At most so many lines, 1 to 1000. Default: 200.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// `next` of the previous answer. Default: from the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// How bad what a line tells is, by its words: `ERROR`, `ValueError:`, `Traceback`, `"level":"error"` and the like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    Error,
    Warn,
    Debug,
}

/// Lines of a log that were looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogMatches {
    pub lines: Vec<LogMatch>,
    /// Lines that were looked at so far, from the start of the log.
    pub searched: u64,
    /// Send this as `cursor` to search on: one call looks at a part of a long log, and may find nothing in it. Absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogMatch {
    /// Counts from 1. Where a part of the log was dropped, its lines are not counted.
    pub line: u64,
    pub attempt: u32,
    /// When the server received the end of the line.
    pub at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<LogStream>,
    /// Without its line end, at most 10,000 bytes.
    pub text: String,
}

/// The stream a text came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LogStream {
    Stdout,
    Stderr,
    Windlass,
}

/// A stream of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    Stdout,
    Stderr,
}

/// Text of one stream, or of an unknown one. A piece of a log has one or more chunks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LogChunk {
    /// The text, including line ends.
    pub data: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<OutputStream>,
    /// When it was written, by the worker's clock: milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
}

/// Where to start following a job's log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct FollowLog {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Only pieces after this one. The header `Last-Event-ID` overrides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}
