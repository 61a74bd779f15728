use std::collections::HashMap;
use windlass_api::{
    Uuid,
    workflow::{Run, Step},
};
use windlass_cli::commands::workflow::watch::{changed, tree};

fn run(states: &[&str]) -> Run {
    let step = |(at, state): (usize, &&str)| {
        let job = Uuid::from_u128(at as u128);
        serde_json::json!({"name": format!("s{at}"), "job": job, "state": state, "attempt": 1})
    };
    let steps: Vec<_> = states.iter().enumerate().map(step).collect();
    let open = states.iter().filter(|state| !["completed", "failed"].contains(state)).count();
    let value = serde_json::json!({"id": Uuid::nil(), "namespace": "default", "state": "running", "created_at": "2026-01-01T00:00:00Z",
        "total": states.len(), "open": open, "completed": 0, "failed": 0, "cancelled": 0, "skipped": 0, "steps": steps});
    serde_json::from_value(value).unwrap()
}

#[test]
fn large_runs_show_what_matters() {
    let now = jiff::Timestamp::UNIX_EPOCH;
    let mut states = vec!["completed"; 50];
    states.extend(["running", "failed"]);
    states.extend(["blocked"; 50]);
    let lines = tree(&run(&states), now, 10);
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines[0].contains("s50") && lines[1].contains("s51") && lines[2].contains("100 more"), "{lines:?}");
    assert!(lines[3].ends_with("51/102"), "{lines:?}");
    assert_eq!(tree(&run(&["running"; 3]), now, 10).len(), 4);
}

#[test]
fn only_changes_are_news() {
    let mut seen = HashMap::new();
    let names = |steps: Vec<&Step>| steps.iter().map(|step| step.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(changed(&mut seen, &run(&["pending", "blocked"]))), ["s0"]);
    assert!(changed(&mut seen, &run(&["pending", "blocked"])).is_empty());
    assert_eq!(names(changed(&mut seen, &run(&["completed", "running"]))), ["s0", "s1"]);
}
