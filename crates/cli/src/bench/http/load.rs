//! Callers that submit, claim and complete over their own connections.

use super::{connection::Connection, subject::Subject};
use crate::bench::work::progress;
use anyhow::ensure;
use serde::Deserialize;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::task::JoinSet;

/// A job with a payload of 100 bytes, as everywhere in these figures.
pub const JOB: &str = r#"{"payload":{"input":"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"}}"#;

pub struct Load<'a> {
    pub subject: &'a Subject,
    pub connections: usize,
    pub batch: usize,
    /// Single jobs are reported and the next one claimed by the same request.
    pub next: bool,
}

#[derive(Default)]
pub struct Measured {
    pub jobs: usize,
    pub requests: usize,
    pub wall: Duration,
    pub times: Vec<Duration>,
}

impl Measured {
    pub fn rate(&self) -> f64 {
        self.jobs as f64 / self.wall.as_secs_f64()
    }

    pub fn requests_per_job(&self) -> f64 {
        self.requests as f64 / self.jobs as f64
    }

    /// One after the other.
    pub fn and(mut self, other: Self) -> Self {
        (self.jobs, self.requests) = (self.jobs + other.jobs, self.requests + other.requests);
        self.wall += other.wall;
        self.times.extend(other.times);
        self
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Submit,
    Drain,
    Cycle,
}

impl Load<'_> {
    pub async fn submit(&self, jobs: usize) -> anyhow::Result<Measured> {
        self.run("submit", Phase::Submit, jobs).await
    }
    pub async fn drain(&self, jobs: usize) -> anyhow::Result<Measured> {
        self.run("draining", Phase::Drain, jobs).await
    }
    pub async fn cycles(&self, jobs: usize) -> anyhow::Result<Measured> {
        self.run("cycles", Phase::Cycle, jobs).await
    }

    async fn run(&self, what: &'static str, phase: Phase, jobs: usize) -> anyhow::Result<Measured> {
        let left = Arc::new(AtomicUsize::new(jobs));
        let bar = progress(what, jobs);
        let mut callers = Vec::new();
        for number in 0..self.connections {
            callers.push(Caller::open(self, number).await?);
        }
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for mut caller in callers {
            let (left, bar) = (left.clone(), bar.clone());
            tasks.spawn(async move {
                caller.work(phase, &left, &bar).await?;
                anyhow::Ok(caller.measured)
            });
        }
        let mut all = Measured::default();
        while let Some(task) = tasks.join_next().await {
            let one = task??;
            all.jobs += one.jobs;
            all.requests += one.requests;
            all.times.extend(one.times);
        }
        all.wall = begun.elapsed();
        bar.finish_and_clear();
        ensure!(all.jobs == jobs, "{} jobs were done instead of {jobs}", all.jobs);
        Ok(all)
    }
}

struct Caller {
    /// Submits with the one token, works with the other.
    editor: Connection,
    worker: Connection,
    number: usize,
    batch: usize,
    next: bool,
    at: Arc<str>,
    measured: Measured,
}

#[derive(Deserialize)]
struct Leases<'a> {
    #[serde(borrow)]
    leases: Vec<Lease<'a>>,
}

#[derive(Deserialize)]
struct Lease<'a> {
    lease: &'a str,
}

impl Caller {
    async fn open(load: &Load<'_>, number: usize) -> anyhow::Result<Self> {
        let subject = load.subject;
        Ok(Self {
            editor: Connection::open(&subject.address, &subject.token).await?,
            worker: Connection::open(&subject.address, &subject.worker_token).await?,
            number,
            batch: load.batch,
            next: load.next && load.batch == 1,
            at: subject.namespace.as_str().into(),
            measured: Measured::default(),
        })
    }

    async fn work(&mut self, phase: Phase, left: &AtomicUsize, bar: &indicatif::ProgressBar) -> anyhow::Result<()> {
        if self.next && phase == Phase::Drain {
            return self.chain(left, bar).await;
        }
        loop {
            let Some(size) = take(left, self.batch) else { return Ok(()) };
            let begun = Instant::now();
            if phase != Phase::Drain {
                self.submit(size).await?;
            }
            if phase != Phase::Submit {
                self.drain(size).await?;
            }
            self.measured.times.push(begun.elapsed());
            self.measured.jobs += size;
            bar.inc(size as u64);
        }
    }

    async fn submit(&mut self, size: usize) -> anyhow::Result<()> {
        self.measured.requests += 1;
        if size == 1 && self.batch == 1 {
            self.editor.post(&format!("/api/v1/jobs?namespace={}", self.at), JOB).await?;
            return Ok(());
        }
        let body = format!(r#"{{"jobs":[{}]}}"#, vec![JOB; size].join(","));
        let answer = self.editor.post(&format!("/api/v1/jobs/batch?namespace={}", self.at), body).await?;
        ensure!(!answer.windows(9).any(|part| part == b"\"problem\""), "a job was refused");
        Ok(())
    }

    async fn drain(&mut self, size: usize) -> anyhow::Result<()> {
        let mut left = size;
        while left > 0 {
            let path = format!("/api/v1/leases/claim?namespace={}", self.at);
            let answer = self.worker.post(&path, self.claim(left)).await?;
            let claimed = leases(&answer)?;
            self.measured.requests += 2;
            left -= claimed.leases.len();
            let (path, body) = report(&claimed.leases, self.batch, &self.at);
            let answer = self.worker.post(&path, body).await?;
            ensure!(!answer.windows(9).any(|part| part == b"\"problem\""), "a report was refused");
        }
        Ok(())
    }

    fn claim(&self, max: usize) -> String {
        format!(r#"{{"worker":"bench-{}","tags":[],"max":{max},"wait_ms":30000}}"#, self.number)
    }

    /// One claim, and then one request a job: its report, with the claim of the next.
    async fn chain(&mut self, left: &AtomicUsize, bar: &indicatif::ProgressBar) -> anyhow::Result<()> {
        let (claim, complete) = (
            format!("/api/v1/leases/claim?namespace={}", self.at),
            format!("/api/v1/leases/complete?namespace={}", self.at),
        );
        if take(left, 1).is_none() {
            return Ok(());
        }
        let mut answer = self.worker.post(&claim, self.claim(1)).await?;
        self.measured.requests += 1;
        loop {
            let begun = Instant::now();
            let lease = leases(&answer)?.leases[0].lease.to_owned();
            let more = take(left, 1).is_some();
            let next = if more { format!(r#","next":{}"#, self.claim(1)) } else { String::new() };
            let body = format!(r#"{{"lease":"{lease}","result":{{"ok":true}}{next}}}"#);
            answer = self.worker.post(&complete, body).await?;
            self.measured.requests += 1;
            self.measured.times.push(begun.elapsed());
            self.measured.jobs += 1;
            bar.inc(1);
            if !more {
                return Ok(());
            }
        }
    }
}

/// Some of what is left to do, if anything is.
fn take(left: &AtomicUsize, most: usize) -> Option<usize> {
    let take = |left: usize| (left > 0).then(|| left - most.min(left));
    left.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).ok().map(|before| most.min(before))
}

fn leases(answer: &[u8]) -> anyhow::Result<Leases<'_>> {
    let claimed: Leases = serde_json::from_slice(answer)?;
    ensure!(!claimed.leases.is_empty(), "no job came within 30 s");
    Ok(claimed)
}

fn report(leases: &[Lease], batch: usize, at: &str) -> (String, String) {
    if batch == 1 {
        let body = format!(r#"{{"lease":"{}","result":{{"ok":true}}}}"#, leases[0].lease);
        return (format!("/api/v1/leases/complete?namespace={at}"), body);
    }
    let one = |lease: &Lease| format!(r#"{{"do":"complete","lease":"{}","result":{{"ok":true}}}}"#, lease.lease);
    let all: Vec<String> = leases.iter().map(one).collect();
    (format!("/api/v1/leases/batch?namespace={at}"), format!(r#"{{"operations":[{}]}}"#, all.join(",")))
}
