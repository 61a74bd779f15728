//! `windlass bench engine`.

use crate::bench::{
    Output, StoreArgs,
    figures::{Cpu, Figures},
    limit,
    target::Target,
    work,
};
use anyhow::ensure;
use clap::Args;
use windlass_engine::Engine;

#[derive(Args)]
#[command(after_help = "Examples:
  windlass bench engine                                 embedded store, 64 callers, one job at a time
  windlass bench engine --batch 100 --jobs 500000       batches of 100
  windlass bench engine --pending 1000000               does a deep queue slow claims down?
  windlass bench engine --store postgres -o json        a throwaway PostgreSQL cluster, for programs")]
pub struct EngineBench {
    #[command(flatten)]
    store: StoreArgs,
    /// Number of concurrent callers; each waits for its answer before its next call.
    #[arg(long, default_value_t = 64)]
    callers: usize,
    /// Number of full cycles to measure.
    #[arg(long, default_value_t = 100_000)]
    jobs: usize,
    /// Jobs per call.
    #[arg(long, default_value_t = 1)]
    batch: usize,
    /// Jobs that wait before the start and that the callers could take.
    #[arg(long, default_value_t = 0)]
    pending: usize,
    /// Jobs that wait before the start and whose tags no caller offers.
    #[arg(long, default_value_t = 0)]
    foreign: usize,
    /// Number of tag sets those jobs are spread over.
    #[arg(long, default_value_t = 100)]
    lanes: usize,
    /// Finished jobs that are kept before the start.
    #[arg(long, default_value_t = 0)]
    finished: usize,
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

impl EngineBench {
    pub async fn run(self) -> anyhow::Result<()> {
        ensure!(
            self.callers > 0 && self.jobs > 0 && self.lanes > 0,
            "--callers, --jobs and --lanes must be at least 1"
        );
        ensure!((1..=1_000).contains(&self.batch), "--batch must be 1 to 1000");
        let target = Target::open(&self.store).await?;
        let engine = Engine::start(target.store.clone(), target.settings.clone()).await?;
        work::finish(&engine, self.finished).await?;
        work::fill(&engine, "foreign", self.foreign, Some(self.lanes)).await?;
        work::fill(&engine, "pending", self.pending, None).await?;
        target.finish_housekeeping().await?;
        // A little of the same first, so that caches and worker rows are there for the part that counts.
        work::cycles(&engine, self.callers, (self.jobs / 10).max(1), self.batch, true).await?;
        let figures = self.measure(&target, &engine).await?;
        engine.shut_down().await;
        match self.output {
            Output::Table => figures.print(),
            Output::Json | Output::Jsonl => println!("{}", serde_json::to_string(&figures)?),
        }
        Ok(())
    }

    async fn measure(&self, target: &Target, engine: &Engine) -> anyhow::Result<Figures> {
        let (before, counts) = (target.written().await?, engine.counts());
        let cpu = target.cpu_time();
        let mut cycles = work::cycles(engine, self.callers, self.jobs, self.batch, true).await?;
        let cycle_cpu = Cpu::of(cpu, target.cpu_time(), self.jobs);
        let (after, counted) = (target.written().await?, engine.counts());
        let commits = (counted.batches - counts.batches).max(1);
        let jobs_per_commit = self.jobs as f64 / commits as f64;
        // Claim and complete alone: the jobs are there before the clock starts.
        let drained = self.jobs.min(50_000);
        work::fill(engine, "pending", drained, None).await?;
        let cpu = target.cpu_time();
        let drain = work::cycles(engine, self.callers, drained, self.batch, false).await?;
        let claim_complete_cpu = Cpu::of(cpu, target.cpu_time(), drained);
        let group = (jobs_per_commit.round() as usize).max(1);
        let limit_per_s = limit::measure(target, group).await?;
        let pgbench = limit::pgbench(target)?;
        let cycles_per_s = self.jobs as f64 / cycles.wall.as_secs_f64();
        let syncs = if target.url.is_some() { after.syncs - before.syncs } else { commits };
        let [cycle, submit, claim, complete] = cycles.latencies();
        Ok(Figures {
            store: target.kind.name(),
            callers: self.callers,
            jobs: self.jobs,
            batch: self.batch,
            pending: self.pending,
            foreign: self.foreign,
            finished: self.finished,
            cycles_per_s,
            limit_per_s,
            ratio: if limit_per_s > 0.0 { cycles_per_s / limit_per_s } else { 0.0 },
            pgbench_simple_per_s: pgbench.as_ref().map(|rates| rates.simple_per_s),
            pgbench_prepared_per_s: pgbench.as_ref().map(|rates| rates.prepared_per_s),
            claim_complete_per_s: drained as f64 / drain.wall.as_secs_f64(),
            cycle_cpu,
            claim_complete_cpu,
            p50_ms: cycle.p50_ms,
            p99_ms: cycle.p99_ms,
            submit,
            claim,
            complete,
            jobs_per_commit,
            syncs_per_job: syncs as f64 / self.jobs as f64,
            bytes_per_job: (after.bytes - before.bytes) as f64 / self.jobs as f64,
            seconds: cycles.wall.as_secs_f64(),
        })
    }
}
