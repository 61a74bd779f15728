use serde_json::Value;
use std::sync::Arc;
use windlass_core::{
    Job, JobId, JobKey, Lane, Namespace, Payload, RunId,
    State::{self, *},
    commands::submit_run::RunNode,
    job::{ConcurrencyKey, Node, Spec},
    stage::Stage,
};
use windlass_plan::retry::{Retry, name};

const RUNS: (u128, u128) = (7, 8);

/// Steps by number, name, state and the numbers of what they need. A name with a star is decided by the planner.
fn run(steps: &[(u128, &str, State, &[u128])]) -> Vec<Job> {
    let job = |&(id, name, state, needs): &(u128, &str, State, &[u128])| {
        let (named, plan) = name.strip_suffix('*').map_or((name, false), |name| (name, true));
        let node = Some(Node { run: RunId::from_u128(RUNS.0), name: named.into() });
        let parents = needs.iter().map(|id| JobId::from_u128(*id)).collect();
        let spec = Spec { node, parents, stage: Stage { plan, ..Stage::default() }, ..Spec::default() };
        Job {
            key: JobKey::new(&Namespace::default(), JobId::from_u128(id)),
            lane: Lane(0),
            priority: 0,
            seq: 0,
            state,
            due: None,
            spec: Arc::new(spec),
            live: Default::default(),
        }
    };
    steps.iter().map(job).collect()
}

/// The ids of new jobs are those of the old ones, in order, and a hundred.
fn retry(old: &[Job]) -> Retry<'_> {
    let mut next = 100;
    Retry::of(old, move || {
        next += 1;
        JobId::from_u128(next)
    })
}

/// What goes over; what is done already in brackets.
fn told(old: &[Job]) -> Vec<String> {
    let retry = retry(old);
    let runs = (RunId::from_u128(RUNS.0), RunId::from_u128(RUNS.1));
    let shown = |job: &&Job| match retry.node(job, Payload::default(), None, runs).job.kept.is_some() {
        true => format!("({})", name(job)),
        false => name(job).to_owned(),
    };
    retry.order.iter().map(shown).collect()
}

#[test]
fn what_failed_and_all_behind_it_runs_again() {
    let old = run(&[
        (1, "a", Completed, &[]),
        (2, "b", Failed, &[1]),
        (3, "c", Completed, &[1]),
        (4, "d", Skipped, &[2, 3]),
        (5, "e", Completed, &[3]),
        // It ran although what it needs failed.
        (6, "clean", Completed, &[2]),
    ]);
    assert_eq!(told(&old), ["(a)", "b", "(c)", "d", "(e)", "clean"]);
}

#[test]
fn what_was_undone_runs_again_and_what_undid_it_does_not_go_over() {
    let old = run(&[
        (1, "a", Completed, &[]),
        (2, "b", Completed, &[1]),
        (3, "c", Failed, &[2]),
        (4, "~undo/b", Completed, &[]),
        (5, "~undo/a", Failed, &[]),
    ]);
    assert_eq!(told(&old), ["(a)", "b", "c"], "undoing a failed, so it still holds");
}

#[test]
fn an_undone_item_takes_its_step_along() {
    let old = run(&[
        (1, "m*", Completed, &[]),
        (2, "m[0]", Completed, &[]),
        (3, "m[1]", Completed, &[]),
        (4, "last", Failed, &[1]),
        (5, "~undo/m[0]", Completed, &[]),
    ]);
    assert_eq!(told(&old), ["m", "m[0]", "(m[1])", "last"]);
}

#[test]
fn parts_go_over_only_with_a_step_whose_needs_are_kept() {
    let parts = |first: State| {
        let old = run(&[
            (1, "a", first, &[]),
            (2, "m*", Failed, &[1]),
            (3, "m[0]", Completed, &[]),
            (4, "m[1]", Failed, &[]),
        ]);
        told(&old)
    };
    assert_eq!(parts(Completed), ["(a)", "m", "(m[0])", "m[1]"]);
    assert_eq!(parts(Failed), ["a", "m"], "what a gives may be other items");
}

#[test]
fn parts_of_a_step_that_is_done_stay_behind() {
    let old = run(&[(1, "m*", Completed, &[]), (2, "m[0]", Completed, &[]), (3, "b", Failed, &[1])]);
    assert_eq!(told(&old), ["(m)", "b"]);
}

#[test]
fn a_new_step_has_the_result_or_the_payload_and_names_new_jobs() {
    let mut old = run(&[
        (1, "a", Completed, &[]),
        (2, "m*", Failed, &[1]),
        (3, "m[0]", Completed, &[]),
        (4, "m[1]", Failed, &[]),
        (5, "w*", Skipped, &[2]),
    ]);
    let key = format!("wf/{}", RunId::from_u128(RUNS.0)).into();
    let of = Some(JobId::from_u128(2));
    let stage = Stage { of, ..Stage::default() };
    old[3].spec = Arc::new(Spec {
        concurrency: Some(ConcurrencyKey { key, limit: 2 }),
        name: Some("the second".into()),
        stage,
        ..(*old[3].spec).clone()
    });
    let retry = retry(&old);
    let runs = (RunId::from_u128(RUNS.0), RunId::from_u128(RUNS.1));
    let ids = [3, 4].map(|id| JobId::from_u128(id).to_string());
    let expanded = Payload::from(serde_json::json!({ "members": ids, "x": 1 }).to_string().as_str());
    let made: Vec<RunNode> = retry
        .order
        .iter()
        .map(|job| {
            let payload = if name(job) == "m" { expanded.clone() } else { Payload::from("1") };
            retry.node(job, payload, Some(Payload::from("2")), runs)
        })
        .collect();
    let [a, m, first, second, w] = &made[..] else { panic!("{}", made.len()) };
    assert_eq!((a.job.kept.as_ref(), &a.job.payload), (Some(&Payload::from("2")), &Payload::from("1")));
    assert_eq!((m.job.kept.as_ref(), &*m.needs), (None, &["a".into()][..]));
    let members: Value = serde_json::from_slice(m.job.payload.as_bytes()).unwrap();
    let new = [103, 104].map(|id| JobId::from_u128(id).to_string());
    assert_eq!(members, serde_json::json!({ "members": new, "x": 1 }));
    assert!(first.job.kept.is_some() && second.job.kept.is_none());
    assert_eq!(second.job.stage.of, Some(JobId::from_u128(102)));
    let key = second.job.concurrency.as_ref().map(|key| &*key.key);
    assert_eq!(key, Some(&*format!("wf/{}", runs.1)));
    assert_eq!((second.job.name.as_deref(), second.job.retry_of), (Some("the second"), Some(JobId::from_u128(4))));
    assert!(w.job.payload.is_empty(), "what it was given is decided anew");
}
