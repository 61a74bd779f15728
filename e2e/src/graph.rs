//! workflow-graph's own worker, unmodified, and the calls of its clients.

use crate::program;
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use windlass_sdk::Client;

/// Installed by `scripts/clients`.
fn stock_worker() -> PathBuf {
    let folder = program("windlass").parent().and_then(|folder| folder.parent()).unwrap().to_owned();
    let path = folder.join("clients/bin/workflow-graph-worker-sdk");
    assert!(path.exists(), "{} is not there; run scripts/clients first", path.display());
    path
}

/// A worker that is told only where the server is and what it offers: the original one, or one of ours for its protocol.
pub struct GraphWorker(Child);

impl GraphWorker {
    /// The original. Without a token: on this machine it needs none.
    pub fn stock(url: &str, labels: &str) -> Self {
        Self::start(Command::new(stock_worker()), url, labels)
    }

    pub fn start(mut command: Command, url: &str, labels: &str) -> Self {
        command.env("SERVER_URL", url).env("WORKER_LABELS", labels).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("the worker starts"))
    }
}

impl Drop for GraphWorker {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

pub fn job(id: &str, command: &str, needs: &[&str]) -> Value {
    json!({"id": id, "name": id, "status": "queued", "command": command, "depends_on": needs})
}

/// Workflows by their own calls.
pub struct GraphCalls(pub Client);

impl GraphCalls {
    pub async fn call(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        let mut request = self.0.request(method.parse().unwrap(), path);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let body = self.0.send(request).await.unwrap().bytes().await.unwrap();
        if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() }
    }

    pub async fn create(&self, jobs: &[Value]) -> String {
        let body = json!({"name": "test", "trigger": "on: push", "jobs": jobs});
        self.call("POST", "/api/workflows", Some(body)).await["id"].as_str().unwrap().to_owned()
    }

    pub async fn run(&self, id: &str) {
        self.call("POST", &format!("/api/workflows/{id}/run"), None).await;
    }

    /// Creates and runs.
    pub async fn start(&self, jobs: &[Value]) -> String {
        let id = self.create(jobs).await;
        self.run(&id).await;
        id
    }

    pub async fn cancel(&self, id: &str) {
        self.call("POST", &format!("/api/workflows/{id}/cancel"), None).await;
    }

    pub async fn jobs(&self, id: &str) -> Vec<Value> {
        self.call("GET", &format!("/api/workflows/{id}/status"), None).await["jobs"].as_array().unwrap().clone()
    }

    pub async fn statuses(&self, id: &str) -> Vec<String> {
        self.jobs(id).await.iter().map(|job| job["status"].as_str().unwrap().to_owned()).collect()
    }

    pub async fn log(&self, id: &str, job: &str) -> String {
        let chunks = self.call("GET", &format!("/api/workflows/{id}/jobs/{job}/logs"), None).await;
        chunks.as_array().unwrap().iter().map(|chunk| chunk["data"].as_str().unwrap()).collect()
    }

    /// Until the statuses are as expected, at most so long.
    pub async fn become_within(&self, id: &str, expected: &[&str], patience: Duration) {
        let begun = Instant::now();
        loop {
            let now = self.statuses(id).await;
            if now == expected {
                return;
            }
            assert!(begun.elapsed() < patience, "{now:?} instead of {expected:?}");
            tokio::time::sleep(Duration::from_millis(50)).await; // The pause between two looks: how long they may take differs.
        }
    }

    pub async fn become_so(&self, id: &str, expected: &[&str]) {
        self.become_within(id, expected, Duration::from_secs(30)).await;
    }
}
