use crate::rules::story::{Story, code, id, keyed, ns, tries};
use windlass_core::{
    Reason, Reply, State, WorkerId,
    commands::{cancel::Cancel, workers::DrainWorker},
    concurrency,
    policy::{CancelPolicy, LeaseEnd, Unregister, WorkerPolicy},
    reply::Renewed,
};

#[test]
fn a_drained_job_ends_with_its_report_or_its_lease_and_keeps_its_place_till_then() {
    for how in ["complete", "fail", "lapse", "unregister"] {
        let mut story = Story::new();
        let mut job = keyed(1, 1);
        job.policy = tries(1, 5).policy;
        job.policy.cancel = CancelPolicy::Drain;
        let lease = story.submit_and_claim(job);
        story.submit(keyed(2, 1));
        story.cancel(1).unwrap();
        assert!(matches!(story.renew(lease), Ok(Reply::Renewed(Renewed { cancelled: true, .. }))));
        assert_eq!(story.states(2), ["claimed", "blocked"], "its place is not free yet");
        match how {
            "complete" => drop(story.complete(lease).unwrap()),
            "fail" => drop(story.fail(lease).unwrap()),
            "lapse" => {
                story.wait(30_000);
                story.sweep();
            }
            _ => drop(story.unregister("w", Unregister::Requeue).unwrap()),
        }
        assert_eq!(story.states(2), ["cancelled", "pending"], "{how}");
        assert_eq!(story.reason(1), Some(Reason::Cancelled));
        assert!(story.tables.results.is_empty(), "{how}");
    }
}

fn cancel(mode: CancelPolicy) -> Cancel {
    Cancel { namespace: ns(), job: id(1), by: "ann".into(), mode: Some(mode), message: "".into() }
}

/// What the holder does after its job was taken from it.
#[test]
fn a_job_that_is_taken_away_keeps_its_place_until_its_holder_confirms_or_its_time_is_over() {
    for how in ["complete", "fail", "release", "lapse", "renew", "unregister", "remove", "offline"] {
        let mut story = Story::new();
        story.register("w", WorkerPolicy::default()).unwrap();
        let mut job = keyed(1, 1);
        job.policy.cancel = CancelPolicy::Revoke;
        if how == "offline" {
            job.policy.lease.ends = LeaseEnd::WithWorker;
        }
        let lease = story.submit_and_claim(job);
        story.submit(keyed(2, 1));
        story.wait(10_000);
        story.cancel(1).unwrap();
        assert_eq!(story.states(2), ["cancelled", "blocked"], "its process may still run");
        let freed = match how {
            "complete" => code(&story.complete(lease)) == "lease-lost",
            "fail" => code(&story.fail(lease)) == "lease-lost",
            "release" => code(&story.release(lease)) == "lease-lost",
            "renew" => code(&story.renew(lease)) != "lease-lost",
            "unregister" => story.unregister("w", Unregister::Requeue).is_ok(),
            "remove" => story.unregister("w", Unregister::Fail).is_ok(),
            "offline" => {
                story.unregister("w", Unregister::Offline).unwrap();
                assert_eq!(story.states(2)[1], "blocked", "it may come back");
                story.sweep();
                true
            }
            _ => {
                story.wait(19_999);
                story.sweep();
                assert_eq!(story.states(2), ["cancelled", "blocked"]);
                story.wait(1);
                story.sweep();
                true
            }
        };
        assert_eq!(story.states(2)[1], if freed { "pending" } else { "blocked" }, "{how}");
        assert_eq!((story.state(1), story.reason(1)), (State::Cancelled, Some(Reason::Cancelled)));
        if freed {
            assert_eq!(code(&story.release(lease)), "lease-lost", "twice frees once");
            assert!(story.typed::<concurrency::KeptPlace>(&id(1).to_string()).is_none(), "{how}: nothing is left");
            let next = story.claim("w");
            story.submit(keyed(3, 1));
            assert_eq!(story.states(3)[2], "blocked", "{how}");
            story.complete(next).unwrap();
            assert_eq!(story.states(3)[2], "pending");
        }
    }
}

#[test]
fn how_a_held_job_is_cancelled_can_be_chosen_each_time() {
    for policy in [CancelPolicy::Drain, CancelPolicy::Revoke] {
        let mut story = Story::new();
        let mut job = keyed(1, 1);
        job.policy.cancel = policy;
        let lease = story.submit_and_claim(job);
        story.run(cancel(CancelPolicy::Drain)).unwrap();
        assert_eq!(story.state(1), State::Claimed, "{policy:?}");
        story.run(cancel(CancelPolicy::Drain)).unwrap();
        story.cancel(1).unwrap();
        assert!(
            matches!(story.renew(lease), Ok(Reply::Renewed(Renewed { cancelled: true, .. }))),
            "asked again, nothing changes"
        );
        story.run(cancel(CancelPolicy::Revoke)).unwrap();
        assert_eq!((story.state(1), code(&story.renew(lease))), (State::Cancelled, "lease-lost"), "{policy:?}");
    }
}

/// Workers that hold what is cancelled, taken away or drained, and nobody else, are told.
#[test]
fn whom_a_change_concerns_is_told() {
    let mut story = Story::new();
    story.register("w", WorkerPolicy::default()).unwrap();
    story.tables.notices.clear();
    let told = |story: &mut Story| std::mem::take(&mut story.tables.notices).len();
    let lease = story.submit_and_claim(keyed(1, 2));
    story.renew(lease).unwrap();
    story.complete(lease).unwrap();
    assert_eq!(told(&mut story), 0, "who reports knows");
    for (number, mode) in [(2, CancelPolicy::Drain), (3, CancelPolicy::Revoke)] {
        story.submit_and_claim(keyed(number, 9));
        story.run(Cancel { job: id(number), ..cancel(mode) }).unwrap();
        assert_eq!(told(&mut story), 1, "{mode:?}");
    }
    story.submit(keyed(4, 9));
    story.cancel(4).unwrap();
    assert_eq!(told(&mut story), 0, "nobody holds it");
    for draining in [true, true, false] {
        let worker = WorkerId::new("w").unwrap();
        let drain = DrainWorker { namespace: ns(), worker, draining, principal: None };
        story.run(drain).unwrap();
    }
    assert_eq!(told(&mut story), 2, "drained and undrained");
    story.wait(30_000);
    story.sweep();
    assert_eq!(told(&mut story), 1, "a lease that ran out");
}

#[test]
fn a_lease_that_had_run_out_is_over_before_it_is_cancelled() {
    for (attempts, answer, state) in [(1, "final", State::Failed), (2, "ok", State::Cancelled)] {
        let mut story = Story::new();
        story.submit_and_claim(tries(1, attempts));
        story.wait(30_000);
        assert_eq!((code(&story.cancel(1)), story.state(1)), (answer, state));
    }
    assert_eq!(code(&Story::new().cancel(1)), "not-found");
}
