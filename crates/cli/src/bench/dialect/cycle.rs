//! Callers that repeat the same calls, side by side, until so many cycles are done.

use super::super::{figures::Latency, work::progress};
use anyhow::ensure;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};
use tokio::task::JoinSet;

/// Somebody who does a job, from its submit to its end.
pub trait Cycle: Send + 'static {
    fn cycle(&mut self) -> impl Future<Output = anyhow::Result<()>> + Send;
}

/// Cycles per second, and how long one took.
pub async fn all<C: Cycle>(what: &'static str, count: usize, callers: Vec<C>) -> anyhow::Result<(f64, Latency)> {
    let left = Arc::new(AtomicUsize::new(count));
    let bar = progress(what, count);
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for mut caller in callers {
        let (left, bar) = (left.clone(), bar.clone());
        tasks.spawn(async move {
            let mut times = Vec::new();
            while left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)).is_ok() {
                let begun = Instant::now();
                caller.cycle().await?;
                times.push(begun.elapsed());
                bar.inc(1);
            }
            anyhow::Ok(times)
        });
    }
    let mut times = Vec::with_capacity(count);
    while let Some(task) = tasks.join_next().await {
        times.extend(task??);
    }
    let took = begun.elapsed().as_secs_f64();
    bar.finish_and_clear();
    ensure!(times.len() == count, "{} of {count} cycles were done", times.len());
    Ok((count as f64 / took, Latency::of(&mut times)))
}
