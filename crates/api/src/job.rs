//! Jobs: submit, read, list, cancel, retry.

use crate::{Json, Problem, is_default, object};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uuid::Uuid;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Waits for other jobs, or for room under its concurrency key.
    Blocked,
    /// Waits for a time: a delay or a backoff.
    Scheduled,
    /// Can be claimed.
    Pending,
    /// A worker holds it but has not reported yet.
    Claimed,
    Running,
    Completed,
    Failed,
    Cancelled,
    /// A job it waited for did not complete.
    Skipped,
}

impl State {
    pub fn is_final(self) -> bool {
        matches!(self, State::Completed | State::Failed | State::Cancelled | State::Skipped)
    }
    pub fn name(self) -> &'static str {
        match self {
            State::Blocked => "blocked",
            State::Scheduled => "scheduled",
            State::Pending => "pending",
            State::Claimed => "claimed",
            State::Running => "running",
            State::Completed => "completed",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
            State::Skipped => "skipped",
        }
    }
}

/// A job to be done. Everything is optional: an empty object is a job without payload that any worker may take.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct SubmitJob {
    /// Choose the id yourself (a UUID, version 7 keeps lists in order). Drawn by the server where absent.
    #[serde(skip_serializing_if = "is_default")]
    pub id: Option<Uuid>,
    /// The definition to make the job from: `name` for its latest version, `name@3` for that one. Its settings hold where
    /// the job says nothing itself, and its schema must accept the payload.
    #[serde(skip_serializing_if = "is_default")]
    pub definition: Option<String>,
    /// Any JSON; handed to the worker as it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    /// What the worker must offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Lower goes first; 100 where absent.
    #[serde(skip_serializing_if = "is_default")]
    pub priority: Option<i32>,
    /// Not before this time (RFC 3339).
    #[serde(skip_serializing_if = "is_default")]
    pub run_at: Option<String>,
    /// Not before so long from now.
    #[serde(skip_serializing_if = "is_default")]
    pub delay_ms: Option<u64>,
    /// Jobs that must end first.
    #[serde(skip_serializing_if = "is_default")]
    pub after: Vec<Uuid>,
    /// What becomes of the job if one of those does not complete.
    #[serde(skip_serializing_if = "is_default")]
    pub when_parent_fails: Option<WhenParentFails>,
    /// Up to six names and values to list by.
    #[serde(skip_serializing_if = "is_default")]
    pub facets: BTreeMap<String, String>,
    /// At most so many jobs with this key at a time; the others wait.
    #[serde(skip_serializing_if = "is_default")]
    #[serde(deserialize_with = "object::maybe")]
    pub concurrency: Option<Concurrency>,
    /// Submitting again with the same key and the same body answers with the first job. Also as header `Idempotency-Key`.
    #[serde(skip_serializing_if = "is_default")]
    pub idempotency_key: Option<String>,
    /// How long the idempotency key is remembered; a day where absent. 0: until the job has ended.
    #[serde(skip_serializing_if = "is_default")]
    pub idempotency_ms: Option<u64>,
    #[serde(skip_serializing_if = "is_default")]
    #[serde(deserialize_with = "object::maybe")]
    pub retry: Option<Retry>,
    /// Ends an attempt so long after its claim, whatever the worker says.
    #[serde(skip_serializing_if = "is_default")]
    pub timeout_ms: Option<u64>,
    /// Fails the job if nobody claims it for so long.
    #[serde(skip_serializing_if = "is_default")]
    pub pending_timeout_ms: Option<u64>,
    /// Length of its leases; the claimer's wish where absent.
    #[serde(skip_serializing_if = "is_default")]
    pub lease_ms: Option<u64>,
    #[serde(skip_serializing_if = "is_default")]
    pub cancel: Option<CancelMode>,
    /// How long the job is kept after its end.
    #[serde(skip_serializing_if = "is_default")]
    pub retention_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WhenParentFails {
    /// The job is skipped.
    Skip,
    /// It runs all the same.
    Run,
    /// It is cancelled.
    Cancel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CancelMode {
    /// Cancelling ends a running job at once: its worker is told, and may report nothing more. The job keeps its place under its
    /// concurrency key until the worker says that the work has stopped, at most until the lease would have ended.
    Revoke,
    /// The worker is told and its report ends the job as cancelled.
    Drain,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Concurrency {
    pub key: String,
    pub limit: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    /// Tries in all, the first included; 3 where absent.
    #[serde(skip_serializing_if = "is_default")]
    pub attempts: Option<u32>,
    /// Wait before the first retry; doubles with each. A second where absent; 0 is at once.
    #[serde(skip_serializing_if = "is_default")]
    pub backoff_ms: Option<u64>,
    /// The longest wait; an hour where absent.
    #[serde(skip_serializing_if = "is_default")]
    pub backoff_max_ms: Option<u64>,
    /// So much of each wait is taken off at random, so that jobs that failed together do not come back together; 20 where absent.
    #[serde(skip_serializing_if = "is_default")]
    pub jitter_percent: Option<u8>,
    /// Whether a failure the worker reports is retried; yes where absent.
    #[serde(skip_serializing_if = "is_default")]
    pub on_failure: Option<bool>,
    /// Whether a lost worker is retried; yes where absent.
    #[serde(skip_serializing_if = "is_default")]
    pub on_lost: Option<bool>,
    /// Whether a timeout is retried; yes where absent.
    #[serde(skip_serializing_if = "is_default")]
    pub on_timeout: Option<bool>,
    /// A job that lost its worker this often is given up, whatever its attempts; 3 where absent.
    #[serde(skip_serializing_if = "is_default")]
    pub losses_max: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Submitted {
    pub id: Uuid,
    pub state: State,
    /// The idempotency key was used before; this is the job it made.
    #[serde(default, skip_serializing_if = "is_default")]
    pub existing: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SubmitMany {
    /// Up to 1000.
    #[serde(deserialize_with = "object::each")]
    pub jobs: Vec<SubmitJob>,
    /// All or none. Otherwise each is accepted or refused by itself.
    #[serde(default, skip_serializing_if = "is_default")]
    pub atomic: bool,
}

/// One entry per job, in order.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubmittedMany {
    pub jobs: Vec<Answer<Submitted>>,
}

/// What became of one of several.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Answer_of_{T}"))]
#[serde(untagged)]
pub enum Answer<T> {
    Refused { problem: Problem },
    Done(T),
}

impl<T> Answer<T> {
    pub fn ok(self) -> Result<T, Box<Problem>> {
        match self {
            Answer::Done(done) => Ok(done),
            Answer::Refused { problem } => Err(Box::new(problem)),
        }
    }
}

/// A job as it is now.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Job {
    pub id: Uuid,
    pub namespace: String,
    pub state: State,
    pub priority: i32,
    #[serde(default)]
    pub tags: Vec<String>,
    /// `name@version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// Who submitted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Uuid>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facets: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    /// Claims so far.
    pub attempt: u32,
    /// Tries in all.
    pub attempts_max: u32,
    /// The worker that holds it, or held it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Somebody asked for its end, and its worker has not answered yet.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cancel_requested: bool,
    /// Why it, or its last attempt, ended other than by success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<JobError>,
    pub created_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
    /// When its lease runs out unless renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried_as: Option<Uuid>,
    pub log_bytes: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub log_bytes_dropped: u64,
    /// In a list that was asked for commands: the command that the payload holds, at most 200 characters of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Left out of lists, as are all fields below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Json>,
    /// Past attempts in order; the present or last one is told by the job itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// Jobs that wait, or waited, for this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<Uuid>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Progress {
    /// 0 to 100.
    pub percent: f64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobError {
    /// Stable, for machines: `reported`, `lease_expired`, `worker_lost`, `worker_removed`, `deadline_passed`,
    /// `pending_deadline_passed`, `too_many_losses`, `parent_not_completed`, `not_needed`, `plan_failed`,
    /// `cancelled`, `released`.
    pub reason: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Attempt {
    pub number: u32,
    pub worker: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    pub ended_at: String,
    pub error: JobError,
}

/// Which jobs to list, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ListJobs {
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: Option<String>,
    /// One state, or several separated by commas.
    #[serde(skip_serializing_if = "is_default")]
    pub state: Option<String>,
    /// `name:value`.
    #[serde(skip_serializing_if = "is_default")]
    pub facet: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub run: Option<Uuid>,
    /// Held by this worker now.
    #[serde(skip_serializing_if = "is_default")]
    pub worker: Option<String>,
    /// With the commands that payloads of up to 4096 bytes hold.
    #[serde(skip_serializing_if = "is_default")]
    pub commands: bool,
    /// Ids that begin so (at least 4 characters), for people who type them.
    #[serde(skip_serializing_if = "is_default")]
    pub id: Option<String>,
    /// 1 to 1000; 100 where absent.
    #[serde(skip_serializing_if = "is_default")]
    pub limit: Option<u32>,
    /// `next` of the page before.
    #[serde(skip_serializing_if = "is_default")]
    pub cursor: Option<String>,
}

/// How to cancel a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct CancelJob {
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: Option<String>,
    /// What becomes of a job that runs. Default: as the job says, else `drain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<CancelMode>,
}

/// Wait for a job's end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct WaitJob {
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: Option<String>,
    /// At most 60000; 30000 where absent. Answers with the job as it is then.
    #[serde(skip_serializing_if = "is_default")]
    pub wait_ms: Option<u64>,
}
