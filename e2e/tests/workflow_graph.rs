//! workflow-graph's own worker, unmodified, against the real server.

use serde_json::{Value, json};
use std::{
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use windlass_e2e::{Server, program};
use windlass_sdk::Client;

/// Installed by `scripts/clients`.
fn stock_worker() -> PathBuf {
    let folder = program("windlass").parent().and_then(|folder| folder.parent()).unwrap().to_owned();
    let path = folder.join("clients/bin/workflow-graph-worker-sdk");
    assert!(path.exists(), "{} is not there; run scripts/clients first", path.display());
    path
}

struct StockWorker(Child);

impl StockWorker {
    /// Without a token: on this machine it needs none.
    fn start(url: &str, labels: &str) -> Self {
        let mut command = Command::new(stock_worker());
        command.env("SERVER_URL", url).env("WORKER_LABELS", labels).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("the worker starts"))
    }
}

impl Drop for StockWorker {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn job(id: &str, command: &str, needs: &[&str]) -> Value {
    json!({"id": id, "name": id, "status": "queued", "command": command, "depends_on": needs})
}

async fn post(client: &Client, path: &str, body: Option<Value>) -> Vec<u8> {
    let request = client.request("POST".parse().unwrap(), path);
    let request = match body {
        Some(body) => request.json(&body),
        None => request,
    };
    client.send(request).await.unwrap().bytes().await.unwrap().to_vec()
}

async fn create(client: &Client, jobs: Vec<Value>) -> String {
    let body = json!({"name": "test", "trigger": "on: push", "jobs": jobs});
    let created: Value = serde_json::from_slice(&post(client, "/api/workflows", Some(body)).await).unwrap();
    created["id"].as_str().unwrap().to_owned()
}

async fn jobs(client: &Client, id: &str) -> Vec<Value> {
    let request = client.request("GET".parse().unwrap(), &format!("/api/workflows/{id}/status"));
    let shown = client.send(request).await.unwrap().bytes().await.unwrap();
    serde_json::from_slice::<Value>(&shown).unwrap()["jobs"].as_array().unwrap().clone()
}

async fn statuses(client: &Client, id: &str) -> Vec<String> {
    jobs(client, id).await.iter().map(|job| job["status"].as_str().unwrap().to_owned()).collect()
}

/// Until the statuses are as expected, at most half a minute.
async fn become_so(client: &Client, id: &str, expected: &[&str]) {
    let begun = Instant::now();
    loop {
        let now = statuses(client, id).await;
        if now == expected {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{now:?} instead of {expected:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stock_worker_runs_a_diamond_with_labels_retries_and_logs() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), None).await;
    let client = server.admin();
    let _worker = StockWorker::start(&server.url, "docker,linux");
    let mut labelled = job("left", "echo left", &["top"]);
    labelled["required_labels"] = json!(["docker"]);
    let mut flaky = job("right", "test -e flag || { touch flag; exit 3; }", &["top"]);
    flaky["command"] = json!(format!("cd {} && {}", folder.path().display(), flaky["command"].as_str().unwrap()));
    flaky["max_retries"] = json!(1);
    let id = create(
        &client,
        vec![job("top", "echo one; echo two", &[]), labelled, flaky, job("end", "true", &["left", "right"])],
    )
    .await;
    post(&client, &format!("/api/workflows/{id}/run"), None).await;
    become_so(&client, &id, &["success"; 4]).await;
    assert_eq!(jobs(&client, &id).await[2]["attempt"], 1, "the retry of a job that is no root counts");
    let request = client.request("GET".parse().unwrap(), &format!("/api/workflows/{id}/jobs/top/logs"));
    let logs: Value = serde_json::from_slice(&client.send(request).await.unwrap().bytes().await.unwrap()).unwrap();
    let lines: Vec<&str> = logs.as_array().unwrap().iter().map(|chunk| chunk["data"].as_str().unwrap()).collect();
    assert_eq!(lines, ["one\n", "two\n"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stock_worker_notices_cancellation_and_failure_skips() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), None).await;
    let client = server.admin();
    let _worker = StockWorker::start(&server.url, "");
    let id = create(&client, vec![job("long", "sleep 60", &[]), job("after", "true", &["long"])]).await;
    post(&client, &format!("/api/workflows/{id}/run"), None).await;
    become_so(&client, &id, &["running", "queued"]).await;
    post(&client, &format!("/api/workflows/{id}/cancel"), None).await;
    become_so(&client, &id, &["cancelled", "cancelled"]).await;
    // The worker is free again once it has noticed, and what it then reports changes nothing.
    let bad =
        create(&client, vec![job("bad", "exit 3", &[]), job("after", "true", &["bad"]), job("other", "true", &[])])
            .await;
    post(&client, &format!("/api/workflows/{bad}/run"), None).await;
    become_so(&client, &bad, &["failure", "skipped", "success"]).await;
    assert_eq!(statuses(&client, &id).await, ["cancelled", "cancelled"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stock_worker_survives_a_killed_server_in_the_middle_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), None).await;
    let client = server.admin();
    let _worker = StockWorker::start(&server.url, "");
    let marks = folder.path().join("marks");
    let mark = |name: &str| format!("echo {name} >> {}", marks.display());
    let long = format!("{}; sleep 4", mark("long"));
    let id = create(
        &client,
        vec![job("first", &mark("first"), &[]), job("long", &long, &["first"]), job("last", &mark("last"), &["long"])],
    )
    .await;
    post(&client, &format!("/api/workflows/{id}/run"), None).await;
    become_so(&client, &id, &["success", "running", "queued"]).await;
    server.kill();
    server.restart().await;
    assert_eq!(statuses(&client, &id).await, ["success", "running", "queued"], "a restart forgets nothing");
    become_so(&client, &id, &["success"; 3]).await;
    assert_eq!(std::fs::read_to_string(marks).unwrap(), "first\nlong\nlast\n", "each ran once");
}
