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
    /// The worker's name. One that never registered is made known by its first claim.
    pub worker: String,
    /// What it offers now. Absent: what it registered.
    #[serde(skip_serializing_if = "is_default")]
    pub tags: Option<Vec<String>>,
    /// Up to so many jobs; 1 where absent, at most 1000.
    #[serde(skip_serializing_if = "is_default")]
    pub max: Option<u32>,
    /// Wait so long for the first; at most 60000, none where absent.
    #[serde(skip_serializing_if = "is_default")]
    pub wait_ms: Option<u64>,
    /// Length of the lease where the job does not say; 30000 where absent.
    #[serde(skip_serializing_if = "is_default")]
    pub lease_ms: Option<u64>,
    /// Asking again with the same id, after a lost reply, gives the same leases.
    #[serde(skip_serializing_if = "is_default")]
    pub request_id: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Claimed {
    /// Empty: nothing to do.
    pub leases: Vec<Leased>,
}

/// A job under a lease, with all its worker needs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Leased {
    /// Proof of the claim. Keep it secret.
    pub lease: String,
    pub job: Uuid,
    /// Grows with every claim of the job: use it as an idempotency key for what the work does elsewhere.
    pub attempt: u32,
    /// Renew within this, best at a third of it. Absent: the lease lives as long as the worker's heartbeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The attempt ends then, whatever happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// The same as `deadline`, in milliseconds from now: clocks differ.
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
    /// W3C trace context of the submit, to go on with.
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

/// Give a job back. No attempt is charged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Release {
    pub lease: String,
    /// Offer the job to nobody for so long, this worker included. For a worker that cannot run the job: without this, the job
    /// keeps its place at the head of the queue and the same worker gets it again at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// Why, for people. Kept with the attempt if there is a `delay_ms`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Renewed {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Stop: somebody cancelled the job, and its end is decided.
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
    /// Text as it came, line ends included; at most 256 KiB.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub data: String,
    /// Where `data` was written; not told if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<OutputStream>,
    /// When `data` was written, by the worker's clock: milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// In place of `data`: text of both streams in its order, at most 4096 chunks and 256 KiB.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunks: Vec<LogChunk>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Logged {
    /// So much of the job's log was dropped so far because it had reached its cap.
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
    /// Claim the next in the same round trip.
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
    /// Trying again would not help.
    #[serde(default, skip_serializing_if = "is_default")]
    pub permanent: bool,
    /// Claim the next in the same round trip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "object::maybe")]
    pub next: Option<Claim>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ended {
    pub job: Uuid,
    /// The job's state after the report: a failure that is retried leaves it pending or scheduled.
    pub state: State,
    /// This very report was accepted before.
    #[serde(default, skip_serializing_if = "is_default")]
    pub replayed: bool,
    /// What `next` got.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leases: Vec<Leased>,
    /// Why `next` was refused. The report itself was taken.
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

/// One thing to do under one lease. One flat form rather than one per verb, so that results stay as they were written.
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

/// Several operations in one transaction, each accepted or refused by itself, and optionally a claim after them.
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
    /// Why the claim was refused. The operations were done all the same.
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

/// All a worker has to say now and then, in one call: that it lives, which leases it keeps, how far they are, what they printed.
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
    /// In place of `log`: text of both streams in its order, at most 4096 chunks and 256 KiB.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunks: Vec<LogChunk>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Synced {
    /// The server has no such worker any more: register again.
    #[serde(default)]
    pub unknown_worker: bool,
    /// Somebody wants it to claim no more.
    #[serde(default)]
    pub draining: bool,
    /// One per lease, in order.
    pub leases: Vec<SyncedLease>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SyncedLease {
    /// False: the lease is gone, stop at once and report nothing.
    pub held: bool,
    /// The job was cancelled: stop, and report if `held`.
    #[serde(default)]
    pub cancelled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    #[serde(default)]
    pub log_bytes_dropped: u64,
}
