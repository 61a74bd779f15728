use crate::rules::story::{Story, after, id, keyed, ns, tries};
use windlass_core::{
    Millis, Reason, State,
    commands::{retry::Retry, submit::NewJob},
    policy::Backoff,
};

fn limited(number: u128, millis: i64) -> NewJob {
    let mut job = tries(number, 5);
    job.policy.total_deadline = Some(Millis(millis));
    job
}

#[test]
fn a_total_deadline_ends_a_job_in_every_state() {
    // What it is made to do first, and the state in which it is found.
    let table =
        [("nothing", State::Pending), ("claim", State::Claimed), ("fail", State::Scheduled), ("key", State::Blocked)];
    for (what, found) in table {
        let mut story = Story::new();
        let mut job = limited(1, 10_000);
        job.policy.retry.backoff = Backoff::Fixed(Millis(9_999));
        if what == "key" {
            story.submit(keyed(2, 1));
            job.concurrency = keyed(1, 1).concurrency;
        }
        story.submit(job);
        if matches!(what, "claim" | "fail") {
            let lease = story.claim("w");
            if what == "fail" {
                story.fail(lease).unwrap();
            }
        }
        assert_eq!(story.state(1), found, "{what}");
        story.wait(9_998);
        story.sweep();
        assert_eq!(story.state(1), found, "{what}: too early");
        story.wait(2);
        story.sweep();
        assert_eq!((story.state(1), story.reason(1)), (State::Failed, Some(Reason::TotalDeadlinePassed)), "{what}");
    }
}

#[test]
fn nothing_is_waited_for_that_comes_after_the_deadline() {
    for (backoff, state) in [(9_999, State::Scheduled), (10_000, State::Failed)] {
        let mut story = Story::new();
        let mut job = limited(1, 10_000);
        job.policy.retry.backoff = Backoff::Fixed(Millis(backoff));
        let lease = story.submit_and_claim(job);
        story.fail(lease).unwrap();
        assert_eq!(story.state(1), state, "{backoff}");
    }
}

#[test]
fn the_deadline_begins_when_the_job_could_start_and_again_for_its_retry() {
    let mut story = Story::new();
    story.submit(tries(1, 1));
    story.submit(NewJob { policy: limited(2, 10_000).policy, ..after(2, &[1]) });
    story.wait(20_000);
    story.sweep();
    assert_eq!((story.state(2), story.job(2).live.deadline), (State::Blocked, None));
    let lease = story.claim("w");
    story.complete(lease).unwrap();
    assert_eq!(story.job(2).live.deadline, Some(story.now + Millis(10_000)));
    story.wait(10_000);
    story.sweep();
    assert_eq!(story.state(2), State::Failed);
    story.wait(5_000);
    story.run(Retry { namespace: ns(), job: id(2), id: id(3), again: false }).unwrap();
    assert_eq!(story.job(3).live.deadline, Some(story.now + Millis(10_000)));
}

#[test]
fn timeouts_are_retried_as_often_as_the_job_says() {
    for (retries, attempts, tried) in [(Some(0), 5, 1), (Some(2), 5, 3), (Some(9), 2, 2), (None, 4, 4)] {
        let mut story = Story::new();
        let mut job = tries(1, attempts);
        job.policy.hard_deadline = Some(Millis(1_000));
        job.policy.retry.deadline_retries = retries;
        story.submit(job);
        let mut count = 0;
        while !story.state(1).is_final() {
            story.claim("w");
            count += 1;
            story.wait(1_000);
            story.sweep();
        }
        assert_eq!((count, story.reason(1)), (tried, Some(Reason::DeadlinePassed)), "{retries:?} of {attempts}");
    }
}
