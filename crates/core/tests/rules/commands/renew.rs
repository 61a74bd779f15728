use crate::rules::story::{Story, bound, code, ns, once};
use windlass_core::{
    Millis, Reply,
    commands::{holder::Holder, renew::Renew},
    policy::LeaseEnd,
    reply::Renewed,
};

/// How the lease ends, what is asked for, and how long it then has.
#[test]
fn how_far_a_renewal_moves_the_lease() {
    let table = [
        (LeaseEnd::Renewable, None, Some(30_000)),
        (LeaseEnd::Renewable, Some(50_000), Some(50_000)),
        (LeaseEnd::Renewable, Some(10_000), Some(30_000)),
        (LeaseEnd::Fixed, Some(50_000), Some(20_000)),
        (LeaseEnd::WithWorker, Some(50_000), None),
    ];
    for (ends, length, left) in table {
        let mut story = Story::new();
        let mut job = once(1);
        job.policy.lease.ends = ends;
        let lease = story.submit_and_claim(job);
        story.wait(10_000);
        let renew = Renew { holder: Holder::lease(&ns(), lease), length: length.map(Millis) };
        let expected = left.map(|left| story.now + Millis(left));
        assert_eq!(
            story.run(renew),
            Ok(Reply::Renewed(Renewed { until: expected, cancelled: false })),
            "{ends:?} {length:?}"
        );
    }
}

#[test]
fn a_renewal_touches_no_index_and_a_job_may_run_for_days() {
    let mut story = Story::new();
    let lease = story.submit_and_claim(once(1));
    let due = story.job(1).due;
    story.wait(20_000);
    story.renew(lease).unwrap();
    assert_eq!(story.job(1).due, due);
    for _ in 0..10_000 {
        story.wait(29_999);
        story.sweep();
        story.renew(lease).unwrap();
    }
    story.complete(lease).unwrap();
    assert_eq!(story.job(1).live.attempt, 1);
}

#[test]
fn impossible_lengths_are_refused() {
    let mut story = Story::new();
    let lease = story.submit_and_claim(bound(1));
    for length in [0, -1, i64::MAX] {
        let renew = Renew { holder: Holder::lease(&ns(), lease), length: Some(Millis(length)) };
        assert_eq!(code(&story.run(renew)), "invalid", "{length}");
    }
}
