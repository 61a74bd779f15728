//! workflow-graph's protocol, beside its original server.

use super::super::{
    Output,
    http::connection::{Address, Connection},
    work::progress,
};
use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use http::Method;
use serde::{Deserialize, Serialize};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::task::JoinSet;

/// The original applies what it acknowledged a little later; what it has not applied by then, it has lost.
const END_PATIENCE: Duration = Duration::from_secs(10);
/// Nothing to claim for so long while there should be something: it will never come.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Args)]
pub struct WorkflowGraphBench {
    /// Server to measure. Give two to compare them in turns.
    #[arg(long, value_name = "URL", required = true)]
    base_url: Vec<String>,
    /// A token, if the server needs one.
    #[arg(long, env = "WINDLASS_TOKEN", hide_env_values = true, default_value = "")]
    token: String,
    #[arg(long, default_value_t = 100)]
    workflows: usize,
    /// Jobs per workflow.
    #[arg(long, default_value_t = 100)]
    jobs: usize,
    #[arg(long, value_enum, default_value = "roots")]
    shape: Shape,
    /// Number of jobs at the head of the queue with a label that no caller has.
    #[arg(long, default_value_t = 0)]
    foreign: usize,
    /// Number of connections, each with one request at a time: claim, complete, claim, …
    #[arg(long, default_value_t = 8)]
    connections: usize,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

/// How the jobs of a workflow depend on each other.
#[derive(Clone, Copy, ValueEnum)]
pub enum Shape {
    /// Not at all.
    Roots,
    /// All but two between the first and the last.
    Fan,
    /// In rows of a hundred, each job behind two of the row before.
    Rows,
}

impl Shape {
    pub fn needs(self, at: usize, jobs: usize) -> Vec<usize> {
        const ROW: usize = 100;
        match self {
            Shape::Roots => Vec::new(),
            Shape::Fan if at == 0 => Vec::new(),
            Shape::Fan if at == jobs - 1 => (1..at).collect(),
            Shape::Fan => vec![0],
            Shape::Rows if at < ROW => Vec::new(),
            Shape::Rows => {
                let row = at / ROW * ROW;
                vec![at - ROW, row - ROW + (at + 1) % ROW]
            }
        }
    }
}

#[derive(Serialize)]
struct Figures {
    base_url: String,
    round: usize,
    workflows: usize,
    jobs: usize,
    foreign: usize,
    connections: usize,
    create_s: f64,
    run_s: f64,
    work_s: f64,
    /// Claim + complete.
    cycles_per_s: f64,
    /// Without those that were lost.
    kept_per_s: f64,
    /// Jobs whose completion was acknowledged and that are not `success`.
    lost: usize,
    /// Jobs that could never be claimed.
    stuck: usize,
    /// Workflows of which every job succeeded.
    whole: usize,
}

impl WorkflowGraphBench {
    pub async fn run(self) -> anyhow::Result<()> {
        let addresses = self.base_url.iter().map(|url| Address::parse(url)).collect::<Result<Vec<_>, _>>()?;
        if self.foreign > 0 {
            for address in &addresses {
                let mut connection = Connection::open(address, &self.token).await?;
                let ids = create(&mut connection, 1, &workflow(self.foreign, Shape::Roots, &["elsewhere"])?).await?;
                run(&mut connection, &ids).await?;
            }
        }
        for round in 1..=self.rounds {
            for address in &addresses {
                let figures = self.measure(address, round).await?;
                match self.output {
                    Output::Json | Output::Jsonl => println!("{}", serde_json::to_string(&figures)?),
                    Output::Table => println!(
                        "{} round {round}: create {:.3} s, run {:.3} s, {:.0} claim + complete/s ({:.2} s), {} lost, {} stuck, {} of {} workflows whole",
                        figures.base_url,
                        figures.create_s,
                        figures.run_s,
                        figures.cycles_per_s,
                        figures.work_s,
                        figures.lost,
                        figures.stuck,
                        figures.whole,
                        figures.workflows
                    ),
                }
            }
        }
        Ok(())
    }

    async fn measure(&self, address: &Address, round: usize) -> anyhow::Result<Figures> {
        let mut connection = Connection::open(address, &self.token).await?;
        let body = workflow(self.jobs, self.shape, &[])?;
        let begun = Instant::now();
        let ids = create(&mut connection, self.workflows, &body).await?;
        let create_s = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        run(&mut connection, &ids).await?;
        let run_s = begun.elapsed().as_secs_f64();
        let (done, work_s) = self.work(address).await?;
        let (succeeded, whole) = self.succeeded(&mut connection, &ids, done).await?;
        let jobs = self.workflows * self.jobs;
        Ok(Figures {
            base_url: address.to_string(),
            round,
            workflows: self.workflows,
            jobs: self.jobs,
            foreign: self.foreign,
            connections: self.connections,
            create_s,
            run_s,
            work_s,
            cycles_per_s: done as f64 / work_s,
            kept_per_s: succeeded as f64 / work_s,
            lost: done - succeeded,
            stuck: jobs - done,
            whole,
        })
    }

    /// How many were claimed and completed, and within how long.
    async fn work(&self, address: &Address) -> anyhow::Result<(usize, f64)> {
        let left = Arc::new(AtomicUsize::new(self.workflows * self.jobs));
        let bar = progress("claim + complete", self.workflows * self.jobs);
        let mut connections = Vec::new();
        for _ in 0..self.connections {
            connections.push(Connection::open(address, &self.token).await?);
        }
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for (number, mut connection) in connections.into_iter().enumerate() {
            let (left, bar) = (left.clone(), bar.clone());
            tasks.spawn(async move {
                let claim = format!(r#"{{"worker_id":"bench-{number}","labels":[],"lease_ttl_secs":60}}"#);
                let (mut done, mut last) = (0, Instant::now());
                while left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)).is_ok() {
                    if !cycle(&mut connection, &claim).await? {
                        break;
                    }
                    (done, last) = (done + 1, Instant::now());
                    bar.inc(1);
                }
                anyhow::Ok((done, last))
            });
        }
        let (mut done, mut end) = (0, begun);
        while let Some(task) = tasks.join_next().await {
            let (one, last) = task??;
            (done, end) = (done + one, end.max(last));
        }
        bar.finish_and_clear();
        Ok((done, end.duration_since(begun).as_secs_f64()))
    }

    /// Jobs of which the server says so, at most as many as were completed, and workflows with nothing but such jobs.
    async fn succeeded(
        &self,
        connection: &mut Connection,
        ids: &[String],
        done: usize,
    ) -> anyhow::Result<(usize, usize)> {
        let begun = Instant::now();
        loop {
            let (mut succeeded, mut whole) = (0, 0);
            for id in ids {
                let (status, shown) = connection.call(Method::GET, &format!("/api/workflows/{id}/status"), "").await?;
                ensure!(status.is_success(), "the status of {id} is {status}");
                #[derive(Deserialize)]
                struct Job {
                    status: String,
                }
                #[derive(Deserialize)]
                struct Shown {
                    jobs: Vec<Job>,
                }
                let shown: Shown = serde_json::from_slice(&shown).context("the status is not a workflow")?;
                let good = shown.jobs.iter().filter(|job| job.status == "success").count();
                succeeded += good;
                whole += usize::from(good == self.jobs);
            }
            if succeeded == done || begun.elapsed() > END_PATIENCE {
                return Ok((succeeded.min(done), whole));
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

fn workflow(jobs: usize, shape: Shape, labels: &[&str]) -> anyhow::Result<String> {
    let job = |at: usize| {
        let needs: Vec<String> = shape.needs(at, jobs).into_iter().map(|need| format!("j{need}")).collect();
        let id = format!("j{at}");
        serde_json::json!({
            "id": id, "name": id, "status": "queued", "command": "true", "depends_on": needs, "required_labels": labels,
        })
    };
    let jobs: Vec<_> = (0..jobs).map(job).collect();
    Ok(serde_json::to_string(&serde_json::json!({"name": "bench", "trigger": "on: bench", "jobs": jobs}))?)
}

async fn create(connection: &mut Connection, count: usize, body: &str) -> anyhow::Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Created {
        id: String,
    }
    let mut ids = Vec::with_capacity(count);
    for _ in 0..count {
        let created = connection.post("/api/workflows", body.to_owned()).await?;
        ids.push(serde_json::from_slice::<Created>(&created)?.id);
    }
    Ok(ids)
}

async fn run(connection: &mut Connection, ids: &[String]) -> anyhow::Result<()> {
    for id in ids {
        connection.post(&format!("/api/workflows/{id}/run"), "").await?;
    }
    Ok(())
}

/// False: nothing came.
async fn cycle(connection: &mut Connection, claim: &str) -> anyhow::Result<bool> {
    #[derive(Deserialize)]
    struct Lease<'a> {
        lease_id: &'a str,
    }
    #[derive(Deserialize)]
    struct Claimed<'a> {
        #[serde(borrow)]
        lease: Lease<'a>,
    }
    let begun = Instant::now();
    loop {
        let answer = connection.post("/api/jobs/claim", claim.to_owned()).await?;
        if let Some(claimed) = serde_json::from_slice::<Option<Claimed>>(&answer)? {
            let path = format!("/api/jobs/{}/complete", claimed.lease.lease_id);
            connection.post(&path, r#"{"outputs":{}}"#).await?;
            return Ok(true);
        }
        if begun.elapsed() > PATIENCE {
            return Ok(false);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
