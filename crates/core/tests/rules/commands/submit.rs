use crate::rules::story::{Story, after, code, id, ns, once, tags, tries};
use windlass_core::{
    Facet, Millis, Reply, State, Timestamp,
    commands::{
        definitions::{DeleteDefinition, PutDefinition},
        submit::{NewJob, Submit},
    },
    job::{ConcurrencyKey, DefinitionRef, UniqueKey, UniqueUntil},
    policy::ParentPolicy,
    reply::Submitted,
};

fn submit(job: NewJob) -> Submit {
    Submit { namespace: ns(), job }
}

fn unique(number: u128, owner: &str, hash: &str, until: UniqueUntil) -> NewJob {
    let key = UniqueKey { key: "u".into(), body_hash: hash.into(), until };
    NewJob { unique: Some(key), owner: Some(owner.into()), ..once(number) }
}

#[test]
fn where_a_new_job_waits() {
    let mut story = Story::new();
    story.submit(once(9));
    let table = [
        (once(1), State::Pending),
        (NewJob { run_at: Some(Timestamp(1_000_001)), ..once(2) }, State::Scheduled),
        (NewJob { run_at: Some(Timestamp(1_000_000)), ..once(3) }, State::Pending),
        (NewJob { delay: Some(Millis(1)), ..once(13) }, State::Scheduled),
        (NewJob { delay: Some(Millis(0)), ..once(14) }, State::Pending),
        (after(4, &[9, 9]), State::Blocked),
    ];
    for (job, state) in table {
        assert_eq!(story.submit(job), state);
    }
    assert_eq!(story.job(4).live.waiting, 1, "a parent counts once");
}

/// How the parent had ended, what the job makes of it, and how it is let in.
#[test]
fn a_parent_that_has_ended_decides_at_once() {
    use ParentPolicy::*;
    let table = [
        ("completed", Skip, State::Pending),
        ("failed", Skip, State::Skipped),
        ("failed", RunAnyway, State::Pending),
        ("failed", CancelRun, State::Cancelled),
        ("cancelled", Skip, State::Skipped),
    ];
    for (ended, policy, expected) in table {
        let mut story = Story::new();
        story.submit(once(8));
        let lease = story.submit_and_claim(NewJob { priority: 0, ..once(9) });
        match ended {
            "completed" => drop(story.complete(lease).unwrap()),
            "failed" => drop(story.fail(lease).unwrap()),
            _ => drop(story.cancel(9).unwrap()),
        }
        let mut job = after(1, &[9]);
        job.policy.parents = policy;
        assert_eq!(story.submit(job), expected, "{ended} {policy:?}");
        let mut job = after(2, &[8, 9]);
        job.policy.parents = policy;
        let waits = if expected == State::Pending { State::Blocked } else { expected };
        assert_eq!(story.submit(job), waits, "another parent is still open");
        story.submit(after(3, &[2]));
        assert_eq!(story.state(3).is_final(), waits.is_final());
    }
}

#[test]
fn a_key_makes_one_job_per_principal() {
    let mut story = Story::new();
    let after = UniqueUntil::After(Millis(1_000));
    let answers = story.batch(vec![
        submit(unique(1, "ann", "h", after)).into(),
        submit(unique(2, "ann", "h", after)).into(),
        submit(unique(3, "ann", "other", after)).into(),
        submit(unique(4, "bob", "other", after)).into(),
    ]);
    assert_eq!(answers[1], Ok(Reply::Submitted(Submitted { job: id(1), state: State::Pending, existing: true })));
    assert_eq!(code(&answers[2]), "key-reused");
    assert_eq!(answers[3], Ok(Reply::Submitted(Submitted { job: id(4), state: State::Pending, existing: false })));
    story.wait(1_000);
    assert_eq!(story.submit(unique(5, "ann", "other", after)), State::Pending, "free again, swept or not");
}

#[test]
fn a_key_until_the_end_is_free_at_the_end_and_no_later() {
    let mut story = Story::new();
    let lease = story.submit_and_claim(unique(1, "ann", "h", UniqueUntil::Final));
    let again = |number| submit(unique(number, "ann", "h", UniqueUntil::Final));
    assert!(matches!(story.run(again(2)), Ok(Reply::Submitted(Submitted { existing: true, .. }))));
    story.fail(lease).unwrap();
    assert!(matches!(story.run(again(3)), Ok(Reply::Submitted(Submitted { existing: false, .. }))));
}

#[test]
fn a_job_is_kept_as_long_as_its_key() {
    let mut story = Story::new();
    let mut job = unique(1, "ann", "h", UniqueUntil::After(Millis(50_000)));
    job.policy.retention = Some(Millis(1_000));
    let again = job.clone();
    let lease = story.submit_and_claim(job);
    story.fail(lease).unwrap();
    story.wait(49_999);
    story.sweep();
    let answer = story.run(submit(NewJob { id: id(2), ..again }));
    assert_eq!(answer, Ok(Reply::Submitted(Submitted { job: id(1), state: State::Failed, existing: true })));
    story.wait(1);
    story.sweep();
    assert!(story.tables.jobs.is_empty());
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let definition = |name: &str, version| Some(DefinitionRef { name: name.into(), version });
    let key = |key: &str, limit| Some(ConcurrencyKey { key: key.into(), limit });
    let long = || "x".repeat(257);
    let table: Vec<(NewJob, &str)> = vec![
        (once(9), "exists"),
        (after(1, &[7]), "not-found"),
        (after(1, &[1]), "cycle"),
        (tries(1, 0), "invalid"),
        (NewJob { tags: tags(&[""]), ..once(1) }, "invalid"),
        (NewJob { tags: tags(&[&long()]), ..once(1) }, "too-large"),
        (NewJob { name: Some("".into()), ..once(1) }, "invalid"),
        (NewJob { name: Some("a\u{7}b".into()), ..once(1) }, "invalid"),
        (NewJob { name: Some("ä".repeat(201).into()), ..once(1) }, "invalid"),
        (NewJob { run_at: Some(Timestamp(-1)), ..once(1) }, "invalid"),
        (NewJob { delay: Some(Millis(-1)), ..once(1) }, "invalid"),
        (NewJob { run_at: Some(Timestamp(i64::MAX)), ..once(1) }, "invalid"),
        (NewJob { payload: vec![0; (1 << 20) + 1].into(), ..once(1) }, "too-large"),
        (NewJob { extra: Some("x".repeat(65_537).into()), ..once(1) }, "too-large"),
        (NewJob { owner: Some("a\nb".into()), ..once(1) }, "invalid"),
        (NewJob { facets: vec![Facet::new("a", "b"); 7], ..once(1) }, "too-large"),
        (NewJob { facets: vec![Facet::new("a", "")], ..once(1) }, "invalid"),
        (NewJob { concurrency: key("k", 0), ..once(1) }, "invalid"),
        (NewJob { concurrency: key("", 1), ..once(1) }, "invalid"),
        (unique(1, "ann", &long(), UniqueUntil::Final), "too-large"),
        (unique(1, "ann", "h", UniqueUntil::After(Millis(0))), "invalid"),
        (NewJob { definition: definition("nobody", 1), ..once(1) }, "not-found"),
        (NewJob { definition: definition("gone", 1), ..once(1) }, "not-found"),
        (NewJob { definition: definition("here", 0), ..once(1) }, "version-mismatch"),
        (NewJob { definition: definition("here", 2), ..once(1) }, "version-mismatch"),
        (NewJob { definition: definition("here", 1), ..once(1) }, "ok"),
        (NewJob { name: Some("ä".repeat(200).into()), ..once(7) }, "ok"),
    ];
    let mut story = Story::new();
    story.submit(once(9));
    for name in ["gone", "here"] {
        story.run(PutDefinition { namespace: ns(), name: name.into(), body: "{}".into() }).unwrap();
    }
    story.run(DeleteDefinition { namespace: ns(), name: "gone".into() }).unwrap();
    for (job, expected) in table {
        assert_eq!(code(&story.run(submit(job.clone()))), expected, "{job:?}");
    }
}

#[test]
fn the_same_id_twice_in_one_batch_is_one_job() {
    let mut story = Story::new();
    let answers =
        story.batch(vec![submit(once(1)).into(), submit(after(1, &[])).into(), submit(after(2, &[1])).into()]);
    assert_eq!(answers.iter().map(code).collect::<Vec<_>>(), ["ok", "exists", "ok"]);
}
