use crate::rules::story::{Story, after, backoff, code, failure, id, keyed, ns, once, tries};
use windlass_core::{
    JobKey, Millis, Reason, Reply, State,
    commands::fail::Fail,
    job::{UniqueKey, UniqueUntil},
    policy::RetryForm,
    reply::Ended,
    unique::{Taken, record_key},
};

/// Attempts allowed, which of failure, loss and deadline are retried, what happens, and what comes of it.
#[test]
fn what_is_retried() {
    let table = [
        (2, "fail", true, State::Pending, None),
        (2, "fail", false, State::Failed, Some(Reason::Reported)),
        (1, "fail", true, State::Failed, Some(Reason::Reported)),
        (2, "fail for good", true, State::Failed, Some(Reason::Reported)),
        (2, "lose", true, State::Pending, None),
        (2, "lose", false, State::Failed, Some(Reason::LeaseExpired)),
        (1, "lose", true, State::Failed, Some(Reason::LeaseExpired)),
        (2, "deadline", true, State::Pending, None),
        (2, "deadline", false, State::Failed, Some(Reason::DeadlinePassed)),
    ];
    for (attempts, what, retried, state, reason) in table {
        let mut story = Story::new();
        let mut job = tries(1, attempts);
        let retry = &mut job.policy.retry;
        (retry.on_failure, retry.on_lost, retry.on_deadline) = match what {
            "lose" => (!retried, retried, !retried),
            "deadline" => (!retried, !retried, retried),
            _ => (retried, !retried, !retried),
        };
        if what == "deadline" {
            job.policy.hard_deadline = Some(Millis(10_000));
        }
        let lease = story.submit_and_claim(job);
        match what {
            "fail" => drop(story.fail(lease).unwrap()),
            "fail for good" => drop(story.run(Fail { retryable: false, ..failure(lease) }).unwrap()),
            _ => {
                story.wait(30_000);
                story.sweep();
            }
        }
        assert_eq!((story.state(1), story.reason(1)), (state, reason), "{what}, {attempts} attempts, {retried}");
    }
}

#[test]
fn the_budget_is_exact_and_a_report_may_be_repeated() {
    let mut story = Story::new();
    story.submit(tries(1, 3));
    for left in [2, 1, 0] {
        let lease = story.claim("w");
        story.fail(lease).unwrap();
        assert!(matches!(story.fail(lease), Ok(Reply::Ended(Ended { replayed: true, .. }))));
        assert_eq!(story.state(1), if left > 0 { State::Pending } else { State::Failed });
    }
    assert_eq!(story.tables.attempts.values().map(Vec::len).sum::<usize>(), 2, "the last one is on the job");
}

#[test]
fn a_job_that_takes_its_workers_along_is_parked() {
    let mut story = Story::new();
    let mut job = tries(1, 10);
    job.policy.retry.losses_max = 2;
    story.submit(job);
    for _ in 0..2 {
        story.claim("w");
        story.wait(30_000);
        story.sweep();
    }
    assert_eq!((story.state(1), story.reason(1)), (State::Failed, Some(Reason::TooManyLosses)));
}

#[test]
fn a_retry_waits_its_backoff_and_goes_to_the_end() {
    let mut story = Story::new();
    let lease = story.submit_and_claim(backoff(1, 500));
    story.submit(once(2));
    story.fail(lease).unwrap();
    assert_eq!(story.state(1), State::Scheduled);
    story.wait(499);
    story.sweep();
    assert_eq!(story.state(1), State::Scheduled);
    story.wait(1);
    story.sweep();
    let order: Vec<_> = story.claims("w", 2).iter().map(|lease| lease.job).collect();
    assert_eq!(order, [id(2), id(1)]);
}

#[test]
fn backoff_gives_its_place_under_a_key_to_the_next() {
    let mut story = Story::new();
    let mut job = keyed(1, 1);
    job.policy = backoff(1, 500).policy;
    let lease = story.submit_and_claim(job);
    story.submit(keyed(2, 1));
    story.fail(lease).unwrap();
    assert_eq!(story.states(2), ["scheduled", "pending"]);
    story.wait(500);
    story.sweep();
    assert_eq!(story.states(2), ["blocked", "pending"]);
    let second = story.claim("w");
    story.complete(second).unwrap();
    assert_eq!(story.states(2), ["pending", "completed"]);
}

#[test]
fn a_new_job_takes_the_place_of_the_failed_one() {
    let mut story = Story::new();
    let mut job = tries(1, 2);
    job.policy.retry.form = RetryForm::NewJob;
    job.unique = Some(UniqueKey { key: "u".into(), body_hash: "h".into(), until: UniqueUntil::Final });
    let lease = story.submit_and_claim(job);
    story.submit(after(2, &[1]));
    story.fail(lease).unwrap();
    let copy = story.job(1).live.retry_job.expect("linked");
    assert_eq!((story.state(1), story.state(2)), (State::Failed, State::Blocked), "who waited, still waits");
    assert_eq!(story.typed::<Taken>(&record_key(None, "u")).unwrap().job, copy, "the key goes along");
    let lease = story.claim("w");
    assert_eq!((lease.job, story.tables.jobs[&JobKey::new(&ns(), copy)].spec.retry_of), (copy, Some(id(1))));
    story.complete(lease).unwrap();
    assert_eq!(story.state(2), State::Pending);
    assert!(story.typed::<Taken>(&record_key(None, "u")).is_none());
}

#[test]
fn what_a_failure_leaves_is_kept_where_it_is_the_end() {
    for (form, first) in [(RetryForm::SameJob, false), (RetryForm::NewJob, true)] {
        let mut story = Story::new();
        let mut job = tries(1, 2);
        job.policy.retry.form = form;
        let lease = story.submit_and_claim(job);
        let failed = |lease| Fail { result: "{}".into(), ..failure(lease) };
        story.run(failed(lease)).unwrap();
        assert_eq!(story.job(1).live.has_result, first, "{form:?}");
        assert!(matches!(story.run(failed(lease)), Ok(Reply::Ended(Ended { replayed: true, .. }))));
        assert_eq!(code(&story.fail(lease)), "lease-lost", "it says something else");
        let lease = story.claim("w");
        story.run(failed(lease)).unwrap();
        assert_eq!(story.tables.results.len(), 1 + usize::from(first), "{form:?}");
    }
}

#[test]
fn the_last_copy_decides_for_those_who_wait() {
    let mut story = Story::new();
    let mut job = tries(1, 2);
    job.policy.retry.form = RetryForm::NewJob;
    let lease = story.submit_and_claim(job);
    story.submit(after(2, &[1]));
    story.fail(lease).unwrap();
    let lease = story.claim("w");
    story.fail(lease).unwrap();
    assert_eq!(story.state(2), State::Skipped);
    assert_eq!(story.tables.jobs.len(), 3, "two attempts, and no more");
}
