//! neops's protocol beside the native API: runs of one step, which are an acquire job and an execute job, beside runs of a native
//! workflow of two steps.

use super::{
    super::{
        Output,
        http::{
            connection::{Address, Connection},
            subject::Subject,
        },
        report::Latency,
        work::progress,
    },
    joblib::Cycle,
};
use anyhow::{Context, bail, ensure};
use clap::Args;
use http::Method;
use serde::Serialize;
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::task::JoinSet;

/// How long a job or the end of a run may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two polls that found nothing: this protocol has no long poll.
const POLL: Duration = Duration::from_millis(1);

#[derive(Args)]
pub struct NeopsBench {
    /// Server to measure. Give two to compare them in turns.
    #[arg(long, value_name = "URL", required = true)]
    base_url: Vec<String>,
    /// An admin token of the first server. Then the native API is measured too.
    #[arg(long, env = "WINDLASS_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Runs in each round.
    #[arg(long, default_value_t = 1_000)]
    runs: usize,
    /// Number of connections, each with one request at a time and a worker of its own.
    #[arg(long, default_value_t = 8)]
    connections: usize,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Serialize)]
struct Report {
    base_url: String,
    /// `neops`, or `native` for our own API.
    api: &'static str,
    round: usize,
    connections: usize,
    /// From the submit of a run until it has ended.
    runs_per_s: f64,
    run: Latency,
}

impl NeopsBench {
    pub async fn run(self) -> anyhow::Result<()> {
        let addresses = self.base_url.iter().map(|url| Address::parse(url)).collect::<Result<Vec<_>, _>>()?;
        let tokens: Vec<String> = self.token.clone().into_iter().collect();
        let native = match tokens.is_empty() {
            true => None,
            false => Subject::all(&self.base_url[..1], &tokens, None).await?.pop(),
        };
        for round in 1..=self.rounds {
            for address in &addresses {
                let mut callers = Vec::new();
                for number in 0..self.connections {
                    callers.push(Neops::open(address, number).await?);
                }
                self.measure(address, "neops", round, callers).await?;
            }
            if let Some(subject) = &native {
                let mut callers = Vec::new();
                for number in 0..self.connections {
                    callers.push(Native::open(subject, number).await?);
                }
                self.measure(&subject.address, "native", round, callers).await?;
            }
        }
        if let Some(subject) = &native {
            subject.clean_up().await;
        }
        Ok(())
    }

    async fn measure<C: Cycle>(
        &self,
        address: &Address,
        api: &'static str,
        round: usize,
        callers: Vec<C>,
    ) -> anyhow::Result<()> {
        let (runs_per_s, run) = self.cycles(api, callers).await?;
        let base_url = address.to_string();
        let report = Report { base_url, api, round, connections: self.connections, runs_per_s, run };
        match self.output {
            Output::Json | Output::Jsonl => println!("{}", serde_json::to_string(&report)?),
            Output::Table => println!(
                "{address} {api} round {round}: {runs_per_s:.0} runs/s (p50 {:.2} ms, p99 {:.2} ms)",
                run.p50_ms, run.p99_ms
            ),
        }
        Ok(())
    }

    async fn cycles<C: Cycle>(&self, what: &'static str, callers: Vec<C>) -> anyhow::Result<(f64, Latency)> {
        let left = Arc::new(AtomicUsize::new(self.runs));
        let bar = progress(what, self.runs);
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for mut caller in callers {
            let (left, bar) = (left.clone(), bar.clone());
            tasks.spawn(async move {
                let mut times = Vec::new();
                while left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)).is_ok() {
                    let begun = Instant::now();
                    caller.cycle().await?;
                    times.push(begun.elapsed());
                    bar.inc(1);
                }
                anyhow::Ok(times)
            });
        }
        let mut times = Vec::with_capacity(self.runs);
        while let Some(task) = tasks.join_next().await {
            times.extend(task??);
        }
        let took = begun.elapsed().as_secs_f64();
        bar.finish_and_clear();
        ensure!(times.len() == self.runs, "{} of {} runs were done", times.len(), self.runs);
        Ok((self.runs as f64 / took, Latency::of(&mut times)))
    }
}

/// A worker with a block of its own, and somebody who starts runs of it.
struct Neops {
    connection: Connection,
    poll: String,
    execute: String,
}

impl Neops {
    async fn open(address: &Address, number: usize) -> anyhow::Result<Self> {
        let mut connection = Connection::open(address, "").await?;
        let worker = json!({"version": "bench", "name": format!("bench-{number}")}).to_string();
        let worker: Value = serde_json::from_slice(&connection.post("/workers/register", worker).await?)?;
        let worker = worker["uuid"].as_str().context("the server did not say the worker's uuid")?;
        let name = format!("echo-{number}");
        let block = json!({"name": name, "package": "fb.bench", "majorVersion": 1, "minorVersion": 0, "patchVersion": 0,
            "workerId": worker, "description": "bench", "runOn": "global", "fbType": "check", "isPure": true,
            "parameterJsonSchema": {"type": "object"}, "resultDataJsonSchema": {"type": "object"}});
        connection.post("/function-blocks/register", block.to_string()).await?;
        let workflow = json!({"type": "workflow", "label": "w", "name": name, "package": "wf.bench", "majorVersion": 1,
            "minorVersion": 0, "patchVersion": 0, "seedEntity": "global",
            "steps": [{"type": "functionBlock", "label": "echo", "functionBlock": format!("fb.bench/{name}:1")}]});
        connection.post("/workflow-definition/publish", json!({"workflow": workflow}).to_string()).await?;
        let id = json!({"name": name, "package": "fb.bench", "majorVersion": 1, "minorVersion": 0, "patchVersion": 0});
        let poll = json!({"functionBlockIds": [id], "workerId": worker}).to_string();
        let execute = json!({"workflow": format!("wf.bench/{name}:1"), "executeOnParameters": {}, "parameters": {}});
        Ok(Self { connection, poll, execute: execute.to_string() })
    }

    /// Takes the next job, and says that it went well.
    async fn work(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let jobs: Value =
                serde_json::from_slice(&self.connection.post("/blackboard/job", self.poll.clone()).await?)?;
            if let Some(job) = jobs[0]["jobId"].as_str() {
                let result =
                    json!({"jobExecutionId": job, "status": "success", "result": {"success": true, "data": {}}});
                return self.connection.post("/blackboard/job/result", result.to_string()).await.map(drop);
            }
            ensure!(begun.elapsed() < PATIENCE, "no job came within {} s", PATIENCE.as_secs());
            tokio::time::sleep(POLL).await;
        }
    }
}

impl Cycle for Neops {
    async fn cycle(&mut self) -> anyhow::Result<()> {
        let run: Value =
            serde_json::from_slice(&self.connection.post("/workflow-execution", self.execute.clone()).await?)?;
        let run = run["uuid"].as_str().context("the server did not say the run's uuid")?.to_owned();
        self.work().await?;
        self.work().await?;
        let (path, begun) = (format!("/workflow-execution/id/{run}"), Instant::now());
        loop {
            let (_, answer) = self.connection.call(Method::GET, &path, "").await?;
            match serde_json::from_slice::<Value>(&answer)?["status"].as_str() {
                Some("completed_ack") => return Ok(()),
                Some(failed) if failed.starts_with("failed") => bail!("run {run} ended as {failed}"),
                _ => ensure!(begun.elapsed() < PATIENCE, "run {run} did not end within {} s", PATIENCE.as_secs()),
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

/// The same of the native API.
struct Native {
    people: Connection,
    worker: Connection,
    start: String,
    claim: String,
    namespace: String,
}

impl Native {
    async fn open(subject: &Subject, number: usize) -> anyhow::Result<Self> {
        let mut people = Connection::open(&subject.address, &subject.token).await?;
        let worker = Connection::open(&subject.address, &subject.worker_token).await?;
        let (name, namespace) = (format!("two-{number}"), subject.namespace.clone());
        let workflow = json!({"windlass": "workflow", "steps": {"a": {"tags": [name], "payload": {}},
            "b": {"needs": "a", "tags": [name], "payload": {}}}});
        let at = format!("/api/v1/workflows/{name}?namespace={namespace}");
        let (status, answer) = people.call(Method::PUT, &at, workflow.to_string()).await?;
        ensure!(status.is_success(), "{at} answered {status}: {}", String::from_utf8_lossy(&answer));
        let claim = json!({"worker": format!("bench-{number}"), "tags": [name], "wait_ms": 10_000}).to_string();
        let start = format!("/api/v1/workflows/{name}/runs?namespace={namespace}");
        Ok(Self { people, worker, start, claim, namespace })
    }
}

impl Cycle for Native {
    async fn cycle(&mut self) -> anyhow::Result<()> {
        let at = |path: &str| format!("/api/v1/{path}?namespace={}", self.namespace);
        self.people.post(&self.start, "{}").await?;
        for _ in 0..2 {
            let claimed: Value =
                serde_json::from_slice(&self.worker.post(&at("leases/claim"), self.claim.clone()).await?)?;
            let lease = claimed["leases"][0]["lease"].as_str().context("a step cannot be claimed")?;
            self.worker.post(&at("leases/complete"), json!({ "lease": lease }).to_string()).await?;
        }
        Ok(())
    }
}
