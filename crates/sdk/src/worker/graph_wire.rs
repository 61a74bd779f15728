//! The bodies of workflow-graph's worker protocol, as far as a worker needs them; no logic.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use windlass_api::Json;

#[derive(Serialize)]
pub(super) struct Register<'a> {
    pub worker_id: &'a str,
    pub labels: &'a [String],
}

#[derive(Serialize)]
pub(super) struct Claim<'a> {
    pub worker_id: &'a str,
    pub labels: &'a [String],
    pub lease_ttl_secs: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Claimed {
    /// As it came: the command is given all of it.
    pub job: Json,
    pub lease: Lease,
}

/// What the loop itself reads of a job.
#[derive(Debug, Deserialize)]
pub(super) struct Job {
    pub job_id: String,
    pub workflow_id: String,
    #[serde(default)]
    pub required_labels: Vec<String>,
    #[serde(default)]
    pub attempt: u32,
}

#[derive(Debug, Deserialize)]
pub(super) struct Lease {
    pub lease_id: String,
    pub ttl_secs: u64,
    pub granted_at_ms: u64,
}

#[derive(Serialize)]
pub(super) struct Logs<'a> {
    pub chunks: Vec<Chunk<'a>>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Chunk<'a> {
    pub workflow_id: &'a str,
    pub job_id: &'a str,
    pub sequence: u64,
    pub data: &'a str,
    pub timestamp_ms: u64,
    pub stream: &'static str,
}

#[derive(Serialize)]
pub(super) struct Complete {
    pub outputs: BTreeMap<String, String>,
}

#[derive(Serialize)]
pub(super) struct Fail<'a> {
    pub error: &'a str,
    pub retryable: bool,
}
