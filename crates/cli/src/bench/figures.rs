//! What a run came to, for people and for programs.

use serde::Serialize;
use std::time::Duration;

#[derive(Serialize)]
pub struct Figures {
    pub store: &'static str,
    pub callers: usize,
    pub jobs: usize,
    pub batch: usize,
    pub pending: usize,
    pub foreign: usize,
    pub finished: usize,
    /// Submit + claim + complete.
    pub cycles_per_s: f64,
    /// Claim + complete by bare prepared statements, as many jobs per transaction as the engine had.
    pub limit_per_s: f64,
    pub ratio: f64,
    /// One job per transaction, SKIP LOCKED, 16 clients, by pgbench with its default protocol. PostgreSQL only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pgbench_simple_per_s: Option<f64>,
    /// The same with prepared statements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pgbench_prepared_per_s: Option<f64>,
    /// Claim + complete alone, as a rate to set beside the two above.
    pub claim_complete_per_s: f64,
    /// Processor time of a full cycle, and of claim + complete alone. On a busy machine it says more than rates do.
    pub cycle_cpu: Cpu,
    pub claim_complete_cpu: Cpu,
    /// Of one full cycle of a caller.
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub submit: Latency,
    pub claim: Latency,
    pub complete: Latency,
    pub jobs_per_commit: f64,
    pub syncs_per_job: f64,
    pub bytes_per_job: f64,
    pub seconds: f64,
}

/// Processor time of one job.
#[derive(Serialize, Clone, Copy)]
pub struct Cpu {
    /// Of this process: the engine, its store, and the callers.
    pub own_us: f64,
    /// Of PostgreSQL, where the bench started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database_us: Option<f64>,
}

#[derive(Serialize, Clone, Copy, Default)]
pub struct Latency {
    pub p50_ms: f64,
    pub p99_ms: f64,
}

impl Cpu {
    /// Between two readings of the time used.
    pub fn of(before: (Duration, Option<Duration>), after: (Duration, Option<Duration>), jobs: usize) -> Self {
        let each = |from: Duration, to: Duration| (to - from).as_secs_f64() * 1e6 / jobs as f64;
        let database = before.1.zip(after.1);
        Self { own_us: each(before.0, after.0), database_us: database.map(|(from, to)| each(from, to)) }
    }
}

impl Latency {
    pub fn of(samples: &mut [Duration]) -> Self {
        samples.sort_unstable();
        let at = |share: f64| {
            let index = ((samples.len() as f64 * share) as usize).min(samples.len().saturating_sub(1));
            samples.get(index).map_or(0.0, |sample| sample.as_secs_f64() * 1_000.0)
        };
        Self { p50_ms: at(0.50), p99_ms: at(0.99) }
    }
}

impl Figures {
    pub fn print(&self) {
        println!("store             {}", self.store);
        println!("callers, batch    {} x {}", self.callers, self.batch);
        println!("before            {} pending, {} foreign, {} finished", self.pending, self.foreign, self.finished);
        println!(
            "full cycles       {:>10.0} jobs/s   ({} jobs in {:.1} s)",
            self.cycles_per_s, self.jobs, self.seconds
        );
        println!("claim + complete  {:>10.0} jobs/s", self.claim_complete_per_s);
        println!("store's limit     {:>10.0} jobs/s   cycles are {:.2} of it", self.limit_per_s, self.ratio);
        let pgbench = [("simple", self.pgbench_simple_per_s), ("prepared", self.pgbench_prepared_per_s)];
        for (protocol, rate) in pgbench.into_iter().filter_map(|(protocol, rate)| Some((protocol, rate?))) {
            let times = self.claim_complete_per_s / rate.max(1.0);
            println!("pgbench, {protocol:<8} {rate:>10.0} jobs/s   claim + complete is {times:.1} x that");
        }
        println!("                         p50        p99");
        for (name, latency) in [
            ("cycle", Latency { p50_ms: self.p50_ms, p99_ms: self.p99_ms }),
            ("  submit", self.submit),
            ("  claim", self.claim),
            ("  complete", self.complete),
        ] {
            println!("{name:<17} {:>8.2} ms {:>7.2} ms", latency.p50_ms, latency.p99_ms);
        }
        for (name, cpu) in [("cycle", self.cycle_cpu), ("claim + complete", self.claim_complete_cpu)] {
            let database = cpu.database_us.map_or(String::new(), |us| format!(" + {us:.0} us in the database"));
            println!("{name:<17} {:>8.0} us of processor time{database}", cpu.own_us);
        }
        println!("jobs per commit   {:>10.1}", self.jobs_per_commit);
        println!("syncs per job     {:>10.3}", self.syncs_per_job);
        println!("bytes per job     {:>10.0}", self.bytes_per_job);
    }
}
