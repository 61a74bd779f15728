//! `windlass bench dialect`: another system's protocol over raw connections, beside the original in the same run.

mod cycle;
mod joblib;
mod joblib_calls;
mod neops;
pub mod workflow_graph;

use clap::Subcommand;

#[derive(Subcommand)]
pub enum DialectBench {
    /// Create workflows, run them, and claim and complete their jobs.
    ///
    /// Reports how many acknowledged completions were lost.
    WorkflowGraph(workflow_graph::WorkflowGraphBench),
    /// Submit, claim, start and complete tasks as ZnDraw's clients do, and measure how soon a worker is woken.
    ///
    /// Prints full cycles per second, and the time from a submit to the wake-up over Socket.IO. With an admin token of the first
    /// server, also the same four calls of the native API, and the pickup of its long poll.
    Joblib(joblib::JoblibBench),
    /// Start runs of one step, poll for their jobs and push results as neops's workers do, until the runs have ended.
    ///
    /// Prints runs per second. With an admin token of the first server, also runs of a native workflow of two steps. Measures other
    /// things as well: see --what.
    Neops(neops::NeopsBench),
}

impl DialectBench {
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            DialectBench::WorkflowGraph(bench) => bench.run().await,
            DialectBench::Joblib(bench) => bench.run().await,
            DialectBench::Neops(bench) => bench.run().await,
        }
    }
}
