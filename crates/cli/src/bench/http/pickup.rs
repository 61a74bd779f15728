//! How long a job lies there while a worker waits for it: from the submit's first byte to the claim's answer.

use super::{connection::Connection, load::JOB, subject::Subject};
use crate::bench::work::progress;
use anyhow::ensure;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Time for the waiting claim to be registered before the next job is submitted.
const HEAD_START: Duration = Duration::from_millis(5);

pub async fn measure(subject: &Subject, count: usize) -> anyhow::Result<Vec<Duration>> {
    let mut editor = Connection::open(&subject.address, &subject.token).await?;
    let mut worker = Connection::open(&subject.address, &subject.worker_token).await?;
    let at = &subject.namespace;
    let (claim, complete) =
        (format!("/api/v1/leases/claim?namespace={at}"), format!("/api/v1/leases/complete?namespace={at}"));
    let (seen, mut picked) = mpsc::unbounded_channel();
    let waiting = tokio::spawn(async move {
        for _ in 0..count {
            let answer = worker.post(&claim, r#"{"worker":"pickup","tags":[],"wait_ms":60000}"#).await?;
            let now = Instant::now();
            let claimed: serde_json::Value = serde_json::from_slice(&answer)?;
            let lease = claimed["leases"][0]["lease"].as_str().unwrap_or_default().to_owned();
            ensure!(!lease.is_empty(), "the waiting claim came back empty");
            worker.post(&complete, format!(r#"{{"lease":"{lease}"}}"#)).await?;
            seen.send(now)?;
        }
        anyhow::Ok(())
    });
    let bar = progress("pickup", count);
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        tokio::time::sleep(HEAD_START).await;
        let begun = Instant::now();
        editor.post(&format!("/api/v1/jobs?namespace={at}"), JOB).await?;
        let Some(now) = picked.recv().await else { break };
        times.push(now - begun);
        bar.inc(1);
    }
    bar.finish_and_clear();
    waiting.await??;
    Ok(times)
}
