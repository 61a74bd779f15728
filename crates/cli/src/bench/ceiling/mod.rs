//! `windlass bench ceiling`: a server beside the most that a job server over HTTP could do on the same machine.

mod beanstalkd;
mod log;
pub mod server;

use super::{
    Output,
    figures::Latency,
    http::{
        load::{Load, Measured},
        median, pickup,
        subject::Subject,
    },
};
use beanstalkd::Beanstalkd;
use clap::Args;
use serde::Serialize;
pub use server::CeilingServer;
use std::{path::PathBuf, time::Duration};

#[derive(Args)]
pub struct CeilingBench {
    /// PostgreSQL for the server that is measured. Default: the embedded store.
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// Connections, each with one request on its way.
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// Jobs in each round.
    #[arg(long, default_value_t = 5_000)]
    jobs: usize,
    /// Jobs per request.
    #[arg(long, default_value_t = 1)]
    batch: usize,
    /// Report a job and claim the next in one request, as the SDK's worker does. beanstalkd has no such call.
    #[arg(long, conflicts_with = "batch")]
    next: bool,
    /// How often they take turns.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..))]
    rounds: u8,
    /// Jobs for the pickup latency in each round: one at a time, to a worker that waits.
    #[arg(long, default_value_t = 50)]
    pickups: usize,
    /// Also run beanstalkd in turn, with a sync for each write. Its jobs go one by one, whatever --batch says.
    #[arg(long, value_name = "PROGRAM", num_args = 0..=1, default_missing_value = "beanstalkd")]
    beanstalkd: Option<PathBuf>,
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

/// What one of them did in one round.
#[derive(Clone, Copy, Serialize)]
pub struct RoundFigures {
    pub submit_per_s: f64,
    pub drain_per_s: f64,
    pub submit_us: f64,
    pub drain_us: f64,
    pub pickup_p50_ms: f64,
}

/// Medians of all rounds, and the range.
#[derive(Serialize)]
pub struct Figure {
    pub what: &'static str,
    pub windlass: f64,
    pub ceiling: f64,
    /// Windlass divided by the ceiling in the same round.
    pub ratio: f64,
    pub ratio_min: f64,
    pub ratio_max: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beanstalkd: Option<Peer>,
}

#[derive(Serialize)]
pub struct Peer {
    pub median: f64,
    /// Windlass divided by it in the same round.
    pub ratio: f64,
}

/// All turns of a round.
pub struct Round {
    pub windlass: RoundFigures,
    pub ceiling: RoundFigures,
    pub beanstalkd: Option<RoundFigures>,
}

#[derive(Serialize)]
struct Figures {
    store: String,
    connections: usize,
    batch: usize,
    /// One request for a report and the next claim.
    next: bool,
    jobs: usize,
    rounds: usize,
    figures: Vec<Figure>,
}

type Pick = fn(&RoundFigures) -> f64;

const FIGURES: [(&str, Pick); 5] = [
    ("submit, jobs/s", |turn| turn.submit_per_s),
    ("claim + complete, jobs/s", |turn| turn.drain_per_s),
    ("submit, server us a job", |turn| turn.submit_us),
    ("claim + complete, server us a job", |turn| turn.drain_us),
    ("submit to claim, p50 ms", |turn| turn.pickup_p50_ms),
];

impl CeilingBench {
    pub async fn run(self) -> anyhow::Result<()> {
        let windlass = Subject::start(self.database.as_deref()).await?;
        let ceiling = Subject::start_ceiling().await?;
        let beanstalkd = match &self.beanstalkd {
            Some(program) => Some(Beanstalkd::start(program).await?),
            None => None,
        };
        let mut rounds = Vec::new();
        for round in 0..self.rounds {
            // Who goes first changes: the one after finds the machine as the one before left it.
            let (windlass, ceiling) = if round % 2 == 0 {
                let first = self.turn(&windlass).await?;
                (first, self.turn(&ceiling).await?)
            } else {
                let first = self.turn(&ceiling).await?;
                (self.turn(&windlass).await?, first)
            };
            let beanstalkd = match &beanstalkd {
                Some(peer) => Some(peer.turn(self.connections, self.jobs, self.pickups).await?),
                None => None,
            };
            rounds.push(Round { windlass, ceiling, beanstalkd });
        }
        let figures = FIGURES.map(|(what, pick)| figure(what, pick, &rounds)).into();
        let (connections, batch, next, jobs) = (self.connections, self.batch, self.next, self.jobs);
        self.print(&Figures {
            store: windlass.store.clone(),
            connections,
            batch,
            next,
            jobs,
            rounds: rounds.len(),
            figures,
        })
    }

    async fn turn(&self, subject: &Subject) -> anyhow::Result<RoundFigures> {
        let load = Load { subject, connections: self.connections, batch: self.batch, next: self.next };
        let begun = subject.cpu();
        let submit = load.submit(self.jobs).await?;
        let between = subject.cpu();
        let drain = load.drain(self.jobs).await?;
        let ended = subject.cpu();
        let mut pickups = pickup::measure(subject, self.pickups).await?;
        Ok(RoundFigures {
            submit_per_s: submit.rate(),
            drain_per_s: drain.rate(),
            submit_us: us_per_job(&submit, begun, between),
            drain_us: us_per_job(&drain, between, ended),
            pickup_p50_ms: Latency::of(&mut pickups).p50_ms,
        })
    }

    fn print(&self, figures: &Figures) -> anyhow::Result<()> {
        match self.output {
            Output::Json | Output::Jsonl => println!("{}", serde_json::to_string(figures)?),
            Output::Table => print_text(figures),
        }
        Ok(())
    }
}

fn us_per_job(measured: &Measured, from: Option<Duration>, to: Option<Duration>) -> f64 {
    let spent = to.zip(from).map_or(Duration::ZERO, |(to, from)| to.saturating_sub(from));
    spent.as_secs_f64() * 1e6 / measured.jobs as f64
}

pub fn figure(what: &'static str, pick: Pick, rounds: &[Round]) -> Figure {
    let ratios = || rounds.iter().map(|round| pick(&round.windlass) / pick(&round.ceiling));
    Figure {
        what,
        windlass: median(rounds.iter().map(|round| pick(&round.windlass))),
        ceiling: median(rounds.iter().map(|round| pick(&round.ceiling))),
        ratio: median(ratios()),
        ratio_min: ratios().fold(f64::INFINITY, f64::min),
        ratio_max: ratios().fold(0.0, f64::max),
        beanstalkd: peer(pick, rounds),
    }
}

fn peer(pick: Pick, rounds: &[Round]) -> Option<Peer> {
    let turns: Vec<(f64, f64)> =
        rounds.iter().filter_map(|round| Some((pick(&round.windlass), pick(round.beanstalkd.as_ref()?)))).collect();
    let peer = || turns.iter().map(|(_, peer)| *peer);
    let ratios = turns.iter().map(|(windlass, peer)| windlass / peer);
    (!turns.is_empty()).then(|| Peer { median: median(peer()), ratio: median(ratios) })
}

fn print_text(all: &Figures) {
    let Figures { store, connections, batch, next, jobs, rounds, figures } = all;
    let how =
        if *next { "a report and the next claim in one request".to_owned() } else { format!("{batch} a request") };
    println!("{store} store, {connections} connections, {how}, {rounds} rounds of {jobs} jobs in turns");
    let peers = figures.iter().any(|figure| figure.beanstalkd.is_some());
    let more = if peers { format!("{:>12}{:>8}", "beanstalkd", "ratio") } else { String::new() };
    println!("{:<36}{:>12}{:>12}{:>8} {:<15}{more}", "medians", "windlass", "ceiling", "ratio", "");
    for figure in figures {
        let digits = if figure.ceiling < 10.0 { 2 } else { 0 };
        let range = format!("({:.2} - {:.2})", figure.ratio_min, figure.ratio_max);
        let more = figure.beanstalkd.as_ref();
        let more = more.map(|peer| format!("{:>12.digits$}{:>8.2}", peer.median, peer.ratio)).unwrap_or_default();
        println!(
            "{:<36}{:>12.digits$}{:>12.digits$}{:>8.2} {range:<15}{more}",
            figure.what, figure.windlass, figure.ceiling, figure.ratio
        );
    }
}
