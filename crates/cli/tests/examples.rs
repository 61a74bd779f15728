//! The examples, on the server and the worker that are shipped.

use crate::{support::program, up::Up};
use serde_json::Value;
use std::path::PathBuf;
use windlass_engine::testing::eventually_blocking;

fn file(name: &str) -> String {
    format!("{}/../../examples/workflows/{name}.yaml", env!("CARGO_MANIFEST_DIR"))
}

/// Runs one, and tells how it ended and what its steps were.
fn ends(up: &Up, name: &str, input: &[&str]) -> (i32, Value) {
    let file = file(name);
    let mut args = vec!["workflow", "run", &file, "--watch"];
    args.extend(input.iter().flat_map(|input| ["--input", input]));
    let code = up.windlass(&args).code;
    (code, up.json(&["workflow", "show", "last"]))
}

fn states(run: &Value) -> Vec<(&str, &str)> {
    let steps = run["steps"].as_array().unwrap().iter();
    steps.map(|step| (step["name"].as_str().unwrap(), step["state"].as_str().unwrap())).collect()
}

#[test]
fn every_example_workflow_runs_on_the_shipped_worker() {
    let up = Up::start();
    let mut names: Vec<String> = std::fs::read_dir(PathBuf::from(file("x")).parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    for stored in ["hello", "conditions"] {
        up.windlass(&["workflow", "apply", &file(stored)]).ok();
    }
    for name in &names {
        let input: &[&str] = match &**name {
            "conditions" => &["branch=main"],
            "sub_workflow" => &["sites=[\"main\", \"side\"]"],
            "compensation" => &["to=Rome"],
            "approval" => continue,
            _ => &[],
        };
        let (code, run) = ends(&up, name, input);
        assert_eq!((code, run["state"].as_str()), (0, Some("completed")), "{name}: {run:#}");
    }
    // What was done is undone.
    let (code, run) = ends(&up, "compensation", &["to=Atlantis"]);
    assert_eq!(code, 3, "{run:#}");
    let states = states(&run);
    for undone in [("car", "failed"), ("~undo/flight", "completed"), ("~undo/hotel", "completed")] {
        assert!(states.contains(&undone), "{states:?}");
    }
    approval(&up);
}

/// The one that waits for somebody.
fn approval(up: &Up) {
    let run = up.json(&["workflow", "run", &file("approval")]);
    let id = run["id"].as_str().unwrap();
    up.windlass(&["workflow", "signal", id, "paid", "--payload", "{\"order\": 7}"]).ok();
    let approved = || (up.windlass(&["workflow", "approve", id, "approve"]).code == 0).then_some(());
    eventually_blocking("it comes to the approval", approved);
    let watched = up.windlass(&["workflow", "watch", id]);
    assert_eq!(watched.code, 0, "{}{}", watched.out, watched.err);
    let run = up.json(&["workflow", "show", id]);
    let ship = run["steps"].as_array().unwrap().iter().find(|step| step["name"] == "ship").unwrap();
    let log = up.windlass(&["logs", ship["job"].as_str().unwrap()]).ok();
    assert!(log.contains("shipping order 7, approved by admin"), "{log}");
}

#[test]
fn a_job_uploads_with_the_command_line_and_needs_no_token() {
    let up = Up::start();
    let line = format!("echo picture > a.png && '{}' artifact put a.png", program().display());
    up.windlass(&["submit", "--wait", "--shell", &line]).ok();
    let kept = up.json(&["artifact", "list", "--job", "last"]);
    assert_eq!((kept[0]["name"].as_str(), kept[0]["size"].as_u64()), (Some("a.png"), Some(8)), "{kept}");
    up.windlass(&["artifact", "get", kept[0]["id"].as_str().unwrap(), "--to", "b.png"]).ok();
    assert_eq!(std::fs::read_to_string(up.home.path().join("b.png")).unwrap(), "picture\n");
    // Any program can: it is a folder. Files of a failure are kept as well, they may say why.
    let line = "echo why > $WINDLASS_ARTIFACTS/trace.txt; exit 100";
    assert_eq!(up.windlass(&["submit", "--wait", "--shell", line]).code, 3);
    assert_eq!(up.json(&["artifact", "list", "--job", "last"])[0]["name"], "trace.txt");
    // A link may lead to what is not the job's.
    let line = "ln -s /etc/passwd $WINDLASS_ARTIFACTS/x";
    let refused = up.windlass(&["submit", "--wait", "--retries", "0", "--shell", line]);
    assert_eq!(refused.code, 3);
    refused.says(&["not a regular file"]);
}
