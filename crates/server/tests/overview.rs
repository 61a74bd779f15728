//! How it stands and how it went: what waits and why, what fails, and figures that outlive the server's memory.

use crate::support::Server;
use axum::body::Body;
use http::{Method, Request, header};
use serde_json::{Value, json};
use windlass_core::{Millis, principal::Role};
use windlass_engine::testing::eventually;
use windlass_server::history;

async fn work(server: &Server, fails: bool) {
    let claim = json!({"worker": "w", "tags": ["mail"], "max": 1});
    let claimed = server.work("/api/v1/leases/claim", claim).await.expect(200);
    let lease = &claimed["leases"][0]["lease"];
    server.clock.advance(Millis(2_000));
    match fails {
        true => server.work("/api/v1/leases/fail", json!({"lease": lease, "message": "no", "permanent": true})).await,
        false => server.work("/api/v1/leases/complete", json!({"lease": lease})).await,
    }
    .expect(200);
}

#[tokio::test]
async fn the_overview_says_what_waits_longest_and_why_and_what_fails() {
    let server = Server::start().await;
    server.put("/api/v1/definitions/send", json!({"tags": ["mail"]})).await.expect(200);
    let gpu = server.post("/api/v1/jobs", json!({"name": "train", "tags": ["gpu"]})).await.expect(201);
    for _ in 0..3 {
        server.post("/api/v1/jobs", json!({"definition": "send"})).await.expect(201);
    }
    work(&server, true).await;
    work(&server, false).await;
    let overview = server.get("/api/v1/overview").await.expect(200);
    let lanes = overview["lanes"].as_array().unwrap();
    assert_eq!(lanes.len(), 2, "{overview}");
    assert_eq!((&lanes[0]["oldest"], &lanes[0]["oldest_name"]), (&gpu["id"], &json!("train")));
    assert!(lanes[0]["reason"].as_str().unwrap().contains("gpu"), "{overview}");
    assert_eq!(lanes[0]["reason_code"], "no_worker_offers");
    assert_eq!((&lanes[1]["tags"], &lanes[1]["waiting"]["count"]), (&json!(["mail"]), &json!(1)));
    assert_eq!(overview["failing"], json!([{"definition": "send", "completed": 1, "failed": 1}]));
    assert_eq!(overview["jobs"]["pending"]["count"], 2);
    // Nothing of another namespace.
    let other = server.get("/api/v1/overview?namespace=other").await.expect(200);
    assert_eq!((&other["lanes"], &other["failing"]), (&json!([]), &json!([])));
}

/// One that was made after the clock was last moved: an answer serves all who ask within a second.
async fn new_overview(server: &Server) -> Value {
    let now = server.engine.now().await.unwrap();
    eventually("a new overview", async || {
        let overview = server.get("/api/v1/overview").await.expect(200);
        (overview["now"] == json!(windlass_server::wire_time::text(now))).then_some(overview)
    })
    .await
}

#[tokio::test]
async fn the_overview_counts_failures_of_jobs_without_a_definition() {
    let server = Server::start().await;
    server.put("/api/v1/definitions/send", json!({"tags": ["mail"]})).await.expect(200);
    server.post("/api/v1/jobs", json!({"definition": "send"})).await.expect(201);
    work(&server, true).await;
    let of_a_definition = server.get("/api/v1/overview").await.expect(200);
    assert_eq!(of_a_definition["failing_others"], Value::Null, "{of_a_definition}");
    for fails in [true, true, false] {
        server.post("/api/v1/jobs", json!({"tags": ["mail"]})).await.expect(201);
        work(&server, fails).await;
    }
    // Its worker never reports: the lease ends, and with it the job.
    server.post("/api/v1/jobs", json!({"tags": ["mail"], "retry": {"attempts": 1}})).await.expect(201);
    server.work("/api/v1/leases/claim", json!({"worker": "w", "tags": ["mail"]})).await.expect(200);
    for _ in 0..2 {
        server.pass(Millis::from_secs(61)).await;
        let overview = new_overview(&server).await;
        assert_eq!(overview["failing"], json!([{"definition": "send", "completed": 0, "failed": 1}]));
        assert_eq!(overview["failing_others"], json!({"completed": 1, "failed": 3}), "{overview}");
        history::write_down(&server.app).await;
    }
}

#[tokio::test]
async fn only_workers_that_went_silent_without_a_word_are_called_lost() {
    let server = Server::start().await;
    for worker in ["gone", "crashed"] {
        server.work("/api/v1/workers/register", json!({"worker": worker, "tags": ["mail"]})).await.expect(200);
    }
    server.work("/api/v1/leases/claim", json!({"worker": "script", "tags": ["mail"]})).await.expect(200);
    server.work("/api/v1/workers/unregister", json!({"worker": "gone"})).await.expect(204);
    server.pass(Millis::from_secs(600)).await;
    let overview = server.get("/api/v1/overview").await.expect(200);
    assert_eq!(overview["lost_workers"], json!(["crashed"]), "{overview}");
}

#[tokio::test]
async fn the_overview_names_steps_that_wait_for_approval_or_an_event() {
    let server = Server::start().await;
    let source = "steps:\n  ok: {wait: {approval: true}}\n  paid: {wait: {event: payment, timeout: 1h}}\n  later: {wait: {for: 1h}}\n";
    let run = server.post("/api/v1/runs", json!({"source": source})).await.expect(201)["id"].clone();
    let steps = server.get("/api/v1/overview").await.expect(200)["waiting_steps"].clone();
    let told: Vec<_> = steps.as_array().unwrap().iter().map(|one| (&one["run"], &one["step"], &one["event"])).collect();
    let (ok, paid, payment) = (json!("ok"), json!("paid"), json!("payment"));
    assert_eq!(told, [(&run, &ok, &Value::Null), (&run, &paid, &payment)], "{steps}");
    assert!(steps[0]["until"].is_null() && steps[1]["until"].is_string(), "{steps}");
    let path = format!("/api/v1/runs/{}", run.as_str().unwrap());
    server.post(&format!("{path}/steps/ok/approve"), json!({})).await.expect(200);
    server.post(&format!("{path}/cancel"), json!({})).await.expect(200);
    server.pass(Millis::from_secs(2)).await;
    let overview = new_overview(&server).await;
    assert_eq!(overview["waiting_steps"], Value::Null, "{overview}");
}

fn sums(history: &Value) -> (u64, u64, u64) {
    let sum =
        |field: &str| history["points"].as_array().unwrap().iter().filter_map(|point| point[field].as_u64()).sum();
    (sum("submitted"), sum("completed"), sum("failed"))
}

#[tokio::test]
async fn what_was_done_is_told_before_and_after_it_is_written_down() {
    let server = Server::start().await;
    server.put("/api/v1/definitions/send", json!({"tags": ["mail"]})).await.expect(200);
    for fails in [false, false, true] {
        server.post("/api/v1/jobs", json!({"definition": "send"})).await.expect(201);
        work(&server, fails).await;
    }
    let paths = ["/api/v1/history", "/api/v1/history?span=month", "/api/v1/history?definition=send"];
    let submitted = |path: &str| if path.contains("definition") { 0 } else { 3 };
    for path in paths {
        assert_eq!(sums(&server.get(path).await.expect(200)), (submitted(path), 2, 1), "{path}");
    }
    history::write_down(&server.app).await;
    server.pass(Millis::from_secs(90)).await;
    server.post("/api/v1/jobs", json!({"definition": "send"})).await.expect(201);
    work(&server, false).await;
    for path in paths {
        let submitted = if path.contains("definition") { 0 } else { 4 };
        let told = server.get(path).await.expect(200);
        assert_eq!(sums(&told), (submitted, 3, 1), "{path}");
        let run = told["points"].as_array().unwrap().last().unwrap()["run_p50_ms"].as_u64().unwrap();
        assert!((1_000..=5_000).contains(&run), "{told}");
    }
    // Added to, not replaced.
    history::write_down(&server.app).await;
    assert_eq!(sums(&server.get("/api/v1/history").await.expect(200)), (4, 3, 1));
    // A day later the minutes are gone, and the hours are there.
    server.pass(Millis::from_secs(27 * 3_600)).await;
    assert_eq!(sums(&server.get("/api/v1/history").await.expect(200)), (0, 0, 0));
    assert_eq!(sums(&server.get("/api/v1/history?span=month").await.expect(200)), (4, 3, 1));
}

#[tokio::test]
async fn callers_learn_of_the_namespaces_they_may_see_and_admins_of_the_settings() {
    let server = Server::start().await;
    server.put("/api/v1/definitions/x?namespace=team", json!({})).await.expect(200);
    let names = server.get("/api/v1/namespaces").await.expect(200);
    assert_eq!(names["items"], json!(["default", "team"]));
    // Also where there is nothing but a job.
    server.post("/api/v1/jobs?namespace=bare", json!({})).await.expect(201);
    let names = server.get("/api/v1/namespaces").await.expect(200);
    assert_eq!(names["items"], json!(["bare", "default", "team"]));
    // An admin of one namespace sees that one, with nothing in it yet, and no other.
    let limited = json!({"principal": "lead", "role": "admin", "namespaces": ["new"]});
    let token = server.post("/api/v1/tokens", limited).await.expect(201)["token"].as_str().unwrap().to_owned();
    let request = Request::builder().uri("/api/v1/namespaces").header(header::HOST, "localhost");
    let request = request.header(header::AUTHORIZATION, format!("Bearer {token}")).body(Body::empty()).unwrap();
    assert_eq!(server.call(request).await.expect(200)["items"], json!(["new"]));
    let dialects = server.get("/api/v1/dialects").await.expect(200);
    let native = dialects["items"].as_array().unwrap().iter().find(|one| one["name"] == "native").unwrap().clone();
    assert!(native["calls"].as_u64().unwrap() >= 2 && native["last_caller"] == "test-admin", "{native}");
    server.get("/api/v1/settings").await.expect(200);
    server.send(Role::Editor, Method::GET, "/api/v1/settings", None).await.expect(403);
}

#[tokio::test]
async fn a_definition_tells_its_last_jobs_and_a_worker_its_failures_beside_the_fleets() {
    let server = Server::start().await;
    server.put("/api/v1/definitions/send", json!({"tags": ["mail"], "retry": {"attempts": 2}})).await.expect(200);
    let mut ids = Vec::new();
    for fails in [false, true] {
        ids.push(server.post("/api/v1/jobs", json!({"definition": "send"})).await.expect(201)["id"].clone());
        work(&server, fails).await;
    }
    // Another worker fails once and is given the job again.
    server.post("/api/v1/jobs", json!({"tags": ["mail"], "retry": {"attempts": 3}})).await.expect(201);
    let claim = json!({"worker": "other", "tags": ["mail"], "max": 1});
    let claimed = server.work("/api/v1/leases/claim", claim).await.expect(200);
    let lease = &claimed["leases"][0]["lease"];
    server.work("/api/v1/leases/fail", json!({"lease": lease, "message": "no"})).await.expect(200);
    ids.reverse();
    for _ in 0..2 {
        let told = server.get("/api/v1/definitions/send/figures").await.expect(200);
        assert_eq!((&told["completed"], &told["failed"]), (&json!(1), &json!(1)), "{told}");
        let recent: Vec<Value> = told["recent"].as_array().unwrap().iter().map(|job| job["id"].clone()).collect();
        assert_eq!(recent, ids);
        assert!((1_000..=5_000).contains(&told["run_p50_ms"].as_u64().unwrap()), "{told}");
        let own = server.get("/api/v1/workers/w/figures").await.expect(200);
        assert_eq!(own, json!({"completed": 1, "failed": 1, "fleet_completed": 1, "fleet_failed": 2}));
        let other = server.get("/api/v1/workers/other/figures").await.expect(200);
        assert_eq!((&other["completed"], &other["failed"]), (&json!(0), &json!(1)), "also what is tried again");
        // The same from what was written down.
        history::write_down(&server.app).await;
    }
    server.pass(Millis::from_secs(27 * 3_600)).await;
    let own = server.get("/api/v1/workers/w/figures").await.expect(200);
    assert_eq!(own["fleet_failed"], 0, "a day later");
}

#[tokio::test]
async fn the_lines_of_a_log_that_contain_a_text_are_found_by_the_server() {
    let server = Server::start().await;
    let id = server.post("/api/v1/jobs", json!({"tags": ["mail"]})).await.expect(201)["id"].clone();
    let claim = json!({"worker": "w", "tags": ["mail"], "max": 1});
    let claimed = server.work("/api/v1/leases/claim", claim).await.expect(200);
    let lease = &claimed["leases"][0]["lease"];
    for data in ["one\ntwo Nee", "dle\n\u{1b}[31mred\u{1b}[0m needle\n", "no end: NEEDLE"] {
        server.work("/api/v1/leases/logs", json!({"lease": lease, "data": data})).await.expect(200);
    }
    let path = format!("/api/v1/jobs/{}/logs/search", id.as_str().unwrap());
    let told = server.get(&format!("{path}?text=needle")).await.expect(200);
    let lines: Vec<_> = told["lines"].as_array().unwrap().iter().map(|line| line["line"].as_u64().unwrap()).collect();
    assert_eq!((lines, &told["searched"], &told["next"]), (vec![2, 3, 4], &json!(4), &Value::Null), "{told}");
    assert_eq!(told["lines"][0]["text"], "two Needle");
    // One at a time.
    let (mut found, mut cursor) = (Vec::new(), String::new());
    while found.len() < 10 {
        let told = server.get(&format!("{path}?text=needle&limit=1{cursor}")).await.expect(200);
        found.extend(told["lines"].as_array().unwrap().iter().map(|line| line["line"].as_u64().unwrap()));
        let Some(next) = told["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(found, [2, 3, 4]);
    server.get(&path).await.expect(422);
    server.get(&format!("{path}?text=x&cursor=y")).await.expect(422);
    server.get(&format!("{path}?text=x&limit=0")).await.expect(422);
}

#[tokio::test]
async fn a_job_that_is_done_shows_no_old_progress_and_began_when_it_was_claimed() {
    let server = Server::start().await;
    let source = "steps:\n  quick: {tags: [mail]}\n";
    let run = server.post("/api/v1/runs", json!({"source": source})).await.expect(201)["id"].clone();
    work(&server, false).await;
    let run = server.get(&format!("/api/v1/runs/{}", run.as_str().unwrap())).await.expect(200);
    let step = &run["steps"][0];
    assert_eq!(step["duration_ms"], 2_000, "{step}");
    assert_ne!(step["started_at"], step["finished_at"], "its only report was its last one");
    let job = server.get(&format!("/api/v1/jobs/{}", step["job"].as_str().unwrap())).await.expect(200);
    assert_eq!((&job["started_at"], &step["started_at"]), (&job["claimed_at"], &job["claimed_at"]), "{job}");
    // One that reports in between began then, and says how far it is until it is done.
    let id = server.post("/api/v1/jobs", json!({"tags": ["mail"]})).await.expect(201)["id"].clone();
    let path = format!("/api/v1/jobs/{}", id.as_str().unwrap());
    let claimed = server.work("/api/v1/leases/claim", json!({"worker": "w", "tags": ["mail"]})).await.expect(200);
    let lease = &claimed["leases"][0]["lease"];
    server.clock.advance(Millis(1_000));
    server.work("/api/v1/leases/progress", json!({"lease": lease, "percent": 75})).await.expect(200);
    assert_eq!(server.get(&path).await.expect(200)["progress"]["percent"], 75.0);
    server.clock.advance(Millis(1_000));
    server.work("/api/v1/leases/complete", json!({"lease": lease})).await.expect(200);
    let done = server.get(&path).await.expect(200);
    assert_eq!(done["progress"], Value::Null, "{done}");
    assert_ne!(done["started_at"], done["claimed_at"], "{done}");
    assert_ne!(done["started_at"], done["finished_at"], "{done}");
}
