//! A job and its state machine.
//!
//! | from \ event | parents done | time comes | claim | start, progress | complete | fail, lost, deadline | cancel | parent ended badly |
//! |---|---|---|---|---|---|---|---|---|
//! | blocked   | scheduled, pending or still blocked (key) | – | – | – | – | – | cancelled | skipped, cancelled or as if done |
//! | scheduled | – | pending or blocked (key) | – | – | – | – | cancelled | – |
//! | pending   | – | failed (pending deadline) | claimed | – | – | – | cancelled | – |
//! | claimed   | – | as lost or deadline | – | running | completed | pending, scheduled, blocked or failed | cancelled, or draining | – |
//! | running   | – | as lost or deadline | – | running | completed | pending, scheduled, blocked or failed | cancelled, or draining | – |
//! | completed, failed, cancelled, skipped | – | removed (retention) | – | refused | refused | refused | refused | – |

use crate::model::{
    id::{JobId, LeaseId, RunId},
    is_default,
    keys::JobKey,
    log_count::LogCount,
    name::{Facet, Lane, Tags, WorkerId},
    policy::{JobPolicy, LeaseEnd},
    stage::{self, Hold, Stage},
    time::{Millis, Timestamp},
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use uuid::Uuid;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Waits for other jobs, or for room under its concurrency key.
    Blocked,
    /// Waits for a time: a delay or a backoff.
    Scheduled,
    Pending,
    Claimed,
    Running,
    Completed,
    Failed,
    Cancelled,
    Skipped,
}

impl State {
    pub const ALL: [State; 9] = [
        State::Blocked,
        State::Scheduled,
        State::Pending,
        State::Claimed,
        State::Running,
        State::Completed,
        State::Failed,
        State::Cancelled,
        State::Skipped,
    ];
    pub fn is_final(self) -> bool {
        matches!(self, State::Completed | State::Failed | State::Cancelled | State::Skipped)
    }
    pub fn is_held(self) -> bool {
        matches!(self, State::Claimed | State::Running)
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
    /// What stores keep in their state column.
    pub fn code(self) -> i16 {
        self as i16
    }
    pub fn from_code(code: i16) -> Option<State> {
        usize::try_from(code).ok().and_then(|at| State::ALL.get(at).copied())
    }
}

/// One piece of work. The fields of its own are those that stores index; the rest is [`Spec`] (never changes)
/// and [`Live`] (changes, but nobody looks for it).
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    pub key: JobKey,
    pub lane: Lane,
    /// Lower goes first.
    pub priority: i32,
    /// Place in the queue: strict submission order among equal priorities. Redrawn when the job queues anew.
    pub seq: i64,
    pub state: State,
    /// Nothing about this job is due before this time. A lower bound: renewals leave it where it is, so that a
    /// heartbeat touches no index, and the sweep that then finds nothing to do moves it.
    pub due: Option<Timestamp>,
    pub spec: Arc<Spec>,
    pub live: Live,
}

/// What was submitted. Immutable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spec {
    pub created_at: Timestamp,
    /// What people call it.
    #[serde(skip_serializing_if = "is_default")]
    pub name: Option<Arc<str>>,
    #[serde(skip_serializing_if = "is_default")]
    pub tags: Tags,
    /// The principal that submitted it.
    #[serde(skip_serializing_if = "is_default")]
    pub owner: Option<Arc<str>>,
    #[serde(skip_serializing_if = "is_default")]
    pub definition: Option<DefinitionRef>,
    #[serde(skip_serializing_if = "is_default")]
    pub node: Option<Node>,
    #[serde(skip_serializing_if = "is_default")]
    pub parents: Vec<JobId>,
    #[serde(skip_serializing_if = "is_default")]
    pub facets: Vec<Facet>,
    #[serde(skip_serializing_if = "is_default")]
    pub policy: JobPolicy,
    #[serde(skip_serializing_if = "is_default")]
    pub concurrency: Option<ConcurrencyKey>,
    #[serde(skip_serializing_if = "is_default")]
    pub unique: Option<UniqueKey>,
    #[serde(skip_serializing_if = "is_default")]
    pub retry_of: Option<JobId>,
    #[serde(skip_serializing_if = "is_default")]
    pub stage: Stage,
    /// What only a dialect understands. Never looked into.
    #[serde(skip_serializing_if = "is_default")]
    pub extra: Option<Arc<str>>,
}

impl Spec {
    /// Names and values that lists find the job by: its facets, and what it is called under no name.
    pub fn index(&self) -> impl Iterator<Item = (&str, &str)> {
        let facets = self.facets.iter().map(|facet| (&*facet.name, &*facet.value));
        facets.chain(self.name.as_deref().map(|name| ("", name)))
    }
}

/// Characters of what people call a job.
pub const NAME_CHARS_MAX: usize = 200;

/// What is wrong with what somebody wants to call a job. Lists show it: it is one line, and not a long one.
pub fn name_fault(name: &str) -> Option<String> {
    let chars = name.chars().count();
    if chars > NAME_CHARS_MAX {
        return Some(format!("has {chars} characters; at most {NAME_CHARS_MAX} are allowed"));
    }
    let unfit = name.is_empty() || name.chars().any(char::is_control);
    unfit
        .then(|| format!("{name:?} is empty or contains a control character; 1 to {NAME_CHARS_MAX} others are allowed"))
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionRef {
    pub name: Arc<str>,
    pub version: u32,
}

/// A job's place in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub run: RunId,
    pub name: Arc<str>,
}

/// At most `limit` jobs with this key are pending or held at a time; the others are blocked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConcurrencyKey {
    pub key: Arc<str>,
    pub limit: u32,
}

/// Submitting again under the same key by the same principal answers with the first job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UniqueKey {
    pub key: Arc<str>,
    /// Hash of the submitted body. Another body under the same key is refused.
    pub body_hash: Arc<str>,
    pub until: UniqueUntil,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UniqueUntil {
    /// The key is free again when the job is final.
    Final,
    /// The key is kept this long after submission, whatever the job does.
    After(Millis),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Live {
    /// Claims so far. Grows with each, and is handed to the worker as its fencing number.
    #[serde(skip_serializing_if = "is_default")]
    pub attempt: u32,
    /// Attempts charged against the budget (a released attempt is not).
    #[serde(skip_serializing_if = "is_default")]
    pub spent: u32,
    /// Attempts that ended by losing the lease or the worker.
    #[serde(skip_serializing_if = "is_default")]
    pub losses: u32,
    /// Attempts that passed their hard deadline.
    #[serde(skip_serializing_if = "is_default")]
    pub timeouts: u32,
    /// When the job fails, whatever its attempts: counted from when it could first start.
    #[serde(skip_serializing_if = "is_default")]
    pub deadline: Option<Timestamp>,
    /// The present lease, or the last one: a repeated final report is recognised by it.
    #[serde(skip_serializing_if = "is_default")]
    pub lease: Option<Lease>,
    #[serde(skip_serializing_if = "is_default")]
    pub run_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "is_default")]
    pub pending_since: Option<Timestamp>,
    /// How long it waited before it was handed back unworked: its pending deadline goes on from there.
    #[serde(skip_serializing_if = "is_default")]
    pub waited: Millis,
    #[serde(skip_serializing_if = "is_default")]
    pub claimed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "is_default")]
    pub started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "is_default")]
    pub finished_at: Option<Timestamp>,
    /// Parents that are not done yet; what holds the job back beside them counts as one.
    #[serde(skip_serializing_if = "is_default")]
    pub waiting: u32,
    #[serde(skip_serializing_if = "is_default")]
    pub hold: Option<Hold>,
    #[serde(skip_serializing_if = "is_default")]
    pub hold_until: Option<Timestamp>,
    /// One of its parents ended badly.
    #[serde(skip_serializing_if = "is_default")]
    pub parent_failed: bool,
    /// One of its parents was not needed, so it is not either; unless another one fails.
    #[serde(skip_serializing_if = "is_default")]
    pub needless: bool,
    /// Some job waits, or waited, for this one.
    #[serde(skip_serializing_if = "is_default")]
    pub dependents: bool,
    /// The end of this job was not yet passed on to all that wait for it; the next sweep goes on.
    #[serde(rename = "unsettled", skip_serializing_if = "is_default")]
    pub must_pass_on: bool,
    /// When the part before was done, and the id of the first dependent that has not heard; none: nothing was done yet.
    #[serde(skip_serializing_if = "is_default")]
    pub passed_on: Option<PassedOn>,
    /// Counted under its concurrency key.
    #[serde(rename = "slot", skip_serializing_if = "is_default")]
    pub has_place: bool,
    /// The job was taken from its holder, whose work may not have stopped yet: its place under the key is kept until the holder
    /// confirms, or until then.
    #[serde(rename = "slot_until", skip_serializing_if = "is_default")]
    pub place_until: Option<Timestamp>,
    #[serde(skip_serializing_if = "is_default")]
    pub progress: Option<Progress>,
    #[serde(skip_serializing_if = "is_default")]
    pub cancel: Option<CancelRequest>,
    #[serde(skip_serializing_if = "is_default")]
    pub outcome: Option<Outcome>,
    /// The final report that was accepted under the present or last lease, so that its repetition is recognised.
    #[serde(skip_serializing_if = "is_default")]
    pub report: Option<Report>,
    /// What that report said, in short: another one under the same lease is a contradiction. None on rows of versions that
    /// did not keep it, where the same kind of report counts as the same.
    #[serde(skip_serializing_if = "is_default")]
    pub said: Option<u64>,
    #[serde(skip_serializing_if = "is_default")]
    pub has_result: bool,
    /// Done already in the run that its run is a retry of; its result is the one from there.
    #[serde(skip_serializing_if = "is_default")]
    pub kept: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub retry_job: Option<JobId>,
    /// The newest retry of this job, made on request. It changes nothing for jobs that waited for this one.
    #[serde(skip_serializing_if = "is_default")]
    pub retried_by: Option<JobId>,
    #[serde(skip_serializing_if = "is_default")]
    pub log: LogCount,
    #[serde(skip_serializing_if = "is_default")]
    pub bytes: JobBytes,
}

/// Bytes that a job's namespace is charged for it. None on rows of versions that did not count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobBytes {
    /// Row, payload, result and attempts.
    #[serde(rename = "b")]
    pub body: u64,
    /// The log, as far as it was counted.
    #[serde(rename = "l", skip_serializing_if = "is_default")]
    pub log: u64,
}

/// How far the end of a job was passed on to those that wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedOn {
    /// The rest is due from then on: behind all that came due before.
    pub at: Timestamp,
    /// All dependents with lower ids have heard.
    pub next: JobId,
}

/// The right to work on a job now.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub secret: Uuid,
    pub worker: WorkerId,
    /// The principal that claimed; with tokens in force only it may report.
    #[serde(default, skip_serializing_if = "is_default")]
    pub principal: Option<Arc<str>>,
    pub length: Millis,
    /// None: the lease ends with its worker.
    #[serde(default, skip_serializing_if = "is_default")]
    pub until: Option<Timestamp>,
    /// Nothing extends this.
    #[serde(default, skip_serializing_if = "is_default")]
    pub deadline: Option<Timestamp>,
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Lease({} until {:?}, REDACTED)", self.worker, self.until)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// 0 to 100.
    pub percent: f64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub message: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelRequest {
    pub by: Arc<str>,
    pub at: Timestamp,
    /// What was said about it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub message: Arc<str>,
}

impl CancelRequest {
    pub(crate) fn new(by: &Arc<str>, at: Timestamp) -> Self {
        Self { by: by.clone(), at, message: Arc::default() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    Completed,
    Failed,
}

impl Live {
    /// Whether this report was accepted under the present or last lease.
    pub(crate) fn was_told(&self, (report, said): Said) -> bool {
        self.report == Some(report) && self.said.is_none_or(|before| before == said)
    }

    pub(crate) fn note(&mut self, (report, said): Said) {
        (self.report, self.said) = (Some(report), Some(said));
    }
}

/// A final report, and the digest of all that it says.
pub(crate) type Said = (Report, u64);

/// Why an attempt or a job ended other than by success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub reason: Reason,
    #[serde(default, skip_serializing_if = "is_default")]
    pub message: Arc<str>,
}

impl Outcome {
    pub fn new(reason: Reason, message: impl Into<Arc<str>>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// Machine-readable, stable: dialects and dashboards switch on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The worker said so.
    Reported,
    LeaseExpired,
    WorkerLost,
    WorkerRemoved,
    /// The hard deadline passed.
    DeadlinePassed,
    /// The deadline of the job, over all its attempts.
    TotalDeadlinePassed,
    /// Nobody claimed it in time.
    PendingDeadlinePassed,
    /// It took too many workers with it.
    TooManyLosses,
    ParentNotCompleted,
    /// Its condition said no, or nothing failed that it is there for.
    NotNeeded,
    /// The planner could not work it out, or what was made for it did not complete.
    PlanFailed,
    Cancelled,
    Released,
}

/// One past try. The present or last one is told by the job itself, so that a job that completes at once costs no row here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub number: u32,
    pub worker: WorkerId,
    #[serde(default, skip_serializing_if = "is_default")]
    pub claimed_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub started_at: Option<Timestamp>,
    pub ended_at: Timestamp,
    pub outcome: Outcome,
}

impl Job {
    /// Whether its end is a failure to those behind it. That it was not needed, or was skipped because something before it was
    /// not, is none.
    pub fn is_failure(&self) -> bool {
        let reason = self.live.outcome.as_ref().map(|outcome| outcome.reason);
        self.state != State::Completed && reason != Some(Reason::NotNeeded)
    }

    pub fn id(&self) -> JobId {
        self.key.id
    }

    pub fn lease_id(&self) -> Option<LeaseId> {
        self.live.lease.as_ref().map(|lease| LeaseId::new(self.key.id, lease.secret))
    }

    /// The worker that holds the job now. Stores index it.
    pub fn holder(&self) -> Option<&WorkerId> {
        self.live.lease.as_ref().filter(|_| self.state.is_held()).map(|lease| &lease.worker)
    }

    /// The concurrency key the job waits for now. Stores index it.
    pub fn waits_for_key(&self) -> Option<&Arc<str>> {
        let waits = self.state == State::Blocked && self.live.waiting == 0;
        self.spec.concurrency.as_ref().filter(|_| waits).map(|concurrency| &concurrency.key)
    }

    pub fn run(&self) -> Option<RunId> {
        self.spec.node.as_ref().map(|node| node.run)
    }

    /// What about the present attempt has run out, if anything. Asked before every write and by the sweep, so that the
    /// outcome never depends on how often the sweep runs.
    pub fn overdue(&self, now: Timestamp) -> Option<Reason> {
        let lease = self.live.lease.as_ref().filter(|_| self.state.is_held())?;
        if lease.deadline.is_some_and(|deadline| deadline <= now) {
            return Some(Reason::DeadlinePassed);
        }
        lease.until.is_some_and(|until| until <= now).then_some(Reason::LeaseExpired)
    }

    /// Whether its time is over, over all attempts.
    pub fn is_past_deadline(&self, now: Timestamp) -> bool {
        !self.state.is_final() && self.live.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// When the pending deadline strikes.
    pub fn pending_until(&self) -> Option<Timestamp> {
        let since = self.live.pending_since.filter(|_| self.state == State::Pending)?;
        self.spec.policy.pending_deadline.map(|length| since + Millis(length.0.saturating_sub(self.live.waited.0)))
    }

    /// The time [`Job::due`] would have if it were exact. `retention` applies where the job does not say itself.
    pub fn due_exactly(&self, retention: Millis) -> Option<Timestamp> {
        match self.state {
            State::Blocked => earliest([stage::due(self), self.live.deadline]),
            State::Scheduled => earliest([self.live.run_at, self.live.deadline]),
            State::Pending => earliest([self.pending_until(), self.live.deadline]),
            State::Claimed | State::Running => {
                let lease = self.live.lease.as_ref()?;
                earliest([lease.until, lease.deadline])
            }
            State::Completed | State::Failed | State::Cancelled | State::Skipped => {
                let finished = self.live.finished_at?;
                if self.live.must_pass_on {
                    return Some(self.live.passed_on.map_or(finished, |passed| passed.at));
                }
                if self.live.has_place {
                    return self.live.place_until;
                }
                let kept = finished + self.spec.policy.retention.unwrap_or(retention);
                // Whoever repeats the submit is told what became of the job, so it outlives its key.
                match self.spec.unique.as_ref().map(|unique| unique.until) {
                    Some(UniqueUntil::After(length)) => Some(kept.max(self.spec.created_at + length)),
                    _ => Some(kept),
                }
            }
        }
    }

    /// Whether the lease ends with its worker rather than at its own time.
    pub fn lives_with_worker(&self) -> bool {
        self.spec.policy.lease.ends == LeaseEnd::WithWorker
    }
}

fn earliest(times: [Option<Timestamp>; 2]) -> Option<Timestamp> {
    times.into_iter().flatten().min()
}
