//! Wire to commands and states to wire; pure functions.

use super::wire::{self, Status};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};
use windlass_core::{
    Facet, Job, Millis, Payload, Reason, State, Tags,
    commands::{submit::NewJob, submit_run::RunNode},
    graph,
    policy::{AliveBy, CancelPolicy, JobPolicy, MayClaim, RetryPolicy, Unregister, WorkerPolicy},
};
use windlass_engine::ids;

/// Finds the jobs of one workflow, and the executions of one of its nodes.
pub const WORKFLOW: &str = "workflow";
pub const NODE: &str = "node";

/// Silent for three polls and three lease renewals.
const OFFLINE_AFTER: Millis = Millis::from_secs(60);
const DELETE_AFTER: Millis = Millis::from_secs(86_400);
/// A day is longer than any renewal is late, and 2^64 seconds are no lease.
const TTL_SECS_MAX: u64 = 86_400;
/// The error of a failed job is shown, not searched: its beginning is enough.
pub const ERROR_BYTES_MAX: usize = 16 << 10;

/// Any call of a worker is a sign of life: the original's only calls are claims and renewals.
pub fn worker_policy() -> WorkerPolicy {
    WorkerPolicy {
        alive_by: AliveBy::AnyCall,
        may_claim: MayClaim::Always,
        unregister: Unregister::Requeue,
        offline_after: OFFLINE_AFTER,
        delete_after: Some(DELETE_AFTER),
        ..WorkerPolicy::default()
    }
}

/// The lease is asked for by the claimer and renewed by its id; a cancelled job drains, because the poll that tells its
/// worker names no lease; retries go to the back of the queue.
pub fn policy(max_retries: u32) -> JobPolicy {
    let attempts = max_retries.saturating_add(1);
    JobPolicy {
        retry: RetryPolicy { attempts, losses_max: attempts, ..RetryPolicy::default() },
        cancel: CancelPolicy::Drain,
        ..JobPolicy::default()
    }
}

pub fn lease_length(ttl_secs: u64) -> Millis {
    Millis::from_secs(ttl_secs.clamp(1, TTL_SECS_MAX) as i64)
}

/// The original's worker can send an empty label; nothing can require it.
pub fn labels(labels: &[String]) -> Tags {
    labels.iter().map(String::as_str).filter(|label| !label.is_empty()).collect()
}

pub fn node_facet(workflow: &str, job: &str) -> Facet {
    Facet::new(NODE, &format!("{workflow}/{job}"))
}

/// One job of a run. Its payload is what our own worker takes for a shell command.
pub fn node(workflow: &str, job: &wire::Job) -> RunNode {
    let payload = serde_json::json!({ "shell": job.command }).to_string();
    RunNode {
        name: job.id.as_str().into(),
        needs: job.depends_on.iter().map(|need| Arc::from(need.as_str())).collect(),
        job: NewJob {
            tags: labels(&job.required_labels),
            payload: payload.as_str().into(),
            policy: policy(job.max_retries),
            facets: vec![Facet::new(WORKFLOW, workflow), node_facet(workflow, &job.id)],
            ..NewJob::new(ids::job_id())
        },
    }
}

/// Refuses what could never run to its end, naming the place.
pub fn check(jobs: &[wire::Job]) -> Result<(), String> {
    let mut known = HashMap::new();
    for (at, job) in jobs.iter().enumerate() {
        if job.id.is_empty() || job.id.len() > 128 {
            return Err(format!("jobs[{at}].id: must have 1 to 128 characters"));
        }
        if known.insert(job.id.as_str(), at).is_some() {
            return Err(format!("jobs[{at}].id: {:?} is used twice", job.id));
        }
    }
    let mut parents = Vec::with_capacity(jobs.len());
    for (at, job) in jobs.iter().enumerate() {
        let mut needs = BTreeSet::new();
        for need in &job.depends_on {
            needs.insert(*known.get(need.as_str()).ok_or_else(|| {
                format!("jobs[{at}].depends_on: {:?} depends on {need:?}, which does not exist", job.id)
            })?);
        }
        parents.push(needs.into_iter().collect());
    }
    let Some(cycle) = graph::cycle(&parents) else { return Ok(()) };
    let names: Vec<&str> = cycle.into_iter().map(|at| jobs[at].id.as_str()).collect();
    Err(format!("jobs: dependencies form a cycle: {}", names.join(" -> ")))
}

/// No `_` arm: a new state must be named here before anything compiles.
pub fn status(job: &Job) -> Status {
    if job.live.cancel.is_some() {
        return Status::Cancelled;
    }
    match job.state {
        State::Blocked | State::Scheduled | State::Pending => Status::Queued,
        State::Claimed | State::Running => Status::Running,
        State::Completed => Status::Success,
        State::Failed => Status::Failure,
        State::Cancelled => Status::Cancelled,
        State::Skipped => Status::Skipped,
    }
}

/// The job as it was created, with what its latest execution came to.
pub fn shown(created: &wire::Job, job: &Job) -> wire::Job {
    let status = status(job);
    let begun = job.live.claimed_at.filter(|_| matches!(status, Status::Running | Status::Success | Status::Failure));
    let took = job.live.finished_at.zip(begun).map(|(end, begin)| (end - begin).0.max(0) as u64 / 1_000);
    wire::Job {
        status,
        started_at: begun.map(|at| at.0 as f64),
        duration_secs: took,
        output: (status == Status::Failure).then(|| error(job)),
        attempt: job.live.attempt.saturating_sub(1),
        ..created.clone()
    }
}

fn error(job: &Job) -> String {
    match &job.live.outcome {
        Some(outcome) if outcome.reason == Reason::Reported => outcome.message.to_string(),
        Some(outcome) if outcome.reason == Reason::LeaseExpired => "lease expired".into(),
        Some(outcome) => outcome.message.to_string(),
        None => String::new(),
    }
}

/// The beginning of an error text, cut between characters.
pub fn cut(text: &str) -> &str {
    let mut end = text.len().min(ERROR_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// What a job handed on, as it was checked when it completed.
pub fn outputs(result: Option<&Payload>) -> BTreeMap<String, String> {
    result.and_then(|result| serde_json::from_slice(result.as_bytes()).ok()).unwrap_or_default()
}

/// What a job hands on, to be kept. Most hand on nothing, and then there is nothing to write or to read.
pub fn result(outputs: &BTreeMap<String, String>) -> Payload {
    if outputs.is_empty() {
        return Payload::default();
    }
    Payload::from(serde_json::to_vec(outputs).expect("a map of strings can be written"))
}

pub fn command(payload: &Payload) -> String {
    let value: Option<serde_json::Value> = serde_json::from_slice(payload.as_bytes()).ok();
    value.and_then(|value| value["shell"].as_str().map(str::to_owned)).unwrap_or_default()
}
