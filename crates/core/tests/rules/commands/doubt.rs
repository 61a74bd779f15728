use crate::rules::story::{Story, bound, code, ns, worker};
use windlass_core::{
    Millis, Reason, State,
    commands::doubt::Doubt,
    policy::{AliveBy, WorkerPolicy},
    worker::Liveness,
};

fn doubt(seconds: i64) -> Doubt {
    Doubt { namespace: ns(), worker: worker("w"), silence: Some(Millis(seconds * 1_000)), principal: None }
}

/// When it is offline, and when it is deleted; seconds after the doubt.
#[test]
fn a_doubt_that_ends_counts_as_all_the_silence_there_is() {
    for (unreachable, delete, offline_at, deleted_at) in
        [(None, 60, 15, 15), (Some(30), 60, 15, 15), (None, 80, 15, 35)]
    {
        let mut story = Story::new();
        let policy = WorkerPolicy {
            alive_by: AliveBy::Heartbeat,
            unreachable_after: unreachable.map(Millis::from_secs),
            offline_after: Millis::from_secs(60),
            delete_after: Some(Millis::from_secs(delete)),
            ..WorkerPolicy::default()
        };
        story.register("w", policy).unwrap();
        story.submit_and_claim(bound(1));
        story.wait(5_000);
        story.run(doubt(15)).unwrap();
        story.wait(offline_at * 1_000 - 1);
        story.sweep();
        assert_eq!(story.worker("w").unwrap().liveness(story.now), Liveness::Online);
        story.wait(1);
        assert_eq!(story.worker("w").unwrap().liveness(story.now), Liveness::Offline, "before the sweep");
        story.sweep();
        assert_eq!((story.state(1), story.reason(1)), (State::Failed, Some(Reason::WorkerLost)));
        assert_eq!(story.worker("w").is_some(), deleted_at > offline_at);
        story.wait((deleted_at - offline_at) * 1_000);
        story.sweep();
        assert!(story.worker("w").is_none());
    }
}

#[test]
fn a_call_of_a_worker_that_lives_by_any_call_lifts_the_doubt_at_once() {
    let mut story = Story::new();
    story.register("w", WorkerPolicy::default()).unwrap();
    story.run(doubt(15)).unwrap();
    story.claims("w", 1);
    assert_eq!(story.worker("w").unwrap().doubt_until, None);
    assert_eq!(code(&story.run(doubt(0))), "invalid");
}
