//! All that dialects may differ in, as values on a job or worker. No rule ever asks which dialect a job came from.

use crate::model::{is_default, limits::Limits, refusal::Refusal, time::Millis};
use serde::{Deserialize, Serialize};

/// How a job is leased, retried, cancelled and ended. The default suits native jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobPolicy {
    #[serde(skip_serializing_if = "is_default")]
    pub lease: LeasePolicy,
    /// Ends the attempt this long after the claim; nothing extends it.
    #[serde(skip_serializing_if = "is_default")]
    pub hard_deadline: Option<Millis>,
    /// Fails the job this long after it could first start, whatever its attempts; nothing extends it.
    #[serde(skip_serializing_if = "is_default")]
    pub total_deadline: Option<Millis>,
    /// Fails a job that nobody claimed for this long.
    #[serde(skip_serializing_if = "is_default")]
    pub pending_deadline: Option<Millis>,
    #[serde(skip_serializing_if = "is_default")]
    pub start: StartPolicy,
    #[serde(skip_serializing_if = "is_default")]
    pub retry: RetryPolicy,
    #[serde(skip_serializing_if = "is_default")]
    pub cancel: CancelPolicy,
    #[serde(skip_serializing_if = "is_default")]
    pub parents: ParentPolicy,
    #[serde(skip_serializing_if = "is_default")]
    pub failure: FailurePolicy,
    /// How long the final job is kept; the server's setting where absent.
    #[serde(skip_serializing_if = "is_default")]
    pub retention: Option<Millis>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeasePolicy {
    pub length: LeaseLength,
    pub ends: LeaseEnd,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseLength {
    /// What the claimer asks for, else the server's default.
    #[default]
    Asked,
    /// The job's own hard deadline.
    FromDeadline,
    Fixed(Millis),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseEnd {
    /// At its own time, which each renewal moves.
    #[default]
    Renewable,
    /// At its own time; renewals are answered but move nothing.
    Fixed,
    /// When the sweep declares its worker lost. A ping before that revives the worker and with it all its leases.
    WithWorker,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartPolicy {
    /// The first report starts the job.
    #[default]
    Implied,
    /// Completion of a job that was not started is refused.
    Required,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RetryPolicy {
    /// Tries in all, the first included.
    pub attempts: u32,
    /// A reported failure is retried, if the report says it may be.
    #[serde(skip_serializing_if = "is_true")]
    pub on_failure: bool,
    /// A lost lease or worker is retried.
    #[serde(skip_serializing_if = "is_true")]
    pub on_lost: bool,
    /// An attempt that passed its hard deadline is retried.
    #[serde(skip_serializing_if = "is_true")]
    pub on_deadline: bool,
    /// So many of them at most; none: as many as attempts allow.
    #[serde(skip_serializing_if = "is_default")]
    pub deadline_retries: Option<u32>,
    #[serde(skip_serializing_if = "is_default")]
    pub backoff: Backoff,
    #[serde(skip_serializing_if = "is_default")]
    pub form: RetryForm,
    /// A job that took this many workers with it is parked, whatever its budget: it is probably what kills them.
    pub losses_max: u32,
}

fn is_true(value: &bool) -> bool {
    *value
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 3,
            on_failure: true,
            on_lost: true,
            on_deadline: true,
            deadline_retries: None,
            backoff: Backoff::None,
            form: RetryForm::SameJob,
            losses_max: 3,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    #[default]
    None,
    Fixed(Millis),
    /// `base × 2^(retry − 1)`, at most `cap`; `jitter_percent` of it is taken off at random.
    Exponential {
        base: Millis,
        cap: Millis,
        jitter_percent: u8,
    },
}

impl Backoff {
    /// What a submitter asks for where it says something, else a second, doubled each time up to an hour, and less at
    /// random. Who really wants to try again at once says zero.
    pub fn asked(base: Option<Millis>, cap: Option<Millis>, jitter_percent: Option<u8>) -> Self {
        Backoff::Exponential {
            base: base.unwrap_or(Millis::from_secs(1)),
            cap: cap.unwrap_or(Millis::from_secs(3_600)),
            jitter_percent: jitter_percent.unwrap_or(20),
        }
    }

    /// `retry` counts from 1. `seed` came in with the command, so that a repeated batch waits the same.
    pub fn delay(&self, retry: u32, seed: u64) -> Millis {
        match *self {
            Backoff::None => Millis(0),
            Backoff::Fixed(delay) => delay,
            Backoff::Exponential { base, cap, jitter_percent } => {
                let doublings = retry.saturating_sub(1).min(62);
                let full = base.0.saturating_mul(1i64 << doublings).min(cap.0);
                let spread = (full as i128 * i128::from(jitter_percent.min(100)) / 100) as u64;
                Millis(full - (mix(seed) % (spread + 1)) as i64)
            }
        }
    }
}

/// Spreads a seed over 64 bits (the finaliser of splitmix64), so that consecutive seeds do not retry together.
pub(crate) fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryForm {
    /// The same job again, at a new place in the queue.
    #[default]
    SameJob,
    /// The job fails for good and a new job, linked both ways, takes its place.
    NewJob,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelPolicy {
    /// The lease of a held job dies at once.
    #[default]
    Revoke,
    /// Renewals still answer; the report, whatever it says, ends the job as cancelled, and so does the lapse of its lease.
    Drain,
}

/// What becomes of a job when one it waits for does not complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParentPolicy {
    #[default]
    Skip,
    RunAnyway,
    /// Runs only if one of them did not complete; otherwise it is skipped.
    OnFailure,
    /// Cancels every unfinished job of the run (outside a run: this job).
    CancelRun,
}

/// What the failure of a job means to the others of its run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailurePolicy {
    /// What follows for those that wait for it.
    #[default]
    Alone,
    /// Those that nobody has begun are cancelled as well.
    CancelsPending,
}

impl JobPolicy {
    pub fn check(&self, limits: &Limits) -> Result<(), Refusal> {
        let lengths = [
            ("policy.hard_deadline", self.hard_deadline),
            ("policy.total_deadline", self.total_deadline),
            ("policy.pending_deadline", self.pending_deadline),
            ("policy.retention", self.retention),
        ];
        for (field, length) in lengths {
            length.map_or(Ok(()), |length| check_length(field, length, 1, limits))?;
        }
        self.lease.check(self.hard_deadline, limits)?;
        self.retry.check(limits)
    }
}

impl LeasePolicy {
    fn check(&self, hard_deadline: Option<Millis>, limits: &Limits) -> Result<(), Refusal> {
        match self.length {
            LeaseLength::Fixed(length) => check_length("policy.lease.length", length, 1, limits),
            LeaseLength::FromDeadline if hard_deadline.is_none() => Err(Refusal::invalid(
                "policy.lease.length",
                "a lease as long as the hard deadline needs a hard deadline".into(),
            )),
            _ => Ok(()),
        }
    }
}

impl RetryPolicy {
    fn check(&self, limits: &Limits) -> Result<(), Refusal> {
        if self.attempts == 0 || self.attempts > limits.attempts_max {
            let why = format!("{} attempts asked for; 1 to {} are possible", self.attempts, limits.attempts_max);
            return Err(Refusal::invalid("policy.retry.attempts", why));
        }
        if let Some(retries) = self.deadline_retries.filter(|&retries| retries > limits.attempts_max) {
            let why = format!("{retries} retries after a timeout asked for; 0 to {} are possible", limits.attempts_max);
            return Err(Refusal::invalid("policy.retry.deadline_retries", why));
        }
        if self.losses_max == 0 {
            return Err(Refusal::invalid("policy.retry.losses_max", "must be at least 1".into()));
        }
        match self.backoff {
            Backoff::None => Ok(()),
            Backoff::Fixed(delay) => check_length("policy.retry.backoff", delay, 0, limits),
            Backoff::Exponential { base, cap, jitter_percent } => {
                if jitter_percent > 100 {
                    return Err(Refusal::invalid("policy.retry.backoff", "jitter is a percentage, 0 to 100".into()));
                }
                check_length("policy.retry.backoff", base, 0, limits)?;
                check_length("policy.retry.backoff", cap, 0, limits)
            }
        }
    }
}

pub(crate) fn check_length(field: &'static str, length: Millis, min: i64, limits: &Limits) -> Result<(), Refusal> {
    if length.0 < min || length > limits.length_max {
        let why = format!("{} ms is not between {min} ms and {} ms", length.0, limits.length_max.0);
        return Err(Refusal::invalid(field, why));
    }
    Ok(())
}

/// How a worker is believed to be alive, and what follows when it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerPolicy {
    pub alive_by: AliveBy,
    pub may_claim: MayClaim,
    pub unregister: Unregister,
    pub online_from: OnlineFrom,
    pub unreachable_after: Option<Millis>,
    pub offline_after: Millis,
    /// Counted from the last sign of life.
    pub delete_after: Option<Millis>,
    /// How long it stays known after it was deleted, to whoever asks for such ([`crate::worker::FormerWorker`]). None: not at all.
    #[serde(skip_serializing_if = "is_default")]
    pub kept_after: Option<Millis>,
}

impl Default for WorkerPolicy {
    fn default() -> Self {
        Self {
            alive_by: AliveBy::AnyCall,
            may_claim: MayClaim::Always,
            unregister: Unregister::Requeue,
            online_from: OnlineFrom::Registration,
            unreachable_after: None,
            offline_after: Millis::from_secs(90),
            delete_after: Some(Millis::from_secs(86_400)),
            kept_after: None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AliveBy {
    Heartbeat,
    #[default]
    AnyCall,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnlineFrom {
    /// Registering is a sign of life.
    #[default]
    Registration,
    /// Somebody else registered it; it is offline until it calls itself.
    FirstSign,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MayClaim {
    #[default]
    Always,
    OnlineOnly,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unregister {
    /// The worker is removed; its jobs go back to the queue without being charged.
    #[default]
    Requeue,
    /// The worker is removed; its jobs count as lost.
    Fail,
    /// The worker stays known, offline; jobs that live and die with it are lost by the next sweep.
    Offline,
}

impl WorkerPolicy {
    pub fn check(&self, limits: &Limits) -> Result<(), Refusal> {
        check_length("worker.offline_after", self.offline_after, 1, limits)?;
        if let Some(unreachable) = self.unreachable_after {
            check_length("worker.unreachable_after", unreachable, 1, limits)?;
            if unreachable > self.offline_after {
                return Err(Refusal::invalid("worker.unreachable_after", "must not come after offline_after".into()));
            }
        }
        if let Some(kept) = self.kept_after {
            check_length("worker.kept_after", kept, 1, limits)?;
        }
        match self.delete_after {
            Some(delete) if delete < self.offline_after => {
                Err(Refusal::invalid("worker.delete_after", "must not come before offline_after".into()))
            }
            _ => Ok(()),
        }
    }
}
