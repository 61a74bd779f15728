//! What one caller may leave behind has an end.

use super::{From, call, register, token};
use crate::support::{Answer, Server};
use http::Method;
use serde_json::{Value, json};
use windlass_core::{
    Namespace, RecordKey, WorkerId,
    commands::{
        all::All,
        link::Link,
        records::{Expect, PutRecord},
    },
};

async fn ann(server: &Server) -> String {
    register(server, "ann@example.org", "long-enough-secret").await;
    token(server, "ann@example.org", "long-enough-secret").await
}

async fn put(server: &Server, token: &str, path: &str, body: Value) -> Answer {
    call(server, From::Here, Method::PUT, &format!("/v1/joblib/rooms/{path}"), Some(token), Some(body)).await
}

fn job(name: &str) -> Value {
    json!({"category": "modifiers", "name": name, "schema": {}})
}

fn namespace() -> Namespace {
    Namespace::new("joblib").unwrap()
}

/// As many jobs of a room as one worker may serve, put beside those it has.
async fn fill_room(server: &Server, room: &str, worker: &str, count: usize) {
    let link = |number: usize| {
        let link = Link {
            namespace: namespace(),
            definition: format!("{room}:modifiers:n{number}").into(),
            body: r#"{"category":"modifiers","schema":{}}"#.into(),
            print: "{}".into(),
            retires: true,
            worker: WorkerId::trusted(worker),
            principal: None,
        };
        link.into()
    };
    server.app.engine.run(All { commands: (0..count).map(link).collect() }).await.unwrap();
}

#[tokio::test]
async fn a_room_has_a_thousand_jobs_and_no_more() {
    let server = Server::start().await;
    let token = ann(&server).await;
    let first = put(&server, &token, "full/jobs", job("first")).await.expect(201);
    fill_room(&server, "full", first["worker_id"].as_str().unwrap(), 999).await;
    let refused = put(&server, &token, "full/jobs", job("one-more")).await.expect(429);
    assert!(refused["detail"].as_str().unwrap().contains("'full' has 1000 jobs"), "{refused}");
    put(&server, &token, "full/jobs", job("n7")).await.expect(200);
    put(&server, &token, "empty/jobs", job("one-more")).await.expect(201);
    let get = async |path: &str| {
        let path = format!("/v1/joblib/rooms/full/{path}");
        call(&server, From::Here, Method::GET, &path, Some(&token), None).await.expect(200)
    };
    let page = get("jobs?limit=500&offset=700").await;
    assert_eq!((page["total"].clone(), page["items"].as_array().unwrap().len()), (json!(1_000), 300));
    let workers = get("workers").await;
    let workers = workers["items"].as_array().unwrap().iter();
    let mut counts: Vec<u64> = workers.map(|worker| worker["job_count"].as_u64().unwrap()).collect();
    counts.sort_unstable();
    assert_eq!(counts, [1, 1_000], "the one of the other room is not there");
}

#[tokio::test]
async fn a_worker_has_a_thousand_providers_and_no_more_and_their_schemas_are_small() {
    let server = Server::start().await;
    let token = ann(&server).await;
    let provider = |name: &str| json!({"category": "files", "name": name, "schema": {}});
    let first = put(&server, &token, "r/providers", provider("first")).await.expect(201);
    let worker = first["worker_id"].as_str().unwrap();
    let tied = |number: usize| {
        let key = RecordKey { namespace: namespace(), kind: "tied".into(), key: format!("r:files:n{number}").into() };
        let (parent, value) = (Some(worker.into()), "{}".into());
        PutRecord { key, expect: Expect::Nothing, parent, value, facets: vec![], expires_at: None }.into()
    };
    server.app.engine.run(All { commands: (1..1_000).map(tied).collect() }).await.unwrap();
    let with_worker = |mut body: Value| {
        body["worker_id"] = json!(worker);
        body
    };
    let refused = put(&server, &token, "r/providers", with_worker(provider("one-more"))).await.expect(429);
    assert!(refused["detail"].as_str().unwrap().contains("1000 providers"), "{refused}");
    put(&server, &token, "r/providers", with_worker(provider("first"))).await.expect(200);
    let large = json!({"category": "files", "name": "large", "schema": {"title": "x".repeat(64 << 10)}});
    let refused = put(&server, &token, "r/providers", large).await.expect(413);
    assert!(refused["detail"].as_str().unwrap().contains("65536 bytes"), "{refused}");
}
