use crate::rules::story::{Story, after, code, graph, keyed, ns};
use windlass_core::{
    RunId, State,
    commands::cancel_run::CancelRun,
    job::ConcurrencyKey,
    policy::{CancelPolicy, ParentPolicy},
    run::{Run, RunState},
};

fn cancel(run: u128) -> CancelRun {
    CancelRun { namespace: ns(), run: RunId::from_u128(run), by: "ann".into() }
}

#[test]
fn what_waits_ends_at_once_and_what_is_held_as_its_policy_says() {
    for (policy, held) in [(CancelPolicy::Revoke, State::Cancelled), (CancelPolicy::Drain, State::Claimed)] {
        let mut story = Story::new();
        let lines = ["a", "b: a", "c: b", "d"];
        story.run(graph(1, &lines, |_, job| job.policy.cancel = policy)).unwrap();
        let lease = story.claim("w");
        story.submit(after(10, &[3]));
        let mut outside = after(11, &[2, 3]);
        outside.policy.parents = ParentPolicy::RunAnyway;
        story.submit(outside);
        story.run(cancel(1)).unwrap();
        assert_eq!((story.state(1), story.states(4)[1..].join(" ")), (held, "cancelled cancelled cancelled".into()));
        assert_eq!((story.state(10), story.state(11)), (State::Skipped, State::Pending), "outside the run");
        let asked = story.events(Some(1)).iter().filter(|name| **name == "cancel_requested").count();
        story.run(cancel(1)).unwrap();
        if held == State::Claimed {
            assert_eq!(asked, 1, "asked once");
            story.fail(lease).unwrap();
            assert_eq!(story.state(1), State::Cancelled, "never retried, never failed");
        }
        let run: Run = story.typed(&RunId::from_u128(1).to_string()).unwrap();
        assert_eq!((run.state(), run.cancelled), (RunState::Cancelled, 4));
    }
}

#[test]
fn a_job_asked_to_stop_before_is_not_asked_again_by_another() {
    let mut story = Story::new();
    story.run(graph(1, &["a", "b"], |_, job| job.policy.cancel = CancelPolicy::Drain)).unwrap();
    story.claim("w");
    story.cancel(1).unwrap();
    story.run(CancelRun { by: "bob".into(), ..cancel(1) }).unwrap();
    assert_eq!(&*story.job(1).live.cancel.as_ref().unwrap().by, "ann");
    assert_eq!(story.events(Some(1)), ["submitted", "claimed", "cancel_requested"]);
}

#[test]
fn a_lease_that_had_run_out_does_not_drain() {
    let mut story = Story::new();
    story.run(graph(1, &["a"], |_, job| job.policy.cancel = CancelPolicy::Drain)).unwrap();
    story.claim("w");
    story.wait(30_000);
    story.run(cancel(1)).unwrap();
    assert_eq!(story.state(1), State::Cancelled);
}

#[test]
fn a_cancelled_run_gives_its_places_under_a_key_to_others() {
    let mut story = Story::new();
    let key = ConcurrencyKey { key: "k".into(), limit: 2 };
    story.run(graph(1, &["a", "b", "c", "d"], |_, job| job.concurrency = Some(key.clone()))).unwrap();
    story.submit(keyed(10, 2));
    assert_eq!(story.state(10), State::Blocked);
    story.run(cancel(1)).unwrap();
    assert_eq!(story.state(10), State::Pending);
}

#[test]
fn unknown_runs_are_refused() {
    assert_eq!(code(&Story::new().run(cancel(1))), "not-found");
}
