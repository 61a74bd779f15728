//! What went wrong, as a reply: which code each refusal and each failure gets. The codes are a list in the API.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use windlass_api as api;
pub use windlass_api::Code;
use windlass_core::{Refusal, State};
use windlass_engine::{Error, StoreError};

/// An error of the native API on its way out.
#[derive(Clone, Debug)]
pub struct Problem(pub Box<api::Problem>);

/// What fails with a problem unless it says otherwise.
pub type Result<T, E = Problem> = std::result::Result<T, E>;

impl Problem {
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self(Box::new(api::Problem {
            kind: format!("/docs/errors#{}", code.name()),
            title: code.title().into(),
            status: code.status(),
            detail: detail.into(),
            ..api::Problem::default()
        }))
    }

    pub fn invalid(field: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(Code::Invalid, why).at(field)
    }

    pub fn not_found(what: &str, name: impl std::fmt::Display) -> Self {
        Self::new(Code::NotFound, format!("there is no {what} {name}"))
    }

    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.0.field = Some(field.into());
        self
    }

    fn state(mut self, state: State) -> Self {
        self.0.state = Some(crate::wire_state::wire_state(state));
        self
    }

    /// Spread, so that callers who were turned away together do not come back together.
    pub fn retry_after(mut self, least_ms: u64) -> Self {
        self.0.retry_after_ms = Some(least_ms + rand::random_range(0..=least_ms));
        self
    }

    /// What is wrong, and where, for protocols that have one text for both.
    pub fn sentence(&self) -> String {
        match self.0.field.as_deref() {
            Some(field) if !self.0.detail.contains(field) => format!("{field}: {}", self.0.detail),
            _ => self.0.detail.clone(),
        }
    }

    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let problem = |code| Problem::new(code, refusal.to_string());
        match refusal {
            Refusal::NotFound { .. } => problem(Code::NotFound),
            Refusal::LeaseLost { state } => problem(Code::LeaseLost).state(state),
            Refusal::NotHeld { state } => problem(Code::NotHeld).state(state),
            Refusal::NotHolder => problem(Code::NotHolder),
            Refusal::Final { state } => problem(Code::Final).state(state),
            Refusal::NotStarted => problem(Code::NotStarted),
            Refusal::AlreadyStarted => problem(Code::AlreadyStarted),
            Refusal::Invalid { field, ref why } => Problem::invalid(field, why),
            Refusal::TooLarge { field, .. } => problem(Code::TooLarge).at(field),
            Refusal::TooMany { .. } => problem(Code::TooMany).retry_after(1_000),
            Refusal::OverQuota { .. } => problem(Code::OverQuota).retry_after(10_000),
            Refusal::StoreFull { .. } => problem(Code::StoreFull).retry_after(1_000),
            Refusal::KeyReused { .. } => problem(Code::KeyReused),
            Refusal::Exists { .. } => problem(Code::Exists),
            Refusal::VersionMismatch { .. } => problem(Code::VersionMismatch),
            Refusal::WorkerNotOnline { .. } => problem(Code::WorkerNotOnline),
            Refusal::WorkerDraining { .. } => problem(Code::WorkerDraining),
            Refusal::Cycle { .. } => problem(Code::Cycle),
            Refusal::LastAdmin => problem(Code::LastAdmin),
            Refusal::AccessEnded => problem(Code::Unauthorized),
            Refusal::AccessChanged => problem(Code::Unavailable).retry_after(100),
            Refusal::Forbidden { .. } => problem(Code::Forbidden),
            Refusal::Damaged { .. } => problem(Code::Damaged),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict(_) | StoreError::Unavailable(_) => {
                Problem::new(Code::Unavailable, error.to_string()).retry_after(500)
            }
            StoreError::Full(_) => Problem::new(Code::StoreFull, error.to_string()).retry_after(1_000),
            StoreError::Corrupt(_) => {
                tracing::error!(%error, "the store is damaged");
                Problem::new(Code::Damaged, "the store is damaged; the server's log says more")
            }
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(refusal) => refusal.into(),
            Error::Store(error) => error.into(),
            Error::Overloaded | Error::Closed => Problem::new(Code::Unavailable, error.to_string()).retry_after(200),
        }
    }
}

impl Problem {
    pub fn body(&self) -> Body {
        Body::from(serde_json::to_vec(&self.0).expect("a problem is plain JSON"))
    }
}

/// The problem travels with the answer, so that the guard can add the request's id to it.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status(), self.body()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(wait) = self.0.retry_after_ms {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(wait.div_ceil(1_000)));
        }
        if self.0.status == 401 {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// The answer of a dialect to a problem that was met outside its handlers: its body, with the code and the request's id.
pub fn reword(problem: &Problem, mut body: serde_json::Value, kind: &'static str, response: &mut Response) {
    body["reason"] = problem.0.code().into();
    body["request_id"] = problem.0.request_id.as_deref().into();
    *response.body_mut() = Body::from(body.to_string());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
}

/// What fails below a dialect, in its words: a refusal as it has it, everything else as a problem.
macro_rules! in_words {
    ($error:ty) => {
        impl From<windlass_engine::Error> for $error {
            fn from(error: windlass_engine::Error) -> Self {
                match error {
                    windlass_engine::Error::Refused(refusal) => refusal.into(),
                    error @ (windlass_engine::Error::Overloaded
                    | windlass_engine::Error::Store(_)
                    | windlass_engine::Error::Closed) => $crate::problem::Problem::from(error).into(),
                }
            }
        }

        $crate::problem::in_words!($error: windlass_engine::StoreError, windlass_product::Error);
    };
    ($error:ty: $($from:ty),+) => {
        $(impl From<$from> for $error {
            fn from(error: $from) -> Self {
                $crate::problem::Problem::from(error).into()
            }
        })+
    };
}
pub(crate) use in_words;
