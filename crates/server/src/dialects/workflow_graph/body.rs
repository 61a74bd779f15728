//! How this protocol reads bodies and says no: statuses and plain sentences, not problem documents.

pub use crate::ask::Answer as Json;
use crate::{app::App, ask, problem::Problem};
use axum::{
    extract::{FromRequest, FromRequestParts, Request},
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header, request::Parts};
use serde::de::DeserializeOwned;
use windlass_core::Refusal;

/// A refusal: a status, and for the reader a sentence.
#[derive(Debug)]
pub struct HttpError(pub StatusCode, pub String);

/// What handlers of this dialect answer with.
pub type Result<T, E = HttpError> = std::result::Result<T, E>;

impl HttpError {
    pub fn bare(status: StatusCode) -> Self {
        Self(status, String::new())
    }
    pub fn shape(why: impl Into<String>) -> Self {
        let why = why.into();
        Self(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("Failed to deserialize the JSON body into the target type: {why}"),
        )
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        if self.1.is_empty() {
            return self.0.into_response();
        }
        let mut response = (self.0, self.1).into_response();
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, plain);
        response
    }
}

/// What is gone is 404, what is not the caller's any more is 409; the rest says what was wrong.
impl From<Refusal> for HttpError {
    fn from(refusal: Refusal) -> Self {
        match &refusal {
            Refusal::NotFound { .. } => HttpError::bare(StatusCode::NOT_FOUND),
            Refusal::LeaseLost { .. } | Refusal::NotHeld { .. } | Refusal::NotHolder | Refusal::Final { .. } => {
                HttpError::bare(StatusCode::CONFLICT)
            }
            Refusal::TooLarge { .. } => HttpError(StatusCode::PAYLOAD_TOO_LARGE, refusal.to_string()),
            Refusal::AccessEnded => HttpError(StatusCode::UNAUTHORIZED, refusal.to_string()),
            Refusal::AccessChanged => HttpError(StatusCode::SERVICE_UNAVAILABLE, refusal.to_string()),
            Refusal::TooMany { .. } => HttpError(StatusCode::TOO_MANY_REQUESTS, refusal.to_string()),
            Refusal::OverQuota { .. } | Refusal::StoreFull { .. } => {
                HttpError(StatusCode::INSUFFICIENT_STORAGE, refusal.to_string())
            }
            Refusal::NotStarted
            | Refusal::AlreadyStarted
            | Refusal::Invalid { .. }
            | Refusal::KeyReused { .. }
            | Refusal::Exists { .. }
            | Refusal::VersionMismatch { .. }
            | Refusal::WorkerNotOnline { .. }
            | Refusal::WorkerDraining { .. }
            | Refusal::Cycle { .. }
            | Refusal::LastAdmin
            | Refusal::Forbidden { .. }
            | Refusal::Damaged { .. } => HttpError(StatusCode::UNPROCESSABLE_ENTITY, refusal.to_string()),
        }
    }
}

impl From<Problem> for HttpError {
    fn from(problem: Problem) -> Self {
        HttpError(problem.status(), problem.0.to_string())
    }
}

crate::problem::in_words!(HttpError);

/// A JSON body, held to the content type the original demands.
pub struct Sent<T>(pub T);

impl<T: DeserializeOwned + Send + 'static> FromRequest<App> for Sent<T> {
    type Rejection = HttpError;
    async fn from_request(request: Request, app: &App) -> Result<Self> {
        if !request.headers().get(header::CONTENT_TYPE).is_some_and(ask::is_json) {
            let why = "Expected request with `Content-Type: application/json`";
            return Err(HttpError(StatusCode::UNSUPPORTED_MEDIA_TYPE, why.into()));
        }
        let bytes = ask::read(request.into_body()).await?;
        let read = match bytes.len() {
            0..=ask::LARGE => serde_json::from_slice(&bytes),
            _ => app.aside.run(&super::namespace(), move || serde_json::from_slice(&bytes)).await?,
        };
        read.map(Sent).map_err(|error: serde_json::Error| {
            if error.is_data() {
                return HttpError::shape(error.to_string());
            }
            HttpError(StatusCode::BAD_REQUEST, format!("Failed to parse the request body as JSON: {error}"))
        })
    }
}

/// The query string.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<App> for Query<T> {
    type Rejection = HttpError;
    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self> {
        match axum::extract::Query::<T>::try_from_uri(&parts.uri) {
            Ok(query) => Ok(Self(query.0)),
            Err(error) => Err(HttpError(StatusCode::BAD_REQUEST, error.body_text())),
        }
    }
}

crate::path::extractor!(HttpError, |why, _| HttpError(StatusCode::BAD_REQUEST, why));
