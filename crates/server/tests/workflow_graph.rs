//! The workflow-graph protocol, call by call, as its own worker and clients speak it.

use crate::support::{Answer, Server, token};
use http::{Method, Request, header};
use serde_json::{Value, json};
use windlass_core::{Millis, principal::Role};

/// As a worker or, for workflows, as an admin.
async fn call(server: &Server, method: Method, path: &str, body: Option<Value>) -> Answer {
    let works = path.starts_with("/api/jobs") || path.ends_with("/register") || path.ends_with("/heartbeat");
    let role = if works { Role::Worker } else { Role::Admin };
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, "127.0.0.1:3000")
        .header(header::AUTHORIZATION, format!("Bearer {}", token(role)));
    if body.is_some() {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    let body = body.map_or_else(String::new, |body| body.to_string());
    server.call(request.body(body.into()).unwrap()).await
}

async fn post(server: &Server, path: &str, body: Value) -> Answer {
    call(server, Method::POST, path, Some(body)).await
}

fn job(id: &str, needs: &[&str]) -> Value {
    json!({"id": id, "name": id, "status": "queued", "command": format!("echo {id}"), "depends_on": needs})
}

async fn start(server: &Server, jobs: Vec<Value>) -> String {
    let created = post(server, "/api/workflows", json!({"name": "w", "trigger": "on: push", "jobs": jobs})).await;
    let id = created.expect(201)["id"].as_str().unwrap().to_owned();
    call(server, Method::POST, &format!("/api/workflows/{id}/run"), None).await.expect(202);
    id
}

async fn claim(server: &Server, labels: &[&str]) -> Value {
    let body = json!({"worker_id": "w1", "labels": labels, "lease_ttl_secs": 30});
    post(server, "/api/jobs/claim", body).await.expect(200)
}

async fn report(server: &Server, claimed: &Value, verb: &str, body: Value) -> u16 {
    let lease = claimed["lease"]["lease_id"].as_str().unwrap();
    post(server, &format!("/api/jobs/{lease}/{verb}"), body).await.status.as_u16()
}

async fn statuses(server: &Server, id: &str) -> Vec<String> {
    let shown = call(server, Method::GET, &format!("/api/workflows/{id}/status"), None).await.expect(200);
    shown["jobs"].as_array().unwrap().iter().map(|job| job["status"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_diamond_hands_outputs_down_and_releases_dependents_before_it_answers() {
    let server = Server::start().await;
    let mut left = job("left", &["top"]);
    left["required_labels"] = json!(["docker"]);
    let id = start(&server, vec![job("top", &[]), left, job("right", &["top"]), job("end", &["left", "right"])]).await;
    let top = claim(&server, &["docker"]).await;
    assert_eq!(top["job"]["command"], "echo top");
    assert_eq!(top["job"]["retry_policy"], json!({"max_retries": 0, "backoff": "None"}));
    assert_eq!(top["job"]["upstream_outputs"], json!({}));
    assert_eq!(statuses(&server, &id).await, ["running", "queued", "queued", "queued"]);
    assert_eq!(report(&server, &top, "complete", json!({"outputs": {"a": "1"}})).await, 200);
    assert_eq!(report(&server, &top, "complete", json!({"outputs": {"a": "1"}})).await, 409, "a second report");
    assert_eq!(report(&server, &top, "complete", json!({"outputs": {"a": "2"}})).await, 409, "one that says otherwise");
    assert_eq!(report(&server, &top, "fail", json!({"error": "e"})).await, 409, "one that contradicts");
    let right = claim(&server, &[]).await;
    assert_eq!(right["job"]["job_id"], "right", "the labelled one is not for this worker");
    assert_eq!(right["job"]["upstream_outputs"], json!({"top": {"a": "1"}}));
    let left = claim(&server, &["docker", "linux", ""]).await;
    assert_eq!((&left["job"]["job_id"], &left["job"]["required_labels"]), (&json!("left"), &json!(["docker"])));
    assert_eq!(report(&server, &left, "complete", json!({})).await, 200);
    assert_eq!(report(&server, &right, "complete", json!({"outputs": {"b": "2"}})).await, 200);
    let end = claim(&server, &[]).await;
    assert_eq!(end["job"]["upstream_outputs"], json!({"left": {}, "right": {"b": "2"}}));
    assert_eq!(report(&server, &end, "complete", json!({})).await, 200);
    assert_eq!(statuses(&server, &id).await, ["success"; 4]);
}

#[tokio::test]
async fn budgets_are_exact_and_failure_skips_what_depends_on_it() {
    let server = Server::start().await;
    let mut flaky = job("flaky", &[]);
    flaky["max_retries"] = json!(1);
    let id = start(&server, vec![flaky, job("after", &["flaky"]), job("last", &["after"]), job("other", &[])]).await;
    let first = claim(&server, &[]).await;
    assert_eq!(report(&server, &first, "fail", json!({"error": "exit code 7: no", "retryable": true})).await, 200);
    let other = claim(&server, &[]).await;
    assert_eq!(other["job"]["job_id"], "other", "a retry goes to the back of the queue");
    let second = claim(&server, &[]).await;
    assert_eq!((&second["job"]["job_id"], &second["job"]["attempt"]), (&json!("flaky"), &json!(1)));
    assert_ne!(second["lease"]["lease_id"], first["lease"]["lease_id"]);
    assert_eq!(report(&server, &first, "complete", json!({})).await, 409, "the old lease is dead for ever");
    assert_eq!(report(&server, &second, "fail", json!({"error": "exit code 7: still", "retryable": true})).await, 200);
    assert_eq!(statuses(&server, &id).await, ["failure", "skipped", "skipped", "running"]);
    let shown = call(&server, Method::GET, &format!("/api/workflows/{id}/status"), None).await.expect(200);
    assert_eq!(shown["jobs"][0]["output"], "exit code 7: still");
    assert_eq!(shown["jobs"][0].as_object().unwrap().len(), 15);
}

#[tokio::test]
async fn a_cancelled_job_ends_cancelled_and_a_new_run_starts_clean() {
    let server = Server::start().await;
    let mut long = job("long", &[]);
    long["max_retries"] = json!(5);
    let id = start(&server, vec![long, job("after", &["long"])]).await;
    let held = claim(&server, &[]).await;
    let poll = format!("/api/jobs/{id}/long/cancelled");
    assert_eq!(call(&server, Method::GET, &poll, None).await.body, b"false");
    call(&server, Method::POST, &format!("/api/workflows/{id}/cancel"), None).await.expect(202);
    assert_eq!(statuses(&server, &id).await, ["cancelled", "cancelled"]);
    assert_eq!(call(&server, Method::GET, &poll, None).await.body, b"true");
    call(&server, Method::POST, &format!("/api/workflows/{id}/run"), None).await.expect(202);
    assert_eq!(call(&server, Method::GET, &poll, None).await.body, b"true", "not while the old holder has it");
    assert_eq!(report(&server, &held, "fail", json!({"error": "cancelled", "retryable": true})).await, 200);
    assert_eq!(statuses(&server, &id).await, ["cancelled", "cancelled"], "and is never tried again");
    call(&server, Method::POST, &format!("/api/workflows/{id}/run"), None).await.expect(202);
    call(&server, Method::POST, &format!("/api/workflows/{id}/run"), None).await.expect(202);
    assert_eq!(statuses(&server, &id).await, ["queued", "queued"]);
    assert_eq!(call(&server, Method::GET, &poll, None).await.body, b"false");
    let again = claim(&server, &[]).await;
    assert_eq!((&again["job"]["job_id"], &again["job"]["attempt"]), (&json!("long"), &json!(0)));
    assert_eq!(report(&server, &again, "complete", json!({})).await, 200);
    assert_eq!(claim(&server, &[]).await["job"]["job_id"], "after", "asking twice made one run");
}

#[tokio::test]
async fn a_job_given_back_is_charged_to_nobody() {
    let server = Server::start().await;
    let id = start(&server, vec![job("a", &[])]).await;
    let first = claim(&server, &[]).await;
    assert_eq!(report(&server, &first, "release", json!({})).await, 200);
    assert_eq!(statuses(&server, &id).await, ["queued"]);
    assert_eq!(report(&server, &first, "complete", json!({})).await, 409);
    let second = claim(&server, &[]).await;
    assert_eq!(second["job"]["job_id"], "a", "it has no retries, and needed none");
    assert_eq!(report(&server, &second, "complete", json!({})).await, 200);
    assert_eq!(report(&server, &second, "release", json!({})).await, 409);
}

#[tokio::test]
async fn a_claim_is_held_open_no_longer_than_its_caller_wants() {
    let server = Server::start().await;
    let begun = std::time::Instant::now();
    let request = Server::request(Role::Worker, Method::POST, "/api/jobs/claim")
        .header(header::CONTENT_TYPE, "application/json")
        .header("prefer", "wait=0");
    let body = json!({"worker_id": "w", "labels": []}).to_string();
    let answer = server.call(request.body(body.into()).unwrap()).await;
    assert_eq!((answer.status.as_u16(), answer.body.as_slice()), (200, b"null".as_slice()));
    assert!(begun.elapsed() < std::time::Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn logs_belong_to_the_lease_that_sent_them() {
    let server = Server::start().await;
    let id = start(&server, vec![job("a", &[])]).await;
    let held = claim(&server, &[]).await;
    let chunk = |sequence: u64, data: &str, stream: &str| json!({"workflow_id": "somebody", "job_id": "else", "sequence": sequence, "data": data, "timestamp_ms": 1, "stream": stream});
    let chunks =
        json!({"chunks": [chunk(0, "hello\n", "stdout"), chunk(1, "oops\n", "stderr"), chunk(2, "bye\n", "stdout")]});
    assert_eq!(report(&server, &held, "logs", chunks.clone()).await, 200);
    assert_eq!(report(&server, &held, "complete", json!({})).await, 200);
    assert_eq!(report(&server, &held, "logs", chunks).await, 409);
    let path = format!("/api/workflows/{id}/jobs/a/logs");
    let kept = call(&server, Method::GET, &path, None).await.expect(200);
    let lines: Vec<_> =
        kept.as_array().unwrap().iter().map(|chunk| (chunk["data"].clone(), chunk["stream"].clone())).collect();
    assert_eq!(
        lines,
        [("hello\n", "stdout"), ("oops\n", "stderr"), ("bye\n", "stdout")].map(|(a, b)| (json!(a), json!(b)))
    );
    assert_eq!((&kept[1]["job_id"], &kept[2]["sequence"]), (&json!("a"), &json!(2)));
    let unknown = call(&server, Method::GET, "/api/workflows/none/jobs/a/logs", None).await.expect(200);
    assert_eq!(unknown, json!([]));
}

#[tokio::test]
async fn bad_requests_get_the_statuses_the_clients_know() {
    let server = Server::start().await;
    let wrong = |body: &'static str, kind: Option<&'static str>| {
        let mut request = Request::post("/api/jobs/claim")
            .header(header::HOST, "127.0.0.1:3000")
            .header(header::AUTHORIZATION, format!("Bearer {}", token(Role::Worker)));
        if let Some(kind) = kind {
            request = request.header(header::CONTENT_TYPE, kind);
        }
        server.call(request.body(body.into()).unwrap())
    };
    let json_type = Some("application/json; charset=utf-8");
    for (body, kind, status) in [
        ("{}", None, 415),
        ("{}", Some("text/plain"), 415),
        ("", json_type, 400),
        ("{", json_type, 400),
        ("{}", json_type, 422),
        (r#"{"worker_id":"w","labels":null}"#, json_type, 422),
    ] {
        assert_eq!(wrong(body, kind).await.status.as_u16(), status, "{body:?} as {kind:?}");
    }
    for (method, path, status) in [
        (Method::GET, "/api/workflows/none/status", 404),
        (Method::POST, "/api/workflows/none/run", 404),
        (Method::POST, "/api/jobs/no-lease/heartbeat", 409),
        (Method::POST, "/api/workers/nobody/heartbeat", 404),
        (Method::GET, "/api/workflows?limit=x", 400),
    ] {
        let answer = call(&server, method.clone(), path, None).await;
        assert_eq!(answer.status.as_u16(), status, "{method} {path}");
    }
    let twice = json!({"name": "w", "trigger": "", "jobs": [job("a", &[]), job("a", &[])]});
    let refused = post(&server, "/api/workflows", twice).await;
    assert_eq!(refused.status.as_u16(), 422);
    assert!(String::from_utf8_lossy(&refused.body).contains("jobs[1].id"));
}

#[tokio::test]
async fn workers_are_idle_busy_and_idle_again() {
    let server = Server::start().await;
    post(&server, "/api/workers/register", json!({"worker_id": "w1", "labels": ["docker", ""]})).await.expect(200);
    let status = async || {
        let workers = call(&server, Method::GET, "/api/workers", None).await.expect(200);
        (workers[0]["status"].clone(), workers[0]["current_job"].clone(), workers[0]["labels"].clone())
    };
    assert_eq!(status().await, (json!("idle"), Value::Null, json!(["docker", ""])));
    start(&server, vec![job("a", &[])]).await;
    let held = claim(&server, &["docker"]).await;
    assert_eq!(status().await.0, "busy");
    assert_eq!(status().await.1, "a");
    assert_eq!(report(&server, &held, "heartbeat", json!({})).await, 200);
    assert_eq!(report(&server, &held, "complete", json!({})).await, 200);
    assert_eq!(status().await.0, "idle");
}

#[tokio::test]
async fn jobs_are_handed_out_in_the_order_they_came_and_retries_wait_behind_the_others() {
    let server = Server::start().await;
    let mut flaky = job("a", &[]);
    flaky["max_retries"] = json!(1);
    start(&server, vec![flaky, job("b", &[])]).await;
    start(&server, vec![job("c", &[])]).await;
    let first = claim(&server, &[]).await;
    assert_eq!(first["job"]["job_id"], "a");
    assert_eq!(report(&server, &first, "fail", json!({"error": "x", "retryable": true})).await, 200);
    for (expected, attempt) in [("b", 0), ("c", 0), ("a", 1)] {
        let next = claim(&server, &[]).await;
        assert_eq!((&next["job"]["job_id"], &next["job"]["attempt"]), (&json!(expected), &json!(attempt)));
        assert_ne!(next["lease"]["lease_id"], first["lease"]["lease_id"], "every claim has a lease of its own");
    }
}

#[tokio::test]
async fn a_lease_that_runs_out_costs_a_retry_and_without_one_the_job() {
    let server = Server::start().await;
    let mut once = job("a", &[]);
    once["max_retries"] = json!(1);
    let id = start(&server, vec![once, job("after", &["a"])]).await;
    let short = async || {
        let body = json!({"worker_id": "w1", "labels": [], "lease_ttl_secs": 1});
        post(&server, "/api/jobs/claim", body).await.expect(200)
    };
    let first = short().await;
    assert_eq!(first["lease"]["ttl_secs"], 1);
    server.pass(Millis(1_000)).await;
    let second = short().await;
    assert_eq!((&second["job"]["job_id"], &second["job"]["attempt"]), (&json!("a"), &json!(1)));
    for verb in ["heartbeat", "complete", "fail", "logs"] {
        let body = json!({"outputs": {}, "error": "late", "retryable": true, "chunks": []});
        let status = report(&server, &first, verb, body).await;
        assert!(status == 409 || verb == "logs" && status == 200, "{verb} of a dead lease: {status}");
    }
    server.pass(Millis(1_000)).await;
    assert_eq!(statuses(&server, &id).await, ["failure", "skipped"]);
    let shown = call(&server, Method::GET, &format!("/api/workflows/{id}/status"), None).await.expect(200);
    assert_eq!(shown["jobs"][0]["output"], "lease expired");
}

#[tokio::test]
async fn a_short_lease_stays_short_when_it_is_renewed() {
    let server = Server::start().await;
    start(&server, vec![job("a", &[])]).await;
    let ask = json!({"worker_id": "w", "labels": [], "lease_ttl_secs": 2});
    let claimed = post(&server, "/api/jobs/claim", ask).await.expect(200);
    for _ in 0..3 {
        server.pass(Millis(1_500)).await;
        assert_eq!(report(&server, &claimed, "heartbeat", json!({})).await, 200);
    }
    server.pass(Millis(2_100)).await;
    assert_eq!(report(&server, &claimed, "heartbeat", json!({})).await, 409);
}

#[tokio::test]
async fn log_chunks_come_back_as_they_were_sent_by_reading_and_by_stream() {
    use http_body_util::BodyExt;
    let server = Server::start().await;
    let id = start(&server, vec![job("a", &[])]).await;
    let held = claim(&server, &[]).await;
    let chunk = |sequence: u64, data: &str, at: u64, stream: &str| json!({"workflow_id": id, "job_id": "a", "sequence": sequence, "data": data, "timestamp_ms": at, "stream": stream});
    let first = vec![
        chunk(0, "two\nlines\n", 1_763_208_000_123, "stdout"),
        chunk(1, "", 5, "stdout"),
        chunk(2, "no end", 1_763_208_000_100, "stderr"),
        chunk(7, &"é".repeat(400_000), u64::MAX, "stdout"),
        chunk(7, "\n", 0, "stderr"),
    ];
    let line = format!("{}\n", "x".repeat(99));
    let streams = ["stdout", "stderr"];
    let many: Vec<Value> = (0..10_000).map(|at| chunk(at, &line, 1_000 + at, streams[(at % 2) as usize])).collect();
    assert_eq!(report(&server, &held, "logs", json!({"chunks": first})).await, 200);
    assert_eq!(report(&server, &held, "logs", json!({"chunks": many})).await, 200);
    let sent = [first, many].concat();
    let kept = call(&server, Method::GET, &format!("/api/workflows/{id}/jobs/a/logs"), None).await.expect(200);
    assert!(*kept.as_array().unwrap() == sent, "as they were sent, in the order of their arrival");
    let request = Server::request(Role::Viewer, Method::GET, &format!("/api/workflows/{id}/jobs/a/logs/stream"));
    let mut body = server.open(request.body(axum::body::Body::empty()).unwrap()).await.into_body();
    let (mut text, mut heard) = (String::new(), Vec::new());
    while heard.len() < sent.len() {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        text += std::str::from_utf8(&frame).unwrap();
        while let Some(end) = text.find("\n\n") {
            let event: String = text.drain(..end + 2).collect();
            let data = event.lines().find_map(|line| line.strip_prefix("data: "));
            heard.extend(data.map(|data| serde_json::from_str::<Value>(data).unwrap()));
        }
    }
    assert!(heard == sent, "the stream tells the same");
    let engine = &server.engine;
    let jobs =
        engine.store().jobs(&windlass_engine::store::JobQuery { limit: 10, ..Default::default() }).await.unwrap();
    let rows = engine.store().read_log(&jobs[0].key, 0, 1 << 30).await.unwrap().len();
    assert!(rows < 20, "{rows} rows for {} chunks", sent.len());
}

#[tokio::test]
async fn logs_may_be_large_and_can_be_followed_from_the_beginning() {
    use http_body_util::BodyExt;
    let server = Server::start().await;
    let id = start(&server, vec![job("a", &[])]).await;
    let held = claim(&server, &[]).await;
    let chunk = |data: &str| json!({"workflow_id": id, "job_id": "a", "sequence": 0, "data": data, "timestamp_ms": 1, "stream": "stdout"});
    let line = format!("{}\n", "x".repeat(99));
    let many: Vec<Value> = (0..15_000).map(|_| chunk(&line)).collect();
    assert_eq!(report(&server, &held, "logs", json!({"chunks": [chunk("first\n")]})).await, 200);
    assert_eq!(report(&server, &held, "logs", json!({"chunks": many})).await, 200, "more than two megabytes");
    let request = Server::request(Role::Viewer, Method::GET, &format!("/api/workflows/{id}/jobs/a/logs/stream"));
    let answer = server.open(request.body(axum::body::Body::empty()).unwrap()).await;
    assert_eq!(answer.headers()[header::CONTENT_TYPE], "text/event-stream");
    let mut body = answer.into_body();
    let mut text = String::new();
    let mut lines = 0;
    while lines < 15_001 {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        let piece = std::str::from_utf8(&frame).unwrap();
        lines += piece.matches("\\n\"").count();
        text += piece;
    }
    assert!(text.contains("event: log\ndata: {\"workflow_id\""), "{}", &text[..200]);
    let known =
        |line: &str| line.is_empty() || ["event: log", "data: {", "id: "].iter().any(|start| line.starts_with(start));
    assert!(text.lines().all(known));
    // What comes later comes as well.
    assert_eq!(report(&server, &held, "logs", json!({"chunks": [chunk("last\n")]})).await, 200);
    let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(std::str::from_utf8(&frame).unwrap().contains("last\\n"));
}

/// Follows the log of a job until so many lines came: their numbers, and the last id.
async fn follow(server: &Server, id: &str, last: Option<&str>, lines: usize) -> (Vec<u64>, Option<String>) {
    use http_body_util::BodyExt;
    let path = format!("/api/workflows/{id}/jobs/a/logs/stream");
    let mut request = Server::request(Role::Viewer, Method::GET, &path);
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let mut body = server.open(request.body(axum::body::Body::empty()).unwrap()).await.into_body();
    let (mut found, mut seen) = (Vec::new(), None);
    while found.len() < lines {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        for line in std::str::from_utf8(&frame).unwrap().lines() {
            if let Some(data) = line.strip_prefix("data: ") {
                let chunk: Value = serde_json::from_str(data).unwrap();
                found.push(chunk["sequence"].as_u64().unwrap());
            }
            seen = line.strip_prefix("id: ").map(str::to_owned).or(seen);
        }
    }
    (found, seen)
}

#[tokio::test]
async fn a_reader_of_a_log_stream_that_comes_back_misses_nothing_and_gets_nothing_twice() {
    let server = Server::start().await;
    let id = start(&server, vec![job("a", &[])]).await;
    let held = claim(&server, &[]).await;
    let chunk = |at: u64| json!({"workflow_id": id, "job_id": "a", "sequence": at, "data": "x\n", "timestamp_ms": 1, "stream": "stdout"});
    let chunks = |of: std::ops::Range<u64>| json!({"chunks": of.map(chunk).collect::<Vec<_>>()});
    assert_eq!(report(&server, &held, "logs", chunks(0..3)).await, 200);
    let (lines, last) = follow(&server, &id, None, 3).await;
    assert_eq!(lines, [0, 1, 2]);
    assert_eq!(report(&server, &held, "logs", chunks(3..5)).await, 200);
    assert_eq!(follow(&server, &id, last.as_deref(), 2).await.0, [3, 4]);
    for odd in ["", "7", "a.b.c.d", "00000000-0000-0000-0000-000000000000.1.1.1"] {
        assert_eq!(follow(&server, &id, Some(odd), 5).await.0, [0, 1, 2, 3, 4], "{odd:?} is nobody's place");
    }
}

#[tokio::test]
async fn log_streams_end_with_their_token_and_a_principal_has_only_so_many() {
    use http_body_util::BodyExt;
    let server = Server::start().await;
    let id = start(&server, vec![job("a", &[])]).await;
    let path = format!("/api/workflows/{id}/jobs/a/logs/stream");
    let made = server.post("/api/v1/tokens", json!({"principal": "reader", "role": "viewer"})).await.expect(201);
    let open = async || {
        let request = Request::get(&path)
            .header(header::HOST, "127.0.0.1:3000")
            .header(header::AUTHORIZATION, format!("Bearer {}", made["token"].as_str().unwrap()));
        server.open(request.body(axum::body::Body::empty()).unwrap()).await
    };
    let mut streams = Vec::new();
    for _ in 0..windlass_server::streams::STREAMS_MAX {
        let answer = open().await;
        assert_eq!(answer.status(), 200);
        streams.push(answer.into_body());
    }
    assert_eq!(open().await.status(), 429);
    server.delete(&format!("/api/v1/tokens/{}", made["id"].as_str().unwrap())).await;
    for stream in streams {
        let all = tokio::time::timeout(std::time::Duration::from_secs(30), stream.collect());
        all.await.expect("the stream ends with its token").unwrap();
    }
    assert_eq!(open().await.status(), 401);
}

#[tokio::test]
async fn a_log_of_nothing_but_line_ends_is_answered_in_parts() {
    use http_body_util::BodyExt;
    let server = Server::start().await;
    let id = start(&server, vec![job("a", &[])]).await;
    let held = claim(&server, &[]).await;
    let chunk = |at: u64| json!({"workflow_id": id, "job_id": "a", "sequence": at, "data": "\n", "timestamp_ms": 1, "stream": "stdout"});
    let chunks: Vec<Value> = (0..15_000).map(chunk).collect();
    assert_eq!(report(&server, &held, "logs", json!({"chunks": chunks})).await, 200);
    let request = Server::request(Role::Viewer, Method::GET, &format!("/api/workflows/{id}/jobs/a/logs"));
    let mut body = server.open(request.body(axum::body::Body::empty()).unwrap()).await.into_body();
    let (mut text, mut largest) = (String::new(), 0);
    while let Some(frame) = body.frame().await {
        let part = frame.unwrap().into_data().unwrap();
        largest = largest.max(part.len());
        text += std::str::from_utf8(&part).unwrap();
    }
    let lines: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!((lines.len(), &lines[14_999]["sequence"]), (15_000, &json!(14_999)));
    assert!(largest < 64 << 10, "a part of {largest} bytes");
}
