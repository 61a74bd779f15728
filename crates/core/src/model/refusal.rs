//! Why not. Every refusal has a stable code, and says what is wrong and where.

use crate::model::job::State;
use serde::Serialize;
use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Refusal {
    #[error("there is no {what} {name}")]
    NotFound { what: &'static str, name: String },
    /// The lease is expired, replaced, or of a job that has ended. `state` is the job's state now.
    #[error("the lease is no longer valid; the job is {}", state.name())]
    LeaseLost { state: State },
    /// The write named the job, and the job is held by nobody.
    #[error("nobody holds the job; it is {}", state.name())]
    NotHeld { state: State },
    #[error("the job is held by somebody else")]
    NotHolder,
    #[error("the job has ended; it is {}", state.name())]
    Final { state: State },
    #[error("the job must be started before it is completed")]
    NotStarted,
    #[error("the job was already started")]
    AlreadyStarted,
    #[error("{field}: {why}")]
    Invalid { field: &'static str, why: String },
    #[error("{field}: {size} is more than the {max} allowed")]
    TooLarge { field: &'static str, size: usize, max: usize },
    /// A crowd that may not grow; whoever comes later may find room.
    #[error("the namespace {namespace} may have {max} {what} at a time ({setting}), and has as many")]
    TooMany { what: &'static str, namespace: String, max: usize, setting: &'static str },
    /// The namespace keeps as much as it may.
    #[error(
        "the namespace {namespace} stores {used} bytes and may store {max} ({setting}); wait until finished jobs are removed, delete \
         records, or have the quota raised"
    )]
    OverQuota { namespace: String, used: u64, max: u64, setting: &'static str },
    /// The disk has no room for it.
    #[error("the store is full: {why}; free space on its disk, and everything is accepted again without a restart")]
    StoreFull { why: &'static str },
    #[error("the key {key:?} was used before with another body")]
    KeyReused { key: String },
    #[error("the {what} {name} exists already")]
    Exists { what: &'static str, name: String },
    #[error("the {what} {name} is at version {is}, not {expected}")]
    VersionMismatch { what: &'static str, name: String, expected: u64, is: u64 },
    #[error("the worker {worker} is {liveness} and cannot claim; send a heartbeat or register")]
    WorkerNotOnline { worker: String, liveness: &'static str },
    #[error("the worker {worker} is draining and gets no jobs until the drain is ended")]
    WorkerDraining { worker: String },
    #[error("dependencies form a cycle: {}", path.join(" -> "))]
    Cycle { path: Vec<String> },
    #[error("no admin of all namespaces would be left with a valid token; do it anyway with `force`")]
    LastAdmin,
    /// What the command was sent with was revoked or has expired.
    #[error(
        "this access was ended while the request was under way, and nothing was written; sign in again, or ask an admin"
    )]
    AccessEnded,
    /// Its rights are others than those that it was admitted with. Whether they still suffice is found out by sending it again.
    #[error(
        "the rights of this caller were changed while the request was under way, and nothing was written; send it again"
    )]
    AccessChanged,
    #[error("{why}")]
    Forbidden { why: String },
    /// What is stored cannot be read. Only commands that need this very record are refused.
    #[error("the stored {what} {name} is damaged: {why}")]
    Damaged { what: &'static str, name: String, why: String },
}

impl Refusal {
    pub fn invalid(field: &'static str, why: String) -> Self {
        Refusal::Invalid { field, why }
    }
    pub fn too_large(field: &'static str, size: usize, max: usize) -> Self {
        Refusal::TooLarge { field, size, max }
    }
    pub fn not_found(what: &'static str, name: impl ToString) -> Self {
        Refusal::NotFound { what, name: name.to_string() }
    }
    /// Stable, for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::NotFound { .. } => "not-found",
            Refusal::LeaseLost { .. } => "lease-lost",
            Refusal::NotHeld { .. } => "not-held",
            Refusal::NotHolder => "not-holder",
            Refusal::Final { .. } => "final",
            Refusal::NotStarted => "not-started",
            Refusal::AlreadyStarted => "already-started",
            Refusal::Invalid { .. } => "invalid",
            Refusal::TooLarge { .. } => "too-large",
            Refusal::TooMany { .. } => "too-many",
            Refusal::OverQuota { .. } => "over-quota",
            Refusal::StoreFull { .. } => "store-full",
            Refusal::KeyReused { .. } => "key-reused",
            Refusal::Exists { .. } => "exists",
            Refusal::VersionMismatch { .. } => "version-mismatch",
            Refusal::WorkerNotOnline { .. } => "worker-not-online",
            Refusal::WorkerDraining { .. } => "worker-draining",
            Refusal::Cycle { .. } => "cycle",
            Refusal::LastAdmin => "last-admin",
            Refusal::AccessEnded => "unauthorized",
            Refusal::AccessChanged => "unavailable",
            Refusal::Forbidden { .. } => "forbidden",
            Refusal::Damaged { .. } => "damaged",
        }
    }
}
