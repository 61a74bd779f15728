//! The demo's workers.

use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use windlass_sdk::{
    Client,
    worker::{Failure, JobContext, Worker},
};

/// How long a worker that comes and goes is there, and away.
const THERE: Duration = Duration::from_secs(45);
const AWAY: Duration = Duration::from_secs(20);
const OFFLINE_AFTER: Duration = Duration::from_secs(10);

#[derive(Deserialize, Default)]
#[serde(default)]
struct Work {
    seconds: f64,
    fails: bool,
    fails_once: bool,
    result: Option<Value>,
}

pub fn start(client: &Client, stop: &CancellationToken) {
    for (name, tags, slots) in
        [("render-1", &["render"][..], 4), ("mail-1", &["mail"], 2), ("archive-1", &["archive"], 1)]
    {
        tokio::spawn(work(client.clone(), name, tags, slots, stop.child_token()));
    }
    tokio::spawn(come_and_go(client.clone(), stop.clone()));
}

async fn come_and_go(client: Client, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let there = stop.child_token();
        let ends = there.clone();
        tokio::spawn(async move {
            sleep(THERE).await;
            ends.cancel();
        });
        work(client.clone(), "render-spot-2", &["render"], 2, there).await;
        sleep(AWAY).await;
    }
}

async fn work(client: Client, name: &'static str, tags: &'static [&'static str], slots: u32, stop: CancellationToken) {
    let worker =
        Worker::builder(client).name(name).tags(tags.iter().copied()).slots(slots).offline_after(OFFLINE_AFTER);
    let worker = worker.info(json!({"host": format!("{name}.demo.example"), "version": env!("CARGO_PKG_VERSION")}));
    let hard_stop = stop.clone();
    if let Err(error) = worker.hard_stop(hard_stop).run(handle, stop).await {
        eprintln!("windlass: the demo's worker {name} stopped: {error}");
    }
}

async fn handle(job: JobContext) -> Result<Value, Failure> {
    let work: Work = job.payload_as().unwrap_or_default();
    let steps = ((work.seconds * 4.0) as u32).max(2);
    let pause = Duration::from_secs_f64((work.seconds / f64::from(steps)).clamp(0.0, 5.0));
    job.log("\x1b[1mINFO\x1b[0m starting\n").await;
    for step in 1..=steps {
        job.progress(f64::from(step) * 100.0 / f64::from(steps), format!("{step} of {steps}"));
        let colour = if step % 5 == 0 { "\x1b[33mWARN\x1b[0m slow" } else { "\x1b[32mINFO\x1b[0m done" };
        job.log(&format!("{colour} part {step} of {steps}\n")).await;
        tokio::select! {
            () = sleep(pause) => {}
            _ = job.cancelled() => return Err(Failure::new("stopped")),
        }
    }
    if work.fails || (work.fails_once && job.attempt() == 1) {
        job.log("\x1b[31mERROR\x1b[0m connection refused by mx.example.org:25\n").await;
        return Err(Failure::new("connection refused by mx.example.org:25"));
    }
    Ok(work.result.unwrap_or_else(|| json!({"parts": steps, "bytes": u64::from(steps) * 48_271})))
}
