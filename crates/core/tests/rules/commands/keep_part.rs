use crate::rules::story::{Story, code, graph, ns};
use windlass_core::{
    RunId,
    commands::{
        keep_part::{KeepPart, WAITS},
        submit_run::SubmitRun,
    },
    record::Kind,
    stage::PlanPart,
};

fn part(at: u32) -> KeepPart {
    KeepPart { namespace: ns(), run: RunId::from_u128(1), at, text: format!("part {at}").into() }
}

fn run(early: u32) -> SubmitRun {
    let mut run = graph(1, &["a"], |_, _| {});
    run.plan.early = early;
    run.plan.parts = vec!["the last".into()];
    run
}

fn parts(story: &Story) -> Vec<String> {
    let parts = story.tables.records.values().filter(|record| &*record.key.kind == PlanPart::KIND);
    parts.map(|record| serde_json::from_str::<PlanPart>(&record.value).unwrap().text.to_string()).collect()
}

#[test]
fn a_run_takes_over_the_parts_that_came_before_it_and_no_others() {
    let mut story = Story::new();
    assert_eq!(code(&story.run(part(1))), "invalid", "the first is missing");
    story.run(part(0)).unwrap();
    assert_eq!(code(&story.run(part(0))), "invalid", "it is there");
    story.run(part(1)).unwrap();
    for wrong in [1, 3] {
        assert_eq!(code(&story.run(run(wrong))), "invalid");
    }
    story.run(run(2)).unwrap();
    assert_eq!(parts(&story), ["part 0", "part 1", "the last"]);
    assert_eq!(code(&story.run(part(2))), "exists", "the run has begun");
    story.wait(WAITS.0);
    story.sweep();
    assert_eq!(parts(&story).len(), 3, "they are the run's");
}

#[test]
fn parts_whose_run_never_comes_go() {
    let mut story = Story::new();
    story.run(part(0)).unwrap();
    story.wait(WAITS.0 - 1);
    story.run(part(1)).unwrap();
    story.sweep();
    story.wait(WAITS.0 - 1);
    story.sweep();
    assert_eq!(parts(&story).len(), 2, "the second one came later");
    story.wait(1);
    story.sweep();
    assert!(story.tables.records.is_empty(), "{:?}", story.tables.records.keys());
    assert_eq!(code(&story.run(run(2))), "invalid");
}
