//! `windlass bench idle`: an engine with nothing to do should do nothing.

use crate::bench::{Output, StoreArgs, target::Target, work};
use clap::Args;
use serde::Serialize;
use std::{fs, time::Duration};
use windlass_engine::Engine;

#[derive(Args)]
pub struct IdleBench {
    #[command(flatten)]
    store: StoreArgs,
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Serialize)]
struct Idle {
    store: &'static str,
    seconds: u64,
    /// Bytes written by the store (embedded: by the process; PostgreSQL: write-ahead log).
    bytes_written: u64,
    /// Times any thread of this process woke up, the one that measures not counted.
    wake_ups: u64,
    wake_ups_per_s: f64,
}

impl IdleBench {
    pub async fn run(self) -> anyhow::Result<()> {
        let target = Target::open(&self.store).await?;
        let engine = Engine::start(target.store.clone(), target.settings.clone()).await?;
        // Something was done before, so that there is something to be idle about.
        work::cycles(&engine, 8, 1_000, 1, true).await?;
        // Without a look beforehand the embedded store wrote one page in the time that counts, probably SQLite's read mark.
        engine.tick().await?;
        tokio::time::sleep(target.housekeeping_time()).await;
        let before = (target.written().await?.bytes, wake_ups());
        tokio::time::sleep(Duration::from_secs(self.seconds)).await;
        let after = (target.written().await?.bytes, wake_ups());
        let idle = Idle {
            store: target.kind.name(),
            seconds: self.seconds,
            bytes_written: after.0 - before.0,
            wake_ups: after.1 - before.1,
            wake_ups_per_s: (after.1 - before.1) as f64 / self.seconds as f64,
        };
        match self.output {
            Output::Json | Output::Jsonl => println!("{}", serde_json::to_string(&idle)?),
            Output::Table => println!(
                "{} store, idle for {} s: {} bytes written, {} wake-ups ({:.2} a second)",
                idle.store, idle.seconds, idle.bytes_written, idle.wake_ups, idle.wake_ups_per_s
            ),
        }
        engine.shut_down().await;
        Ok(())
    }
}

/// Voluntary context switches of all threads: each is a thread that had gone to sleep and was woken.
fn wake_ups() -> u64 {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let switches = tasks.filter_map(|task| {
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse::<u64>().ok())
    });
    switches.sum()
}
