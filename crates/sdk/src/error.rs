//! What can go wrong with a call.

use std::time::Duration;
use thiserror::Error;
use windlass_api::{Code, Problem};

#[derive(Clone, Debug, Error)]
pub enum Error {
    /// The server understood and said no.
    #[error("{0}")]
    Problem(Box<Problem>),
    /// No answer: the server may or may not have done it.
    #[error("{url} cannot be reached: {why}")]
    Unreachable { url: String, why: String },
    /// The server's certificate is not accepted; nothing was sent.
    #[error("the certificate of {url} is not accepted: {why}")]
    Certificate { url: String, why: String },
    /// Something answered, but not as Windlass does.
    #[error("{url} did not answer as Windlass does: {why}")]
    Confused { url: String, why: String, retry_after: Option<Duration> },
    #[error("{0}")]
    Setup(String),
}

impl Error {
    /// The stable code, where the server gave one.
    pub fn code(&self) -> Option<&str> {
        match self {
            Error::Problem(problem) => Some(problem.code()),
            _ => None,
        }
    }

    /// The same as a value, where this version knows it.
    pub fn known(&self) -> Option<Code> {
        match self {
            Error::Problem(problem) => problem.known(),
            _ => None,
        }
    }

    pub fn status(&self) -> Option<u16> {
        match self {
            Error::Problem(problem) => Some(problem.status),
            _ => None,
        }
    }

    /// Whether the same call may succeed later.
    pub fn is_temporary(&self) -> bool {
        match self {
            Error::Unreachable { .. } | Error::Certificate { .. } => true,
            Error::Problem(problem) => matches!(problem.status, 408 | 429 | 500 | 502 | 503 | 504 | 507),
            Error::Confused { .. } | Error::Setup(_) => false,
        }
    }

    /// The lease is gone: stop working on the job and report nothing more.
    pub fn is_lease_lost(&self) -> bool {
        matches!(self.known(), Some(Code::LeaseLost | Code::NotHeld | Code::NotHolder | Code::Final))
    }

    /// How long the server wants to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::Problem(problem) => problem.retry_after_ms.map(Duration::from_millis),
            Error::Confused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}
