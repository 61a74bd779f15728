//! What callers get wrong: the status that the contract names, three fields, the place at fault, and nothing lost.

use super::{bare, echo, get, polled, post, push, quick, ready, send, worker};
use crate::support::Server;
use axum::body::Body;
use http::{Method, Request, header};
use serde_json::{Value, json};
use windlass_core::principal::Role;
use windlass_server::{Options, config::values::Values, dialects::neops, listener::Peer};

const NOBODY: &str = "355f48a3-28e6-483f-b771-b61d305162bd";

/// A refusal as its clients read it.
fn refused(told: &Value, status: u16) -> String {
    assert_eq!(told["statusCode"], status, "{told}");
    assert!(told["error"].is_string(), "{told}");
    told["message"].as_str().unwrap_or_else(|| panic!("no message: {told}")).to_owned()
}

#[tokio::test]
async fn every_route_refuses_what_is_not_there_or_no_id_in_the_same_form() {
    let server = Server::start().await;
    let (get, post, delete) = (Method::GET, Method::POST, Method::DELETE);
    let table = [
        (&get, "/workers/x", 400),
        (&get, "/workers/x/function-blocks", 400),
        (&get, "/workers/x/jobs", 400),
        (&delete, "/workers/x", 400),
        (&post, "/workers/x/ping", 400),
        (&post, "/workers/x/unregister", 400),
        (&get, "/workers/{}", 404),
        (&get, "/workers/{}/function-blocks", 404),
        (&get, "/workers/{}/jobs", 404),
        (&delete, "/workers/{}", 404),
        (&post, "/workers/{}/ping", 404),
        (&post, "/workers/{}/unregister", 404),
        (&get, "/workers?findDeleted=yes", 400),
        (&get, "/function-blocks/registrations/p/n/1.0.0", 404),
        (&get, "/function-blocks/p/n/1.0.0", 404),
        (&get, "/function-blocks/p/n/1.0.0/workers", 404),
        (&delete, "/function-blocks/p/n/1.0.0", 404),
        (&get, "/blackboard/jobs?status=lost", 400),
        (&get, "/blackboard/jobs/x/result", 400),
        (&get, "/blackboard/jobs/{}/result", 404),
        (&get, "/blackboard/jobs/page?cursor=made-up", 400),
        (&get, "/workflow-definition/p%2Fn:1.0.0", 404),
        (&get, "/workflow-definition/find-by-semver/p%2Fn:1", 404),
        (&delete, "/workflow-definition/p%2Fn:1.0.0", 404),
        (&post, "/workflow-definition/p%2Fn:1.0.0/restore", 404),
        (&get, "/workflow-definition/page?cursor=made-up", 400),
        // What older engines had.
        (&post, "/workflow-definition", 404),
        (&post, "/workflow-definition/update", 404),
        (&get, "/workflow-execution/id/x", 400),
        (&get, "/workflow-execution/id/{}", 404),
        (&get, "/workflow-execution/{}/jobs", 404),
        (&delete, "/workflow-execution/x", 400),
        (&delete, "/workflow-execution/{}", 404),
        (&get, "/workflow-execution/x/remediation", 400),
        (&get, "/workflow-execution/{}/remediation", 404),
        (&get, "/workflow-execution/page?cursor=made-up", 400),
        (&get, "/workflow-execution/state/odd", 400),
    ];
    for (method, path, status) in table {
        let answer = send(&server, method.clone(), &path.replace("{}", NOBODY), None).await;
        assert_eq!(answer.headers[header::CONTENT_TYPE], "application/json; charset=utf-8", "{method} {path}");
        assert!(!refused(&answer.expect(status), status).is_empty(), "{method} {path}");
    }
    for path in ["rollback", "resolve"] {
        let body = json!({"all": true, "note": "by hand"});
        let path = format!("/workflow-execution/{NOBODY}/remediation/{path}");
        refused(&super::post(&server, &path, body).await.expect(404), 404);
    }
}

#[tokio::test]
async fn wrong_types_are_refused_and_unknown_fields_are_not() {
    let server = quick().await;
    let (id, job) = ready(&server).await;
    let block = |change: Value| {
        let mut block = echo(Some(&id));
        block.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        block
    };
    let report = |change: Value| {
        let mut report = json!({"jobExecutionId": job.to_string(), "status": "success", "result": {"success": true}});
        report.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        report
    };
    let run = |change: Value| {
        let mut run = json!({"workflow": "wf/one:1", "executeOnParameters": {}, "parameters": {}});
        run.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        run
    };
    let table = [
        ("/version/compatibility", json!({"version": 1, "library": "x"})),
        ("/version/compatibility", json!({"version": "1"})),
        ("/workers/register", json!({"version": 1})),
        ("/workers/register", json!({"version": "1", "name": 7})),
        ("/workers/register", json!({})),
        ("/function-blocks/register", block(json!({"isPure": "true"}))),
        ("/function-blocks/register", block(json!({"majorVersion": "1"}))),
        ("/function-blocks/register", block(json!({"parameterJsonSchema": "{}"}))),
        ("/function-blocks/register", block(json!({"parameterJsonSchema": {"pattern": "(a{1000}){1000}"}}))),
        ("/function-blocks/register", block(json!({"resultDataJsonSchema": {"$ref": "http://x.example/s"}}))),
        ("/blackboard/job", json!({"functionBlockIds": "all", "workerId": id})),
        ("/blackboard/job", json!({"functionBlockIds": [{"name": "echo"}], "workerId": id})),
        ("/blackboard/job", json!({"functionBlockIds": [], "workerId": id, "limit": 0})),
        ("/blackboard/job", json!({"functionBlockIds": [], "workerId": id, "limit": -1})),
        ("/blackboard/job/result", report(json!({"result": {"success": 1}}))),
        ("/blackboard/job/result", report(json!({"result": {"success": true, "message": 7}}))),
        ("/blackboard/job/result", report(json!({"acquires": {}}))),
        ("/blackboard/job/result", report(json!({"status": 7}))),
        ("/blackboard/job/log", json!({"jobId": job.to_string()})),
        ("/workflow-definition/publish", json!({"workflow": {}, "dryRun": 1})),
        ("/workflow-definition/publish", json!({"workflow": []})),
        ("/workflow-execution", run(json!({"parameters": []}))),
        ("/workflow-execution", run(json!({"executeOnParameters": {"ids": [1.5]}}))),
        ("/workflow-execution", run(json!({"executeOnParameters": {"query": 7}}))),
        ("/workflow-execution", run(json!({"workflowExecutionId": "x"}))),
    ];
    polled(&server, &id).await;
    for (path, body) in table {
        let answer = post(&server, path, body.clone()).await;
        assert_eq!(answer.status, 400, "{path} {body}: {}", String::from_utf8_lossy(&answer.body));
        assert!(!refused(&answer.expect(400), 400).is_empty());
    }
    for text in ["{", "[]", "7", "\"x\"", "\u{feff}{}"] {
        let request = Server::request(Role::Worker, Method::POST, "/workers/register").body(Body::from(text)).unwrap();
        refused(&server.call(request).await.expect(400), 400);
    }
    let more = json!({"version": "0.2.0", "name": "odd", "colour": "red", "nested": {"deep": [1]}});
    post(&server, "/workers/register", more).await.expect(201);
    let report = report(json!({"more": 1, "result": {"success": true, "also": null}}));
    assert_eq!(
        post(&server, "/blackboard/job/result", report).await.status,
        201,
        "what it held all the time is not lost"
    );
}

/// Not all of it is sent: what is announced counts.
async fn announce(server: &Server, path: &str, bytes: usize) -> u16 {
    let peer = Peer { address: "127.0.0.1:9".parse().unwrap(), local: "127.0.0.1:3000".parse().unwrap(), tls: false };
    let request = Request::builder().method(Method::POST).uri(path).header(header::HOST, "127.0.0.1:3000");
    let request = request.header(header::CONTENT_LENGTH, bytes).header(header::CONTENT_TYPE, "application/json");
    let pieces = (0..bytes.div_ceil(1 << 16)).map(|_| Ok::<_, std::io::Error>(vec![b' '; 1 << 16]));
    let body = Body::from_stream(futures_util::stream::iter(pieces));
    server.call(request.extension(peer).body(body).unwrap()).await.status.as_u16()
}

#[tokio::test]
async fn bodies_over_the_limits_are_413_and_what_was_held_can_still_be_reported() {
    let server = quick().await;
    let (id, job) = ready(&server).await;
    polled(&server, &id).await;
    let table = [
        ("/workers/register", 3 << 20),
        ("/function-blocks/register", 3 << 20),
        ("/blackboard/job", 3 << 20),
        ("/workflow-definition/publish", 3 << 20),
        ("/workflow-execution", 3 << 20),
        ("/blackboard/job/result", 51 << 20),
        ("/blackboard/job/log", 51 << 20),
    ];
    for (path, bytes) in table {
        assert_eq!(announce(&server, path, bytes).await, 413, "{path}");
    }
    push(&server, &job.to_string(), "success", json!({"success": true})).await.expect(201);
    let values = Values::default().with(neops::settings::neops_result_max, "1MiB");
    let small = Server::with(Options { values, ..Options::default() }).await;
    assert_eq!(announce(&small, "/blackboard/job/result", 3 << 20).await, 413, "as MAX_REQUEST_BODY_SIZE says");
}

#[tokio::test]
async fn results_of_others_jobs_are_refused_where_tokens_are_in_force() {
    let server = quick().await;
    let id = server.work("/workers/register", json!({"version": "0.2.0"})).await.expect(201)["uuid"].clone();
    let id = id.as_str().unwrap();
    server.work("/function-blocks/register", echo(Some(id))).await.expect(201);
    let job = super::submit(&server, "fb.example/echo:1", neops::job::Type::Execute).await;
    let body = json!({"functionBlockIds": [super::versionable("echo")], "workerId": id});
    assert_eq!(server.work("/blackboard/job", body).await.expect(201).as_array().unwrap().len(), 1);
    let wanted = json!({"principal": "other", "role": "worker"});
    let token = server.post("/api/v1/tokens", wanted).await.expect(201)["token"].as_str().unwrap().to_owned();
    let report = json!({"jobExecutionId": job.to_string(), "status": "success", "result": {"success": true}});
    let request = Request::builder().method(Method::POST).uri("/blackboard/job/result");
    let request = request.header(header::HOST, "127.0.0.1:3000").header(header::CONTENT_TYPE, "application/json");
    let request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    let answer = server.call(request.body(Body::from(report.to_string())).unwrap()).await;
    assert!([403, 404, 409].contains(&answer.status.as_u16()), "{}", answer.status);
    assert_eq!(get(&server, "/blackboard/jobs").await[0]["status"], "polled", "nothing came of it");
    assert_eq!(server.work("/blackboard/job/result", report).await.status, 201);
}

#[tokio::test]
async fn pings_of_nobody_make_nobody() {
    let server = Server::start().await;
    bare(&server, &format!("/workers/{NOBODY}/ping")).await.expect(404);
    worker(&server, "one").await;
    assert_eq!(get(&server, "/workers").await.as_array().unwrap().len(), 1);
}
