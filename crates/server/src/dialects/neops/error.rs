//! How this protocol says no: a status, a sentence, and the status again in words or a code, as its clients know it.

use crate::problem::{Problem, reword};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Map, Value, json};
use windlass_core::Refusal;

#[derive(Debug)]
pub struct HttpError {
    pub status: StatusCode,
    pub message: String,
    /// A code where its clients know one, else the status in words.
    error: String,
    /// What else a typed refusal has.
    more: Map<String, Value>,
    retry_after: Option<u64>,
}

/// What handlers of this dialect answer with.
pub type Result<T, E = HttpError> = std::result::Result<T, E>;

impl HttpError {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self::typed(status, status.canonical_reason().unwrap_or("Error"), message)
    }

    /// With a code of its own.
    pub fn typed(status: StatusCode, error: &str, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), error: error.into(), more: Map::new(), retry_after: None }
    }

    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    pub fn no_worker(id: impl std::fmt::Display) -> Self {
        Self::not_found(format!("Worker with id {id} not found"))
    }

    /// The code that its clients know, where it has one.
    pub fn code(&self) -> Option<&str> {
        (self.status.canonical_reason() != Some(&self.error)).then_some(&self.error)
    }

    /// One more field of the body.
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.more.insert(field.into(), value.into());
        self
    }

    pub fn body(&self) -> Value {
        let mut body = json!({"statusCode": self.status.as_u16(), "message": self.message, "error": self.error});
        body.as_object_mut().expect("an object").extend(self.more.clone());
        body
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let mut response = super::body::Json(self.status, self.body()).into_response();
        if let Some(wait) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait));
        }
        response
    }
}

/// What cannot be taken as it is, is a bad request here, whatever else it is called elsewhere.
impl From<Problem> for HttpError {
    fn from(problem: Problem) -> Self {
        let status = match problem.status() {
            StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
            other => other,
        };
        let message = problem.sentence();
        let retry_after = problem.0.retry_after_ms.map(|wait| wait.div_ceil(1_000));
        Self { retry_after, ..Self::new(status, message) }
    }
}

impl From<Refusal> for HttpError {
    fn from(refusal: Refusal) -> Self {
        // Each by name, so that a new one has to be thought of here, too.
        match &refusal {
            Refusal::Invalid { .. }
            | Refusal::NotFound { .. }
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
    let mut error = HttpError::from(problem.clone());
    // The original knows no other method of a path than those it has.
    if error.status == StatusCode::METHOD_NOT_ALLOWED {
        error = HttpError::not_found(error.message);
    }
    *response.status_mut() = error.status;
    reword(problem, error.body(), super::body::JSON, response);
    response.headers_mut().remove(header::WWW_AUTHENTICATE);
}
