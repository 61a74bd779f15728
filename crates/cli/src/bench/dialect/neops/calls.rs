//! The calls of neops's workers and of whoever starts runs, over connections of their own.

use super::super::super::http::connection::{Address, Connection};
use anyhow::{Context, bail, ensure};
use http::Method;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How long a job or the end of a run may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two polls that found nothing: this protocol has no long poll.
const POLL: Duration = Duration::from_millis(1);
const PACKAGE: &str = "fb.bench";

/// A function block.
pub struct Block {
    pub name: String,
    pub on: &'static str,
    pub pure: bool,
}

impl Block {
    pub fn pure(name: &str) -> Self {
        Self { name: name.into(), on: "global", pure: true }
    }
}

fn versionable(name: &str) -> Value {
    json!({"name": name, "package": PACKAGE, "majorVersion": 1, "minorVersion": 0, "patchVersion": 0})
}

pub struct Worker {
    connection: Connection,
    poll: String,
}

impl Worker {
    pub async fn open(address: &Address, blocks: &[Block]) -> anyhow::Result<Self> {
        let mut connection = Connection::open(address, "").await?;
        let worker = json!({"version": "bench", "name": "bench"}).to_string();
        let worker: Value = serde_json::from_slice(&connection.post("/workers/register", worker).await?)?;
        let worker = worker["uuid"].as_str().context("the server did not say the worker's uuid")?;
        for block in blocks {
            let mut body = versionable(&block.name);
            let more = json!({"workerId": worker, "description": "bench", "runOn": block.on, "fbType": "execute",
                "isPure": block.pure, "reversible": !block.pure, "parameterJsonSchema": {"type": "object"},
                "resultDataJsonSchema": {"type": "object"}});
            if let Some((body, more)) = body.as_object_mut().zip(more.as_object()) {
                body.extend(more.clone());
            }
            connection.post("/function-blocks/register", body.to_string()).await?;
        }
        let ids: Vec<Value> = blocks.iter().map(|block| versionable(&block.name)).collect();
        let poll = json!({"functionBlockIds": ids, "workerId": worker}).to_string();
        Ok(Self { connection, poll })
    }

    /// The id of a job, if there is one, and how long the answer was.
    pub async fn poll(&mut self) -> anyhow::Result<(Option<String>, usize)> {
        let answer = self.connection.post("/blackboard/job", self.poll.clone()).await?;
        // The context may be large, and is nobody's business here.
        let id = answer.windows(JOB.len()).position(|text| text == JOB).and_then(|at| {
            let id = answer.get(at + JOB.len()..at + JOB.len() + 36)?;
            Some(String::from_utf8_lossy(id).into_owned())
        });
        Ok((id, answer.len()))
    }

    /// Until there is one.
    pub async fn next(&mut self) -> anyhow::Result<String> {
        let begun = Instant::now();
        loop {
            if let (Some(job), _) = self.poll().await? {
                return Ok(job);
            }
            ensure!(begun.elapsed() < PATIENCE, "no job came within {} s", PATIENCE.as_secs());
            tokio::time::sleep(POLL).await;
        }
    }

    /// Says that it went well. `data` is an object as text.
    pub async fn push(&mut self, job: &str, data: &str) -> anyhow::Result<()> {
        let body =
            format!(r#"{{"jobExecutionId":"{job}","status":"success","result":{{"success":true,"data":{data}}}}}"#);
        self.connection.post("/blackboard/job/result", body).await.map(drop)
    }

    /// Takes the next job, and says that it went well.
    pub async fn work(&mut self) -> anyhow::Result<()> {
        let job = self.next().await?;
        self.push(&job, "{}").await
    }
}

const JOB: &[u8] = br#""jobId":""#;

/// Publishes workflows and starts runs of them.
pub struct Caller {
    connection: Connection,
}

impl Caller {
    pub async fn open(address: &Address) -> anyhow::Result<Self> {
        Ok(Self { connection: Connection::open(address, "").await? })
    }

    /// A workflow with a step for each of these blocks.
    pub async fn publish(&mut self, name: &str, seed: &str, blocks: &[String]) -> anyhow::Result<()> {
        let step = |(at, block): (usize, &String)| {
            let block = format!("{PACKAGE}/{block}:1");
            json!({"type": "functionBlock", "label": format!("s{at}"), "functionBlock": block})
        };
        let steps: Vec<Value> = blocks.iter().enumerate().map(step).collect();
        let workflow = json!({"type": "workflow", "label": "w", "name": name, "package": "wf.bench", "majorVersion": 1,
            "minorVersion": 0, "patchVersion": 0, "seedEntity": seed, "steps": steps});
        let body = json!({"workflow": workflow}).to_string();
        self.connection.post("/workflow-definition/publish", body).await.map(drop)
    }

    pub async fn start(&mut self, name: &str, ids: &[u64]) -> anyhow::Result<String> {
        let body =
            json!({"workflow": format!("wf.bench/{name}:1"), "executeOnParameters": {"ids": ids}, "parameters": {}});
        let run: Value = serde_json::from_slice(&self.connection.post("/workflow-execution", body.to_string()).await?)?;
        Ok(run["uuid"].as_str().context("the server did not say the run's uuid")?.to_owned())
    }

    /// Waits until a run has completed.
    pub async fn ends(&mut self, run: &str) -> anyhow::Result<()> {
        let (path, begun) = (format!("/workflow-execution/id/{run}"), Instant::now());
        loop {
            let (_, answer) = self.connection.call(Method::GET, &path, "").await?;
            let answer: Value = serde_json::from_slice(&answer)?;
            match answer["status"].as_str() {
                Some("completed_ack") => return Ok(()),
                Some(failed) if failed.starts_with("failed") => {
                    bail!("run {run} ended as {failed}: {}", answer["reason"])
                }
                _ => ensure!(begun.elapsed() < PATIENCE, "run {run} did not end within {} s", PATIENCE.as_secs()),
            }
            tokio::time::sleep(POLL).await;
        }
    }
}
