//! Logs.

use serde::{Deserialize, Serialize};

/// Which part of a job's log to read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ReadLog {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// `next` of the page before; from the start where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// If there is nothing new, wait so long for some; at most 60000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// `json` for a page; `text` for all of it as plain text, as `Accept: text/plain` asks for too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogPage {
    pub pieces: Vec<LogPiece>,
    /// Hand this back as `after`.
    pub next: u64,
    /// The job has ended and this was the last of its log.
    pub ended: bool,
    /// So much was dropped in the middle because the log had reached its cap.
    pub dropped_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogPiece {
    pub attempt: u32,
    /// When the server took it.
    pub at: String,
    /// Where it was written, if the worker said so. `windlass`: a line by the server that says what is missing here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<LogStream>,
    /// When it was written, by the worker's clock, if the worker said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_at: Option<String>,
    pub data: String,
    /// On a line by the server: so much was dropped here, because the log had reached its cap. Absent if it went while this
    /// reader was reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_bytes: Option<u64>,
}

/// Where text came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LogStream {
    Stdout,
    Stderr,
    Windlass,
}

/// Which of a program's streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    Stdout,
    Stderr,
}

/// Text of one stream, or of one that is not told. Many of them make one piece of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LogChunk {
    /// Text as it came, line ends included.
    pub data: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<OutputStream>,
    /// When it was written, by the worker's clock: milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
}

/// From where to follow a job's log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct FollowLog {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Pieces after this one; the header `Last-Event-ID` wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}
