//! How much a namespace may store, and what it may still do once it stores as much.

use crate::support::Server;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use windlass_core::{Limits, Millis, Namespace};
use windlass_engine::{Quotas, Settings, testing::eventually};

async fn start(each: u64) -> Server {
    let of = BTreeMap::from([(Namespace::new("large").unwrap(), 64 << 20), (Namespace::new("open").unwrap(), 0)]);
    let limits = Limits { retention: Millis::from_secs(60), ..Limits::default() };
    let quotas = Quotas { each, of: Arc::new(of) };
    Server::set(Settings { limits, quotas, ..Settings::default() }, Default::default()).await
}

fn job() -> Value {
    of_bytes(500_000)
}

fn of_bytes(bytes: usize) -> Value {
    json!({"tags": ["t"], "payload": "x".repeat(bytes)})
}

/// Submits until that is refused, and says how many were accepted, and why no more.
async fn fill(server: &Server, namespace: &str, bytes: usize) -> (usize, Value) {
    for count in 0..1_000 {
        let answer = server.post(&format!("/api/v1/jobs?namespace={namespace}"), of_bytes(bytes)).await;
        if answer.status == 507 {
            return (count, answer.expect(507));
        }
        answer.expect(201);
    }
    panic!("it was never refused");
}

async fn stored(server: &Server, namespace: &str) -> u64 {
    let stats = server.get(&format!("/api/v1/stats?namespace={namespace}")).await.expect(200);
    stats["stored_bytes"].as_u64().unwrap()
}

#[tokio::test]
async fn a_namespace_stores_so_much_and_no_more_and_others_are_not_concerned() {
    let server = start(4 << 20).await;
    let (count, refused) = fill(&server, "a", 500_000).await;
    assert_eq!(count, 8, "{refused}");
    assert!(refused["type"].as_str().unwrap().ends_with("#over-quota"), "{refused}");
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("4194304 (stored_bytes_per_namespace_max)") && detail.contains("namespace a"), "{detail}");
    for _ in 0..20 {
        server.post("/api/v1/jobs?namespace=large", job()).await.expect(201);
        server.post("/api/v1/jobs?namespace=open", job()).await.expect(201);
    }
    for (path, body) in [
        ("/api/v1/jobs/batch?namespace=a", json!({"jobs": [job()]})),
        ("/api/v1/definitions/d?namespace=a", json!({"payload": "x".repeat(200_000)})),
    ] {
        let answer = if path.contains("batch") { server.post(path, body).await } else { server.put(path, body).await };
        assert!(String::from_utf8_lossy(&answer.body).contains("over-quota"), "{path}: {}", answer.status);
    }
}

#[tokio::test]
async fn what_is_held_is_reported_though_the_quota_is_used_up_and_cancelled_jobs_make_room() {
    let server = start(4 << 20).await;
    fill(&server, "a", 500_000).await;
    let claim = json!({"worker": "w", "tags": ["t"], "max": 2});
    let claimed = server.work("/api/v1/leases/claim?namespace=a", claim).await.expect(200);
    let lease = |at: usize| claimed["leases"][at]["lease"].clone();
    let log = json!({"lease": lease(0), "data": "x".repeat(200_000)});
    let refused = server.work("/api/v1/leases/logs?namespace=a", log).await.expect(507);
    assert!(refused["type"].as_str().unwrap().ends_with("#over-quota"), "{refused}");
    server.work("/api/v1/leases/renew?namespace=a", json!({"lease": lease(0)})).await.expect(200);
    // A log that has no room does not keep the report beside it.
    let operations = json!([
        {"do": "log", "lease": lease(0), "data": "x".repeat(200_000)},
        {"do": "complete", "lease": lease(0), "result": "y".repeat(300_000)},
    ]);
    let done = server.work("/api/v1/leases/batch?namespace=a", json!({"operations": operations})).await.expect(200);
    assert_eq!(done["operations"][0]["problem"]["status"], 507, "{done}");
    assert!(done["operations"][1]["problem"].is_null(), "{done}");
    server.work("/api/v1/leases/fail?namespace=a", json!({"lease": lease(1), "message": "no"})).await.expect(200);
    let jobs = server.get("/api/v1/jobs?namespace=a&limit=100").await.expect(200);
    for job in jobs["items"].as_array().unwrap().iter().filter(|job| job["state"] == "pending") {
        let path = format!("/api/v1/jobs/{}/cancel?namespace=a", job["id"].as_str().unwrap());
        server.post(&path, json!({})).await.expect(200);
    }
    assert!(stored(&server, "a").await > 4 << 20);
    server.pass(Millis(120_000)).await;
    assert!(stored(&server, "a").await < 1 << 20, "what was removed is counted no longer");
    let accepted = async || (server.post("/api/v1/jobs?namespace=a", job()).await.status == 201).then_some(());
    eventually("there is room for another job", accepted).await;
}

/// Its next time comes when there is room again.
#[tokio::test]
async fn a_schedule_waits_while_its_namespace_is_full() {
    let server = start(4 << 20).await;
    let put = json!({"every_ms": 10_000, "job": {"name": "tick"}});
    server.put("/api/v1/schedules/s?namespace=a", put).await.expect(200);
    fill(&server, "a", 500_000).await;
    fill(&server, "a", 1_000).await;
    let made = async || {
        let jobs = server.get("/api/v1/jobs?namespace=a&name=tick").await.expect(200);
        jobs["items"].as_array().unwrap().len()
    };
    server.pass(Millis(30_000)).await;
    assert_eq!(made().await, 0);
}
