use super::{NOW, facts, job, told};
use std::sync::Arc;
use windlass_api::Uuid;
use windlass_core::{
    JobId, Lease, Millis, Outcome, Reason, RunId, Spec, State as JobState, WorkerId,
    job::{CancelRequest, Live, Node},
    stage::{Hold, Stage, Wait},
};

fn lease(until: i64) -> Lease {
    Lease {
        secret: Uuid::from_u128(9),
        worker: WorkerId::trusted("w"),
        principal: None,
        length: Millis(1),
        until: Some(NOW + Millis(until)),
        deadline: None,
    }
}

fn held(until: i64) -> Live {
    Live { lease: Some(lease(until)), claimed_at: Some(NOW), ..Live::default() }
}

#[test]
fn every_other_state_says_what_it_is_about() {
    let cancel = Some(CancelRequest { by: "ann".into(), at: NOW, message: "".into() });
    let outcome = || Some(Outcome::new(Reason::Reported, "no disk"));
    let table = [
        (JobState::Failed, Live { outcome: outcome(), finished_at: Some(NOW), ..Live::default() }, "ended", "no disk"),
        (JobState::Completed, Live::default(), "ended", "ended: completed"),
        (
            JobState::Cancelled,
            Live { outcome: Some(Outcome::new(Reason::Cancelled, "ann")), finished_at: Some(NOW), ..Live::default() },
            "ended",
            "Cancelled by ann at 2025-11-15T12:00:00.000Z.",
        ),
        (
            JobState::Cancelled,
            Live { outcome: Some(Outcome::new(Reason::Cancelled, "step a is failed")), ..Live::default() },
            "ended",
            "Cancelled because step a is failed.",
        ),
        (
            JobState::Running,
            held(5_000),
            "running",
            "Worker w holds it since 2025-11-15T12:00:00.000Z; its lease is valid until",
        ),
        (JobState::Claimed, held(-1), "running", "expired"),
        (JobState::Running, Live { cancel, ..held(5_000) }, "running", "cancelled by ann"),
        (
            JobState::Scheduled,
            Live { run_at: Some(NOW), ..Live::default() },
            "scheduled",
            "scheduled for 2025-11-15T12:00",
        ),
        (
            JobState::Scheduled,
            Live { run_at: Some(NOW), attempt: 1, spent: 1, ..Live::default() },
            "scheduled",
            "retried at 2025-11-15T12:00:00.000Z; attempt 1 of 3 did not succeed.",
        ),
        (JobState::Blocked, Live { waiting: 1, ..Live::default() }, "waits_for_jobs", "has ended"),
        (JobState::Blocked, Live { waiting: 4, ..Live::default() }, "waits_for_jobs", "has ended"),
        (
            JobState::Blocked,
            Live { waiting: 1, hold: Some(Hold::Plan), ..Live::default() },
            "waits_for_plan",
            "planner",
        ),
        (JobState::Blocked, Live { waiting: 1, hold: Some(Hold::Event), ..Live::default() }, "waits_for_time", "time"),
        (
            JobState::Blocked,
            Live { waiting: 2, hold: Some(Hold::Plan), ..Live::default() },
            "waits_for_jobs",
            "another job",
        ),
        (JobState::Blocked, Live::default(), "concurrency_full", "\"k\" (limit 2)"),
    ];
    for (state, live, code, words) in table {
        let (codes, summary, _) = told(&facts(job(state, &[], live), Vec::new(), 0));
        assert_eq!(codes, [code], "{summary}");
        assert!(summary.contains(words), "{summary}");
    }
}

#[test]
fn a_job_that_waits_names_what_it_waits_for_and_the_command_that_helps() {
    let numbered = |number: u128, live: Live| {
        let mut made = job(JobState::Running, &[], live);
        made.key.id = JobId::from_u128(number);
        made
    };
    let mut waits = facts(job(JobState::Blocked, &[], Live::default()), Vec::new(), 0);
    waits.rivals = vec![numbered(7, held(5_000))];
    let (_, summary, help) = told(&waits);
    let rival = JobId::from_u128(7);
    assert!(summary.contains(&format!("by job {rival} (running on w since 2025-11-15T12:00:00.000Z)")), "{summary}");
    assert!(help.contains(&format!("windlass cancel {rival}")), "{help}");

    let mut step = numbered(8, held(5_000));
    let mut spec = Spec::clone(&step.spec);
    spec.node = Some(Node { run: RunId(Uuid::from_u128(1)), name: "build".into() });
    step.spec = Arc::new(spec);
    let mut waits = facts(job(JobState::Blocked, &[], Live { waiting: 1, ..Live::default() }), Vec::new(), 0);
    waits.parents = vec![step];
    let (_, summary, help) = told(&waits);
    assert!(summary.contains("another step to end: build (running on w since"), "{summary}");
    assert!(help.contains(&format!("windlass why {}", JobId::from_u128(8))), "{help}");
}

#[test]
fn a_job_behind_one_that_was_cancelled_names_that_one_and_when_its_time_is_over() {
    let mut rival = job(JobState::Cancelled, &[], Live { has_place: true, place_until: Some(NOW), ..held(5_000) });
    rival.key.id = JobId::from_u128(7);
    let mut waits = facts(job(JobState::Blocked, &[], Live::default()), Vec::new(), 0);
    waits.rivals = vec![rival];
    let (_, summary, help) = told(&waits);
    let words = "(cancelled, but w has not said yet that its work has stopped; its time is over at 2025-11-15T12:00:00";
    assert!(summary.contains(words), "{summary}");
    assert!(!help.contains("cancel"), "{help}");
}

#[test]
fn a_job_that_was_given_back_is_not_said_to_have_failed() {
    let live = Live { run_at: Some(NOW), attempt: 17, spent: 1, ..Live::default() };
    for (reason, words) in [
        (Reason::Released, "returned it because it cannot run it (no disk); it is offered again at 2025"),
        (Reason::Reported, "attempt 1 of 3 did not succeed (no disk)"),
    ] {
        let mut rests = facts(job(JobState::Scheduled, &[], live.clone()), Vec::new(), 0);
        rests.last = Some(Outcome::new(reason, "no disk\nat all"));
        let (codes, summary, _) = told(&rests);
        assert_eq!(codes, ["scheduled"]);
        assert!(summary.contains(words), "{summary}");
    }
}

#[test]
fn a_step_that_waits_for_somebody_names_the_command_with_its_run() {
    let run = RunId(Uuid::from_u128(5));
    let approval = |wait: Wait| {
        let live = Live { waiting: 1, hold: Some(Hold::Event), ..Live::default() };
        let mut made = job(JobState::Blocked, &[], live);
        let mut spec = Spec::clone(&made.spec);
        spec.node = Some(Node { run, name: "go live".into() });
        spec.stage = Stage { wait: Some(wait), ..Stage::default() };
        made.spec = Arc::new(spec);
        told(&facts(made, Vec::new(), 0))
    };
    let wait = Wait { event: None, approval: true, timeout: None, then_complete: false };
    let (codes, _, help) = approval(wait.clone());
    assert_eq!(codes, ["waits_for_approval"]);
    assert_eq!(help, format!("Approve it: windlass workflow approve {run} 'go live'"));
    let (codes, _, help) = approval(Wait { event: Some("paid".into()), approval: false, ..wait });
    assert_eq!(codes, ["waits_for_event"]);
    assert_eq!(help, format!("Send it: windlass workflow signal {run} paid"));
}
