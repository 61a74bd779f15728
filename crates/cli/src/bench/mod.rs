//! `windlass bench`: figures people can repeat.

pub mod ceiling;
pub mod dialect;
mod engine;
pub mod figures;
pub mod http;
mod idle;
mod limit;
mod target;
mod work;

pub use crate::output::Format as Output;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum Bench {
    /// Submit, claim and complete jobs through the engine, without HTTP, and compare with the bare store.
    ///
    /// Prints full cycles per second, latencies, syncs and bytes written per job, and for comparison the rate of the bare store:
    /// a loop of prepared statements with the same number of jobs per transaction. Compare only figures of the same run.
    Engine(engine::EngineBench),
    /// Submit, claim and complete jobs over HTTP, and compare with a bare web server or another server.
    ///
    /// Prints jobs per second for submits and for full cycles, the time from submit to claim while a worker waits, and for
    /// comparison the rate of a bare handler over the same connections in the same run.
    Http(http::HttpBench),
    /// Compare a new server with the ceiling: a bare web server that keeps jobs in memory and writes one log with shared syncs.
    ///
    /// The ceiling has no leases that run out, no events and no recovery; it is about the most that a job server over HTTP could do
    /// on this machine. Both get the same load in turns. Prints medians, and the ratio of the two within each round.
    Ceiling(ceiling::CeilingBench),
    /// The server that is compared with, started by `bench ceiling`.
    #[command(hide = true)]
    CeilingServer(ceiling::CeilingServer),
    /// Do jobs over another system's protocol, and compare with the original server in the same run.
    #[command(subcommand)]
    Dialect(dialect::DialectBench),
    /// Measure an idle engine: bytes written, and how often a thread woke up.
    Idle(idle::IdleBench),
}

impl Bench {
    pub fn run(self) -> anyhow::Result<()> {
        // One runtime thread for the callers, one thread for the batcher: on two cores more only get in each other's way.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        runtime.block_on(async {
            match self {
                Bench::Engine(bench) => bench.run().await,
                Bench::Http(bench) => bench.run().await,
                Bench::Ceiling(bench) => bench.run().await,
                Bench::CeilingServer(server) => server.run().await,
                Bench::Dialect(bench) => bench.run().await,
                Bench::Idle(bench) => bench.run().await,
            }
        })
    }
}

#[derive(Args, Clone)]
pub struct StoreArgs {
    /// The store to measure.
    #[arg(long, value_enum, default_value = "embedded")]
    pub store: StoreKind,
    /// PostgreSQL database to use, e.g. postgres://user@host/database. Default: a temporary cluster.
    #[arg(long, value_name = "URL")]
    pub database: Option<String>,
    /// How many batches are in flight to PostgreSQL at a time.
    #[arg(long, value_name = "N")]
    pub in_flight: Option<usize>,
    /// Folder for the embedded store. Default: a temporary folder, removed afterwards.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StoreKind {
    Embedded,
    Postgres,
    Memory,
}

impl StoreKind {
    pub fn name(self) -> &'static str {
        match self {
            StoreKind::Embedded => "embedded",
            StoreKind::Postgres => "postgres",
            StoreKind::Memory => "memory",
        }
    }
}
