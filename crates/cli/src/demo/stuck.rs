//! A job for every reason to wait.

use super::submit as send;
use serde_json::{Value, json};
use windlass_api::{worker::RegisterWorker, workflow::InlineRun};
use windlass_sdk::Client;

const LONG: u64 = 24 * 3_600;

const WAITS: &str = "\
name: order
steps:
  payment:
    wait: {event: paid}
  cooling-off:
    wait: {for: 14d}
  sign-off:
    wait: {approval: true}
  ship:
    needs: [payment, cooling-off, sign-off]
    tags: [mail]
    payload: {seconds: 1}
";

async fn once(client: &Client, key: &str, mut job: Value) -> anyhow::Result<uuid::Uuid> {
    // Until it has ended, the next start finds the same job.
    job["idempotency_key"] = json!(format!("demo {key}"));
    job["idempotency_ms"] = json!(0);
    send(client, job).await
}

async fn jobs(client: &Client) -> anyhow::Result<()> {
    let once = |key: &'static str, job: Value| self::once(client, key, job);
    let gpu = once("gpu", json!({"name": "train model", "tags": ["gpu-h100"], "payload": {"epochs": 40}})).await?;
    once("after", json!({"name": "evaluate model", "tags": ["render"], "after": [gpu]})).await?;
    once("night", json!({"name": "rebuild index", "tags": ["night"]})).await?;
    once("edge", json!({"name": "update firmware", "tags": ["edge"]})).await?;
    once("later", json!({"name": "expire trial", "tags": ["mail"], "delay_ms": LONG * 1_000})).await?;
    for (key, name) in [("archive 1", "archive 2023"), ("archive 2", "archive 2024"), ("archive 3", "archive 2025")] {
        let timeout_ms = LONG * 1_000;
        let job = json!({"name": name, "tags": ["archive"], "timeout_ms": timeout_ms, "payload": {"seconds": LONG}});
        once(key, job).await?;
    }
    let ledger = json!({"key": "ledger", "limit": 1});
    for (key, name) in [("ledger 1", "close books"), ("ledger 2", "post invoices")] {
        let job = json!({"name": name, "tags": ["render"], "concurrency": ledger, "payload": {"seconds": LONG}});
        once(key, job).await?;
    }
    Ok(())
}

pub async fn submit(client: &Client, worker: &Client) -> anyhow::Result<()> {
    for (name, tag, offline_after_ms) in [("night-shift", "night", 1_000), ("edge-3", "edge", LONG * 1_000)] {
        let register = RegisterWorker {
            worker: name.into(),
            tags: vec![tag.into()],
            slots: 1,
            offline_after_ms: Some(offline_after_ms),
            ..RegisterWorker::default()
        };
        worker.register(&register).await?;
    }
    client.drain("edge-3", true).await?;
    jobs(client).await?;
    let order =
        InlineRun { source: Some(WAITS.into()), idempotency_key: Some("demo order".into()), ..InlineRun::default() };
    client.start_run(&order).await?;
    Ok(())
}
