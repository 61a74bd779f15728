//! The neops protocol, call by call, as its worker and its generated client make them.

mod bad_input;
mod board;
mod workers;

use crate::support::{Answer, Server};
use axum::body::Body;
use http::{Method, Request, header};
use serde_json::{Value, json};
use windlass_core::{JobId, Millis, commands::submit::Submit};
use windlass_engine::ids;
use windlass_plan::neops::reference::{EntityType, Reference};
use windlass_server::{
    Options,
    config::values::Values,
    dialects::neops::{self, Settings, blocks, job},
    listener::Peer,
};

/// From this machine, without a token. A body that is not there is announced as JSON all the same.
pub async fn send(server: &Server, method: Method, path: &str, body: Option<Value>) -> Answer {
    let peer = Peer { address: "127.0.0.1:9".parse().unwrap(), local: "127.0.0.1:3000".parse().unwrap(), tls: false };
    let request = Request::builder().method(method).uri(path).header(header::HOST, "127.0.0.1:3000").extension(peer);
    let request = request.header(header::CONTENT_TYPE, "application/json");
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    server.call(request.body(body).unwrap()).await
}

pub async fn post(server: &Server, path: &str, body: Value) -> Answer {
    send(server, Method::POST, path, Some(body)).await
}

pub async fn bare(server: &Server, path: &str) -> Answer {
    send(server, Method::POST, path, None).await
}

pub async fn get(server: &Server, path: &str) -> Value {
    send(server, Method::GET, path, None).await.expect(200)
}

/// Unreachable after 2 s, offline after 6 s, deleted 10 s later; a job may take 12 s and wait for 60 s.
pub async fn quick() -> Server {
    let values = Values::default()
        .with(neops::settings::neops_worker_unreachable, "2s")
        .with(neops::settings::neops_worker_delete, "10s");
    Server::with(Options { values, ..Options::default() }).await
}

pub fn settings() -> Settings {
    Settings::read(&Values::default().with(neops::settings::neops_worker_unreachable, "2s"))
}

pub async fn worker(server: &Server, name: &str) -> String {
    let told = post(server, "/workers/register", json!({"version": "0.2.0", "name": name})).await.expect(201);
    told["uuid"].as_str().unwrap().to_owned()
}

pub fn echo(worker: Option<&str>) -> Value {
    let mut block = json!({
        "name": "echo", "package": "fb.example", "majorVersion": 1, "minorVersion": 0, "patchVersion": 0,
        "description": "says it again", "runOn": "global", "fbType": "check",
        "parameterJsonSchema": {
            "type": "object", "required": ["message"],
            "properties": {"message": {"type": "string"}, "count": {"type": "integer", "default": 1}},
        },
        "resultDataJsonSchema": {"type": "object", "properties": {"echoed": {"type": "string"}}},
        "isIdempotent": true, "isPure": true,
    });
    if let Some(worker) = worker {
        block["workerId"] = json!(worker);
    }
    block
}

pub fn versionable(name: &str) -> Value {
    json!({"name": name, "package": "fb.example", "majorVersion": 1, "minorVersion": 0, "patchVersion": 0})
}

pub async fn poll(server: &Server, worker: &str, blocks: &[&str]) -> Answer {
    let blocks: Vec<Value> = blocks.iter().map(|name| versionable(name)).collect();
    post(server, "/blackboard/job", json!({"functionBlockIds": blocks, "workerId": worker})).await
}

/// The jobs that a poll handed out.
pub async fn polled(server: &Server, worker: &str) -> Vec<Value> {
    poll(server, worker, &["echo"]).await.expect(201).as_array().unwrap().clone()
}

pub async fn push(server: &Server, job: &str, status: &str, result: Value) -> Answer {
    let body = json!({"jobExecutionId": job, "status": status, "result": result});
    post(server, "/blackboard/job/result", body).await
}

/// Puts a job for a block on the blackboard, as a run does.
pub async fn submit(server: &Server, reference: &str, kind: job::Type) -> JobId {
    let reference = Reference::parse(reference).unwrap();
    let block = blocks::resolve(&server.app, &reference).await.unwrap().expect("registered");
    let parameters = block.fill(json!({"message": "hi"})).unwrap();
    let shape = job::Shape {
        id: ids::job_id(),
        run: ids::secret(),
        kind,
        block: &block,
        label: "a",
        run_on: EntityType::Global,
        entity: None,
        parameters: &parameters,
        context: None,
        lane: None,
    };
    let job = job::new(&settings(), &shape);
    server.engine.run(Submit { namespace: neops::namespace(), job }).await.unwrap().job
}

/// A worker with its block, and a job for it.
pub async fn ready(server: &Server) -> (String, JobId) {
    let worker = worker(server, "one").await;
    post(server, "/function-blocks/register", echo(Some(&worker))).await.expect(201);
    (worker, submit(server, "fb.example/echo:1", job::Type::Execute).await)
}

pub const SECOND: Millis = Millis::from_secs(1);

#[tokio::test]
async fn a_client_asks_before_it_begins() {
    let server = Server::start().await;
    assert_eq!(get(&server, "/health").await["healthy"], true);
    assert_eq!(get(&server, "/Health/").await["healthy"], true);
    assert_eq!(get(&server, "/version").await["version"], "0.43.0-beta.8");
    let body = json!({"version": "0.43.0-beta.2", "library": "neops_workflow_engine_client"});
    let told = post(&server, "/version/compatibility", body).await.expect(201);
    assert_eq!((&told["compatible"], &told["checkedVersion"]), (&json!(true), &json!("0.43.0-beta.2")));
    assert_eq!(get(&server, "/me").await, json!({"mode": "disabled", "anonymous": true}));
    assert_eq!(get(&server, "/license").await["limits"]["maxWorkers"], "unlimited");
    let answer = send(&server, Method::GET, "/", None).await;
    assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, &b"Windlass\n"[..]));
}

#[tokio::test]
async fn refusals_have_three_fields_and_paths_match_in_any_case() {
    let server = Server::start().await;
    let refused = send(&server, Method::GET, "/workers/nothing/here", None).await;
    assert_eq!(refused.headers[header::CONTENT_TYPE], "application/json; charset=utf-8");
    let refused = refused.expect(404);
    assert_eq!((&refused["statusCode"], &refused["error"]), (&json!(404), &json!("Not Found")));
    assert!(refused["message"].is_string());
    let id = worker(&server, "one").await;
    assert_eq!(get(&server, "/Workers/ONLINE/").await[0]["uuid"], json!(id));
    assert_eq!(get(&server, &format!("/WORKERS/{id}/")).await["uuid"], json!(id));
    bare(&server, "/workers/Cleanup-Offline").await.expect(200);
    send(&server, Method::GET, "/workers/nobody", None).await.expect(400);
    let wrong = post(&server, "/workers/register", json!({"version": 1})).await.expect(400);
    assert!(
        wrong["message"].as_str().unwrap().contains("version") || wrong["message"].as_str().unwrap().contains("line")
    );
}

#[test]
fn literal_parts_may_be_spelt_in_any_case_and_end_in_a_slash() {
    let table = [
        ("/health/", Some("/health")),
        ("/Version/Compatibility/", Some("/version/compatibility")),
        ("/version", None),
        ("/version/other", None),
        ("/api/v1/Jobs", None),
        ("//version", None),
        ("/", None),
    ];
    for (path, expected) in table {
        assert_eq!((neops::DIALECT.respell)(path).as_deref(), expected, "{path}");
    }
}
