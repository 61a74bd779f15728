//! How this protocol says no: problem documents whose type decides what a client does, lists of what is wrong with a request, and
//! plain sentences for the rest.

use super::fault::Fault;
use crate::{
    ask,
    problem::{Code, Problem, reword},
};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use windlass_core::Refusal;

/// A kind of problem: the last part of its type, and its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(pub &'static str, pub StatusCode);

pub const JOB_NOT_FOUND: Kind = Kind("job-not-found", StatusCode::NOT_FOUND);
pub const SCHEMA_CONFLICT: Kind = Kind("schema-conflict", StatusCode::CONFLICT);
pub const INVALID_CATEGORY: Kind = Kind("invalid-category", StatusCode::BAD_REQUEST);
pub const WORKER_NOT_FOUND: Kind = Kind("worker-not-found", StatusCode::NOT_FOUND);
pub const TASK_NOT_FOUND: Kind = Kind("task-not-found", StatusCode::NOT_FOUND);
pub const INVALID_TASK_TRANSITION: Kind = Kind("invalid-task-transition", StatusCode::CONFLICT);
pub const INVALID_ROOM_ID: Kind = Kind("invalid-room-id", StatusCode::BAD_REQUEST);
pub const FORBIDDEN: Kind = Kind("forbidden", StatusCode::FORBIDDEN);
pub const INTERNAL_JOB_NOT_CONFIGURED: Kind = Kind("internal-job-not-configured", StatusCode::SERVICE_UNAVAILABLE);
pub const PROVIDER_NOT_FOUND: Kind = Kind("provider-not-found", StatusCode::NOT_FOUND);
pub const PROVIDER_TIMEOUT: Kind = Kind("provider-timeout", StatusCode::GATEWAY_TIMEOUT);

/// What handlers of this dialect answer with.
pub type Result<T, E = HttpError> = std::result::Result<T, E>;

#[derive(Debug)]
pub enum HttpError {
    Problem {
        kind: Kind,
        detail: String,
        retry_after: Option<u64>,
    },
    /// Seconds until another try, where that helps.
    Plain {
        status: StatusCode,
        detail: String,
        retry_after: Option<u64>,
    },
    Invalid(Vec<Fault>),
}

impl Kind {
    /// The refusal of this kind.
    pub fn error(self, detail: impl Into<String>) -> HttpError {
        HttpError::Problem { kind: self, detail: detail.into(), retry_after: None }
    }
}

impl HttpError {
    pub fn plain(status: StatusCode, detail: impl Into<String>) -> Self {
        Self::Plain { status, detail: detail.into(), retry_after: None }
    }
    pub fn unauthorized() -> Self {
        Self::plain(StatusCode::UNAUTHORIZED, "Unauthorized")
    }
    pub fn forbidden() -> Self {
        Self::plain(StatusCode::FORBIDDEN, "Forbidden")
    }
    pub fn retry_after(mut self, seconds: u64) -> Self {
        match &mut self {
            Self::Problem { retry_after, .. } | Self::Plain { retry_after, .. } => *retry_after = Some(seconds),
            Self::Invalid(_) => {}
        }
        self
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Problem { kind, .. } => kind.1,
            Self::Plain { status, .. } => *status,
            Self::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
        }
    }

    fn body(&self) -> Value {
        match self {
            Self::Problem { kind: Kind(id, status), detail, .. } => json!({
                "type": format!("/v1/problems/{id}"),
                "title": status.canonical_reason(),
                "status": status.as_u16(),
                "detail": detail,
            }),
            Self::Plain { detail, .. } => json!({"detail": detail}),
            Self::Invalid(faults) => json!({"detail": faults}),
        }
    }
}

impl From<Fault> for HttpError {
    fn from(fault: Fault) -> Self {
        Self::Invalid(vec![fault])
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let mut response = ask::Answer(self.status(), self.body()).into_response();
        let headers = response.headers_mut();
        if let Self::Problem { .. } = self {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        }
        if let Self::Problem { retry_after: Some(wait), .. } | Self::Plain { retry_after: Some(wait), .. } = self {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(wait));
        }
        response
    }
}

/// What no handler foresaw. A client ends at 401, 403 and 404, so what passes by itself is none of these.
impl From<Problem> for HttpError {
    fn from(problem: Problem) -> Self {
        let detail = match problem.status() {
            StatusCode::UNAUTHORIZED => unauthorized(&problem).to_owned(),
            StatusCode::NOT_FOUND => "Not Found".to_owned(),
            StatusCode::METHOD_NOT_ALLOWED => "Method Not Allowed".to_owned(),
            _ if problem.0.is(Code::Forbidden) => "Forbidden".to_owned(),
            _ => problem.sentence(),
        };
        let retry_after = problem.0.retry_after_ms.map(|wait| wait.div_ceil(1_000));
        Self::Plain { status: problem.status(), detail, retry_after }
    }
}

/// The calls that carry a provider's data say more exactly what is wrong with a token than all others do.
pub const UNAUTHORIZED: [&str; 3] = ["Not authenticated", "Invalid token", "Invalid token payload"];

fn unauthorized(problem: &Problem) -> &'static str {
    UNAUTHORIZED.into_iter().find(|text| *text == problem.0.detail).unwrap_or("Unauthorized")
}

impl From<Refusal> for HttpError {
    fn from(refusal: Refusal) -> Self {
        match &refusal {
            Refusal::Invalid { field, why } => Fault::value(&["body", field], why.clone()).into(),
            Refusal::NotFound { .. }
            | Refusal::LeaseLost { .. }
            | Refusal::NotHeld { .. }
            | Refusal::NotHolder
            | Refusal::Final { .. }
            | Refusal::NotStarted
            | Refusal::AlreadyStarted
            | Refusal::TooLarge { .. }
            | Refusal::TooMany { .. }
            | Refusal::OverQuota { .. }
            | Refusal::StoreFull { .. }
            | Refusal::KeyReused { .. }
            | Refusal::Exists { .. }
            | Refusal::VersionMismatch { .. }
            | Refusal::WorkerNotOnline { .. }
            | Refusal::WorkerDraining { .. }
            | Refusal::Cycle { .. }
            | Refusal::LastAdmin
            | Refusal::AccessEnded
            | Refusal::AccessChanged
            | Refusal::Forbidden { .. }
            | Refusal::Damaged { .. } => Problem::from(refusal).into(),
        }
    }
}

crate::problem::in_words!(HttpError);

/// A problem that was met outside this dialect's handlers, in its words. Nobody is asked for a password by a header.
pub fn refuse(problem: &Problem, response: &mut Response) {
    reword(problem, HttpError::from(problem.clone()).body(), "application/json", response);
    response.headers_mut().remove(header::WWW_AUTHENTICATE);
}
