//! Errors, as RFC 9457 describes them.

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($name:ident $text:literal $status:literal $title:literal $advice:literal),+ $(,)?) => {
        /// Every kind of error the native API answers with. The error reference and the API's description are made from this list.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $($name),+ }

        impl Code {
            pub const ALL: &'static [Code] = &[$(Code::$name),+];
            /// Stable, at the end of a problem's `type`.
            pub fn name(self) -> &'static str {
                match self { $(Code::$name => $text),+ }
            }
            pub fn status(self) -> u16 {
                match self { $(Code::$name => $status),+ }
            }
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title),+ }
            }
            /// What a caller should do about it.
            pub fn advice(self) -> &'static str {
                match self { $(Code::$name => $advice),+ }
            }
        }
    };
}

codes! {
    BadRequest "bad-request" 400 "The request cannot be understood" "Compare it with the API's description under /docs; `field` says where it went wrong.",
    Unauthorized "unauthorized" 401 "A valid token is needed" "Send `Authorization: Bearer TOKEN`. Unknown, expired and revoked tokens get the same answer.",
    Forbidden "forbidden" 403 "This token may not do that" "Use a token with the role and the namespace that the call needs.",
    ForeignOrigin "foreign-origin" 403 "The request came from a page of another site" "Call from the server's own pages or from outside a browser, or add the origin to `origins` in the configuration.",
    NotHolder "not-holder" 403 "Somebody else holds the job" "Only the principal that claimed a job may report on it.",
    NotFound "not-found" 404 "Not found" "It never existed, was deleted, or was removed after its retention time.",
    MethodNotAllowed "method-not-allowed" 405 "The path does not support this method" "The `Allow` header lists the supported methods.",
    Timeout "timeout" 408 "The request did not arrive in time" "Send the head and the body without long pauses.",
    LeaseLost "lease-lost" 409 "The lease is no longer valid" "Stop working on the job and report nothing more: it was given to another worker, was cancelled, or has ended. `state` is its state now.",
    NotHeld "not-held" 409 "Nobody holds the job" "Claim it first.",
    Final "final" 409 "The job has ended" "A finished job never changes; `retry` makes a new one from it.",
    NotStarted "not-started" 409 "The job was not started" "Report its start before its completion.",
    AlreadyStarted "already-started" 409 "The job was already started" "Nothing to do.",
    InUse "in-use" 409 "It is in use" "`detail` says where; remove it there first.",
    Exists "exists" 409 "It exists already" "Choose another name, or use the existing one.",
    VersionMismatch "version-mismatch" 409 "It was changed in the meantime" "Read it again and repeat the change.",
    LastAdmin "last-admin" 409 "No admin would be left" "Create another admin first, or repeat the call with `force=true`. The next start of the server then creates the principal `admin` again.",
    WorkerNotOnline "worker-not-online" 409 "The worker is not online" "Send a heartbeat first.",
    WorkerDraining "worker-draining" 409 "The worker is draining" "It gets no jobs until the drain is ended.",
    TooLarge "too-large" 413 "Something is larger than allowed" "`field` says what. Upload large files as artifacts.",
    Invalid "invalid" 422 "A value is not acceptable" "`field` names the value, `detail` the rule.",
    Schema "schema" 422 "The value does not match its schema" "`field` is the JSON pointer to the wrong value.",
    KeyReused "key-reused" 422 "The idempotency key was used with another body" "Repeat the same body, or use a new key.",
    Cycle "cycle" 422 "Dependencies form a cycle" "`detail` shows the path.",
    WrongHost "wrong-host" 421 "The server does not accept this host name" "Use an address the server listens on, or add the name to `hosts` in the configuration.",
    TooMany "too-many" 429 "Too many at once" "Close some open streams or requests of this token, or try again later.",
    Damaged "damaged" 500 "Stored data cannot be read" "Run `windlass doctor`. Only calls that need this record fail.",
    Internal "internal" 500 "The server failed" "The server's log has the details under the request id.",
    Unavailable "unavailable" 503 "The server cannot do this now" "Repeat the request after `retry_after_ms`. With a key, submit and claim are safe to repeat.",
    OverQuota "over-quota" 507 "The namespace stores as much as it may" "Wait until finished jobs are removed after their retention time, delete records, or raise `stored_bytes_per_namespace_max`.",
    StoreFull "store-full" 507 "The disk is full" "Free some space. The server then accepts writes again without a restart.",
}

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

    /// None: a code that this version does not know.
    pub fn known(&self) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.name() == self.code())
    }

    pub fn is(&self, code: Code) -> bool {
        self.code() == code.name()
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
