//! What the facts mean, in words. Pure: a table of cases says all of it.

use super::{Facts, NAMED_MAX, pending::pending};
use crate::{convert, wire_time::text};
use windlass_api::why::{Cause, Why};
use windlass_core::{Job, Reason, State as JobState, stage::Hold};

pub fn explain(facts: &Facts) -> Why {
    let job = &facts.job;
    let mut reasons = match job.state {
        JobState::Completed | JobState::Failed | JobState::Cancelled | JobState::Skipped => vec![ended(job)],
        JobState::Claimed | JobState::Running => vec![running(facts)],
        JobState::Scheduled => vec![scheduled(facts)],
        JobState::Blocked if job.live.waiting == 1 && job.live.hold.is_some() => vec![held(job)],
        JobState::Blocked if job.live.waiting > 0 => vec![waits_for_jobs(facts)],
        JobState::Blocked => vec![concurrency_full(facts)],
        JobState::Pending => pending(facts),
    };
    if let Some(deadline) = job.live.deadline.filter(|_| !job.state.is_final()) {
        let words =
            format!("It fails at {} if it has not ended by then: its deadline covers all attempts.", text(deadline));
        reasons.push(cause("deadline", words));
    }
    Why {
        job: job.key.id.0,
        state: convert::state(job.state),
        summary: reasons.first().map(|cause| cause.text.clone()).unwrap_or_default(),
        reasons,
    }
}

pub(super) fn cause(code: &str, text: String) -> Cause {
    Cause { code: code.into(), text, help: None, jobs: Vec::new(), workers: Vec::new() }
}

/// A command line of `windlass` that works in the job's namespace.
pub(super) fn command(job: &Job, line: &str) -> String {
    match job.key.namespace.as_str() {
        "default" => format!("windlass {line}"),
        other => format!("windlass {line} --namespace {}", word(other)),
    }
}

/// A name as a shell takes it.
pub(super) fn word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "._:/@%+,-[]".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// What a job is called: its step where it has one.
fn name(job: &Job) -> String {
    match &job.spec.node {
        Some(node) => format!("{} ({})", node.name, doing(job)),
        None => format!("{} ({})", job.key.id, doing(job)),
    }
}

/// How far it is, and with whom.
pub(super) fn doing(job: &Job) -> String {
    let since = job.live.claimed_at.map(|at| format!(" since {}", text(at))).unwrap_or_default();
    match (job.holder(), job.live.place_until, &job.live.lease) {
        (Some(worker), ..) => format!("{} on {worker}{since}", job.state.name()),
        (None, Some(until), Some(lease)) => format!(
            "{}, but {} has not said yet that its work has stopped; its time is over at {}",
            job.state.name(),
            lease.worker,
            text(until)
        ),
        _ => job.state.name().to_owned(),
    }
}

/// A cancellation says who asked for it, or which step of the run caused it: "step build is failed".
fn canceller(by: &str) -> String {
    if by.contains(" is ") { format!("because {by}") } else { format!("by {by}") }
}

fn ended(job: &Job) -> Cause {
    let at = job.live.finished_at.map(|at| format!(" at {}", text(at))).unwrap_or_default();
    let message = job.live.outcome.as_ref().map(|outcome| &*outcome.message).filter(|message| !message.is_empty());
    let words = match (job.state, message) {
        (JobState::Cancelled, Some(by)) => format!("Cancelled {}{at}.", canceller(by)),
        (JobState::Completed, _) | (_, None) => format!("The job has ended{at}: {}.", job.state.name()),
        (state, Some(why)) => format!("The job has ended{at}: {}, {why}.", state.name()),
    };
    let mut cause = cause("ended", words);
    let id = job.key.id;
    if let Some(next) = job.live.retry_job.or(job.live.retried_by) {
        cause.text += &format!(" It was retried as job {next}.");
        cause.jobs.push(next.0);
    } else if job.state == JobState::Failed {
        let (logs, retry) = (command(job, &format!("logs {id}")), command(job, &format!("retry {id}")));
        cause.help = Some(format!("Show its log: {logs}; run it again: {retry}"));
    }
    cause
}

/// A step of a run that waits for no other step.
fn held(job: &Job) -> Cause {
    let wait = job.spec.stage.wait.as_ref();
    let until = job.live.hold_until.map(|at| format!(", until {} at the latest", text(at))).unwrap_or_default();
    let (run, step) = match &job.spec.node {
        Some(node) => (node.run.to_string(), word(&node.name)),
        None => (String::new(), String::new()),
    };
    match (job.live.hold, wait.and_then(|wait| wait.event.as_ref())) {
        (Some(Hold::Event), Some(event)) => Cause {
            help: Some(format!("Send it: {}", command(job, &format!("workflow signal {run} {}", word(event))))),
            ..cause("waits_for_event", format!("It waits for the event {event}{until}."))
        },
        (Some(Hold::Event), None) if wait.is_some_and(|wait| wait.approval) => Cause {
            help: Some(format!("Approve it: {}", command(job, &format!("workflow approve {run} {step}")))),
            ..cause("waits_for_approval", format!("It waits for approval{until}."))
        },
        (Some(Hold::Event), None) => cause("waits_for_time", format!("It waits for a time{until}.")),
        _ => cause("waits_for_plan", "The planner is about to decide whether and how it runs.".into()),
    }
}

fn running(facts: &Facts) -> Cause {
    let job = &facts.job;
    let worker = job.holder().map(ToString::to_string).unwrap_or_default();
    let since = job.live.claimed_at.map(|at| format!(" since {}", text(at))).unwrap_or_default();
    let until = match job.live.lease.as_ref().and_then(|lease| lease.until) {
        Some(until) if until <= facts.now => {
            format!("; its lease expired at {}, and the job will be taken away", text(until))
        }
        Some(until) => format!("; its lease is valid until {}", text(until)),
        None => "; its lease is held until the worker is offline".into(),
    };
    let cancel = job.live.cancel.as_ref().map(|cancel| format!("; it was cancelled {}", canceller(&cancel.by)));
    let words = format!("Worker {worker} holds it{since}{until}{}.", cancel.unwrap_or_default());
    let help = Some(format!("Follow its log: {}", command(job, &format!("logs --follow {}", job.key.id))));
    Cause { workers: vec![worker], help, ..cause("running", words) }
}

fn scheduled(facts: &Facts) -> Cause {
    let job = &facts.job;
    let at = job.live.run_at.map(text).unwrap_or_default();
    if job.live.attempt == 0 {
        return cause("scheduled", format!("It is scheduled for {at}."));
    }
    let why = match &facts.last {
        Some(outcome) if !outcome.message.is_empty() => {
            format!(" ({})", outcome.message.lines().next().unwrap_or_default())
        }
        _ => String::new(),
    };
    if facts.last.as_ref().is_some_and(|outcome| outcome.reason == Reason::Released) {
        let words = format!("A worker returned it because it cannot run it{why}; it is offered again at {at}.");
        return cause("scheduled", words);
    }
    let (spent, all) = (job.live.spent, job.spec.policy.retry.attempts);
    cause("scheduled", format!("It will be retried at {at}; attempt {spent} of {all} did not succeed{why}."))
}

fn waits_for_jobs(facts: &Facts) -> Cause {
    // What holds a step back beside others counts among what it waits for.
    let count = facts.job.live.waiting - u32::from(facts.job.live.hold.is_some());
    if facts.parents.is_empty() && facts.job.live.hold.is_none() {
        let words =
            "What it waits for has ended. Many jobs wait for the same, and the server tells one after the other.";
        return cause("waits_for_jobs", words.into());
    }
    let named: Vec<String> = facts.parents.iter().take(3).map(name).collect();
    let steps = facts.parents.iter().all(|parent| parent.spec.node.is_some()) && !facts.parents.is_empty();
    let jobs = match (count, steps) {
        (1, true) => "another step".to_owned(),
        (1, false) => "another job".to_owned(),
        (_, true) => format!("{count} other steps"),
        (_, false) => format!("{count} other jobs"),
    };
    let more = if count > 3 { " and others" } else { "" };
    let words = format!("It waits for {jobs} to end: {}{more}.", named.join(", "));
    let help = facts.parents.first().map(|parent| {
        format!("See what the first one waits for: {}", command(&facts.job, &format!("why {}", parent.key.id)))
    });
    let jobs = facts.parents.iter().take(NAMED_MAX).map(|job| job.key.id.0).collect();
    Cause { jobs, help, ..cause("waits_for_jobs", words) }
}

fn concurrency_full(facts: &Facts) -> Cause {
    let key = facts.job.spec.concurrency.as_ref();
    let (key, limit) = key.map_or((String::new(), 0), |key| (key.key.to_string(), key.limit));
    let named: Vec<String> =
        facts.rivals.iter().take(3).map(|job| format!("job {} ({})", job.key.id, doing(job))).collect();
    let by = if named.is_empty() { String::new() } else { format!(" by {}", named.join(", ")) };
    let words = format!("It waits for concurrency key {key:?} (limit {limit}), which is in use{by}.");
    let help = facts.rivals.first().map(|rival| {
        let id = rival.key.id;
        let (show, cancel) =
            (command(&facts.job, &format!("job show {id}")), command(&facts.job, &format!("cancel {id}")));
        match rival.state.is_final() {
            true => format!("It starts on its own then. Show what has the place: {show}"),
            false => format!("It starts when one of them ends. Show the first: {show}; cancel it: {cancel}"),
        }
    });
    let jobs = facts.rivals.iter().take(NAMED_MAX).map(|job| job.key.id.0).collect();
    Cause { jobs, help, ..cause("concurrency_full", words) }
}
