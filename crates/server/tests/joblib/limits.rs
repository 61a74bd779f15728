//! What one caller may leave behind has an end.

use super::{From, call, register, token};
use crate::support::{Answer, Server};
use axum::body::Body;
use http::{Method, Request, header};
use serde_json::{Value, json};
use windlass_core::{
    Millis, Namespace, RecordKey, WorkerId,
    commands::{
        all::All,
        link::Link,
        records::{Expect, PutRecord},
    },
};
use windlass_server::{Options, listener::Peer};

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

/// From this address, through proxies if it says so.
async fn post_from(server: &Server, address: &str, path: &str, forwarded: Option<&str>, body: &str) -> Answer {
    let peer = format!("{address}:9").parse().unwrap();
    let peer = Peer { address: peer, local: "127.0.0.1:3000".parse().unwrap(), tls: false };
    let request =
        Request::builder().method(Method::POST).uri(path).header(header::HOST, "127.0.0.1:3000").extension(peer);
    let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    let request = forwarded.into_iter().fold(request, |request, by| request.header("x-forwarded-for", by));
    server.call(request.body(Body::from(body.to_owned())).unwrap()).await
}

#[tokio::test]
async fn devices_of_one_address_displace_its_own_oldest_and_those_of_no_other() {
    let server = Server::start().await;
    let begin = async |address: &str| {
        let told = post_from(&server, address, "/auth/cli-login", None, "").await.expect(200);
        format!("/auth/cli-login/{}?secret={}", told["code"].as_str().unwrap(), told["secret"].as_str().unwrap())
    };
    let quiet = begin("10.9.9.9").await;
    let mut first = String::new();
    for address in 1..=10 {
        first = begin(&format!("10.0.0.{address}")).await;
        for _ in 0..20 {
            server.pass(Millis(1)).await;
            begin(&format!("10.0.0.{address}")).await;
        }
    }
    let pending = begin("10.8.8.8").await;
    for (path, status) in [(quiet, 200), (pending, 200), (first, 404)] {
        call(&server, From::Elsewhere, Method::GET, &path, None, None).await.expect(status);
    }
}

#[tokio::test]
async fn wrong_passwords_count_for_the_client_behind_a_proxy_that_is_named_and_for_no_other_client() {
    let proxies = vec!["10.0.0.0/24".parse().unwrap()];
    let server = Server::with(Options { proxies, ..Options::default() }).await;
    register(&server, "u@example.org", "right").await;
    let log_in = async |from: &str, forwarded: &str, password: &str| {
        let form = format!("username=u%40example.org&password={password}");
        post_from(&server, from, "/auth/jwt/login", Some(forwarded), &form).await.status.as_u16()
    };
    for at in 0..10 {
        // What a client adds in front of what the proxy says counts for nothing.
        assert_eq!(log_in("10.0.0.9", &format!("192.0.2.{at}, 198.51.100.1"), "wrong").await, 400);
    }
    assert_eq!(log_in("10.0.0.9", "198.51.100.1", "right").await, 429);
    assert_eq!(log_in("10.0.0.9", "198.51.100.2", "right").await, 200, "another client of the proxy");
    for at in 0..10 {
        assert_eq!(log_in("10.0.1.9", &format!("203.0.113.{at}"), "wrong").await, 400);
    }
    assert_eq!(log_in("10.0.1.9", "203.0.113.77", "right").await, 429, "no proxy that was named");
}

#[tokio::test]
async fn answers_of_one_providers_owner_displace_its_own_oldest_and_those_of_no_other() {
    let server = Server::start().await;
    let own = async |name: &str| {
        register(&server, &format!("{name}@example.org"), "long-enough-secret").await;
        let token = token(&server, &format!("{name}@example.org"), "long-enough-secret").await;
        let provider = json!({"category": "files", "name": name, "schema": {}});
        let made = put(&server, &token, "r/providers", provider).await.expect(201);
        (token, made["id"].as_str().unwrap().to_owned(), made["full_name"].as_str().unwrap().to_owned())
    };
    let upload = async |(token, id, _): &(String, String, String), hash: &str| {
        let path = format!("/v1/joblib/providers/{id}/results");
        let request = super::request(From::Here, Method::POST, &path, Some(token)).header("x-request-hash", hash);
        server.call(request.body(Body::from("an answer")).unwrap()).await
    };
    let kept = async |(_, _, name): &(String, String, String), hash: &str| {
        let key = RecordKey { namespace: namespace(), kind: "joblib_answer".into(), key: answer_key(name, hash) };
        server.app.engine.store().record(&key).await.unwrap().is_some()
    };
    let (ann, bob) = (own("ann").await, own("bob").await);
    upload(&bob, "only").await.expect(204);
    for at in 0..514 {
        upload(&ann, &at.to_string()).await.expect(204);
        server.pass(Millis(1)).await;
    }
    assert!(!kept(&ann, "0").await && !kept(&ann, "1").await, "the oldest made room");
    assert!(kept(&ann, "2").await && kept(&ann, "513").await && kept(&bob, "only").await);
    upload(&ann, "513").await.expect(204);
    assert!(kept(&ann, "2").await, "the same answer again needs no more room");
}

fn answer_key(name: &str, hash: &str) -> std::sync::Arc<str> {
    windlass_server::auth::hash(&format!("{name}\n{hash}")).into()
}
