//! The native API's calls, from request to reply, on the reference store.

use crate::support::Server;
use http::Method;
use serde_json::{Value, json};
use windlass_core::principal::Role;

#[tokio::test]
async fn a_job_is_submitted_claimed_and_completed() {
    let server = Server::start().await;
    let job = server.post("/api/v1/jobs", json!({"payload": {"n": 1}, "tags": ["gpu"]})).await.expect(201);
    assert_eq!(job["state"], "pending");
    let none = server.work("/api/v1/leases/claim", json!({"worker": "w", "tags": []})).await.expect(200);
    assert_eq!(none["leases"], json!([]));
    let claimed = server.work("/api/v1/leases/claim", json!({"worker": "w", "tags": ["gpu"]})).await.expect(200);
    let lease = &claimed["leases"][0];
    assert_eq!((&lease["payload"], &lease["attempt"]), (&json!({"n": 1}), &json!(1)));
    let report = json!({"lease": lease["lease"], "result": [1, 2]});
    let ended = server.work("/api/v1/leases/complete", report.clone()).await.expect(200);
    assert_eq!(ended["state"], "completed");
    let again = server.work("/api/v1/leases/complete", report).await.expect(200);
    assert_eq!(again["replayed"], true);
    let shown = server.get(&format!("/api/v1/jobs/{}", job["id"].as_str().unwrap())).await.expect(200);
    assert_eq!((&shown["state"], &shown["result"]), (&json!("completed"), &json!([1, 2])));
}

#[tokio::test]
async fn a_claim_that_says_registered_does_not_make_a_worker_known() {
    let server = Server::start().await;
    let claim = json!({"worker": "w", "registered": true});
    let refused = server.work("/api/v1/leases/claim", claim.clone()).await.expect(404);
    assert_eq!(refused["type"], "/docs/errors#not-found");
    server.get("/api/v1/workers/w").await.expect(404);
    server.work("/api/v1/workers/register", json!({"worker": "w"})).await.expect(200);
    server.work("/api/v1/leases/claim", claim).await.expect(200);
}

/// Of two new jobs, both held by `w`.
async fn two_leases(server: &Server) -> Vec<Value> {
    for _ in 0..2 {
        server.post("/api/v1/jobs", json!({})).await.expect(201);
    }
    let claim = json!({"worker": "w", "tags": [], "max": 2});
    let claimed = server.work("/api/v1/leases/claim", claim).await.expect(200);
    claimed["leases"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_claim_that_says_registered_is_refused_beside_a_report_that_is_taken() {
    let server = Server::start().await;
    let leases = two_leases(&server).await;
    let next = json!({"worker": "forgotten", "registered": true});
    let ended = json!({"lease": leases[0]["lease"], "next": next});
    let ended = server.work("/api/v1/leases/complete", ended).await.expect(200);
    let operations = json!([{"do": "complete", "lease": leases[1]["lease"]}]);
    let done = server.work("/api/v1/leases/batch", json!({"operations": operations, "claim": next})).await.expect(200);
    assert_eq!((&ended["state"], &done["operations"][0]["state"]), (&json!("completed"), &json!("completed")));
    for answer in [ended, done] {
        assert_eq!(answer["claim_problem"]["type"], "/docs/errors#not-found");
    }
    server.get("/api/v1/workers/forgotten").await.expect(404);
}

#[tokio::test]
async fn a_report_that_contradicts_the_accepted_one_is_refused_with_what_the_job_is() {
    let server = Server::start().await;
    let claim = || async {
        server.post("/api/v1/jobs", json!({"retry": {"attempts": 1}})).await.expect(201);
        let claimed = server.work("/api/v1/leases/claim", json!({"worker": "w"})).await.expect(200);
        claimed["leases"][0]["lease"].clone()
    };
    let reports = |lease: &serde_json::Value| {
        [
            ("complete", json!({"lease": lease, "result": 1})),
            ("complete", json!({"lease": lease, "result": 2})),
            ("complete", json!({"lease": lease})),
            ("fail", json!({"lease": lease, "message": "a"})),
            ("fail", json!({"lease": lease, "message": "b"})),
            ("fail", json!({"lease": lease, "message": "a", "permanent": true})),
        ]
    };
    for (first, state) in [(0, "completed"), (2, "completed"), (3, "failed"), (5, "failed")] {
        let lease = claim().await;
        for at in [first, 0, 1, 2, 3, 4, 5, first] {
            let (verb, body) = reports(&lease)[at].clone();
            let mut operation = body.clone();
            operation["do"] = json!(verb);
            let answer = server.work(&format!("/api/v1/leases/{verb}"), body).await;
            let batch = server.work("/api/v1/leases/batch", json!({"operations": [operation]})).await.expect(200);
            let in_batch = &batch["operations"][0];
            if at == first {
                assert_eq!(answer.expect(200)["state"], state);
                assert_eq!(in_batch["replayed"], true, "{first}: {batch}");
                continue;
            }
            let problem = answer.expect(409);
            assert_eq!((&problem["type"], &problem["state"]), (&json!("/docs/errors#lease-lost"), &json!(state)));
            assert_eq!(in_batch["problem"]["state"], state, "{first}, then {at}: {batch}");
        }
        for verb in ["release", "renew"] {
            let problem = server.work(&format!("/api/v1/leases/{verb}"), json!({"lease": lease})).await.expect(409);
            assert_eq!(problem["state"], state);
        }
    }
}

#[tokio::test]
async fn a_late_report_is_told_what_the_job_is_now() {
    let server = Server::start().await;
    server.post("/api/v1/jobs", json!({"cancel": "revoke"})).await.expect(201);
    let claimed = server.work("/api/v1/leases/claim", json!({"worker": "w"})).await.expect(200);
    let lease = &claimed["leases"][0];
    let cancel = format!("/api/v1/jobs/{}/cancel", lease["job"].as_str().unwrap());
    server.post(&cancel, json!({})).await.expect(200);
    let problem = server.work("/api/v1/leases/complete", json!({"lease": lease["lease"]})).await.expect(409);
    assert_eq!((&problem["type"], &problem["state"]), (&json!("/docs/errors#lease-lost"), &json!("cancelled")));
}

#[tokio::test]
async fn one_call_keeps_all_leases_of_a_worker() {
    let server = Server::start().await;
    let jobs = json!({"jobs": [{}, {}, {"priority": -1, "retry": {"attempts": 0}}]});
    let answers = server.post("/api/v1/jobs/batch", jobs).await.expect(200);
    assert_eq!(answers["jobs"][2]["problem"]["field"], "jobs[2].policy.retry.attempts");
    let claimed = server.work("/api/v1/leases/claim", json!({"worker": "w", "max": 5})).await.expect(200);
    let leases: Vec<_> = claimed["leases"].as_array().unwrap().iter().map(|lease| lease["lease"].clone()).collect();
    assert_eq!(leases.len(), 2);
    let sync = json!({"worker": "w", "leases": [
        {"lease": leases[0], "progress": {"percent": 50.0}, "log": "half\n"},
        {"lease": "0".repeat(64)},
        {"lease": leases[1]},
    ]});
    let synced = server.work("/api/v1/leases/sync", sync).await.expect(200);
    let held: Vec<_> = synced["leases"].as_array().unwrap().iter().map(|lease| lease["held"].clone()).collect();
    assert_eq!(held, [json!(true), json!(false), json!(true)]);
    let done = json!({"operations": [
        {"do": "complete", "lease": leases[0], "result": {}},
        {"do": "fail", "lease": leases[1], "message": "broken", "permanent": true},
        {"do": "renew", "lease": leases[1]},
    ], "claim": {"worker": "w"}});
    let done = server.work("/api/v1/leases/batch", done).await.expect(200);
    assert_eq!(done["operations"][0]["state"], "completed");
    assert_eq!(done["operations"][1]["state"], "failed");
    assert_eq!(done["operations"][2]["problem"]["status"], 409);
}

#[tokio::test]
async fn a_refused_claim_does_not_hide_that_the_report_beside_it_was_taken() {
    let server = Server::start().await;
    let leases = two_leases(&server).await;
    server.post("/api/v1/workers/w/drain", json!({})).await.expect(200);
    let next = json!({"worker": "w", "tags": []});
    let report = json!({"lease": leases[0]["lease"], "next": next});
    let ended = server.work("/api/v1/leases/complete", report).await.expect(200);
    assert_eq!((&ended["state"], &ended["claim_problem"]["status"]), (&json!("completed"), &json!(409)));
    let operations = json!([{"do": "complete", "lease": leases[1]["lease"]}]);
    let done = server.work("/api/v1/leases/batch", json!({"operations": operations, "claim": next})).await.expect(200);
    assert_eq!(done["operations"][0]["state"], "completed");
    assert_eq!(done["claim_problem"]["type"], "/docs/errors#worker-draining");
}

#[tokio::test]
async fn health_is_told_to_callers_with_a_token_that_ran_out() {
    let server = Server::start().await;
    for path in ["/readyz", "/healthz"] {
        let request = http::Request::get(path)
            .header(http::header::HOST, "127.0.0.1:3000")
            .header(http::header::AUTHORIZATION, "Bearer long-gone")
            .body(axum::body::Body::empty())
            .unwrap();
        assert_eq!(server.call(request).await.status.as_u16(), 200, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_submits_with_one_key_one_makes_the_job_and_nobody_elses_key_is_touched() {
    let server = std::sync::Arc::new(Server::start().await);
    let body = json!({"payload": {"n": 1}, "idempotency_key": "once"});
    let submits: Vec<_> = (0..64)
        .map(|_| {
            let (server, body) = (server.clone(), body.clone());
            tokio::spawn(async move { server.post("/api/v1/jobs", body).await })
        })
        .collect();
    let (mut made, mut told) = (0, std::collections::HashSet::new());
    for submit in submits {
        let answer = submit.await.unwrap();
        let status = answer.status.as_u16();
        made += u32::from(status == 201);
        told.insert(answer.expect(status)["id"].as_str().expect("a job").to_owned());
    }
    assert_eq!((made, told.len()), (1, 1), "one made the job, and all were told of it");
    let other = server.send(Role::Editor, Method::POST, "/api/v1/jobs", Some(body)).await.expect(201);
    assert!(!told.contains(other["id"].as_str().unwrap()), "another principal's key is its own");
    let changed = json!({"payload": {"n": 2}, "idempotency_key": "once"});
    server.post("/api/v1/jobs", changed).await.expect(422);
}
