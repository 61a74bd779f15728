//! How this protocol says no: a status, a code from a short list, a sentence, and where it helps, what is the matter now.

use crate::{
    ask,
    problem::{Code, Problem, reword},
    wire_state::wire_state,
};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Map, Value};
use windlass_core::{Refusal, State};

#[derive(Clone, Debug)]
pub struct HttpError {
    pub status: StatusCode,
    pub code: &'static str,
    pub message: String,
    /// Further keys of the body.
    pub extra: Map<String, Value>,
    retry_after: Option<u64>,
}

/// What handlers of this dialect answer with.
pub type Result<T, E = HttpError> = std::result::Result<T, E>;

impl HttpError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), extra: Map::new(), retry_after: None }
    }
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message)
    }
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }
    pub fn missing(what: &str, name: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("there is no {what} {name}"))
    }
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", message)
    }
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", message)
    }
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }
    /// Somebody else edits this very object.
    pub fn held(message: impl Into<String>, holder: Value) -> Self {
        Self::new(StatusCode::CONFLICT, "hard_interference", message).with("holder", holder)
    }
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.extra.insert(key.to_owned(), value.into());
        self
    }

    /// A transition the job's state does not allow, with that state, so that a runner can tell why.
    fn state(self, state: State) -> Self {
        self.with("status", super::show::status(state))
    }

    pub fn body(&self) -> Value {
        let mut body = self.extra.clone();
        body.insert("error".into(), self.code.into());
        body.insert("message".into(), self.message.as_str().into());
        Value::Object(body)
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        if self.status.is_server_error() {
            tracing::warn!(status = self.status.as_u16(), "{}", self.message);
        }
        let mut response = ask::Answer(self.status, self.body()).into_response();
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(wait) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(wait.div_ceil(1_000)));
        }
        response
    }
}

impl From<Refusal> for HttpError {
    fn from(refusal: Refusal) -> Self {
        let text = refusal.to_string();
        match refusal {
            Refusal::NotFound { .. } => Self::new(StatusCode::NOT_FOUND, "not_found", text),
            Refusal::NotHolder | Refusal::Forbidden { .. } => Self::forbidden(text),
            // Nobody ever held it, so nobody may report on it.
            Refusal::NotHeld { state } if state.is_final() => Self::forbidden(text),
            Refusal::LeaseLost { state } | Refusal::NotHeld { state } | Refusal::Final { state } => {
                Self::conflict(text).state(state)
            }
            Refusal::Invalid { .. } => Self::invalid(text),
            Refusal::TooLarge { .. } => Self::too_large(text),
            Refusal::NotStarted
            | Refusal::AlreadyStarted
            | Refusal::KeyReused { .. }
            | Refusal::Exists { .. }
            | Refusal::LastAdmin
            | Refusal::VersionMismatch { .. }
            | Refusal::WorkerNotOnline { .. }
            | Refusal::WorkerDraining { .. }
            | Refusal::Cycle { .. } => Self::conflict(text),
            Refusal::AccessEnded => Self::new(StatusCode::UNAUTHORIZED, "unauthorized", text),
            Refusal::AccessChanged => Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", text),
            Refusal::TooMany { .. } => Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many", text),
            Refusal::OverQuota { .. } | Refusal::StoreFull { .. } => Problem::from(refusal).into(),
            Refusal::Damaged { .. } => Self::internal(text),
        }
    }
}

/// What was refused before a handler saw it.
impl From<Problem> for HttpError {
    fn from(problem: Problem) -> Self {
        let status = problem.status();
        let (status, code) = match status.as_u16() {
            _ if problem.0.is(Code::Cycle) => (StatusCode::CONFLICT, "conflict"),
            401 => (status, "unauthorized"),
            403 => (status, "forbidden"),
            404 => (status, "not_found"),
            405 => (status, "method_not_allowed"),
            409 => (status, "conflict"),
            413 => (status, "payload_too_large"),
            421 => (status, "misdirected"),
            429 => (status, "too_many"),
            503 | 507 => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
            500..=599 => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
            _ => (StatusCode::BAD_REQUEST, "invalid_request"),
        };
        let error = Self { retry_after: problem.0.retry_after_ms, ..Self::new(status, code, problem.sentence()) };
        let state = State::ALL.into_iter().find(|state| problem.0.state == Some(wire_state(*state)));
        state.into_iter().fold(error, Self::state)
    }
}

crate::problem::in_words!(HttpError);

/// A problem that was met outside this dialect's handlers, in its words. Browsers' pages from elsewhere are told so.
pub fn refuse(problem: &Problem, response: &mut Response) {
    reword(problem, HttpError::from(problem.clone()).body(), "application/json", response);
}
