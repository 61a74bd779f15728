use crate::rules::story::{Story, bound, code, graph, ns, once, registration, tries, worker};
use std::sync::Arc;
use windlass_core::{
    Millis, Reason, Reply, State, Timestamp,
    commands::{
        submit::NewJob,
        workers::{DrainWorker, Heartbeat, RegisterWorker, UnregisterWorker},
    },
    job::ConcurrencyKey,
    policy::{AliveBy, MayClaim, OnlineFrom, ParentPolicy, RetryForm, Unregister, WorkerPolicy},
    reply::Unregistered,
    worker::{FormerWorker, Liveness},
};

/// Unreachable after 10 s, offline after 20 s, deleted after 60 s.
fn cascade() -> WorkerPolicy {
    WorkerPolicy {
        alive_by: AliveBy::Heartbeat,
        may_claim: MayClaim::OnlineOnly,
        unregister: Unregister::Offline,
        unreachable_after: Some(Millis(10_000)),
        offline_after: Millis(20_000),
        delete_after: Some(Millis(60_000)),
        ..WorkerPolicy::default()
    }
}

fn story(policy: WorkerPolicy) -> Story {
    let mut story = Story::new();
    story.register("w", policy).unwrap();
    story
}

#[test]
fn a_silent_worker_ages_step_by_step() {
    let mut story = story(cascade());
    for (seconds, expected) in
        [(9, "online"), (10, "unreachable"), (19, "unreachable"), (20, "offline"), (59, "offline")]
    {
        story.now = Timestamp(1_000_000 + seconds * 1_000);
        assert_eq!(story.worker("w").unwrap().liveness(story.now).name(), expected, "before the sweep, at {seconds} s");
        story.sweep();
        assert_eq!(story.worker("w").unwrap().declared.name(), expected, "at {seconds} s");
    }
    story.wait(1_000);
    story.sweep();
    assert!(story.worker("w").is_none());
    let expected = ["worker_registered", "worker_unreachable", "worker_offline", "worker_deleted"];
    assert_eq!(story.events(None), expected);
    assert_eq!(code(&story.ping("w")), "not-found");
}

#[test]
fn a_sign_of_life_brings_a_worker_back() {
    let mut story = story(cascade());
    for seconds in [5, 15, 25] {
        story.wait(seconds * 1_000);
        story.sweep();
        story.ping("w").unwrap();
        assert_eq!(story.worker("w").unwrap().declared, Liveness::Online);
        story.sweep();
    }
    story.wait(9_999);
    story.sweep();
    assert_eq!(story.worker("w").unwrap().declared, Liveness::Online);
}

#[test]
fn only_jobs_tied_to_the_worker_are_lost_with_it() {
    let mut story = story(WorkerPolicy { offline_after: Millis(10_000), ..WorkerPolicy::default() });
    story.submit(bound(1));
    story.submit(once(2));
    assert_eq!(story.claims("w", 2).len(), 2);
    story.wait(10_000);
    story.sweep();
    assert_eq!((story.state(1), story.reason(1)), (State::Failed, Some(Reason::WorkerLost)));
    assert_eq!(story.state(2), State::Claimed, "its lease ends at its own time");
}

/// How it unregisters; what becomes of a tied job, of one with its own time, and of the worker.
#[test]
fn what_unregistering_means() {
    use State::*;
    let table = [
        (Unregister::Requeue, Pending, Pending, false),
        (Unregister::Fail, Failed, Failed, false),
        (Unregister::Offline, Failed, Claimed, true),
    ];
    for (how, tied, own, stays) in table {
        let mut story = story(cascade());
        story.submit(bound(1));
        story.submit(once(2));
        story.claims("w", 2);
        story.unregister("w", how).unwrap();
        story.sweep();
        assert_eq!((story.state(1), story.state(2)), (tied, own), "{how:?}");
        assert_eq!(story.worker("w").is_some(), stays, "{how:?}");
        assert_eq!(code(&story.unregister("x", how)), "not-found");
    }
}

#[test]
fn one_that_unregistered_but_stays_is_offline_until_it_pings_or_its_time_is_over() {
    let mut story = story(cascade());
    story.wait(1_000);
    story.unregister("w", Unregister::Offline).unwrap();
    let away = story.worker("w").unwrap();
    assert_eq!(
        (away.liveness(story.now), away.last_seen),
        (Liveness::Offline, story.now),
        "leaving is the last that was heard of it"
    );
    story.submit(once(1));
    let claim = story.claim_command("w", 1);
    assert_eq!(code(&story.run(claim)), "worker-not-online");
    story.sweep();
    story.wait(59_000);
    story.sweep();
    assert_eq!(story.worker("w").unwrap().declared, Liveness::Offline, "kept as long as any silent one");
    story.ping("w").unwrap();
    assert_eq!(story.worker("w").unwrap().liveness(story.now), Liveness::Online);
    story.unregister("w", Unregister::Offline).unwrap();
    story.wait(60_000);
    story.sweep();
    assert!(story.worker("w").is_none());
}

#[test]
fn one_that_is_offline_can_be_cleared_away_and_one_that_came_back_cannot() {
    let mut story = story(cascade());
    story.submit(bound(1));
    story.claims("w", 1);
    let leave = || UnregisterWorker {
        namespace: ns(),
        worker: worker("w"),
        how: Some(Unregister::Fail),
        only_offline: true,
        principal: None,
    };
    story.wait(19_999);
    assert_eq!(code(&story.run(leave())), "forbidden");
    story.wait(1);
    let reply = story.run(leave());
    assert!(matches!(reply, Ok(Reply::Unregistered(Unregistered { lost: 1 }))), "{reply:?}");
    assert_eq!((story.state(1), code(&story.ping("w"))), (State::Failed, "not-found"));
}

#[test]
fn one_whose_policy_says_so_is_remembered_for_a_while_after_its_end() {
    for how in [Some(Unregister::Fail), Some(Unregister::Requeue), None] {
        let mut story = story(WorkerPolicy { kept_after: Some(Millis(5_000)), ..cascade() });
        match how {
            Some(how) => drop(story.unregister("w", how).unwrap()),
            None => {
                story.wait(60_000);
                story.sweep();
            }
        }
        let former = story.typed::<FormerWorker>("w").expect("remembered");
        assert_eq!((former.deleted_at, former.until), (story.now, story.now + Millis(5_000)), "{how:?}");
        assert_eq!(code(&story.ping("w")), "not-found", "{how:?}");
        story.wait(5_000);
        story.sweep();
        assert!(story.typed::<FormerWorker>("w").is_none(), "{how:?}");
    }
}

#[test]
fn one_that_is_never_deleted_stays() {
    let mut story = story(WorkerPolicy { delete_after: None, ..cascade() });
    story.wait(1_000_000_000);
    story.sweep();
    assert_eq!(story.worker("w").unwrap().declared, Liveness::Offline);
}

#[test]
fn one_registered_for_somebody_is_offline_until_it_comes() {
    let policy = WorkerPolicy { online_from: OnlineFrom::FirstSign, may_claim: MayClaim::Always, ..cascade() };
    let mut story = story(policy);
    assert_eq!(story.worker("w").unwrap().liveness(story.now), Liveness::Offline);
    story.sweep();
    story.ping("w").unwrap();
    assert_eq!(story.events(None), ["worker_registered", "worker_online"]);
}

#[test]
fn an_offline_worker_that_may_still_claim_cannot_hold_a_job_for_ever() {
    let mut story = story(WorkerPolicy { may_claim: MayClaim::Always, delete_after: None, ..cascade() });
    story.wait(30_000);
    story.sweep();
    story.submit_and_claim(bound(1));
    story.wait(1);
    story.sweep();
    assert_eq!((story.state(1), story.reason(1)), (State::Failed, Some(Reason::WorkerLost)));
}

#[test]
fn a_lease_that_ran_out_before_its_worker_left_counts_as_run_out() {
    for how in [Unregister::Requeue, Unregister::Fail] {
        let mut story = story(WorkerPolicy::default());
        story.submit_and_claim(tries(1, 1));
        story.wait(30_000);
        story.unregister("w", how).unwrap();
        assert_eq!(story.reason(1), Some(Reason::LeaseExpired), "{how:?}");
    }
}

#[test]
fn a_job_whose_run_ended_with_another_of_the_same_worker_ends_once() {
    for how in [Unregister::Requeue, Unregister::Fail] {
        let mut story = story(WorkerPolicy::default());
        let shape = |name: &str, job: &mut NewJob| match name {
            "first" => job.policy.hard_deadline = Some(Millis(10)),
            "child" => job.policy.parents = ParentPolicy::CancelRun,
            _ => job.policy.retry.attempts = 3,
        };
        story.run(graph(1, &["first", "child: first", "second"], shape)).unwrap();
        assert_eq!(story.claims("w", 2).len(), 2);
        story.wait(10);
        story.unregister("w", how).unwrap();
        assert_eq!(story.states(3), ["failed", "cancelled", "cancelled"], "{how:?}");
    }
}

#[test]
fn many_jobs_of_one_worker_are_lost_in_few_round_trips() {
    let mut story = story(WorkerPolicy::default());
    for number in 1..=50 {
        let mut job = tries(number, 2);
        job.policy.retry.form = RetryForm::NewJob;
        job.concurrency = Some(ConcurrencyKey { key: format!("k{number}").into(), limit: 1 });
        story.submit(job);
    }
    assert_eq!(story.claims("w", 50).len(), 50);
    let before = story.tables.loads;
    story.unregister("w", Unregister::Fail).unwrap();
    assert!(story.tables.loads - before < 6, "{} loads", story.tables.loads - before);
    assert_eq!(story.tables.jobs.len(), 100);
}

#[test]
fn a_draining_worker_claims_no_more_and_a_foreign_one_is_not_taken_over() {
    let mut story = story(WorkerPolicy::default());
    story.submit(once(1));
    let drain = |draining| DrainWorker { namespace: ns(), worker: worker("w"), draining, principal: None };
    story.run(drain(true)).unwrap();
    let claim = story.claim_command("w", 1);
    assert_eq!(code(&story.run(claim)), "worker-draining");
    story.run(drain(false)).unwrap();
    assert_eq!(story.claims("w", 1).len(), 1);
    let own = |owner: &str| RegisterWorker { owner: Some(owner.into()), ..registration("w", WorkerPolicy::default()) };
    story.run(own("ann")).unwrap();
    assert_eq!(code(&story.run(own("bob"))), "forbidden");
    assert_eq!(code(&story.run(registration("w", WorkerPolicy::default()))), "forbidden");
}

#[test]
fn thresholds_out_of_order_are_refused() {
    let table = [
        WorkerPolicy { offline_after: Millis(0), ..cascade() },
        WorkerPolicy { unreachable_after: Some(Millis(20_001)), ..cascade() },
        WorkerPolicy { delete_after: Some(Millis(19_999)), ..cascade() },
    ];
    for policy in table {
        assert_eq!(code(&Story::new().register("w", policy)), "invalid", "{policy:?}");
    }
}

#[test]
fn nobody_acts_for_another_principals_worker() {
    let mut story = Story::new();
    story.run(RegisterWorker { owner: Some("ann".into()), ..registration("w", cascade()) }).unwrap();
    story.register("free", cascade()).unwrap();
    let table =
        [(Some("ann"), "w", "ok"), (Some("bob"), "w", "forbidden"), (None, "w", "ok"), (Some("bob"), "free", "ok")];
    for (caller, name, expected) in table {
        let (namespace, principal) = (ns(), caller.map(Arc::from));
        let beat = Heartbeat { namespace: namespace.clone(), worker: worker(name), principal: principal.clone() };
        assert_eq!(code(&story.run(beat)), expected, "{caller:?} for {name}: heartbeat");
        let drain = DrainWorker {
            namespace: namespace.clone(),
            worker: worker(name),
            draining: false,
            principal: principal.clone(),
        };
        assert_eq!(code(&story.run(drain)), expected, "{caller:?} for {name}: drain");
        let how = Some(Unregister::Offline);
        let leave = UnregisterWorker { namespace, worker: worker(name), how, only_offline: false, principal };
        assert_eq!(code(&story.run(leave)), expected, "{caller:?} for {name}: unregister");
    }
}
