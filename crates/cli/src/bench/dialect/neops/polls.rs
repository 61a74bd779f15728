//! Polls that find nothing: of a server with nothing on its blackboard, and of one with many jobs for blocks that nobody here has.

use super::{
    super::super::http::subject::Subject,
    NeopsBench,
    calls::{Block, Caller, Worker},
};
use anyhow::{Context, ensure};
use serde::Serialize;
use tokio::task::JoinSet;

/// Blocks of the worker that polls, and of those that others would have.
const BLOCKS: usize = 50;
/// Jobs of one run: all its acquire jobs wait at once.
const EACH: usize = 100;

#[derive(Serialize)]
struct Figures {
    round: usize,
    waiting: usize,
    polls: usize,
    /// Processor time of the server for each poll.
    alone_us: f64,
    beside_us: f64,
    ratio: f64,
}

impl NeopsBench {
    pub(super) async fn empty_polls(&self) -> anyhow::Result<()> {
        let start = async || Subject::all(&[], &[], None).await?.pop().context("there is no server");
        let (alone, beside) = (start().await?, start().await?);
        let blocks =
            |what: &str| -> Vec<Block> { (0..BLOCKS).map(|at| Block::pure(&format!("{what}-{at}"))).collect() };
        let _others = Worker::open(&beside.address, &blocks("other")).await?;
        let mut caller = Caller::open(&beside.address).await?;
        let steps: Vec<String> = (0..EACH).map(|at| format!("other-{}", at % BLOCKS)).collect();
        caller.publish("others", "global", &steps).await?;
        for _ in 0..self.waiting.div_ceil(EACH) {
            caller.start("others", &[]).await?;
        }
        for round in 1..=self.rounds {
            let mut costs = Vec::new();
            for subject in [&alone, &beside] {
                let mut workers = Vec::new();
                for _ in 0..self.connections {
                    workers.push(Worker::open(&subject.address, &blocks("own")).await?);
                }
                costs.push(self.cost(subject, workers).await?);
            }
            let (alone_us, beside_us) = (costs[0], costs[1]);
            let ratio = beside_us / alone_us;
            let figures = Figures { round, waiting: self.waiting, polls: self.runs, alone_us, beside_us, ratio };
            let text = format!(
                "round {round}: {alone_us:.1} µs of processor time for a poll with nothing waiting, {beside_us:.1} µs with {} jobs for others: {ratio:.2}",
                self.waiting
            );
            self.say(&figures, &text)?;
        }
        Ok(())
    }

    async fn cost(&self, subject: &Subject, workers: Vec<Worker>) -> anyhow::Result<f64> {
        let before = subject.cpu().context("this needs /proc")?;
        let (mut tasks, each) = (JoinSet::new(), self.runs.div_ceil(workers.len()));
        let polls = each * workers.len();
        for mut worker in workers {
            tasks.spawn(async move {
                for _ in 0..each {
                    ensure!(worker.poll().await?.0.is_none(), "a job came to a worker that lacks its block");
                }
                anyhow::Ok(())
            });
        }
        while let Some(task) = tasks.join_next().await {
            task??;
        }
        let took = subject.cpu().context("this needs /proc")? - before;
        Ok(took.as_secs_f64() * 1e6 / polls as f64)
    }
}
