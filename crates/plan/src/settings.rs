//! From what a job may ask for to what the rules take: the one place where both are known.

use windlass_api::{JobSettings, job};
use windlass_core::{
    JobId, Millis,
    commands::submit::NewJob,
    job::{ConcurrencyKey, name_fault},
    policy::{Backoff, CancelPolicy, JobPolicy, LeaseLength, LeasePolicy, RetryPolicy},
};

/// Too long is refused by the rules, as the length it is taken for here.
pub fn millis(length: u64) -> Millis {
    Millis(i64::try_from(length).unwrap_or(i64::MAX))
}

/// What no job could have, as field and reason; told where a workflow is written and not when it runs.
pub fn fault(settings: &JobSettings) -> Option<(&'static str, String)> {
    let faults = [
        (settings.concurrency.as_ref().is_some_and(|key| key.limit == 0), "concurrency.limit", "must be at least 1"),
        (
            settings.retry.as_ref().is_some_and(|retry| retry.attempts == Some(0)),
            "retry.attempts",
            "must be at least 1",
        ),
    ];
    if let Some(why) = settings.name.as_deref().and_then(name_fault) {
        return Some(("name", why));
    }
    let wrong = faults.into_iter().find(|(wrong, ..)| *wrong);
    wrong.map(|(_, field, why)| (field, why.to_owned()))
}

/// Settings of what compensates a step: its own, and the step's where they suit it.
pub fn of_undo(own: &JobSettings, step: &JobSettings) -> JobSettings {
    own.clone().or(&JobSettings { name: None, concurrency: None, deadline_ms: None, ..step.clone() })
}

/// A job of these settings and nothing else.
pub fn new_job(settings: &JobSettings, id: JobId) -> NewJob {
    let length = settings.lease_ms.map_or(LeaseLength::Asked, |length| LeaseLength::Fixed(millis(length)));
    NewJob {
        name: settings.name.as_deref().map(Into::into),
        tags: settings.tags.iter().flatten().map(String::as_str).collect(),
        priority: settings.priority.unwrap_or(100),
        policy: JobPolicy {
            lease: LeasePolicy { length, ..LeasePolicy::default() },
            hard_deadline: settings.timeout_ms.map(millis),
            total_deadline: settings.deadline_ms.map(millis),
            pending_deadline: settings.pending_timeout_ms.map(millis),
            retry: settings.retry.as_ref().map_or_else(|| retry(&job::Retry::default()), retry),
            // A worker that is told can clean up.
            cancel: CancelPolicy::Drain,
            retention: settings.retention_ms.map(millis),
            ..JobPolicy::default()
        },
        concurrency: settings
            .concurrency
            .as_ref()
            .map(|wanted| ConcurrencyKey { key: wanted.key.as_str().into(), limit: wanted.limit }),
        ..NewJob::new(id)
    }
}

fn retry(wanted: &job::Retry) -> RetryPolicy {
    let default = RetryPolicy::default();
    RetryPolicy {
        attempts: wanted.attempts.unwrap_or(default.attempts),
        on_failure: wanted.on_failure.unwrap_or(default.on_failure),
        on_lost: wanted.on_lost.unwrap_or(default.on_lost),
        on_deadline: wanted.on_timeout.unwrap_or(default.on_deadline),
        deadline_retries: wanted.timeout_retries,
        backoff: Backoff::asked(
            wanted.backoff_ms.map(millis),
            wanted.backoff_max_ms.map(millis),
            wanted.jitter_percent,
        ),
        losses_max: wanted.losses_max.unwrap_or(default.losses_max),
        ..default
    }
}
