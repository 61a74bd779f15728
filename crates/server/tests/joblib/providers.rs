//! Providers: who may register them where, what they are asked, and how their answers come.

use super::{From, call, request, send, superuser};
use crate::support::{self, Answer, Server};
use axum::body::Body;
use http::{Method, header};
use serde_json::{Value, json};
use std::time::Duration;
use windlass_core::{Millis, event::What, principal::Role};
use windlass_engine::testing::eventually;
use windlass_server::{Options, config::values::Values, dialects::joblib::settings};

const ROOM: &str = "/v1/joblib/rooms/r1/providers";
const HASH: &str = "fdf6f57e150ea5cc949277a40f1c2b8fb53f108bd4c6af4b4f65f566507e6351";

fn editor() -> String {
    support::token(Role::Editor)
}

fn admin() -> String {
    support::token(Role::Admin)
}

async fn put(server: &Server, room: &str, token: &str, body: Value) -> Answer {
    send(server, Method::PUT, &format!("/v1/joblib/rooms/{room}/providers"), token, Some(body)).await
}

fn named(name: &str) -> Value {
    json!({"category": "filesystem", "name": name, "schema_": {"type": "object", "n": 1.0}})
}

async fn get(server: &Server, path: &str, prefer: Option<&str>) -> Answer {
    let request = request(From::Here, Method::GET, path, Some(&editor()));
    let request = prefer.into_iter().fold(request, |request, prefer| request.header("prefer", prefer));
    server.call(request.body(Body::empty()).unwrap()).await
}

async fn upload(server: &Server, id: &str, token: &str, hash: Option<&str>, bytes: &[u8]) -> Answer {
    let request = request(From::Here, Method::POST, &format!("/v1/joblib/providers/{id}/results"), Some(token));
    let request = hash.into_iter().fold(request, |request, hash| request.header("x-request-hash", hash));
    server.call(request.body(Body::from(bytes.to_vec())).unwrap()).await
}

fn id(provider: &Value) -> &str {
    provider["id"].as_str().unwrap()
}

#[tokio::test]
async fn registering_makes_a_worker_replaces_and_lists() {
    let server = Server::start().await;
    let made = put(&server, "r1", &editor(), named("local")).await.expect(201);
    assert_eq!(made["full_name"], "r1:filesystem:local");
    assert_eq!(made["schema"], json!({"type": "object", "n": 1.0}));
    assert!(made["worker_id"].is_string() && made["created_at"].as_str().unwrap().ends_with('Z'), "{made}");
    // Again, by the same worker: the same provider.
    let mut again = named("local");
    again["worker_id"] = made["worker_id"].clone();
    again["content_type"] = json!("text/plain");
    again["schema"] = json!({});
    let replaced = put(&server, "r1", &editor(), again).await.expect(200);
    assert_eq!((&replaced["id"], &replaced["created_at"]), (&made["id"], &made["created_at"]));
    assert_eq!((&replaced["schema"], &replaced["worker_id"]), (&json!({}), &made["worker_id"]));
    server.pass(Millis(5)).await;
    put(&server, "@global", &admin(), named("shared")).await.expect(201);
    put(&server, "r2", &editor(), named("other")).await.expect(201);
    let listed = async |room: &str, query: &str| {
        let path = format!("/v1/joblib/rooms/{room}/providers{query}");
        call(&server, From::Here, Method::GET, &path, None, None).await.expect(200)
    };
    let names = |page: &Value| -> Vec<String> {
        page["items"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&listed("r1", "").await), ["shared", "local"], "newest first");
    assert_eq!(names(&listed("@global", "").await), ["shared"]);
    let page = listed("r1", "?limit=1&offset=1").await;
    assert_eq!((names(&page), &page["total"]), (vec!["local".to_owned()], &json!(2)));
    assert_eq!(listed("r1", "?limit=0").await, json!({"items": [], "total": 2, "limit": 0, "offset": 0}));
    let info = format!("{ROOM}/r1:filesystem:local/info");
    assert_eq!(call(&server, From::Here, Method::GET, &info, None, None).await.expect(200)["id"], made["id"]);
    assert_eq!(
        call(&server, From::Elsewhere, Method::GET, &info, None, None).await.expect(401)["detail"],
        "Unauthorized"
    );
}

#[tokio::test]
async fn who_may_not_is_told_why_and_changes_nothing() {
    let values = Values::default()
        .with(settings::joblib_provider_categories, "filesystem")
        .with(settings::joblib_locked_rooms, "shut");
    let server = Server::with(Options { values, ..Options::default() }).await;
    let user = superuser(&server, "owner").await;
    let made = put(&server, "r1", &user, named("local")).await.expect(201);
    let kind = |answer: Answer, status: u16| {
        assert_eq!(answer.headers[header::CONTENT_TYPE], "application/problem+json");
        let body = answer.expect(status);
        let kind = body["type"].as_str().unwrap().strip_prefix("/v1/problems/").unwrap().to_owned();
        (kind, body["detail"].as_str().unwrap().to_owned())
    };
    for (room, body, status, expected, detail) in [
        ("a:b", named("x"), 400, "invalid-room-id", "Room ID 'a:b' contains invalid characters (@ or :)"),
        ("@global", named("x"), 403, "forbidden", "Admin required for @global provider registration"),
        ("@internal", named("x"), 403, "forbidden", "Admin required for @internal provider registration"),
        (
            "r1",
            json!({"category": "frames", "name": "x"}),
            400,
            "invalid-category",
            "Category 'frames' not in allowed list: ['filesystem']",
        ),
        ("r1", named("local"), 403, "forbidden", "Provider already registered by another user"),
    ] {
        let told = kind(put(&server, room, &editor(), body).await, status);
        assert_eq!(told, (expected.to_owned(), detail.to_owned()), "{room}");
    }
    let mut foreign = named("x");
    foreign["worker_id"] = made["worker_id"].clone();
    let told = kind(put(&server, "r1", &editor(), foreign).await, 404);
    assert_eq!(told.0, "worker-not-found");
    assert_eq!(put(&server, "shut", &editor(), named("x")).await.status, 423);
    let delete = format!("/v1/joblib/providers/{}", id(&made));
    let told = kind(send(&server, Method::DELETE, &delete, &editor(), None).await, 403);
    assert_eq!(told.1, "Provider belongs to different user");
    let told = kind(upload(&server, id(&made), &editor(), Some(HASH), b"x").await, 403);
    assert_eq!(told.1, "Not authorized to upload results for this provider");
    for (path, detail) in [
        ("r1/providers/r1:filesystem", "Invalid provider name format: r1:filesystem"),
        ("r1/providers/r1:filesystem:none", "Provider 'r1:filesystem:none' not found"),
        ("r2/providers/r1:filesystem:local", "Provider 'r1:filesystem:local' not accessible from room 'r2'"),
    ] {
        let told = kind(get(&server, &format!("/v1/joblib/rooms/{path}"), None).await, 404);
        assert_eq!(told, ("provider-not-found".to_owned(), detail.to_owned()));
    }
    let long = "x".repeat(250);
    for body in [json!({"category": "filesystem"}), named(&long), named("a\u{0}b"), json!({"category": 1, "name": "x"})]
    {
        assert_eq!(put(&server, "r1", &user, body).await.status, 422);
    }
    let listed = get(&server, ROOM, None).await.expect(200);
    assert_eq!(listed["total"], 1);
}

#[tokio::test]
async fn an_answer_goes_out_as_it_came_and_is_kept_for_a_while() {
    let server = Server::start().await;
    let mut body = named("local");
    body["content_type"] = json!("application/x-frames");
    let made = put(&server, "r1", &editor(), body).await.expect(201);
    let path = format!("{ROOM}/r1:filesystem:local?path=/");
    let late = get(&server, &path, Some("wait=0")).await;
    assert_eq!(late.headers[header::RETRY_AFTER], "2");
    let late = late.expect(504);
    assert_eq!(
        (&late["type"], &late["detail"]),
        (&json!("/v1/problems/provider-timeout"), &json!("Provider 'r1:filesystem:local' did not respond within 0s"))
    );
    // More than one piece, and no text.
    let bytes: Vec<u8> = (0..1_500_000_u32).map(|n| (n * 7 % 251) as u8).collect();
    upload(&server, id(&made), &editor(), Some(HASH), &bytes).await.expect(204);
    let answer = get(&server, &path, Some("wait=9")).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.headers[header::CONTENT_TYPE]),
        (200, &"application/x-frames".parse().unwrap())
    );
    assert!(answer.body == bytes && !answer.headers.contains_key("preference-applied"));
    upload(&server, id(&made), &editor(), Some(HASH), b"[\"a\", \"b\"]").await.expect(204);
    assert_eq!(get(&server, &path, None).await.body, b"[\"a\", \"b\"]");
    upload(&server, id(&made), &editor(), Some(HASH), b"").await.expect(204);
    assert_eq!(get(&server, &path, None).await.body, b"", "nothing is an answer too");
    // It outlives its provider, and ends with its time.
    send(&server, Method::DELETE, &format!("/v1/joblib/providers/{}", id(&made)), &editor(), None).await.expect(204);
    assert_eq!(get(&server, &path, None).await.status, 404);
    put(&server, "r1", &editor(), named("local")).await.expect(201);
    assert_eq!(get(&server, &path, None).await.status, 200);
    server.pass(Millis(300_000)).await;
    put(&server, "r1", &editor(), named("local")).await.expect(201);
    assert_eq!(get(&server, &path, Some("wait=0")).await.status, 504);
}

#[tokio::test]
async fn a_reader_that_waits_is_woken_by_the_upload_and_one_question_is_put_once() {
    let server = Server::in_real_time(Options::default()).await;
    let made = put(&server, "r1", &editor(), named("local")).await.expect(201);
    let path = format!("{ROOM}/r1:filesystem:local?path=/");
    let answers = async {
        let asked = async || {
            let page = server.engine.store().events_after(0, 1_000).await.unwrap();
            let is = |what: &What| matches!(what, What::Told { topic, .. } if &**topic == "provider_request");
            page.events.iter().filter(|(_, event)| is(&event.what)).count()
        };
        eventually("it was asked", async || (asked().await > 0).then_some(())).await;
        assert_eq!(get(&server, &path, Some("wait=0")).await.status, 504);
        assert_eq!(asked().await, 1, "the second reader's question is on its way already");
        upload(&server, id(&made), &editor(), Some(HASH), b"[1]").await.expect(204);
    };
    let began = std::time::Instant::now();
    let (answer, ()) = tokio::join!(get(&server, &path, Some("wait=20")), answers);
    assert!(began.elapsed() < Duration::from_secs(10), "woken, not timed out");
    assert_eq!(answer.headers["preference-applied"], "wait=20");
    assert_eq!((answer.status.as_u16(), answer.body), (200, b"[1]".to_vec()));
}

#[tokio::test]
async fn calls_with_data_say_what_is_wrong_with_a_token() {
    let server = Server::start().await;
    let made = put(&server, "r1", &editor(), named("local")).await.expect(201);
    let read = format!("{ROOM}/r1:filesystem:local");
    let results = format!("/v1/joblib/providers/{}/results", id(&made));
    for (method, path) in [(Method::GET, &read), (Method::POST, &results)] {
        for (token, detail) in [
            (None, "Not authenticated"),
            (Some("no-token-of-ours"), "Invalid token"),
            (Some("eyJhbGciOiJub25lIn0.e30."), "Invalid token"),
        ] {
            let answer = call(&server, From::Here, method.clone(), path, token, None).await;
            assert_eq!(answer.expect(401)["detail"], detail, "{method} {token:?}");
        }
    }
    let missing = upload(&server, id(&made), &editor(), None, b"x").await.expect(422);
    assert_eq!(missing["detail"][0]["loc"], json!(["header", "x-request-hash"]));
    assert_eq!(upload(&server, "no-id", &editor(), Some(HASH), b"x").await.status, 422);
    let long = format!("{read}?q={}", "x".repeat(20_000));
    assert_eq!(get(&server, &long, None).await.expect(422)["detail"][0]["loc"], json!(["query"]));
}

#[tokio::test]
async fn a_provider_goes_with_its_worker() {
    let server = Server::start().await;
    put(&server, "r1", &editor(), named("local")).await.expect(201);
    assert_eq!(get(&server, ROOM, None).await.expect(200)["total"], 1);
    // Silent for longer than it may be.
    server.pass(Millis(60_001)).await;
    server.pass(Millis(1)).await;
    assert_eq!(get(&server, ROOM, None).await.expect(200)["total"], 0);
}
