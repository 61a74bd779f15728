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
    /// So much was dropped because the log had reached its cap.
    pub dropped_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogPiece {
    pub attempt: u32,
    pub at: String,
    pub data: String,
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
