//! Every example of a workflow is read, stored, and run to its end.

use crate::support::Server;
use http::Method;
use serde_json::{Value, json};
use std::path::PathBuf;
use windlass_core::{Millis, principal::Role};
use windlass_engine::testing::eventually;
use windlass_server::flows::planner;

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/workflows"))
}

/// What each needs: its input, a step that fails, and how it ends.
fn plan(name: &str) -> (Value, Option<&'static str>, &'static str) {
    match name {
        "conditions" => (json!({"branch": "main"}), None, "completed"),
        "sub_workflow" => (json!({"sites": ["main", "side"]}), None, "completed"),
        "compensation" => (json!({"to": "Rome"}), Some("car"), "failed"),
        "cleanup" => (Value::Null, Some("lint"), "failed"),
        _ => (Value::Null, None, "completed"),
    }
}

/// What a worker would give.
fn output(step: &str) -> Value {
    match step.rsplit('/').next().unwrap() {
        "build" => json!({"tests_failed": 0, "tag": "1.2"}),
        "list" => json!({"files": ["a.png", "b.png", "c.png"]}),
        _ => json!({"booking": step}),
    }
}

#[tokio::test]
async fn every_example_runs() {
    let server = Server::start().await;
    let planner = tokio::spawn(planner::run(server.app.clone()));
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    // Those that others contain come before them.
    files.sort_by_key(|file| (file.ends_with("sub_workflow.yaml"), file.clone()));
    assert!(files.len() >= 7, "{files:?}");
    for file in files {
        let source = std::fs::read_to_string(&file).unwrap();
        let request = Server::request(Role::Editor, Method::POST, "/api/v1/workflows");
        let written = server.call(request.body(source.into()).unwrap()).await.expect(200);
        let (input, fails, expected) = plan(file.file_stem().unwrap().to_str().unwrap());
        let path = format!("/api/v1/workflows/{}/runs", written["name"].as_str().unwrap());
        let started = server.post(&path, json!({"input": input})).await.expect(201);
        let run = started["id"].as_str().unwrap();
        assert_eq!(work(&server, run, fails).await, expected, "{}", file.display());
    }
    planner.abort();
}

async fn work(server: &Server, run: &str, fails: Option<&str>) -> String {
    let ended = async || {
        server.pass(Millis(20)).await;
        let claim = json!({"worker": "w", "tags": [], "max": 1});
        let claimed = server.work("/api/v1/leases/claim", claim).await.expect(200);
        if let Some(leased) = claimed["leases"].get(0) {
            let (lease, step) = (&leased["lease"], leased["node"].as_str().unwrap());
            let (call, body) = match fails == Some(step) {
                true => ("fail", json!({"lease": lease, "message": "broken", "permanent": true})),
                false => ("complete", json!({"lease": lease, "result": output(step)})),
            };
            server.work(&format!("/api/v1/leases/{call}"), body).await.expect(200);
            return None;
        }
        let shown = server.get(&format!("/api/v1/runs/{run}")).await.expect(200);
        if shown["state"] != "running" {
            return Some(shown["state"].as_str().unwrap().to_owned());
        }
        for step in shown["steps"].as_array().unwrap() {
            let name = step["name"].as_str().unwrap();
            if step["waits_for"] == "event" {
                let event = json!({"name": step["event"], "payload": {"order": 7}});
                server.post(&format!("/api/v1/runs/{run}/events"), event).await.expect(200);
            } else if step["waits_for"] == "approval" {
                server.post(&format!("/api/v1/runs/{run}/steps/{name}/approve"), json!({})).await.expect(200);
            }
        }
        None
    };
    eventually("the run ends", ended).await
}
