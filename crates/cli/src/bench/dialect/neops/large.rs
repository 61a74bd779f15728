//! Small jobs by themselves, and beside a large result.

use super::{
    super::super::{figures::Latency, http::subject::Subject},
    NeopsBench,
    calls::{Block, Caller, Worker},
};
use anyhow::Context;
use serde::Serialize;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

#[derive(Serialize)]
struct Figures {
    round: usize,
    jobs: usize,
    large_mb: usize,
    /// From the poll that brings a small job until its result is taken.
    alone: Latency,
    beside: Latency,
    ratio: f64,
    /// What the large result took.
    large_s: f64,
    memory_peak_mb: f64,
}

impl NeopsBench {
    pub(super) async fn beside_large(&self) -> anyhow::Result<()> {
        let subject = Subject::all(&[], &[], None).await?.pop().context("there is no server")?;
        let data = format!(r#"{{"text":"{}"}}"#, "x".repeat(self.large_mb << 20));
        for round in 1..=self.rounds {
            let alone = self.small(&subject).await?;
            let (beside, large_s) = tokio::try_join!(self.small(&subject), large(&subject, &data))?;
            let ratio = beside.p99_ms / alone.p99_ms;
            let memory_peak_mb = subject.memory_peak_mb().context("this needs /proc")?;
            let (jobs, large_mb) = (self.runs, self.large_mb);
            let text = format!(
                "round {round}: small jobs p50 {:.2} ms, p99 {:.2} ms; beside {large_mb} MiB ({large_s:.2} s) p50 {:.2} ms, p99 {:.2} ms: {ratio:.2}; memory {memory_peak_mb:.0} MB at most",
                alone.p50_ms, alone.p99_ms, beside.p50_ms, beside.p99_ms
            );
            let figures = Figures { round, jobs, large_mb, alone, beside, ratio, large_s, memory_peak_mb };
            self.say(&figures, &text)?;
        }
        Ok(())
    }

    /// Runs of one step, two jobs each.
    async fn small(&self, subject: &Subject) -> anyhow::Result<Latency> {
        let each = (self.runs / 2).div_ceil(self.connections);
        let mut tasks = JoinSet::new();
        for number in 0..self.connections {
            let name = format!("small-{number}");
            let mut worker = Worker::open(&subject.address, &[Block::pure(&name)]).await?;
            let mut caller = Caller::open(&subject.address).await?;
            caller.publish(&name, "global", std::slice::from_ref(&name)).await?;
            tasks.spawn(async move {
                let mut times: Vec<Duration> = Vec::new();
                for _ in 0..each {
                    let run = caller.start(&name, &[]).await?;
                    for _ in 0..2 {
                        let (job, asked) = loop {
                            let asked = Instant::now();
                            if let (Some(job), _) = worker.poll().await? {
                                break (job, asked);
                            }
                            tokio::time::sleep(Duration::from_millis(1)).await;
                        };
                        worker.push(&job, "{}").await?;
                        times.push(asked.elapsed());
                    }
                    caller.ends(&run).await?;
                }
                anyhow::Ok(times)
            });
        }
        let mut times = Vec::new();
        while let Some(task) = tasks.join_next().await {
            times.extend(task??);
        }
        Ok(Latency::of(&mut times))
    }
}

/// How long it takes to push a large result.
async fn large(subject: &Subject, data: &str) -> anyhow::Result<f64> {
    let mut worker = Worker::open(&subject.address, &[Block::pure("large")]).await?;
    let mut caller = Caller::open(&subject.address).await?;
    caller.publish("large", "global", &["large".into()]).await?;
    let run = caller.start("large", &[]).await?;
    worker.work().await?;
    let (job, begun) = (worker.next().await?, Instant::now());
    worker.push(&job, data).await?;
    let took = begun.elapsed().as_secs_f64();
    caller.ends(&run).await?;
    Ok(took)
}
