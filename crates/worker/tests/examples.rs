//! The example workers of the protocol page, against a real server.

use crate::support::{Program, Server, json, shell};
use serde_json::json;
use std::time::Duration;
use tokio::process::Command;
use windlass_sdk::api::{
    JobSettings,
    job::{State, SubmitJob},
};

fn numbers(payload: serde_json::Value) -> SubmitJob {
    SubmitJob { payload: json(payload), ..shell("") }
}

fn leased(lease_ms: u64, job: SubmitJob) -> SubmitJob {
    job.with(JobSettings { lease_ms: Some(lease_ms), ..JobSettings::default() })
}

fn example(program: &str, needs: &[&str], arguments: &[&str]) -> Command {
    for tool in needs {
        let found = std::process::Command::new("which").arg(tool).output().is_ok_and(|found| found.status.success());
        assert!(found, "this test needs {tool}; install it (Debian: apt-get install {tool})");
    }
    let mut command = Command::new(needs[0]);
    command.arg(format!("{}/../../examples/workers/{program}", env!("CARGO_MANIFEST_DIR"))).args(arguments);
    command
}

/// What the protocol page asks of every worker.
async fn check(command: Command, broken: serde_json::Value, long: serde_json::Value) {
    let mut server = Server::start().await;
    let _worker = Program::start(command, &server);
    let id = server.submit(numbers(json!({"numbers": [1, 2, 39]}))).await;
    let job = server.end_of(id).await;
    assert_eq!(job.state, State::Completed, "{:?}", job.error);
    assert!(job.result.unwrap().get().contains("42"));
    let id = server.submit(numbers(broken)).await;
    let job = server.end_of(id).await;
    assert_eq!((job.state, job.error.unwrap().reason.as_str()), (State::Failed, "reported"));
    // Longer than its lease, and the server is away for a while.
    let id = server.submit(leased(4_000, numbers(long.clone()))).await;
    server.until(id, |job| job.attempt == 1).await;
    server.stop().await;
    tokio::time::sleep(Duration::from_millis(700)).await; // How long it is away is what is tested.
    server.start_again().await;
    let job = server.end_of(id).await;
    assert_eq!((job.state, job.attempt), (State::Completed, 1), "{:?}", job.error);
    let id = server.submit(leased(4_000, numbers(long))).await;
    server.until(id, |job| job.attempt == 1).await;
    server.admin().cancel(id).await.unwrap();
    assert_eq!(server.end_of(id).await.state, State::Cancelled);
}

#[tokio::test]
async fn the_python_worker_keeps_the_protocol() {
    let command = example("worker.py", &["python3"], &[]);
    check(command, json!({"numbers": "no"}), json!({"numbers": [42], "seconds": 7})).await;
}

#[tokio::test]
async fn the_bash_worker_keeps_the_protocol() {
    let work = "payload=$(cat); sleep $(jq '.seconds // 0' <<<\"$payload\"); jq '.numbers | add' <<<\"$payload\"";
    let command = example("worker.sh", &["bash", "curl", "jq"], &["bash", "-c", work]);
    check(command, json!(["no", "object"]), json!({"numbers": [42], "seconds": 7})).await;
}
