//! The bodies exactly as on the wire; no logic. Members are in the order the original writes them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Queued,
    Running,
    Success,
    Failure,
    Skipped,
    Cancelled,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Status::Queued => "queued",
            Status::Running => "running",
            Status::Success => "success",
            Status::Failure => "failure",
            Status::Skipped => "skipped",
            Status::Cancelled => "cancelled",
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    pub id: String,
    pub name: String,
    pub status: Status,
    pub command: String,
    #[serde(default)]
    pub duration_secs: Option<u64>,
    /// Epoch milliseconds.
    #[serde(default)]
    pub started_at: Option<f64>,
    pub depends_on: Vec<String>,
    /// The error text of the final failure, and nothing else.
    #[serde(default)]
    pub output: Option<String>,
    #[serde(default)]
    pub required_labels: Vec<String>,
    #[serde(default)]
    pub max_retries: u32,
    #[serde(default)]
    pub attempt: u32,
    #[serde(default)]
    pub metadata: serde_json::Map<String, serde_json::Value>,
    #[serde(default)]
    pub ports: Vec<Port>,
    /// For drawing only; never run.
    #[serde(default)]
    pub children: Option<Vec<Job>>,
    #[serde(default)]
    pub collapsed: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Port {
    pub id: String,
    pub label: String,
    pub direction: Direction,
    #[serde(default)]
    pub port_type: String,
    #[serde(default)]
    pub color: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    Input,
    Output,
}

#[derive(Clone, Debug, Serialize)]
pub struct Workflow {
    pub id: String,
    pub name: String,
    pub trigger: String,
    pub jobs: Vec<Job>,
}

#[derive(Debug, Deserialize)]
pub struct Create {
    pub name: String,
    pub trigger: String,
    pub jobs: Vec<Job>,
}

#[derive(Debug, Default, Deserialize)]
pub struct List {
    pub limit: Option<usize>,
    pub offset: Option<usize>,
    pub status: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Register {
    pub worker_id: String,
    pub labels: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct WorkerInfo {
    pub worker_id: String,
    pub labels: Vec<String>,
    pub registered_at_ms: u64,
    pub last_heartbeat_ms: u64,
    pub current_job: Option<String>,
    pub status: &'static str,
}

#[derive(Debug, Deserialize)]
pub struct Claim {
    pub worker_id: String,
    pub labels: Vec<String>,
    #[serde(default = "thirty")]
    pub lease_ttl_secs: u64,
}

fn thirty() -> u64 {
    30
}

#[derive(Debug, Serialize)]
pub struct Claimed {
    pub job: QueuedJob,
    pub lease: Lease,
}

/// Every member is needed by the original worker.
#[derive(Debug, Serialize)]
pub struct QueuedJob {
    pub job_id: String,
    pub workflow_id: String,
    pub command: String,
    pub required_labels: Vec<String>,
    pub retry_policy: RetryPolicy,
    pub attempt: u32,
    pub upstream_outputs: BTreeMap<String, BTreeMap<String, String>>,
    pub enqueued_at_ms: u64,
    pub delayed_until_ms: u64,
}

#[derive(Debug, Serialize)]
pub struct RetryPolicy {
    pub max_retries: u32,
    pub backoff: &'static str,
}

#[derive(Debug, Serialize)]
pub struct Lease {
    pub lease_id: String,
    pub job_id: String,
    pub workflow_id: String,
    pub worker_id: String,
    pub ttl_secs: u64,
    pub granted_at_ms: u64,
}

#[derive(Debug, Deserialize)]
pub struct Complete {
    #[serde(default)]
    pub outputs: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
pub struct Fail {
    pub error: String,
    #[serde(default)]
    pub retryable: bool,
}

#[derive(Debug, Deserialize)]
pub struct Logs {
    pub chunks: Vec<LogChunk>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogChunk {
    pub workflow_id: String,
    pub job_id: String,
    pub sequence: u64,
    pub data: String,
    pub timestamp_ms: u64,
    pub stream: Stream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    Stdout,
    Stderr,
}
