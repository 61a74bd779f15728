//! Errors, as RFC 9457 describes them.

use serde::{Deserialize, Serialize};

/// Why a request failed. `type` is stable and explained in the error reference.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    /// Where the error is explained, for example `/docs/errors#lease-lost`. Programs should compare the last part.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind of error in a few words; the same for every error of its type.
    pub title: String,
    /// The HTTP status, repeated for callers that see only the body.
    pub status: u16,
    /// What went wrong this time, and what to do.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// The wrong field, if it is one: a name, or a JSON pointer into the payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The job's state, if it is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<crate::job::State>,
    /// Try again after this many milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Also in the `X-Request-Id` header and in the server's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl Problem {
    /// The stable code at the end of the type.
    pub fn code(&self) -> &str {
        self.kind.rsplit('#').next().unwrap_or(&self.kind)
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.field, self.detail.is_empty()) {
            (_, true) => write!(f, "{}", self.title),
            (Some(field), _) if !self.detail.starts_with(field) => write!(f, "{}: {}", field, self.detail),
            _ => write!(f, "{}", self.detail),
        }
    }
}

impl std::error::Error for Problem {}
