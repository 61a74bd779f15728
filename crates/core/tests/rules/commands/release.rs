use crate::rules::story::{Story, code, id, keyed, ns, once, tries};
use windlass_core::{
    LeaseId, Millis, Reason, State,
    commands::{
        holder::Holder,
        release::{PASSES_KEPT, PassOn, RELEASES_KEPT},
    },
};

fn pass(lease: LeaseId, delay: i64) -> PassOn {
    PassOn { holder: Holder::lease(&ns(), lease), delay: Millis(delay), why: "not mine".into() }
}

#[test]
fn a_job_passed_on_rests_uncharged_and_lets_others_go_first() {
    let mut story = Story::new();
    story.submit(keyed(1, 1));
    story.submit(keyed(2, 1));
    let lease = story.claim("w");
    story.run(pass(lease, 500)).unwrap();
    assert_eq!((story.states(2), story.job(1).live.spent), (vec!["scheduled", "pending"], 0));
    assert_eq!(code(&story.run(pass(lease, 500))), "lease-lost", "once is enough");
    let next = story.claim("w");
    assert_eq!(next.job, id(2));
    story.complete(next).unwrap();
    story.wait(500);
    story.sweep();
    assert_eq!(story.claim("w").job, id(1));
}

#[test]
fn a_job_that_nobody_can_run_does_not_grow() {
    let mut story = Story::new();
    story.submit(tries(1, 1));
    for _ in 0..50 {
        let lease = story.claim("w");
        story.run(pass(lease, 1_000)).unwrap();
        assert_eq!(story.state(1), State::Scheduled);
        story.wait(1_000);
        story.sweep();
    }
    let kept = story.tables.attempts.values().next().unwrap();
    assert_eq!(kept.len(), PASSES_KEPT as usize);
    assert_eq!(&*kept[0].outcome.message, "not mine");
    let lease = story.claim("w");
    for delay in [0, -1, i64::MAX] {
        assert_eq!(code(&story.run(pass(lease, delay))), "invalid", "{delay}");
    }
}

#[test]
fn a_job_that_nobody_can_run_meets_its_pending_deadline() {
    let mut story = Story::new();
    let mut job = once(1);
    job.policy.pending_deadline = Some(Millis(10_000));
    story.submit(job);
    let mut handed_back = 0;
    for _ in 0..20 {
        story.sweep();
        if story.state(1).is_final() {
            break;
        }
        let lease = story.claim("w");
        handed_back += 1;
        story.run(pass(lease, 1_000)).unwrap();
        story.wait(1_000);
    }
    assert_eq!((story.state(1), handed_back), (State::Failed, 10), "it waited all the time");
    let reason = story.job(1).live.outcome.as_ref().map(|outcome| outcome.reason);
    assert_eq!(reason, Some(Reason::PendingDeadlinePassed));
}

#[test]
fn a_job_that_is_handed_back_for_ever_does_not_grow() {
    let mut story = Story::new();
    story.submit(once(1));
    for _ in 0..2 * RELEASES_KEPT {
        let lease = story.claim("w");
        story.release(lease).unwrap();
    }
    assert_eq!(story.tables.attempts.values().next().unwrap().len(), RELEASES_KEPT as usize);
}

#[test]
fn a_released_job_keeps_its_place_and_its_budget() {
    let mut story = Story::new();
    story.submit(tries(1, 1));
    story.submit(once(2));
    for attempt in 1..=5 {
        let lease = story.claim("w");
        assert_eq!((lease.job, story.job(1).live.attempt), (id(1), attempt));
        story.release(lease).unwrap();
    }
    assert_eq!(story.job(1).live.spent, 0);
    let kept = story.tables.attempts.values().next().unwrap();
    assert!(kept.len() == 5 && kept.iter().all(|attempt| attempt.outcome.reason == Reason::Released));
    assert_eq!(story.tables.wakes.len(), 7, "each time somebody may want it");
}
