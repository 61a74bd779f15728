//! Leases: claim, keep, report.
//!
//! A lease id travels in bodies, never in addresses, because addresses end up in the logs of every proxy on the way.

use crate::{
    Json, Problem, is_default,
    job::{Answer, Progress, State},
    log::{LogChunk, OutputStream},
    object,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Claim jobs; with `wait_ms`, wait for some.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Claim {
    /// The worker's name. The first claim makes an unregistered worker known.
    pub worker: String,
    /// Refuse the claim with `not-found` if the server does not know the worker (any more), so that it can register again.
    #[serde(skip_serializing_if = "is_default")]
    pub registered: bool,
    /// Tags the worker offers now. Default: the tags it registered with.
    #[serde(skip_serializing_if = "is_default")]
    pub tags: Option<Vec<String>>,
    /// Maximum number of jobs, at most 1000. Default: 1.
    #[serde(skip_serializing_if = "is_default")]
    pub max: Option<u32>,
    /// How long to wait for the first job, at most 60000. Default: 0.
    #[serde(skip_serializing_if = "is_default")]
    pub wait_ms: Option<u64>,
    /// Lease duration for jobs that set none. Default: 30000.
    #[serde(skip_serializing_if = "is_default")]
    pub lease_ms: Option<u64>,
    /// If the answer was lost, repeating the claim with the same id returns the same leases.
    #[serde(skip_serializing_if = "is_default")]
    pub request_id: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Claimed {
    /// Empty if there is nothing to do.
    pub leases: Vec<Leased>,
}

/// A claimed job, with everything its worker needs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Leased {
    /// The lease id. Keep it secret.
    pub lease: String,
    pub job: Uuid,
    /// Grows with every claim of the job. Use it with the job's id as an idempotency key for side effects.
    pub attempt: u32,
    /// Duration of the lease; renew after a third of it. Absent: the lease is held until the worker is offline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// When the attempt ends, whatever happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// The same as `deadline`, in milliseconds from now, because clocks differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Uuid>,
    /// W3C trace context of the submit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
}

/// Something about one lease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LeaseOnly {
    pub lease: String,
}

/// Give a job back without using up an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Release {
    pub lease: String,
    /// Offer the job to no worker for this long. For a worker that cannot run the job: without a delay, the job
    /// keeps its place in the queue, and the same worker gets it again at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// The reason, for people. Stored with the attempt if there is a `delay_ms`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Renewed {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The job was cancelled: stop the work.
    #[serde(default)]
    pub cancelled: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReportProgress {
    pub lease: String,
    /// 0 to 100.
    pub percent: f64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AppendLog {
    pub lease: String,
    /// The text, including line ends; at most 256 KiB.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub data: String,
    /// The stream `data` was written to. Default: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<OutputStream>,
    /// When `data` was written, by the worker's clock: milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// Instead of `data`: text of both streams in order, at most 4096 chunks and 256 KiB.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunks: Vec<LogChunk>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Logged {
    /// Bytes of the job's log that were dropped so far because of its limit.
    #[serde(default)]
    pub dropped_bytes: u64,
    #[serde(default)]
    pub cancelled: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Complete {
    pub lease: String,
    /// Any JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Json>,
    /// Claim the next jobs in the same call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "object::maybe")]
    pub next: Option<Claim>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Fail {
    pub lease: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Do not retry the job.
    #[serde(default, skip_serializing_if = "is_default")]
    pub permanent: bool,
    /// Claim the next jobs in the same call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "object::maybe")]
    pub next: Option<Claim>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ended {
    pub job: Uuid,
    /// The job's state after the report. After a failure that is retried: pending or scheduled.
    pub state: State,
    /// The same report was accepted before.
    #[serde(default, skip_serializing_if = "is_default")]
    pub replayed: bool,
    /// The leases of `next`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leases: Vec<Leased>,
    /// Why `next` was refused. The report itself was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_problem: Option<Problem>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Do {
    Renew,
    /// With `percent` and `message`.
    Progress,
    /// With `data`, or with `chunks`.
    Log,
    /// With `result`.
    Complete,
    /// With `message` and `permanent`.
    Fail,
    /// With `delay_ms` and `message`, if the job is not for this worker.
    Release,
}

/// One operation under one lease. One flat form for all verbs, so that results are passed on unchanged.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Operation {
    #[serde(rename = "do")]
    pub what: Do,
    pub lease: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub data: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunks: Vec<LogChunk>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Json>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub permanent: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
}

/// Several operations in one transaction, each accepted or refused on its own, and optionally a claim after them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// Up to 1000, done in order.
    #[serde(deserialize_with = "object::each")]
    pub operations: Vec<Operation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "object::maybe")]
    pub claim: Option<Claim>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BatchDone {
    /// One per operation, in order.
    pub operations: Vec<Answer<OperationDone>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leases: Vec<Leased>,
    /// Why the claim was refused. The operations are not affected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_problem: Option<Problem>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OperationDone {
    pub state: State,
    #[serde(default, skip_serializing_if = "is_default")]
    pub replayed: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub cancelled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// Heartbeat, renewals, progress and logs of a whole worker in one call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Sync {
    pub worker: String,
    #[serde(default)]
    #[serde(deserialize_with = "object::each")]
    pub leases: Vec<SyncLease>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SyncLease {
    pub lease: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "object::maybe")]
    pub progress: Option<Progress>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub log: String,
    /// Instead of `log`: text of both streams in order, at most 4096 chunks and 256 KiB.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunks: Vec<LogChunk>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Synced {
    /// The server does not know this worker: register again.
    #[serde(default)]
    pub unknown_worker: bool,
    /// The worker is being drained: do not claim.
    #[serde(default)]
    pub draining: bool,
    /// One per lease, in order.
    pub leases: Vec<SyncedLease>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SyncedLease {
    /// False: the lease is lost; stop at once and report nothing.
    pub held: bool,
    /// The job was cancelled: stop the work, and report if `held`.
    #[serde(default)]
    pub cancelled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    #[serde(default)]
    pub log_bytes_dropped: u64,
}
