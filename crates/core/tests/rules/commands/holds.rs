use crate::rules::story::{Story, code, ns, once, tries};
use windlass_core::{
    Command, LeaseId, RecordKey,
    commands::{
        all::All,
        complete::Complete,
        holder::Holder,
        holds::Holds,
        records::{Expect, PutRecord},
    },
    policy::CancelPolicy,
};

fn key() -> RecordKey {
    RecordKey { namespace: ns(), kind: "file".into(), key: "a".into() }
}

fn write(lease: LeaseId) -> Command {
    let put = PutRecord {
        key: key(),
        expect: Expect::Nothing,
        parent: None,
        value: "1".into(),
        facets: vec![],
        expires_at: None,
    };
    let holds = Holds { holder: Holder::lease(&ns(), lease) };
    All { commands: vec![holds.into(), put.into()] }.into()
}

/// What became of the lease, whether a write under it is taken, and whether one in the same batch behind that is.
#[test]
fn what_a_holder_writes_lands_only_while_its_lease_holds() {
    for end in ["complete", "fail", "release", "cancel", "expire", "given to another"] {
        let mut story = Story::new();
        let lease = story.submit_and_claim(tries(1, 3));
        match end {
            "complete" => drop(story.complete(lease).unwrap()),
            "fail" => drop(story.fail(lease).unwrap()),
            "release" => drop(story.release(lease).unwrap()),
            "cancel" => drop(story.cancel(1).unwrap()),
            "expire" => story.wait(30_000),
            _ => {
                story.release(lease).unwrap();
                story.claim("x");
            }
        }
        assert_eq!(code(&story.run(write(lease))), "lease-lost", "{end}");
        assert!(story.tables.record(&ns(), "file", "a").is_none(), "{end}");
    }
}

#[test]
fn a_job_that_drains_may_still_leave_its_files() {
    let mut story = Story::new();
    let mut job = once(1);
    job.policy.cancel = CancelPolicy::Drain;
    let lease = story.submit_and_claim(job);
    story.cancel(1).unwrap();
    assert_eq!(code(&story.run(write(lease))), "ok");
}

#[test]
fn a_write_behind_a_report_in_one_batch_is_refused_and_one_before_it_is_taken() {
    for (first, expected) in [(0, ["ok", "ok"]), (1, ["ok", "lease-lost"])] {
        let mut story = Story::new();
        let lease = story.submit_and_claim(once(1));
        let complete = Complete { holder: Holder::lease(&ns(), lease), result: "1".into() };
        let mut batch = vec![write(lease), complete.into()];
        batch.rotate_left(first);
        let answers = story.batch(batch);
        assert_eq!(answers.iter().map(code).collect::<Vec<_>>(), expected);
        assert_eq!(story.tables.record(&ns(), "file", "a").is_some(), first == 0);
    }
}

#[test]
fn asking_whether_a_lease_holds_changes_nothing_about_the_job() {
    let mut story = Story::new();
    let lease = story.submit_and_claim(once(1));
    let before = story.job(1).clone();
    story.run(Holds { holder: Holder::lease(&ns(), lease) }).unwrap();
    assert_eq!(*story.job(1), before);
    assert_eq!(story.events(Some(1)), ["submitted", "claimed"]);
}
