//! Jobs: submit, read, list, cancel, retry.

use crate::{
    Json, Problem,
    fields::{Wire, With, in_order},
    is_default, object,
    settings::JobSettings,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{collections::BTreeMap, ops::Deref};
use uuid::Uuid;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Waits for other jobs, or for its concurrency key.
    Blocked,
    /// Waits for a time: a delay or a backoff.
    Scheduled,
    /// Can be claimed.
    Pending,
    /// Held by a worker that has not reported progress yet.
    Claimed,
    Running,
    Completed,
    Failed,
    Cancelled,
    /// Not run, because a job it waited for did not complete or it was not needed.
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

/// A job to submit. Everything is optional: an empty object is a job without payload that any worker may take.
// Its settings are read as if they were fields of its own, also in Rust: `job.priority`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(!remote))]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct SubmitJob {
    /// The job's id, a UUID (version 7 keeps lists in order). Default: chosen by the server.
    #[serde(skip_serializing_if = "is_default")]
    pub id: Option<Uuid>,
    /// The definition of the job: `name` for the latest version, `name@3` for version 3. Its settings apply where
    /// the job sets none, and the payload must match its schema.
    #[serde(skip_serializing_if = "is_default")]
    pub definition: Option<String>,
    /// Any JSON; passed to the worker unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    /// Start no earlier than this time (RFC 3339).
    #[serde(skip_serializing_if = "is_default")]
    pub run_at: Option<String>,
    /// Start no earlier than this many milliseconds from now.
    #[serde(skip_serializing_if = "is_default")]
    pub delay_ms: Option<u64>,
    /// Jobs that must end first.
    #[serde(skip_serializing_if = "is_default")]
    pub after: Vec<Uuid>,
    /// What happens to the job if one of those does not complete.
    #[serde(skip_serializing_if = "is_default")]
    pub when_parent_fails: Option<WhenParentFails>,
    /// Up to six names and values to filter lists by.
    #[serde(skip_serializing_if = "is_default")]
    pub facets: BTreeMap<String, String>,
    /// Idempotency key: submitting the same body again with the same key returns the first job. Also as header `Idempotency-Key`.
    #[serde(skip_serializing_if = "is_default")]
    pub idempotency_key: Option<String>,
    /// How long the idempotency key is remembered. Default: one day. 0: until the job has ended.
    #[serde(skip_serializing_if = "is_default")]
    pub idempotency_ms: Option<u64>,
    #[serde(skip_serializing_if = "is_default")]
    pub cancel: Option<CancelMode>,
    #[serde(flatten, skip_deserializing)]
    #[cfg_attr(feature = "schema", schemars(!skip_deserializing))]
    pub settings: JobSettings,
}

impl SubmitJob {
    /// The job with these settings, and its own where they say nothing.
    pub fn with(self, settings: JobSettings) -> Self {
        Self { settings: settings.or(&self.settings), ..self }
    }

    /// The body by which an idempotency key recognises a repetition: without the key's own fields and the id, and with the
    /// payload as it was written. Keys outlive the program, so the order of what there is never changes.
    pub fn signature(&self) -> serde_json::Result<String> {
        const FIRST: [&str; 16] = [
            "definition",
            "payload",
            "tags",
            "priority",
            "run_at",
            "delay_ms",
            "after",
            "when_parent_fails",
            "facets",
            "concurrency",
            "retry",
            "timeout_ms",
            "pending_timeout_ms",
            "lease_ms",
            "cancel",
            "retention_ms",
        ];
        let bare = SubmitJob { idempotency_key: None, idempotency_ms: None, id: None, ..self.clone() };
        in_order(&serde_json::to_string(&bare)?, &FIRST)
    }
}

impl Serialize for SubmitJob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SubmitJob::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for SubmitJob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(transparent)]
        struct Own(#[serde(with = "SubmitJob")] SubmitJob);
        let With { own: Own(own), settings, .. } = With::<Own, Wire>::deserialize(deserializer)?;
        Ok(SubmitJob { settings, ..own })
    }
}

impl Deref for SubmitJob {
    type Target = JobSettings;
    fn deref(&self) -> &JobSettings {
        &self.settings
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WhenParentFails {
    /// The job is skipped.
    Skip,
    /// The job runs anyway.
    Run,
    /// The job is cancelled.
    Cancel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CancelMode {
    /// Cancelling ends a running job at once; its worker is told and can no longer report. The job keeps its place under its
    /// concurrency key until the worker confirms that the work has stopped, at most until the lease would have ended.
    Revoke,
    /// The worker is told to stop, and its report ends the job as cancelled.
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
    /// Number of attempts, including the first. Default: 3.
    #[serde(skip_serializing_if = "is_default")]
    pub attempts: Option<u32>,
    /// Wait before the first retry; doubles with each retry. Default: 1000. 0: no wait.
    #[serde(skip_serializing_if = "is_default")]
    pub backoff_ms: Option<u64>,
    /// The longest wait. Default: one hour.
    #[serde(skip_serializing_if = "is_default")]
    pub backoff_max_ms: Option<u64>,
    /// Each wait is shortened at random by up to this percentage, so that jobs that failed together do not return together. Default: 20.
    #[serde(skip_serializing_if = "is_default")]
    pub jitter_percent: Option<u8>,
    /// Retry after a reported failure. Default: true.
    #[serde(skip_serializing_if = "is_default")]
    pub on_failure: Option<bool>,
    /// Retry after the worker was lost. Default: true.
    #[serde(skip_serializing_if = "is_default")]
    pub on_lost: Option<bool>,
    /// Retry after a timeout. Default: true.
    #[serde(skip_serializing_if = "is_default")]
    pub on_timeout: Option<bool>,
    /// Retry after a timeout at most this often; `attempts` counts as well. Default: as often as `attempts` allows.
    #[serde(skip_serializing_if = "is_default")]
    pub timeout_retries: Option<u32>,
    /// A job that lost its worker this often fails, whatever attempts are left. Default: 3.
    #[serde(skip_serializing_if = "is_default")]
    pub losses_max: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Submitted {
    pub id: Uuid,
    pub state: State,
    /// The idempotency key was used before; this is the job created then.
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
    /// Accept all jobs or none. Default: each is accepted or refused on its own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub atomic: bool,
}

/// One entry per job, in order.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubmittedMany {
    pub jobs: Vec<Answer<Submitted>>,
}

/// The result for one of several.
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

/// A job.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Job {
    pub id: Uuid,
    pub namespace: String,
    pub state: State,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
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
    /// Number of claims so far.
    pub attempt: u32,
    /// Maximum number of attempts.
    pub attempts_max: u32,
    /// The worker that holds it, or held it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// As its worker reported it last. Absent once the job is completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// The job was cancelled, and its worker has not reported yet.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cancel_requested: bool,
    /// Why the job, or its last attempt, did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<JobError>,
    pub created_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<String>,
    /// When its worker first reported something. If that was the end of the job: when the worker claimed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
    /// When its lease expires unless it is renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<String>,
    /// When it fails if it has not ended by then (`deadline_ms`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<String>,
    /// The job that this one retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<Uuid>,
    /// The job that took its place when it failed, by its own settings (in some dialects).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried_as: Option<Uuid>,
    /// The last job that was made by retrying this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried_by: Option<Uuid>,
    pub log_bytes: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub log_bytes_dropped: u64,
    /// In a list with `commands=true`: the command in the payload, at most 200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Not in lists, like all fields below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Json>,
    /// Past attempts in order; the job itself describes the current or last one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// Jobs that wait, or waited, for this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<Uuid>,
    /// The trace it belongs to, 32 hexadecimal digits (W3C Trace Context), if it was submitted with one or the server sends traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// Where to look at the trace, if the server's setting `trace_url` says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_url: Option<String>,
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
    /// `total_deadline_passed`, `pending_deadline_passed`, `too_many_losses`, `parent_not_completed`, `not_needed`, `plan_failed`,
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

/// Which jobs to list: newest first, unless `name` is set.
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
    /// Only jobs whose name begins with this text, upper and lower case as written. They are sorted by name from Z to
    /// A; jobs of the same name newest first. Not with `id`.
    #[serde(skip_serializing_if = "is_default")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub run: Option<Uuid>,
    /// Only jobs this worker holds now.
    #[serde(skip_serializing_if = "is_default")]
    pub worker: Option<String>,
    /// Include the commands in payloads of up to 4096 bytes.
    #[serde(skip_serializing_if = "is_default")]
    pub commands: bool,
    /// Only ids that begin with this text (at least 4 characters).
    #[serde(skip_serializing_if = "is_default")]
    pub id: Option<String>,
    /// 1 to 1000. Default: 100.
    #[serde(skip_serializing_if = "is_default")]
    pub limit: Option<u32>,
    /// `next` of the previous page.
    #[serde(skip_serializing_if = "is_default")]
    pub cursor: Option<String>,
    /// An answer up to this old will do, at most 5000: it is made once for all who ask the same. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_ms: Option<u64>,
}

/// How to cancel a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct CancelJob {
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: Option<String>,
    /// What happens to a running job. Default: what the job sets, else `drain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<CancelMode>,
}

/// How to retry a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RetryJob {
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: Option<String>,
    /// Also if the job was retried before. Default: false; the refusal names the retry that exists.
    #[serde(skip_serializing_if = "is_default")]
    pub again: bool,
}

/// Wait until a job has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct WaitJob {
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: Option<String>,
    /// At most 60000. Default: 30000. The answer is the job as it is then.
    #[serde(skip_serializing_if = "is_default")]
    pub wait_ms: Option<u64>,
}
