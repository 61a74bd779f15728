//! The moves of a job that several commands share: into the queue, out of an attempt, to its end.

use crate::{
    desk::{Desk, Stop},
    model::{
        definition::DefinitionHead,
        event::What,
        job::{Attempt, Job, Live, Outcome, Reason, Spec, State, UniqueUntil},
        keys::{Access, JobKey},
        policy::{FailurePolicy, RetryForm},
        record::key_of,
        run::Run,
        stage,
        time::Millis,
    },
    moves::{
        concurrency::{self, KeyUse},
        dependents, links, pace, runs, steps,
        unique::{self, Taken},
    },
};
use std::sync::Arc;

/// Puts a job where it has to wait now: behind its parents, its time, its concurrency key, or in the queue.
pub(crate) fn queue(desk: &mut Desk, job: &mut Job) -> Result<(), Stop> {
    job.live.pending_since = None;
    let delayed = job.live.run_at.is_some_and(|at| at > desk.now());
    if job.live.waiting == 0 && !delayed && job.live.deadline.is_none() {
        job.live.deadline = job.spec.policy.total_deadline.map(|length| desk.now() + length);
    }
    if job.live.waiting > 0 {
        job.state = State::Blocked;
    } else if delayed {
        job.state = State::Scheduled;
    } else if !concurrency::take(desk, job)? {
        job.state = State::Blocked;
    } else {
        job.state = State::Pending;
        job.live.pending_since = Some(desk.now());
    }
    Ok(())
}

/// Lets a waiting job go on, and tells when it can be claimed.
pub(crate) fn requeue_waiting(desk: &mut Desk, mut job: Job) -> Result<Job, Stop> {
    queue(desk, &mut job)?;
    if job.state == State::Pending {
        desk.tell(&job.key.namespace, What::Ready { job: job.key.id });
    }
    desk.put_job(job.clone());
    Ok(job)
}

/// The present attempt did not succeed: queue the job again if its policy and budget allow, else end it.
pub(crate) fn attempt_failed(desk: &mut Desk, mut job: Job, outcome: Outcome, retryable: bool) -> Result<Job, Stop> {
    if job.live.cancel.is_some() {
        return end_cancelled(desk, job);
    }
    job.live.waited = Millis(0);
    if job.is_past_deadline(desk.now()) {
        job.live.spent += 1;
        let outcome = past_deadline(&job);
        return end(desk, job, State::Failed, Some(outcome));
    }
    let retry = &job.spec.policy.retry;
    let lost = is_loss(outcome.reason);
    let wanted = match outcome.reason {
        Reason::DeadlinePassed => {
            retry.on_deadline && retry.deadline_retries.is_none_or(|retries| job.live.timeouts < retries)
        }
        _ if lost => retry.on_lost,
        _ => retry.on_failure && retryable,
    };
    let (attempts, losses_max) = (retry.attempts, retry.losses_max);
    job.live.spent += 1;
    job.live.losses += u32::from(lost);
    job.live.timeouts += u32::from(outcome.reason == Reason::DeadlinePassed);
    if wanted && lost && job.live.losses >= losses_max && job.live.spent < attempts {
        let why = format!("lost {} workers; last: {}", job.live.losses, outcome.message);
        return end(desk, job, State::Failed, Some(Outcome::new(Reason::TooManyLosses, why)));
    }
    if !wanted || job.live.spent >= attempts {
        return end(desk, job, State::Failed, Some(outcome));
    }
    match job.spec.policy.retry.form {
        RetryForm::SameJob => try_again(desk, job, outcome),
        RetryForm::NewJob => replace(desk, job, outcome),
    }
}

fn past_deadline(job: &Job) -> Outcome {
    let length = job.spec.policy.total_deadline.unwrap_or_default();
    let why = format!("the job did not end within its deadline of {} ms, all attempts included", length.0);
    Outcome::new(Reason::TotalDeadlinePassed, why)
}

fn is_loss(reason: Reason) -> bool {
    matches!(reason, Reason::LeaseExpired | Reason::WorkerLost | Reason::WorkerRemoved)
}

/// Its turn among all of its kind that failed, then its own backoff. Whoever lost a worker did nothing wrong and does
/// not queue up behind those who did.
fn retry_wait(desk: &mut Desk, job: &Job, reason: Reason) -> Result<Millis, Stop> {
    let turn = if is_loss(reason) { Millis(0) } else { pace::turn(desk, job)? };
    let seed = desk.draw();
    Ok(Millis(turn.0.saturating_add(job.spec.policy.retry.backoff.delay(job.live.spent, seed).0)))
}

fn try_again(desk: &mut Desk, mut job: Job, outcome: Outcome) -> Result<Job, Stop> {
    let reason = outcome.reason;
    let delay = retry_wait(desk, &job, reason)?;
    if job.live.deadline.is_some_and(|deadline| deadline <= desk.now() + delay) {
        // The next attempt could not even begin: what went wrong says more than that.
        return end(desk, job, State::Failed, Some(outcome));
    }
    close_attempt(desk, &mut job, outcome);
    job.seq = desk.next_seq();
    job.live.run_at = (delay.0 > 0).then(|| desk.now() + delay);
    if delay.0 > 0 {
        // An hour of backoff must not keep others from the key.
        concurrency::release(desk, &mut job)?;
    }
    queue(desk, &mut job)?;
    desk.tell(&job.key.namespace, What::Requeued { job: job.key.id, reason });
    desk.put_job(job.clone());
    Ok(job)
}

/// Moves the present attempt into the history.
pub(crate) fn close_attempt(desk: &mut Desk, job: &mut Job, outcome: Outcome) {
    if let Some(lease) = &job.live.lease {
        let attempt = Attempt {
            number: job.live.attempt,
            worker: lease.worker.clone(),
            claimed_at: job.live.claimed_at.take(),
            started_at: job.live.started_at.take(),
            ended_at: desk.now(),
            outcome,
        };
        desk.put_attempt(&job.key, attempt);
    }
    job.live.progress = None;
}

/// Ends the job for good and puts a linked copy in its place: what waited for it, and its unique key, go over to the
/// copy. The copy's id is drawn here, its payload is shared. In a run it takes the node's place under a name of its own.
fn replace(desk: &mut Desk, mut job: Job, outcome: Outcome) -> Result<Job, Stop> {
    gather(desk, &job)?;
    let payload = desk.payload(&job.key)?;
    let key = JobKey::new(&job.key.namespace, desk.draw_job_id());
    let delay = retry_wait(desk, &job, outcome.reason)?;
    job.live.retry_job = Some(key.id);
    let ended = close(desk, job, State::Failed, Some(outcome))?;
    let spec = Spec {
        created_at: desk.now(),
        retry_of: Some(ended.key.id),
        unique: ended.spec.unique.clone().filter(|unique| unique.until == UniqueUntil::Final),
        parents: Vec::new(),
        node: ended.spec.node.as_ref().map(|node| stage::copied(node, &ended)),
        ..(*ended.spec).clone()
    };
    if let Some(unique) = &spec.unique {
        unique::take(desk, &key.namespace, spec.owner.as_deref(), unique, key.id)?;
    }
    let mut copy = desk.new_job(key.clone(), ended.priority, spec);
    (copy.live.spent, copy.live.losses, copy.live.timeouts) =
        (ended.live.spent, ended.live.losses, ended.live.timeouts);
    copy.live.deadline = ended.live.deadline;
    copy.live.dependents = ended.live.dependents;
    copy.live.run_at = (delay.0 > 0).then(|| desk.now() + delay);
    for child in children_of(desk, &ended)? {
        desk.put_edge(&key, &child);
    }
    queue(desk, &mut copy)?;
    desk.tell(&key.namespace, What::Submitted { job: key.id });
    desk.put_payload(&key, payload);
    desk.put_job(copy);
    Ok(ended)
}

fn children_of(desk: &mut Desk, parent: &Job) -> Result<Vec<JobKey>, Stop> {
    if !parent.live.dependents {
        return Ok(Vec::new());
    }
    Ok(desk.children(&dependents::rest_of(parent), usize::MAX)?.0)
}

pub(crate) fn end_cancelled(desk: &mut Desk, job: Job) -> Result<Job, Stop> {
    let by = job.live.cancel.as_ref().map_or_else(|| Arc::from(""), |cancel| cancel.by.clone());
    end(desk, job, State::Cancelled, Some(Outcome::new(Reason::Cancelled, by)))
}

/// Ends a job and passes the news on to all that wait for it.
pub(crate) fn end(desk: &mut Desk, job: Job, state: State, outcome: Option<Outcome>) -> Result<Job, Stop> {
    gather(desk, &job)?;
    let ended = close(desk, job, state, outcome)?;
    let mut all = vec![ended.clone()];
    if state == State::Failed && ended.spec.policy.failure == FailurePolicy::CancelsPending {
        all.append(&mut runs::cancel_pending(desk, &ended)?);
    }
    dependents::pass_on(desk, all)?;
    Ok(ended)
}

/// Asks at once for the rows that the end of this job touches, instead of for one after the other.
fn gather(desk: &mut Desk, job: &Job) -> Result<(), Stop> {
    let namespace = &job.key.namespace;
    let mut missing = job.live.dependents && dependents::want_first(desk, job).is_err();
    if let Some(run) = job.run() {
        missing |= desk.lacks_record(key_of::<Run>(namespace, &run.to_string()));
    }
    if let Some(unique) = job.spec.unique.as_ref().filter(|unique| unique.until == UniqueUntil::Final) {
        let key = unique::record_key(job.spec.owner.as_deref(), &unique.key);
        missing |= desk.lacks_record(key_of::<Taken>(namespace, &key));
    }
    if let Some(concurrency) = job.spec.concurrency.as_ref().filter(|_| job.live.has_place) {
        missing |= desk.lacks_record(key_of::<KeyUse>(namespace, &concurrency.key));
        missing |= desk.next_in_key_queue(namespace, &concurrency.key).is_err();
    }
    if let Some(definition) = job.spec.served_by_links() {
        // The end of one that waits may well be the end of its definition. Two who share the row first would wait for each
        // other when both want to write it.
        let access = if job.state == State::Pending { Access::Write } else { Access::Share };
        missing |= desk.access(&key_of::<DefinitionHead>(namespace, definition), access).is_err();
    }
    if missing { Err(Stop::Need) } else { Ok(()) }
}

/// Ends a job without looking at what waits for it.
pub(crate) fn close(desk: &mut Desk, mut job: Job, state: State, outcome: Option<Outcome>) -> Result<Job, Stop> {
    job.state = state;
    job.live.finished_at = Some(desk.now());
    job.live.run_at = None;
    job.live.pending_since = None;
    job.live.outcome = outcome;
    steps::let_go(desk, &mut job)?;
    if job.live.place_until.is_none() {
        concurrency::release(desk, &mut job)?;
    }
    unique::release(desk, &job)?;
    desk.tell(&job.key.namespace, ending(&job));
    desk.put_job(job.clone());
    runs::job_ended(desk, &job)?;
    links::job_ended(desk, &job.key.namespace, &job.spec)?;
    Ok(job)
}

fn ending(job: &Job) -> What {
    let id = job.key.id;
    let message =
        |job: &Job| job.live.outcome.as_ref().map_or_else(|| Arc::from(""), |outcome| outcome.message.clone());
    match job.state {
        State::Completed => What::Completed { job: id },
        State::Cancelled => {
            let said = job.live.cancel.as_ref().map_or_else(Arc::default, |cancel| cancel.message.clone());
            What::Cancelled { job: id, by: message(job), message: said }
        }
        State::Skipped => What::Skipped { job: id },
        _ => {
            let reason = job.live.outcome.as_ref().map_or(Reason::Reported, |outcome| outcome.reason);
            What::Failed { job: id, reason, message: message(job) }
        }
    }
}

/// Why a job whose parents have all ended has nothing to run for.
pub(crate) fn needless(live: &Live) -> Outcome {
    let why = if live.needless { "a step that it needs was not needed" } else { "nothing that it needs has failed" };
    Outcome::new(Reason::NotNeeded, why)
}

/// Why a job that needs this parent does not run. Jobs of a run are named by their steps.
pub(crate) fn parent_outcome(parent: &Job) -> Outcome {
    let message = match &parent.spec.node {
        Some(node) => format!("step {} is {}", node.name, parent.state.name()),
        None => format!("job {} is {}", parent.key.id, parent.state.name()),
    };
    Outcome::new(Reason::ParentNotCompleted, message)
}

/// Applies what has run out about a job, exactly as the sweep would. None: nothing has.
pub(crate) fn expire(desk: &mut Desk, job: &Job) -> Result<Option<Job>, Stop> {
    if !job.state.is_held() && job.is_past_deadline(desk.now()) {
        return end(desk, job.clone(), State::Failed, Some(past_deadline(job))).map(Some);
    }
    if job.pending_until().is_some_and(|until| until <= desk.now()) {
        let outcome = Outcome::new(Reason::PendingDeadlinePassed, "no worker claimed the job in time");
        return end(desk, job.clone(), State::Failed, Some(outcome)).map(Some);
    }
    let Some(reason) = job.overdue(desk.now()) else { return Ok(None) };
    let message = match reason {
        Reason::DeadlinePassed => "job timed out",
        _ => "lease expired",
    };
    attempt_failed(desk, job.clone(), Outcome::new(reason, message), true).map(Some)
}
