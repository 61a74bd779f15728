use crate::rules::story::{Story, after, code, graph, leases, once};
use windlass_core::{
    JobId, Millis, Refusal, RunId, State,
    commands::{
        complete::Complete,
        holder::Holder,
        submit::NewJob,
        submit_run::{RunNode, RunPlan, SubmitRun},
    },
    job::{UniqueKey, UniqueUntil},
    policy::{ParentPolicy, RetryForm},
    run::{Run, RunState},
};

fn run(story: &Story) -> Run {
    story.typed(&RunId::from_u128(1).to_string()).expect("there is a run")
}

type Names<'a> = &'a [&'a str];
type Case<'a> = (Names<'a>, Names<'a>, Names<'a>, &'a str, RunState);

/// Which nodes fail or run anyway, and how everything ends.
#[test]
fn a_graph_runs_to_its_end() {
    let diamond = ["a", "b: a", "c: a", "d: b c"];
    let table: &[Case] = &[
        (&diamond, &[], &[], "completed completed completed completed", RunState::Completed),
        (&diamond, &["a"], &[], "failed skipped skipped skipped", RunState::Failed),
        (&diamond, &["b"], &[], "completed failed completed skipped", RunState::Failed),
        (&diamond, &["b"], &["d"], "completed failed completed completed", RunState::Failed),
        (&diamond, &["a"], &["d"], "failed skipped skipped completed", RunState::Failed),
        (&["c: a b", "a", "b"], &["a"], &[], "skipped failed completed", RunState::Failed),
        (&["a: a2 a2", "a2"], &[], &[], "completed completed", RunState::Completed),
    ];
    for (lines, fails, anyway, expected, state) in table {
        let mut story = Story::new();
        let shape = |name: &str, job: &mut NewJob| {
            if anyway.contains(&name) {
                job.policy.parents = ParentPolicy::RunAnyway;
            }
        };
        story.run(graph(1, lines, shape)).unwrap();
        while let Some(&lease) = story.claims("w", 1).first() {
            let name = story.tables.jobs.values().find(|job| job.key.id == lease.job).unwrap();
            let name = name.spec.node.as_ref().unwrap().name.clone();
            let answer = if fails.contains(&&*name) { story.fail(lease) } else { story.complete(lease) };
            answer.unwrap();
        }
        assert_eq!(story.states(lines.len() as u128).join(" "), *expected, "{lines:?}, {fails:?} fail");
        assert_eq!(run(&story).state(), *state);
    }
}

#[test]
fn a_node_that_cancels_the_run_cancels_what_other_nodes_would_still_do() {
    // All of them wait for `a`; whatever order they are looked at, the run is cancelled once and stays so.
    for cancelling in ["b", "c", "d"] {
        let mut story = Story::new();
        let shape = |name: &str, job: &mut NewJob| {
            job.policy.parents = match name {
                _ if name == cancelling => ParentPolicy::CancelRun,
                "d" => ParentPolicy::RunAnyway,
                _ => ParentPolicy::Skip,
            };
        };
        story.run(graph(1, &["a", "b: a", "c: a", "d: a", "e"], shape)).unwrap();
        let lease = story.claim("w");
        story.fail(lease).unwrap();
        assert_eq!(story.state(1), State::Failed);
        assert_eq!(story.state(5), State::Cancelled);
        let run = run(&story);
        assert_eq!((run.open, run.failed, run.cancelled + run.skipped), (0, 1, 4), "each counted once");
        assert_eq!(story.events(None).iter().filter(|name| **name == "run_finished").count(), 1);
    }
}

#[test]
fn graphs_that_cannot_run_are_refused_whole() {
    let plain = |_: &str, _: &mut NewJob| {};
    let table: Vec<(SubmitRun, &str)> = vec![
        (graph(1, &[], plain), "invalid"),
        (graph(1, &["a: a"], plain), "cycle"),
        (graph(1, &["x", "a: c x", "b: a", "c: b"], plain), "cycle"),
        (graph(1, &["a: nobody"], plain), "invalid"),
        (graph(1, &["a", "a"], plain), "invalid"),
        (graph(1, &["a", "b"], |_, job| job.id = JobId::from_u128(1)), "invalid"),
        (graph(1, &["a"], |_, job| job.id = JobId::from_u128(77)), "exists"),
        (graph(1, &["a"], |_, job| job.parents = vec![JobId::from_u128(77)]), "invalid"),
        (graph(1, &[&"a".repeat(255)], |_, job| job.policy.retry.form = RetryForm::NewJob), "too-large"),
        (graph(1, &["a"], |_, job| job.unique = Some(key())), "invalid"),
        (graph(9, &["a"], plain), "exists"),
        (SubmitRun { extra: Some("x".repeat(100_000).into()), ..graph(1, &["a"], plain) }, "too-large"),
    ];
    for (command, expected) in table {
        let mut story = Story::new();
        story.submit(once(77));
        story.run(graph(9, &["a"], |_, job| job.id = JobId::from_u128(78))).unwrap();
        let before = story.tables.events.len();
        assert_eq!(code(&story.run(command.clone())), expected, "{command:?}");
        assert_eq!((story.tables.events.len(), story.tables.jobs.len()), (before, 2), "nothing is left of it");
    }
}

fn key() -> UniqueKey {
    UniqueKey { key: "u".into(), body_hash: "h".into(), until: UniqueUntil::Final }
}

#[test]
fn a_cycle_is_told_by_its_path() {
    let answer = Story::new().run(graph(1, &["x", "a: c x", "b: a", "c: b"], |_, _| {}));
    let Err(Refusal::Cycle { path }) = answer else { panic!("{answer:?}") };
    assert_eq!((path.len(), path.first(), path.contains(&"x".to_string())), (4, path.last(), false));
}

/// A wide or a deep graph: `0` before all.
fn large(count: usize, deep: bool) -> SubmitRun {
    let node = |at: usize| {
        let needs = match at {
            0 => vec![],
            _ if deep => vec![(at - 1).to_string()],
            _ => vec!["0".to_string()],
        };
        let needs = needs.into_iter().map(Into::into).collect();
        RunNode { name: at.to_string().into(), needs, job: once(at as u128 + 1) }
    };
    SubmitRun { nodes: (0..count).map(node).collect(), ..graph(1, &[], |_, _| {}) }
}

/// Rows that are loaded until a run of so many jobs has ended, and how often some are asked for.
fn cost(count: usize, deep: bool) -> usize {
    let mut story = Story::new();
    story.run(large(count, deep)).unwrap();
    let mut completed = 0;
    while completed < count {
        let claim = story.claim_command("w", 500);
        let claimed = story.tables.run(story.now, vec![claim.into()]).remove(0);
        let leases: Vec<_> = leases(&claimed).iter().map(|leased| leased.lease).collect();
        completed += leases.len();
        assert!(!leases.is_empty(), "{completed} completed");
        let holder = |lease| Holder::lease(&story.namespace(), lease);
        let complete = |lease| Complete { holder: holder(lease), result: "1".into() };
        let commands = leases.into_iter().map(|lease| complete(lease).into()).collect();
        story.tables.run(story.now, commands);
    }
    assert_eq!(run(&story).state(), RunState::Completed);
    story.tables.loaded_jobs + story.tables.loads
}

#[test]
fn a_large_run_takes_work_in_proportion() {
    for deep in [false, true] {
        let (small, large) = (cost(300, deep), cost(3_000, deep));
        assert!(large < small * 12, "{small} for 300 jobs, {large} for 3,000; deep: {deep}");
    }
}

#[test]
fn a_failure_at_the_root_skips_a_large_run_in_few_round_trips() {
    for deep in [false, true] {
        let mut story = Story::new();
        story.run(large(10_000, deep)).unwrap();
        let lease = story.claim("w");
        let before = story.tables.loads;
        story.fail(lease).unwrap();
        assert!(story.tables.loads - before < 12, "deep: {deep}, {} loads", story.tables.loads - before);
        story.sweep();
        let run = run(&story);
        assert_eq!((run.state(), run.skipped, run.open), (RunState::Failed, 9_999, 0), "deep: {deep}");
    }
}

#[test]
fn a_failure_that_few_wait_for_loads_few_rows() {
    let lines: Vec<String> = (0..400).flat_map(|at| [format!("a{at}"), format!("b{at}: a{at}")]).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut story = Story::new();
    story.run(graph(1, &lines, |_, _| {})).unwrap();
    let leases = story.claims("w", 400);
    let before = story.tables.loaded_jobs;
    leases.into_iter().for_each(|lease| drop(story.fail(lease).unwrap()));
    assert!(story.tables.loaded_jobs - before <= 400 * 3, "{}", story.tables.loaded_jobs - before);
    assert_eq!(run(&story).state(), RunState::Failed);
}

#[test]
fn jobs_outside_may_wait_for_a_job_of_a_run() {
    let mut story = Story::new();
    story.run(graph(1, &["a", "b: a"], |_, _| {})).unwrap();
    story.submit(after(10, &[2]));
    let lease = story.claim("w");
    story.fail(lease).unwrap();
    assert_eq!(story.state(10), State::Skipped);
}

#[test]
fn a_run_outlives_the_key_it_was_started_under() {
    let mut story = Story::new();
    story.tables.limits.retention = Millis(1_000);
    let keep_until = Some(story.now + Millis(5_000));
    let plan = RunPlan { keep_until, ..RunPlan::default() };
    story.run(SubmitRun { plan, ..graph(1, &["a"], |_, _| {}) }).unwrap();
    let lease = story.claim("w");
    story.fail(lease).unwrap();
    story.wait(4_999);
    story.sweep();
    assert_eq!(run(&story).state(), RunState::Failed);
    story.wait(1);
    story.sweep();
    assert!(story.typed::<Run>(&RunId::from_u128(1).to_string()).is_none());
}

#[test]
fn what_is_there_for_failures_does_not_run_behind_steps_that_were_kept() {
    let mut story = Story::new();
    let shape = |name: &str, job: &mut NewJob| match name {
        "a" => job.kept = Some("1".into()),
        "alarm" => job.policy.parents = ParentPolicy::OnFailure,
        _ => {}
    };
    story.run(graph(1, &["a", "alarm: a", "b", "calm: alarm"], shape)).unwrap();
    assert_eq!(story.states(4), ["completed", "skipped", "pending", "skipped"]);
    assert!(story.job(1).live.kept && !story.job(2).live.kept);
}
