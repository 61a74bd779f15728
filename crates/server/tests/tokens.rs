//! Tokens, principals, and the trail that operators leave.

use crate::support::{Answer, Server};
use axum::body::Body;
use http::{Method, Request, header};
use serde_json::{Value, json};
use windlass_core::{Millis, principal::Role};
use windlass_engine::store::Trim;

async fn as_token(server: &Server, token: &str, method: Method, path: &str, body: Value) -> Answer {
    let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost");
    let request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    server.call(request.body(Body::from(body.to_string())).unwrap()).await
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_token_is_shown_once_works_at_once_and_ends_at_once() {
    let server = Server::start().await;
    for (role, prefix) in
        [("admin", "wl_admin_"), ("editor", "wl_edit_"), ("viewer", "wl_view_"), ("worker", "wl_work_")]
    {
        let create = json!({"principal": format!("p-{role}"), "role": role});
        let made = server.post("/api/v1/tokens", create).await.expect(201);
        let (token, id) = (text(&made["token"]), text(&made["id"]));
        assert!(token.starts_with(prefix) && token.len() == prefix.len() + 43, "{token}");
        assert!(token.starts_with(made["shown"].as_str().unwrap()) && id.len() == 16);
        assert!(windlass_server::auth::hash(&token).starts_with(&id), "named by its hash, not by itself");
        let me = as_token(&server, &token, Method::GET, "/api/v1/me", json!({})).await.expect(200);
        assert_eq!((&me["principal"], &me["role"]), (&json!(format!("p-{role}")), &json!(role)));
        let listed = server.get("/api/v1/tokens").await;
        assert!(!String::from_utf8_lossy(&listed.body).contains(&token));
        assert!(listed.expect(200)["items"].as_array().unwrap().iter().any(|item| item["id"] == json!(id)));
        server.delete(&format!("/api/v1/tokens/{id}")).await.expect(204);
        as_token(&server, &token, Method::GET, "/api/v1/me", json!({})).await.expect(401);
        server.delete(&format!("/api/v1/tokens/{id}")).await.expect(404);
    }
    for bad in ["x", "0123456789abcde", "zzzzzzzzzzzzzzzz"] {
        server.delete(&format!("/api/v1/tokens/{bad}")).await.expect(422);
    }
}

#[tokio::test]
async fn guessing_tokens_costs_the_engine_nothing() {
    let server = Server::start().await;
    let before = server.engine.counts().commands;
    for guess in 0..300 {
        let token = format!("wl_admin_{}", guess % 150);
        as_token(&server, &token, Method::GET, "/api/v1/me", json!({})).await.expect(401);
    }
    let more = server.engine.counts().commands - before;
    assert!(more <= 1, "{more}: one may still be counted from the start");
    // A token that was guessed before it was made works from then on.
    let token = "a-token-somebody-chose-beforehand";
    as_token(&server, token, Method::GET, "/api/v1/me", json!({})).await.expect(401);
    let issue = windlass_core::commands::tokens::IssueToken {
        namespace: windlass_server::auth::system_namespace(),
        principal: crate::support::token(Role::Viewer).into(),
        hash: windlass_server::auth::hash(token).into(),
        shown: "a-token".into(),
        expires_at: None,
        made_by: None,
        session: false,
    };
    server.engine.run(issue).await.unwrap();
    server.post("/api/v1/tokens", json!({"principal": "ci", "role": "worker"})).await.expect(201);
    as_token(&server, token, Method::GET, "/api/v1/me", json!({})).await.expect(200);
}

#[tokio::test]
async fn tokens_are_listed_page_by_page() {
    let server = Server::start().await;
    for _ in 0..5 {
        server.post("/api/v1/tokens", json!({"principal": "ci", "role": "worker"})).await.expect(201);
    }
    let (mut seen, mut path) = (Vec::new(), "/api/v1/tokens?limit=2".to_owned());
    loop {
        let page = server.get(&path).await.expect(200);
        seen.extend(page["items"].as_array().unwrap().iter().map(|item| text(&item["id"])));
        let Some(next) = page["next"].as_str() else { break };
        assert_eq!(next.len(), 16, "a cursor tells no more than an id");
        path = format!("/api/v1/tokens?limit=2&cursor={next}");
    }
    let count = seen.len();
    seen.dedup();
    assert_eq!((count, seen.len()), (9, 9), "five, and those of the test's own principals");
}

#[tokio::test]
async fn a_disabled_principal_loses_its_tokens_and_can_come_back() {
    let server = Server::start().await;
    let create = json!({"principal": "ann", "role": "editor"});
    let token = text(&server.post("/api/v1/tokens", create.clone()).await.expect(201)["token"]);
    server.delete("/api/v1/principals/ann").await.expect(204);
    as_token(&server, &token, Method::GET, "/api/v1/me", json!({})).await.expect(401);
    server.post("/api/v1/tokens", create.clone()).await.expect(403);
    let all = server.get("/api/v1/principals").await.expect(200);
    let ann = all["items"].as_array().unwrap().iter().find(|item| item["name"] == "ann").unwrap().clone();
    assert_eq!(ann["disabled"], true);
    assert_eq!(server.post("/api/v1/principals/ann/enable", json!({})).await.expect(200)["disabled"], false);
    as_token(&server, &token, Method::GET, "/api/v1/me", json!({})).await.expect(401);
    server.post("/api/v1/tokens", create).await.expect(201);
    server.delete("/api/v1/principals/test-admin").await.expect(422);
    server.delete("/api/v1/principals/nobody").await.expect(404);
}

#[tokio::test]
async fn nobody_makes_a_token_that_reaches_further_than_their_own() {
    let server = Server::start().await;
    let local = json!({"principal": "local", "role": "admin", "namespaces": ["mine"]});
    let token = text(&server.post("/api/v1/tokens", local).await.expect(201)["token"]);
    let post = async |body: Value| as_token(&server, &token, Method::POST, "/api/v1/tokens", body).await;
    post(json!({"principal": "a", "role": "viewer"})).await.expect(403);
    post(json!({"principal": "a", "role": "viewer", "namespaces": ["other"]})).await.expect(403);
    post(json!({"principal": "a", "role": "viewer", "namespaces": ["mine"]})).await.expect(201);
    post(json!({"principal": "test-admin", "role": "admin"})).await.expect(403);
    post(json!({"principal": "a", "role": "admin", "namespaces": ["mine"]})).await.expect(409);
    let seen = as_token(&server, &token, Method::GET, "/api/v1/principals", json!({})).await.expect(200);
    let names: Vec<_> = seen["items"].as_array().unwrap().iter().map(|item| text(&item["name"])).collect();
    assert_eq!(names, ["a", "local"]);
    let gone = as_token(&server, &token, Method::DELETE, "/api/v1/principals/test-editor", json!({})).await;
    gone.expect(404);
    let all = server.get("/api/v1/tokens").await.expect(200);
    let foreign = all["items"].as_array().unwrap().iter().find(|item| item["principal"] == "test-viewer").unwrap();
    let path = format!("/api/v1/tokens/{}", text(&foreign["id"]));
    as_token(&server, &token, Method::DELETE, &path, json!({})).await.expect(404);
}

#[tokio::test]
async fn every_act_of_an_operator_is_on_the_trail_with_its_author() {
    let server = Server::start().await;
    let id =
        text(&server.post("/api/v1/tokens", json!({"principal": "bob", "role": "worker"})).await.expect(201)["id"]);
    server.pass(Millis(1)).await;
    server.put("/api/v1/definitions/d", json!({})).await.expect(200);
    server.pass(Millis(1)).await;
    server.delete("/api/v1/definitions/d").await.expect(204);
    server.pass(Millis(1)).await;
    server.put("/api/v1/schedules/s", json!({"every_ms": 60_000, "job": {}})).await.expect(200);
    server.pass(Millis(1)).await;
    server.delete("/api/v1/schedules/s").await.expect(204);
    server.pass(Millis(1)).await;
    server.work("/api/v1/workers/register", json!({"worker": "w"})).await.expect(200);
    server.pass(Millis(1)).await;
    server.post("/api/v1/workers/w/drain", json!({})).await.expect(200);
    server.pass(Millis(1)).await;
    server.delete("/api/v1/workers/w").await.expect(204);
    server.pass(Millis(1)).await;
    server.delete(&format!("/api/v1/tokens/{id}")).await.expect(204);
    server.pass(Millis(1)).await;
    server.delete("/api/v1/principals/bob").await.expect(204);
    server.pass(Millis(1)).await;
    server.delete("/api/v1/principals/nobody").await.expect(404);
    let trail = async |path: &str| server.get(path).await.expect(200);
    let shown = |page: &Value| -> Vec<String> {
        let one = |item: &Value| format!("{} {} {}", text(&item["by"]), text(&item["act"]), text(&item["on"]));
        page["items"].as_array().unwrap().iter().map(one).collect()
    };
    let page = trail("/api/v1/audit").await;
    let bob = format!("bob {id}");
    let expected = [
        ("principal_disabled", "bob"),
        ("token_revoked", &id),
        ("worker_deleted", "w"),
        ("worker_drained", "w"),
        ("schedule_deleted", "s"),
        ("schedule_put", "s"),
        ("definition_deleted", "d"),
        ("definition_put", "d"),
        ("token_created", &bob),
        ("principal_created", "bob"),
    ];
    let expected: Vec<String> = expected.iter().map(|(act, on)| format!("test-admin {act} {on}")).collect();
    assert_eq!(shown(&page), expected);
    let (mut seen, mut path) = (Vec::new(), "/api/v1/audit?limit=3".to_owned());
    loop {
        let page = trail(&path).await;
        seen.extend(shown(&page));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/api/v1/audit?limit=3&cursor={next}");
    }
    assert_eq!(seen, expected);
    server.send(Role::Editor, Method::GET, "/api/v1/audit", None).await.expect(403);
}

#[tokio::test]
async fn the_audit_log_outlives_events_and_ends_with_its_own_time() {
    let server = Server::start().await;
    server.put("/api/v1/definitions/d", json!({})).await.expect(200);
    let kept = async || server.get("/api/v1/audit").await.expect(200)["items"].as_array().unwrap().len();
    let before = kept().await;
    assert!(before > 0);
    server.pass(Millis(364 * 86_400_000)).await;
    let store = server.engine.store();
    let trim = Trim { events_before: server.engine.now().await.unwrap(), limit: 10_000 };
    store.trim(trim).await.unwrap();
    assert_eq!(kept().await, before, "events are gone");
    server.pass(Millis(2 * 86_400_000)).await;
    assert_eq!(kept().await, 0);
}

#[tokio::test]
async fn an_admin_of_one_namespace_sees_its_entries_behind_any_number_of_others() {
    let server = Server::start().await;
    let made = json!({"principal": "ann", "role": "admin", "namespaces": ["film"]});
    let token = server.post("/api/v1/tokens", made).await.expect(201)["token"].as_str().unwrap().to_owned();
    server.put("/api/v1/definitions/mine?namespace=film", json!({})).await.expect(200);
    for at in 0..150 {
        server.put(&format!("/api/v1/definitions/d{at}"), json!({})).await.expect(200);
    }
    let request = http::Request::builder().uri("/api/v1/audit?limit=2").header("host", "localhost");
    let request = request.header("authorization", format!("Bearer {token}")).body(axum::body::Body::empty()).unwrap();
    let page = server.call(request).await.expect(200);
    let names: Vec<&Value> = page["items"].as_array().unwrap().iter().map(|item| &item["on"]).collect();
    assert_eq!(names, ["mine"], "{page}");
}

#[tokio::test]
async fn a_worker_cannot_act_for_another_principals_worker() {
    let server = Server::start().await;
    let made = server.post("/api/v1/tokens", json!({"principal": "thief", "role": "worker"})).await.expect(201);
    let thief = text(&made["token"]);
    server.work("/api/v1/workers/register", json!({"worker": "w"})).await.expect(200);
    server.post("/api/v1/jobs", json!({})).await.expect(201);
    let claimed = server.work("/api/v1/leases/claim", json!({"worker": "w"})).await.expect(200);
    let lease = &claimed["leases"][0]["lease"];
    let forbidden = [
        ("/api/v1/workers/register", json!({"worker": "w"})),
        ("/api/v1/workers/heartbeat", json!({"worker": "w"})),
        ("/api/v1/workers/unregister", json!({"worker": "w"})),
        ("/api/v1/leases/claim", json!({"worker": "w"})),
        ("/api/v1/leases/renew", json!({"lease": lease})),
        ("/api/v1/leases/progress", json!({"lease": lease, "percent": 1.0})),
        ("/api/v1/leases/logs", json!({"lease": lease, "data": "forged"})),
        ("/api/v1/leases/complete", json!({"lease": lease})),
        ("/api/v1/leases/fail", json!({"lease": lease, "message": "forged"})),
        ("/api/v1/leases/release", json!({"lease": lease})),
    ];
    for (path, body) in forbidden {
        let answer = as_token(&server, &thief, Method::POST, path, body).await;
        assert_eq!(answer.status, 403, "{path}");
    }
    let synced = as_token(
        &server,
        &thief,
        Method::POST,
        "/api/v1/leases/sync",
        json!({"worker": "w", "leases": [{"lease": lease}]}),
    );
    assert_eq!(synced.await.expect(200)["leases"][0]["held"], false);
    server.work("/api/v1/leases/complete", json!({"lease": lease})).await.expect(200);
}

#[tokio::test]
async fn stats_count_by_state_and_me_is_for_everybody() {
    let server = Server::start().await;
    for _ in 0..3 {
        server.post("/api/v1/jobs", json!({})).await.expect(201);
    }
    server.work("/api/v1/leases/claim", json!({"worker": "w"})).await.expect(200);
    let stats = server.get("/api/v1/stats").await.expect(200);
    assert_eq!(stats["jobs"]["pending"], json!({"count": 2, "more": false}));
    assert_eq!((&stats["jobs"]["claimed"]["count"], &stats["workers"]["online"]), (&json!(1), &json!(1)));
    for role in [Role::Viewer, Role::Editor, Role::Admin, Role::Worker] {
        let me = server.send(role, Method::GET, "/api/v1/me", None).await.expect(200);
        assert_eq!(me["principal"], crate::support::token(role));
    }
}

/// However many there are, where the numbers are kept; up to a thousand where they have to be counted.
#[tokio::test]
async fn jobs_are_counted_exactly_unless_they_are_chosen_by_more_than_their_definition() {
    let server = Server::start().await;
    server.put("/api/v1/definitions/many", json!({})).await.expect(200);
    let job = json!({"definition": "many", "name": "one of many", "facets": {"of": "many"}});
    for _ in 0..2 {
        server.post("/api/v1/jobs/batch", json!({"jobs": vec![job.clone(); 600]})).await.expect(200);
    }
    server.post("/api/v1/jobs", json!({"name": "alone"})).await.expect(201);
    let pending = async |filter: &str| {
        let counts = server.get(&format!("/api/v1/jobs/counts?{filter}")).await.expect(200);
        assert_eq!(counts["jobs"].as_object().unwrap().len(), 9);
        counts["jobs"]["pending"].clone()
    };
    assert_eq!(pending("").await, json!({"count": 1_201, "more": false}));
    assert_eq!(pending("definition=many").await, json!({"count": 1_200, "more": false}));
    assert_eq!(pending("definition=none").await, json!({"count": 0, "more": false}));
    assert_eq!(pending("facet=of:many").await, json!({"count": 1_000, "more": true}));
    assert_eq!(pending("name=alone&max_age_ms=1000").await, json!({"count": 1, "more": false}));
    assert_eq!(server.get("/api/v1/overview").await.expect(200)["jobs"]["pending"]["count"], 1_201);
    assert_eq!(server.get("/api/v1/stats").await.expect(200)["jobs"]["pending"]["count"], 1_201);
    for wrong in ["definition=many&name=one", "facet=many", "max_age_ms=5001"] {
        server.get(&format!("/api/v1/jobs/counts?{wrong}")).await.expect(422);
    }
}

#[tokio::test]
async fn tokens_that_one_principal_makes_share_what_it_may_have() {
    let bodies = windlass_server::room::Limits { total: 1 << 30, share: 600 << 10 };
    let server = Server::with(windlass_server::Options { bodies, ..Default::default() }).await;
    let local = json!({"principal": "local", "role": "admin", "namespaces": ["mine"]});
    let token = text(&server.post("/api/v1/tokens", local).await.expect(201)["token"]);
    let mut children = Vec::new();
    for at in 0..3 {
        let child = json!({"principal": format!("child{at}"), "role": "editor", "namespaces": ["mine"]});
        let made = as_token(&server, &token, Method::POST, "/api/v1/tokens", child).await.expect(201);
        children.push(text(&made["token"]));
    }
    let request = |method: Method, path: &str, token: &str| {
        let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost");
        request.header(header::AUTHORIZATION, format!("Bearer {token}"))
    };
    // Streams.
    let open = async |token: &str| {
        server.open(request(Method::GET, "/api/v1/events?namespace=mine", token).body(Body::empty()).unwrap()).await
    };
    let mut streams = Vec::new();
    for at in 0..windlass_server::streams::STREAMS_MAX {
        let answer = open(&children[at % 3]).await;
        assert_eq!(answer.status(), 200);
        streams.push(answer.into_body());
    }
    for token in children.iter().chain([&token]) {
        assert_eq!(open(token).await.status(), 429);
    }
    let other = Server::request(Role::Viewer, Method::GET, "/api/v1/events").body(Body::empty()).unwrap();
    assert_eq!(server.open(other).await.status(), 200, "others have their own");
    // Bodies that are being received.
    let large = |token: &str| {
        let request = request(Method::POST, "/api/v1/jobs?namespace=mine", token);
        let never = Body::from_stream(futures_util::stream::pending::<Result<axum::body::Bytes, std::io::Error>>());
        server.open(request.header(header::CONTENT_LENGTH, 400 << 10).body(never).unwrap())
    };
    let mut first = std::pin::pin!(large(&children[0]));
    while server.app.rooms.taken() == 0 {
        let waits = tokio::time::timeout(std::time::Duration::from_millis(20), first.as_mut()).await;
        assert!(waits.is_err(), "its body does not come");
    }
    assert_eq!(large(&children[1]).await.status(), 429);
}
