//! The work itself: jobs made beforehand, and callers that go through full cycles.

use crate::bench::figures::Latency;
use anyhow::{Context, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use windlass_core::{
    Command, Leased, Namespace, Tags, WorkerId,
    commands::{
        claim::Claim,
        complete::Complete,
        holder::Holder,
        submit::{NewJob, Submit},
    },
};
use windlass_engine::{Engine, ids};

/// A payload of 100 bytes, as the figures we compare with.
const PAYLOAD: &str =
    r#"{"input":"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"}"#;
const FILL: usize = 1_000;

/// Hidden where nobody looks at it.
pub fn progress(what: &'static str, length: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:<9} {bar:40} {human_pos}/{human_len} {per_sec} {eta}");
    let bar = ProgressBar::new(length as u64).with_message(what);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

pub fn submit(tags: &Tags) -> Command {
    let job = NewJob { tags: tags.clone(), payload: PAYLOAD.into(), ..NewJob::new(ids::job_id()) };
    Submit { namespace: Namespace::default(), job }.into()
}

/// Makes jobs that wait. `lanes`: spread over so many sets of tags nobody offers; none: where the callers look.
pub async fn fill(engine: &Engine, what: &'static str, count: usize, lanes: Option<usize>) -> anyhow::Result<()> {
    let bar = progress(what, count);
    let tags =
        |at: usize| lanes.map_or_else(Tags::default, |lanes| Tags::from_iter([&*format!("foreign-{}", at % lanes)]));
    let mut made = 0;
    while made < count {
        let size = FILL.min(count - made);
        let replies = engine.run_many((made..made + size).map(|at| submit(&tags(at))).collect()).await?;
        replies.into_iter().collect::<Result<Vec<_>, _>>().context("filling")?;
        made += size;
        bar.set_position(made as u64);
    }
    bar.finish_and_clear();
    Ok(())
}

/// Makes jobs that are over.
pub async fn finish(engine: &Engine, count: usize) -> anyhow::Result<()> {
    let bar = progress("finishing", count);
    let mut made = 0;
    while made < count {
        let size = FILL.min(count - made);
        let mut caller = Caller::new(engine, usize::MAX)?;
        caller.cycle(size).await?;
        made += size;
        bar.set_position(made as u64);
    }
    bar.finish_and_clear();
    Ok(())
}

#[derive(Default)]
pub struct Measured {
    pub jobs: usize,
    pub wall: Duration,
    pub cycle: Vec<Duration>,
    pub submit: Vec<Duration>,
    pub claim: Vec<Duration>,
    pub complete: Vec<Duration>,
}

impl Measured {
    fn add(&mut self, other: Measured) {
        self.jobs += other.jobs;
        self.cycle.extend(other.cycle);
        self.submit.extend(other.submit);
        self.claim.extend(other.claim);
        self.complete.extend(other.complete);
    }

    pub fn latencies(&mut self) -> [Latency; 4] {
        [&mut self.cycle, &mut self.submit, &mut self.claim, &mut self.complete].map(|samples| Latency::of(samples))
    }
}

/// So many callers go through so many jobs together.
pub async fn cycles(
    engine: &Engine,
    callers: usize,
    jobs: usize,
    batch: usize,
    with_submit: bool,
) -> anyhow::Result<Measured> {
    let left = Arc::new(AtomicUsize::new(jobs));
    let bar = progress(if with_submit { "cycles" } else { "draining" }, jobs);
    let begun = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..callers {
        let mut caller = Caller::new(engine, number)?;
        let (left, bar) = (left.clone(), bar.clone());
        tasks.spawn(async move {
            loop {
                let take = |left: usize| (left > 0).then(|| left - batch.min(left));
                let Ok(before) = left.fetch_update(Ordering::AcqRel, Ordering::Acquire, take) else { break };
                let size = batch.min(before);
                if with_submit {
                    caller.cycle(size).await?
                } else {
                    caller.drain(size).await?
                };
                bar.inc(size as u64);
            }
            anyhow::Ok(caller.measured)
        });
    }
    let mut measured = Measured::default();
    while let Some(task) = tasks.join_next().await {
        measured.add(task??);
    }
    measured.wall = begun.elapsed();
    bar.finish_and_clear();
    ensure!(measured.jobs == jobs, "{} jobs were completed instead of {jobs}", measured.jobs);
    Ok(measured)
}

struct Caller {
    engine: Engine,
    worker: WorkerId,
    measured: Measured,
}

impl Caller {
    fn new(engine: &Engine, number: usize) -> anyhow::Result<Self> {
        let worker = WorkerId::new(&format!("bench-{number}"))?;
        Ok(Self { engine: engine.clone(), worker, measured: Measured::default() })
    }

    async fn cycle(&mut self, size: usize) -> anyhow::Result<()> {
        let begun = Instant::now();
        let tags = Tags::default();
        let replies = self.engine.run_many((0..size).map(|_| submit(&tags)).collect()).await?;
        replies.into_iter().collect::<Result<Vec<_>, _>>()?;
        self.measured.submit.push(begun.elapsed());
        self.drain(size).await?;
        self.measured.cycle.push(begun.elapsed());
        Ok(())
    }

    /// Claims and completes so many jobs.
    async fn drain(&mut self, size: usize) -> anyhow::Result<()> {
        let mut left = size;
        while left > 0 {
            let begun = Instant::now();
            let claim = Claim::new(&Namespace::default(), self.worker.clone(), Tags::default(), ids::secrets(left));
            let leases = self.engine.claim(claim, Duration::from_secs(30)).await?;
            ensure!(!leases.is_empty(), "no job came within 30 s");
            let claimed = Instant::now();
            self.measured.claim.push(claimed - begun);
            left -= leases.len();
            self.measured.jobs += leases.len();
            self.complete(leases).await?;
            self.measured.complete.push(claimed.elapsed());
        }
        Ok(())
    }

    async fn complete(&self, leases: Vec<Leased>) -> anyhow::Result<()> {
        let done = |leased: &Leased| {
            let holder = Holder::lease(&Namespace::default(), leased.lease);
            Command::Complete(Complete { holder, result: r#"{"ok":true}"#.into() })
        };
        let replies = self.engine.run_many(leases.iter().map(done).collect()).await?;
        replies.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(())
    }
}
