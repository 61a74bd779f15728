//! Why a job is not running, asked of the server.

use crate::support::Server;
use serde_json::{Value, json};

async fn code(server: &Server, job: &Value) -> (String, Value) {
    let why = server.get(&format!("/api/v1/jobs/{}/why", job["id"].as_str().unwrap())).await.expect(200);
    (why["reasons"][0]["code"].as_str().unwrap().to_owned(), why)
}

#[tokio::test]
async fn a_job_is_followed_from_its_submission_to_its_end() {
    let server = Server::start().await;
    let submit = async |body: Value| server.post("/api/v1/jobs", body).await.expect(201);
    let first = submit(json!({"tags": ["gpu"], "concurrency": {"key": "k", "limit": 1}})).await;
    let second = submit(json!({"tags": ["gpu"], "concurrency": {"key": "k", "limit": 1}})).await;
    let third = submit(json!({"after": [first["id"]]})).await;
    let later = submit(json!({"delay_ms": 60_000})).await;
    assert_eq!(code(&server, &first).await.0, "no_worker_offers");
    let (full, why) = code(&server, &second).await;
    assert_eq!((full.as_str(), &why["reasons"][0]["jobs"]), ("concurrency_full", &json!([first["id"]])));
    let (waits, why) = code(&server, &third).await;
    assert_eq!((waits.as_str(), &why["reasons"][0]["jobs"]), ("waits_for_jobs", &json!([first["id"]])));
    assert_eq!(code(&server, &later).await.0, "scheduled");
    server.work("/api/v1/workers/register", json!({"worker": "w", "tags": ["gpu"]})).await.expect(200);
    assert_eq!(code(&server, &first).await.0, "ready");
    server.post("/api/v1/workers/w/drain", json!({})).await.expect(200);
    assert_eq!(code(&server, &first).await.0, "workers_offline");
    server.post("/api/v1/workers/w/drain", json!({"draining": false})).await.expect(200);
    for _ in 0..3 {
        submit(json!({"tags": ["gpu"], "priority": 1})).await;
        submit(json!({"tags": ["other"], "priority": 1})).await;
    }
    let (ahead, why) = code(&server, &first).await;
    assert_eq!((ahead.as_str(), &why["summary"]), ("jobs_ahead", &json!("3 jobs with the same tags go first.")));
    let claimed = server.work("/api/v1/leases/claim", json!({"worker": "w", "max": 4})).await.expect(200);
    assert_eq!(code(&server, &first).await.0, "running");
    let lease = &claimed["leases"][3]["lease"];
    server.work("/api/v1/leases/complete", json!({"lease": lease})).await.expect(200);
    assert_eq!(code(&server, &first).await.0, "ended");
    server.get("/api/v1/jobs/0199a000-0000-7000-8000-000000000000/why").await.expect(404);
}

#[tokio::test]
async fn it_is_not_called_next_while_a_hundred_workers_are_busy() {
    let server = Server::start().await;
    for number in 0..100 {
        let worker = format!("w{number}");
        server.post("/api/v1/jobs", json!({"tags": ["gpu"]})).await.expect(201);
        server.work("/api/v1/workers/register", json!({"worker": worker, "tags": ["gpu"]})).await.expect(200);
        server.work("/api/v1/leases/claim", json!({"worker": worker})).await.expect(200);
    }
    let next = server.post("/api/v1/jobs", json!({"tags": ["gpu"]})).await.expect(201);
    let (code, why) = code(&server, &next).await;
    assert_eq!(code, "workers_busy", "{why}");
}

#[tokio::test]
async fn a_worker_that_never_registered_counts_while_it_works() {
    let server = Server::start().await;
    let submit = async || server.post("/api/v1/jobs", json!({"tags": ["gpu"]})).await.expect(201);
    let claim = json!({"worker": "curl", "tags": ["gpu"]});
    server.work("/api/v1/leases/claim", claim.clone()).await.expect(200);
    let next = submit().await;
    let (unknown, why) = code(&server, &next).await;
    assert_eq!(unknown, "no_worker_offers", "{why}");
    assert!(why["summary"].as_str().unwrap().contains("if they offer its tags then: curl."), "{why}");
    server.work("/api/v1/leases/claim", claim).await.expect(200);
    let next = submit().await;
    let (busy, why) = code(&server, &next).await;
    assert_eq!(busy, "workers_busy", "{why}");
    assert!(why["summary"].as_str().unwrap().contains("curl (not registered, with job"), "{why}");
    let lanes = server.get("/api/v1/overview").await.expect(200)["lanes"].clone();
    assert_eq!(lanes[0]["reason_code"], "workers_busy", "{lanes}");
    // A drain is said of it as of any other.
    server.post("/api/v1/workers/curl/drain", json!({})).await.expect(200);
    let (drained, why) = code(&server, &next).await;
    assert_eq!(drained, "workers_offline", "{why}");
    assert!(why["summary"].as_str().unwrap().contains("curl is draining"), "{why}");
}

#[tokio::test]
async fn what_keeps_a_key_or_gave_a_job_back_is_named() {
    let server = Server::start().await;
    let keyed = json!({"concurrency": {"key": "k", "limit": 1}});
    let first = server.post("/api/v1/jobs", keyed.clone()).await.expect(201);
    let second = server.post("/api/v1/jobs", keyed).await.expect(201);
    let claim = json!({"worker": "w"});
    server.work("/api/v1/leases/claim", claim.clone()).await.expect(200);
    let cancel = format!("/api/v1/jobs/{}/cancel?mode=revoke", first["id"].as_str().unwrap());
    server.post(&cancel, json!({})).await.expect(200);
    let (full, why) = code(&server, &second).await;
    assert_eq!((full.as_str(), &why["reasons"][0]["jobs"]), ("concurrency_full", &json!([first["id"]])), "{why}");
    let other = server.post("/api/v1/jobs", json!({"retry": {"attempts": 2}})).await.expect(201);
    let lease = server.work("/api/v1/leases/claim", claim).await.expect(200)["leases"][0]["lease"].clone();
    let release = json!({"lease": lease, "delay_ms": 60_000, "message": "no such program"});
    server.work("/api/v1/leases/release", release).await.expect(200);
    let (rests, why) = code(&server, &other).await;
    assert_eq!(rests, "scheduled");
    assert!(why["summary"].as_str().unwrap().contains("returned it"), "{why}");
    assert!(why["summary"].as_str().unwrap().contains("no such program"), "{why}");
}
