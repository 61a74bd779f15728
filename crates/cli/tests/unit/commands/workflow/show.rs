use windlass_api::{
    Uuid,
    workflow::{Run, Step, WaitsFor},
};
use windlass_cli::commands::workflow::show::{in_order, line};

fn step(name: &str, state: &str) -> Step {
    let value = serde_json::json!({"name": name, "job": Uuid::new_v4(), "state": state, "attempt": 1});
    serde_json::from_value(value).unwrap()
}

fn run_of(steps: Vec<Step>) -> Run {
    let value = serde_json::json!({"id": "01990000-0000-7000-8000-000000000000", "namespace": "default", "state": "running",
        "created_at": "2026-01-01T00:00:00Z", "total": 3, "open": 2, "completed": 1, "failed": 0, "cancelled": 0, "skipped": 0});
    Run { steps, ..serde_json::from_value(value).unwrap() }
}

#[test]
fn members_come_behind_what_they_belong_to() {
    let steps = ["a", "map[0]", "b", "map", "sub/x", "map[1]", "sub"].map(|name| step(name, "pending"));
    let names: Vec<&str> = in_order(&steps).into_iter().map(|step| &*step.name).collect();
    assert_eq!(names, ["a", "map", "map[0]", "map[1]", "b", "sub", "sub/x"]);
}

#[test]
fn a_line_says_what_to_do() {
    let now = "2026-01-01T00:01:00Z".parse().unwrap();
    let mut build = step("build", "running");
    (build.started_at, build.worker) = (Some("2026-01-01T00:00:30Z".into()), Some("w1".into()));
    let mut test = step("test", "blocked");
    test.after = vec![build.job];
    let mut release = step("release", "blocked");
    release.waits_for = Some(WaitsFor::Approval);
    let run = run_of(vec![build, test, release]);
    let lines: Vec<String> = run.steps.iter().map(|step| line(step, &run, now)).collect();
    assert_eq!(lines[0], "● build  30s  on w1");
    assert_eq!(lines[1], "○ test  after build");
    assert_eq!(lines[2], "○ release  waits for approval: windlass workflow approve 01990000-0000 release");
}
