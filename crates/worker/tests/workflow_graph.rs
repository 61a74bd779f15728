//! The worker program speaking workflow-graph's protocol, against a real server.

use crate::support::{Program, Server, content, gone};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::process::Command;
use windlass_engine::testing::eventually;

/// With short leases and no token: on this machine it needs none.
fn program(server: &Server, name: &str, flags: &[&str]) -> Program {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass-worker"));
    command.args(["--dialect", "workflow-graph", "--name", name, "--grace", "1"]).args(flags);
    Program::start(command, server)
}

fn job(id: &str, command: &str, needs: &[&str]) -> Value {
    json!({"id": id, "name": id, "status": "queued", "command": command, "depends_on": needs})
}

async fn call(server: &Server, method: &str, path: &str, body: Option<&Value>) -> Value {
    let client = server.admin();
    let mut request = client.request(method.parse().unwrap(), path);
    if let Some(body) = body {
        request = request.json(body);
    }
    let body = client.send(request).await.unwrap().bytes().await.unwrap();
    if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() }
}

async fn start(server: &Server, jobs: &[Value]) -> String {
    let body = json!({"name": "test", "trigger": "on: push", "jobs": jobs});
    let id = call(server, "POST", "/api/workflows", Some(&body)).await["id"].as_str().unwrap().to_owned();
    call(server, "POST", &format!("/api/workflows/{id}/run"), None).await;
    id
}

async fn jobs(server: &Server, id: &str) -> Vec<Value> {
    call(server, "GET", &format!("/api/workflows/{id}/status"), None).await["jobs"].as_array().unwrap().clone()
}

async fn log(server: &Server, id: &str, job: &str) -> String {
    let chunks = call(server, "GET", &format!("/api/workflows/{id}/jobs/{job}/logs"), None).await;
    chunks.as_array().unwrap().iter().map(|chunk| chunk["data"].as_str().unwrap()).collect()
}

/// Until the statuses are so.
async fn become_so(server: &Server, id: &str, expected: &[&str]) {
    let so = async || {
        let shown = jobs(server, id).await;
        let now: Vec<&str> = shown.iter().map(|job| job["status"].as_str().unwrap()).collect();
        (now == expected).then_some(())
    };
    eventually(format!("{expected:?}"), so).await;
}

#[tokio::test]
async fn jobs_hand_on_what_they_wrote_in_any_of_three_ways() {
    let server = Server::start().await;
    let worker = program(&server, "w", &["--tag", "docker", "--slots", "2"]);
    let line = job("line-1", "echo one; echo '::set-output url=s3://bucket/a=b'", &[]);
    let mut file = job("file", "printf 'version=1.2.3\\n' >> \"$WINDLASS_OUTPUTS\"", &[]);
    file["required_labels"] = json!(["docker"]);
    let result = job("result", "echo '{\"n\": 7, \"s\": \"t\"}' > \"$WINDLASS_RESULT\"", &[]);
    let end = "echo \"$WINDLASS_UPSTREAM_LINE_1_URL $WINDLASS_UPSTREAM_FILE_VERSION $WINDLASS_UPSTREAM_RESULT_N\"; \
               cat \"$WINDLASS_UPSTREAM\"; echo; echo \"$WINDLASS_WORKFLOW_ID/$WINDLASS_JOB_ID\"; \
               test -z \"$(cat)\"";
    let id = start(&server, &[line, file, result, job("end", end, &["line-1", "file", "result"])]).await;
    become_so(&server, &id, &["success"; 4]).await;
    let handed_on = r#"{"file":{"version":"1.2.3"},"line-1":{"url":"s3://bucket/a=b"},"result":{"n":"7","s":"t"}}"#;
    assert_eq!(log(&server, &id, "end").await, format!("s3://bucket/a=b 1.2.3 7\n{handed_on}\n{id}/end\n"));
    assert_eq!(log(&server, &id, "line-1").await, "one\n::set-output url=s3://bucket/a=b\n");
    worker.drains().await;
}

#[tokio::test]
async fn retries_failures_and_labels_are_as_the_protocol_says() {
    let server = Server::start().await;
    let worker = program(&server, "w", &[]);
    let flag = server.folder().join("flag");
    let mut flaky = job("flaky", &format!("test -e {0} || {{ touch {0}; exit 3; }}", flag.display()), &[]);
    flaky["max_retries"] = json!(1);
    let mut bad = job("bad", "echo no luck; exit 7", &[]);
    bad["max_retries"] = json!(1);
    let mut never = job("never", "exit 100", &[]);
    never["max_retries"] = json!(9);
    let mut gpu = job("gpu", "true", &[]);
    gpu["required_labels"] = json!(["gpu"]);
    let id = start(&server, &[flaky, bad, job("after", "true", &["bad"]), never, gpu]).await;
    become_so(&server, &id, &["success", "failure", "skipped", "failure", "queued"]).await;
    let shown = jobs(&server, &id).await;
    assert_eq!(shown[1]["output"], "exit code 7: no luck");
    let attempts: Vec<&Value> = shown.iter().map(|job| &job["attempt"]).collect();
    assert_eq!(attempts, [1, 1, 0, 0, 0], "exit code 100 says that trying again would not help");
    let second = program(&server, "w2", &["--tag", "gpu"]);
    become_so(&server, &id, &["success", "failure", "skipped", "failure", "success"]).await;
    worker.drains().await;
    second.drains().await;
}

#[tokio::test]
async fn a_cancelled_job_ends_with_all_its_processes_and_the_worker_goes_on() {
    let server = Server::start().await;
    let worker = program(&server, "w", &[]);
    let file = server.folder().join("pid");
    let command = format!("echo begun; sh -c 'echo $$ > {}; sleep 1000; sleep 1000'; sleep 1", file.display());
    let id = start(&server, &[job("long", &command, &[]), job("after", "true", &["long"])]).await;
    let pid = content(&file).await.parse().unwrap();
    call(&server, "POST", &format!("/api/workflows/{id}/cancel"), None).await;
    gone(pid).await;
    let next = start(&server, &[job("next", "true", &[])]).await;
    become_so(&server, &next, &["success"]).await;
    become_so(&server, &id, &["cancelled", "cancelled"]).await;
    assert_eq!(log(&server, &id, "long").await, "begun\n");
    worker.drains().await;
}

#[tokio::test]
async fn a_worker_that_lost_its_lease_ends_the_command_and_says_nothing() {
    let server = Server::start().await;
    let first = program(&server, "first", &["--lease-ms", "1000"]);
    let file = server.folder().join("pid");
    let mut long =
        job("long", &format!("test $WINDLASS_ATTEMPT = 2 || {{ echo $$ > {}; sleep 1000; }}", file.display()), &[]);
    long["max_retries"] = json!(1);
    let id = start(&server, &[long]).await;
    let pid = content(&file).await.parse().unwrap();
    first.signal(Signal::SIGSTOP);
    let second = program(&server, "second", &[]);
    become_so(&server, &id, &["success"]).await;
    first.signal(Signal::SIGCONT);
    gone(pid).await;
    second.drains().await;
    let next = start(&server, &[job("next", "true", &[])]).await;
    become_so(&server, &next, &["success"]).await;
    assert_eq!(jobs(&server, &id).await[0]["attempt"], 1, "the late one changed nothing");
    first.drains().await;
}

#[tokio::test]
async fn a_lease_shorter_than_the_job_is_kept_through_a_restart_of_the_server() {
    let mut server = Server::start().await;
    let worker = program(&server, "w", &[]);
    let runs = server.folder().join("runs");
    let long = format!("echo run >> {}; for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 1; done", runs.display());
    let id = start(&server, &[job("long", &long, &[]), job("after", "true", &["long"])]).await;
    become_so(&server, &id, &["running", "queued"]).await;
    tokio::time::sleep(Duration::from_millis(700)).await; // Somewhere in the middle of the job.
    server.stop().await;
    tokio::time::sleep(Duration::from_millis(700)).await; // How long it is away is what is tested.
    server.start_again().await;
    become_so(&server, &id, &["success"; 2]).await;
    let printed = log(&server, &id, "long").await;
    assert!((1..=8).all(|i| printed.contains(&format!("line {i}\n"))), "{printed}");
    assert_eq!(std::fs::read_to_string(runs).unwrap(), "run\n", "it ran once");
    worker.drains().await;
}

#[tokio::test]
async fn one_signal_drains_and_two_give_back() {
    let server = Server::start().await;
    let mut worker = program(&server, "w", &[]);
    let id = start(&server, &[job("long", "sleep 2; echo done", &[]), job("after", "true", &["long"])]).await;
    become_so(&server, &id, &["running", "queued"]).await;
    worker.signal(Signal::SIGTERM);
    assert_eq!(worker.ends().await, Some(0));
    become_so(&server, &id, &["success", "queued"]).await;
    let mut idle = program(&server, "idle", &["--tag", "other"]);
    become_so(&server, &id, &["success"; 2]).await;
    let begun = Instant::now();
    idle.signal(Signal::SIGTERM);
    assert_eq!(idle.ends().await, Some(0));
    assert!(
        begun.elapsed() < Duration::from_secs(4),
        "an idle one waits for its claim's answer: {:?}",
        begun.elapsed()
    );
    let mut worker = program(&server, "w", &[]);
    let id = start(&server, &[job("long", "sleep 1000", &[])]).await;
    become_so(&server, &id, &["running"]).await;
    worker.signal(Signal::SIGINT);
    tokio::time::sleep(Duration::from_millis(300)).await; // Two signals of one moment are one.
    worker.signal(Signal::SIGINT);
    assert_eq!(worker.ends().await, Some(4));
    become_so(&server, &id, &["queued"]).await;
    let claimed = claim(&server).await;
    assert_eq!(claimed["job"]["job_id"], "long", "it has no retries, and was given back uncharged");
}

async fn claim(server: &Server) -> Value {
    let client = server.worker();
    let body = json!({"worker_id": "x", "labels": []});
    let request = client.request("POST".parse().unwrap(), "/api/jobs/claim").json(&body);
    serde_json::from_slice(&client.send(request).await.unwrap().bytes().await.unwrap()).unwrap()
}

#[tokio::test]
async fn exit_codes_say_what_happened() {
    let server = Server::start().await;
    let run = |flags: &[&str], token: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass-worker"));
        command.args(["--dialect", "workflow-graph", "--token", token]).args(flags);
        Program::start(command, &server)
    };
    assert_eq!(run(&[], "wrong").ends().await, Some(3));
    assert_eq!(run(&["--exit-when-idle"], "test-worker").ends().await, Some(0));
    let id = start(&server, &[job("a", "true", &[]), job("b", "true", &["a"])]).await;
    assert_eq!(run(&["--once"], "test-worker").ends().await, Some(0));
    become_so(&server, &id, &["success", "queued"]).await;
    assert_eq!(run(&["--exit-when-idle"], "test-worker").ends().await, Some(0));
    become_so(&server, &id, &["success"; 2]).await;
}
