//! `windlass bench http`: the same jobs, over the wire.

mod bare;
pub mod connection;
pub mod load;
pub mod pickup;
pub mod subject;

use super::{Output, figures::Latency};
use clap::Args;
use load::{Load, Measured};
use serde::Serialize;
use std::{path::PathBuf, time::Duration};
use subject::Subject;

#[derive(Args)]
pub struct HttpBench {
    /// Server to measure, e.g. http://127.0.0.1:3000. Give two to compare them in one run. Default: a new server on a
    /// temporary folder.
    #[arg(long, value_name = "URL")]
    base_url: Vec<String>,
    /// An admin token; one per server where there are two. A worker's token is made with it and revoked afterwards.
    #[arg(long, env = "WINDLASS_TOKEN", hide_env_values = true)]
    token: Vec<String>,
    /// PostgreSQL for the server that is started.
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// Connections, each with one request on its way.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Jobs to submit, claim and complete.
    #[arg(long, default_value_t = 20_000)]
    jobs: usize,
    /// Jobs per request.
    #[arg(long, default_value_t = 1)]
    batch: usize,
    /// Jobs for the pickup latency: one at a time, to a worker that waits.
    #[arg(long, default_value_t = 500)]
    pickups: usize,
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
    /// Appends the result, with its conditions, to this file.
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
}

/// What one server did.
#[derive(Serialize)]
struct Figures {
    base_url: String,
    store: String,
    connections: usize,
    batch: usize,
    jobs: usize,
    submit_per_s: f64,
    cycles_per_s: f64,
    requests_per_cycle: f64,
    bare_requests_per_s: f64,
    /// Full cycles beside what the bare handler allows for the same number of requests: the median of rounds taken in turns.
    cycles_of_bare: f64,
    submit_p50_ms: f64,
    submit_p99_ms: f64,
    cycle_p50_ms: f64,
    cycle_p99_ms: f64,
    pickup_p50_ms: f64,
    pickup_p99_ms: f64,
    /// Processor time of the server per job, where it was started here.
    #[serde(skip_serializing_if = "Option::is_none")]
    server_us_per_job: Option<f64>,
}

/// How often the bare handler and full cycles take turns.
const ROUNDS: usize = 5;
const BARE_FOR: Duration = Duration::from_millis(600);

struct Round {
    bare: f64,
    cycles: Measured,
}

impl Round {
    fn of_bare(&self) -> f64 {
        self.cycles.rate() * self.cycles.requests_per_job() / self.bare
    }
}

pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

impl HttpBench {
    pub async fn run(self) -> anyhow::Result<()> {
        anyhow::ensure!(self.base_url.len() <= 2, "give one or two base URLs, not {}", self.base_url.len());
        let subjects = Subject::all(&self.base_url, &self.token, self.database.as_deref()).await?;
        let mut all = Vec::new();
        for subject in &subjects {
            let figures = self.measure(subject).await;
            subject.clean_up().await;
            all.push(figures?);
        }
        for figures in &all {
            self.print(figures)?;
        }
        if let [first, second] = &all[..] {
            let ratio = first.cycles_per_s / second.cycles_per_s;
            eprintln!("{} does {ratio:.2} times the cycles of {}", first.base_url, second.base_url);
        }
        Ok(())
    }

    async fn measure(&self, subject: &Subject) -> anyhow::Result<Figures> {
        let load = Load { subject, connections: self.connections, batch: self.batch, next: false };
        let before = subject.cpu();
        let submit = load.submit(self.jobs).await?;
        load.drain(self.jobs).await?;
        let rounds = self.rounds(&load).await?;
        let cpu = subject.cpu().zip(before).map(|(after, before)| after.saturating_sub(before));
        let pickups = pickup::measure(subject, self.pickups).await?;
        Ok(self.figures(subject, submit, rounds, cpu, pickups))
    }

    /// The bare handler and full cycles in turns: a machine shared with others changes its pace from second to second.
    async fn rounds(&self, load: &Load<'_>) -> anyhow::Result<Vec<Round>> {
        let mut rounds = Vec::new();
        for round in 0..ROUNDS {
            let bare = bare::measure(self.connections, BARE_FOR).await?;
            let jobs = self.jobs * (round + 1) / ROUNDS - self.jobs * round / ROUNDS;
            rounds.push(Round { bare, cycles: load.cycles(jobs).await? });
        }
        Ok(rounds)
    }

    fn figures(
        &self,
        subject: &Subject,
        mut submit: Measured,
        rounds: Vec<Round>,
        cpu: Option<Duration>,
        mut pickups: Vec<Duration>,
    ) -> Figures {
        let bare = median(rounds.iter().map(|round| round.bare));
        let cycles_of_bare = median(rounds.iter().filter(|round| round.cycles.jobs > 0).map(Round::of_bare));
        let mut cycles = rounds.into_iter().fold(Measured::default(), |all, round| all.and(round.cycles));
        let (submitted, cycled) = (Latency::of(&mut submit.times), Latency::of(&mut cycles.times));
        let picked = Latency::of(&mut pickups);
        Figures {
            base_url: subject.address.to_string(),
            store: subject.store.clone(),
            connections: self.connections,
            batch: self.batch,
            jobs: self.jobs,
            submit_per_s: submit.rate(),
            cycles_per_s: cycles.rate(),
            requests_per_cycle: cycles.requests_per_job(),
            bare_requests_per_s: bare,
            cycles_of_bare,
            submit_p50_ms: submitted.p50_ms,
            submit_p99_ms: submitted.p99_ms,
            cycle_p50_ms: cycled.p50_ms,
            cycle_p99_ms: cycled.p99_ms,
            pickup_p50_ms: picked.p50_ms,
            pickup_p99_ms: picked.p99_ms,
            server_us_per_job: cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / (2 * self.jobs) as f64),
        }
    }

    fn print(&self, figures: &Figures) -> anyhow::Result<()> {
        let json = serde_json::to_string(figures)?;
        if let Some(file) = &self.results {
            use std::io::Write;
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file)?;
            writeln!(file, "{json}")?;
        }
        match self.output {
            Output::Json | Output::Jsonl => println!("{json}"),
            Output::Table => print_text(figures),
        }
        Ok(())
    }
}

fn print_text(figures: &Figures) {
    println!(
        "{} ({}), {} connections, {} a request",
        figures.base_url, figures.store, figures.connections, figures.batch
    );
    println!(
        "  submit     {:>10.0} jobs/s   p50 {:.2} ms  p99 {:.2} ms",
        figures.submit_per_s, figures.submit_p50_ms, figures.submit_p99_ms
    );
    println!(
        "  cycles     {:>10.0} jobs/s   p50 {:.2} ms  p99 {:.2} ms",
        figures.cycles_per_s, figures.cycle_p50_ms, figures.cycle_p99_ms
    );
    println!(
        "  pickup                           p50 {:.2} ms  p99 {:.2} ms",
        figures.pickup_p50_ms, figures.pickup_p99_ms
    );
    println!("  bare axum  {:>10.0} requests/s", figures.bare_requests_per_s);
    println!(
        "  cycles x {:.2} requests = {:.2} of bare axum (median of {ROUNDS} rounds in turns)",
        figures.requests_per_cycle, figures.cycles_of_bare
    );
    if let Some(cpu) = figures.server_us_per_job {
        println!("  server     {cpu:>10.1} us of processor time a job");
    }
}
