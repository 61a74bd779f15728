//! What went wrong, as a reply. One table from refusals to statuses; the error reference is made from it.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use windlass_api as api;
use windlass_core::{Refusal, State};
use windlass_engine::{Error, StoreError};

/// An error of the native API on its way out.
#[derive(Clone, Debug)]
pub struct Problem(pub Box<api::Problem>);

/// One kind of error: its code, its status, its title, and what a caller should do about it.
pub struct Kind {
    pub code: &'static str,
    pub status: u16,
    pub title: &'static str,
    pub advice: &'static str,
}

macro_rules! kinds {
    ($($code:literal $status:literal $title:literal $advice:literal),+ $(,)?) => {
        /// Every error the native API answers with.
        pub const KINDS: &[Kind] = &[$(Kind { code: $code, status: $status, title: $title, advice: $advice }),+];
    };
}

kinds! {
    "bad-request" 400 "The request cannot be understood" "Compare it with the API's description under /docs; `field` says where it went wrong.",
    "unauthorized" 401 "A valid token is needed" "Send `Authorization: Bearer TOKEN`. Unknown, expired and revoked tokens get the same answer.",
    "forbidden" 403 "This token may not do that" "Use a token with the role and the namespace that the call needs.",
    "foreign-origin" 403 "The request came from a page of another site" "Call from the server's own pages or from outside a browser, or add the origin to `origins` in the configuration.",
    "not-holder" 403 "Somebody else holds the job" "Only the principal that claimed a job may report on it.",
    "not-found" 404 "Not found" "It never existed, was deleted, or was removed after its retention time.",
    "method-not-allowed" 405 "The path does not support this method" "The `Allow` header lists the supported methods.",
    "timeout" 408 "The request did not arrive in time" "Send the head and the body without long pauses.",
    "lease-lost" 409 "The lease is no longer valid" "Stop working on the job and report nothing more: it was given to another worker, was cancelled, or has ended. `state` is its state now.",
    "not-held" 409 "Nobody holds the job" "Claim it first.",
    "final" 409 "The job has ended" "A finished job never changes; `retry` makes a new one from it.",
    "not-started" 409 "The job was not started" "Report its start before its completion.",
    "already-started" 409 "The job was already started" "Nothing to do.",
    "in-use" 409 "It is in use" "`detail` says where; remove it there first.",
    "exists" 409 "It exists already" "Choose another name, or use the existing one.",
    "version-mismatch" 409 "It was changed in the meantime" "Read it again and repeat the change.",
    "last-admin" 409 "No admin would be left" "Create another admin first, or repeat the call with `force=true`. The next start of the server then creates the principal `admin` again.",
    "worker-not-online" 409 "The worker is not online" "Send a heartbeat first.",
    "worker-draining" 409 "The worker is draining" "It gets no jobs until the drain is ended.",
    "too-large" 413 "Something is larger than allowed" "`field` says what. Upload large files as artifacts.",
    "invalid" 422 "A value is not acceptable" "`field` names the value, `detail` the rule.",
    "schema" 422 "The value does not match its schema" "`field` is the JSON pointer to the wrong value.",
    "key-reused" 422 "The idempotency key was used with another body" "Repeat the same body, or use a new key.",
    "cycle" 422 "Dependencies form a cycle" "`detail` shows the path.",
    "wrong-host" 421 "The server does not accept this host name" "Use an address the server listens on, or add the name to `hosts` in the configuration.",
    "too-many" 429 "Too many at once" "Close some open streams or requests of this token, or try again later.",
    "damaged" 500 "Stored data cannot be read" "Run `windlass doctor`. Only calls that need this record fail.",
    "internal" 500 "The server failed" "The server's log has the details under the request id.",
    "unavailable" 503 "The server cannot do this now" "Repeat the request after `retry_after_ms`. With a key, submit and claim are safe to repeat.",
    "store-full" 507 "The disk is full" "Free some space. The server then accepts writes again without a restart.",
}

fn kind(code: &str) -> &'static Kind {
    KINDS.iter().find(|kind| kind.code == code).unwrap_or_else(|| kind("internal"))
}

impl Problem {
    pub fn new(code: &str, detail: impl Into<String>) -> Self {
        let kind = kind(code);
        Self(Box::new(api::Problem {
            kind: format!("/docs/errors#{}", kind.code),
            title: kind.title.into(),
            status: kind.status,
            detail: detail.into(),
            ..api::Problem::default()
        }))
    }

    pub fn invalid(field: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new("invalid", why).at(field)
    }

    pub fn not_found(what: &str, name: impl std::fmt::Display) -> Self {
        Self::new("not-found", format!("there is no {what} {name}"))
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

    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let problem = Problem::new(refusal.code(), refusal.to_string());
        match refusal {
            Refusal::LeaseLost { state } | Refusal::NotHeld { state } | Refusal::Final { state } => {
                problem.state(state)
            }
            Refusal::Invalid { field, why } => Problem::invalid(field, why),
            Refusal::TooLarge { field, .. } => problem.at(field),
            Refusal::TooMany { .. } => problem.retry_after(1_000),
            _ => problem,
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict(_) | StoreError::Unavailable(_) => {
                Problem::new("unavailable", error.to_string()).retry_after(500)
            }
            StoreError::Full(_) => Problem::new("store-full", error.to_string()).retry_after(1_000),
            StoreError::Corrupt(_) => {
                tracing::error!(%error, "the store is damaged");
                Problem::new("damaged", "the store is damaged; the server's log says more")
            }
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(refusal) => refusal.into(),
            Error::Store(error) => error.into(),
            Error::Overloaded | Error::Closed => Problem::new("unavailable", error.to_string()).retry_after(200),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_has_a_kind_of_its_own() {
        let refusals = [
            Refusal::not_found("job", 1),
            Refusal::LeaseLost { state: State::Pending },
            Refusal::NotHeld { state: State::Pending },
            Refusal::NotHolder,
            Refusal::Final { state: State::Failed },
            Refusal::NotStarted,
            Refusal::AlreadyStarted,
            Refusal::invalid("f", "no".into()),
            Refusal::too_large("f", 2, 1),
            Refusal::TooMany { what: "workers", namespace: "n".into(), max: 1, setting: "s" },
            Refusal::KeyReused { key: "k".into() },
            Refusal::Exists { what: "job", name: "1".into() },
            Refusal::VersionMismatch { what: "record", name: "r".into(), expected: 1, is: 2 },
            Refusal::WorkerNotOnline { worker: "w".into(), liveness: "offline" },
            Refusal::WorkerDraining { worker: "w".into() },
            Refusal::Cycle { path: vec![] },
            Refusal::LastAdmin,
            Refusal::Forbidden { why: "no".into() },
            Refusal::Damaged { what: "record", name: "r".into(), why: "bits".into() },
        ];
        for refusal in refusals {
            let code = refusal.code();
            assert_eq!(Problem::from(refusal).0.code(), code);
        }
    }
}
