//! neops's protocol: runs beside the native API, runs over many devices, polls that find nothing, and large results.

mod calls;
mod devices;
mod large;
mod polls;
mod runs;

use super::super::Output;
use anyhow::ensure;
use clap::{Args, ValueEnum};
use serde::Serialize;

#[derive(Args)]
pub struct NeopsBench {
    #[arg(long, value_enum, default_value = "runs")]
    what: What,
    /// Server to measure. Give two to compare them in turns. Without one a server is started for the purpose.
    #[arg(long, value_name = "URL")]
    base_url: Vec<String>,
    /// An admin token of the first server. Then the native API is measured too.
    #[arg(long, env = "WINDLASS_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Runs in each round; for `polls` the polls, for `large` the small jobs.
    #[arg(long, default_value_t = 1_000)]
    runs: usize,
    /// Number of connections, each with one request at a time and a worker of its own.
    #[arg(long, default_value_t = 8)]
    connections: usize,
    /// Devices of a run, for `devices`.
    #[arg(long, default_value_t = 1_000)]
    devices: usize,
    /// Jobs that wait for others, for `polls`.
    #[arg(long, default_value_t = 10_000)]
    waiting: usize,
    /// MiB of the large result, for `large`.
    #[arg(long, default_value_t = 40)]
    large_mb: usize,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Runs of one step, beside runs of a native workflow of two steps.
    Runs,
    /// One run over many devices, beside one over a tenth of them.
    Devices,
    /// The server's processor time for polls that find nothing.
    Polls,
    /// Small jobs, by themselves and beside a large result.
    Large,
}

impl NeopsBench {
    pub async fn run(self) -> anyhow::Result<()> {
        let own = self.what != What::Runs;
        ensure!(!own || self.base_url.is_empty(), "only runs can be measured on a server that is there already");
        ensure!(self.connections > 0 && self.runs > 0, "at least one connection and one run");
        match self.what {
            What::Runs => self.runs().await,
            What::Devices => self.over_devices().await,
            What::Polls => self.empty_polls().await,
            What::Large => self.beside_large().await,
        }
    }

    fn say(&self, figures: &impl Serialize, text: &str) -> anyhow::Result<()> {
        match self.output {
            Output::Json | Output::Jsonl => println!("{}", serde_json::to_string(figures)?),
            Output::Table => println!("{text}"),
        }
        Ok(())
    }
}
