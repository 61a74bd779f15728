//! `windlass bench`: figures people can repeat.

mod dialect;
mod engine;
mod http;
mod idle;
mod limit;
mod report;
mod target;
mod work;

pub use crate::output::Format as Output;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum Bench {
    /// Submit, claim and complete jobs through the engine, without HTTP, and compare with the bare store.
    ///
    /// Prints full cycles per second, latencies, syncs and bytes written per job, and beside it what the store itself
    /// does in a bare loop of prepared statements with the same number of jobs per transaction. Only figures of one and
    /// the same run compare.
    Engine(engine::EngineBench),
    /// Submit, claim and complete jobs over HTTP, and compare with a bare web server and with another address.
    ///
    /// Prints jobs per second for submits and for full cycles, how long a job lies there while a worker waits for it, and
    /// beside it what a bare handler allows over the same connections in the same run.
    Http(http::HttpBench),
    /// Claim and complete jobs over another system's protocol, beside the original in the same run.
    ///
    /// Creates workflows, runs them, claims and completes their jobs over connections that stay open, and says how many jobs
    /// whose completion was acknowledged did not succeed.
    Dialect(dialect::DialectBench),
    /// Do nothing for a while and count what that costs: writes, and how often a thread woke up.
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
                Bench::Dialect(bench) => bench.run().await,
                Bench::Idle(bench) => bench.run().await,
            }
        })
    }
}

#[derive(Args, Clone)]
pub struct StoreArgs {
    /// Where jobs are kept.
    #[arg(long, value_enum, default_value = "embedded")]
    pub store: StoreKind,
    /// PostgreSQL to use, e.g. postgres://user@host/database. Without it a throwaway cluster is started.
    #[arg(long, value_name = "URL")]
    pub database: Option<String>,
    /// Batches on their way to PostgreSQL at once.
    #[arg(long, value_name = "N")]
    pub in_flight: Option<usize>,
    /// Folder for the embedded store. Without it a temporary one is used and removed.
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
