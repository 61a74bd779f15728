//! Tokens made elsewhere, and devices that log in by a code.

use super::{From, call, register, send, superuser, token, with};
use crate::support::Server;
use http::Method;
use serde_json::{Value, json};
use windlass_api::Uuid;
use windlass_core::{Millis, Timestamp};
use windlass_server::{
    config::values::Values,
    dialects::joblib::{settings, users::jwt::Key},
};

const SECRET: &str = "shared with a ZnDraw beside it";

fn shared() -> Values {
    Values::default().with(settings::joblib_secret, SECRET)
}

fn now(server: &Server) -> Timestamp {
    use windlass_engine::clock::Clock;
    server.clock.now()
}

async fn me(server: &Server, token: &str) -> u16 {
    send(server, Method::GET, "/v1/auth/users/me", token, None).await.status.as_u16()
}

#[tokio::test]
async fn a_token_of_the_same_secret_is_good_for_a_user_who_is_known() {
    let server = with(shared()).await;
    let user = register(&server, "u@example.org", "p").await;
    let id: Uuid = user["id"].as_str().unwrap().parse().unwrap();
    let mint = |id, lifetime| Key::new(SECRET.as_bytes()).mint(id, now(&server), Millis(lifetime), None);
    assert_eq!(me(&server, &mint(id, 60_000)).await, 200);
    assert_eq!(me(&server, &mint(Uuid::from_u128(1), 60_000)).await, 401, "nobody here knows this one");
    assert_eq!(me(&server, &mint(id, -60_000)).await, 401, "expired");
    let other = Key::new(b"another secret").mint(id, now(&server), Millis(60_000), None);
    assert_eq!(me(&server, &other).await, 401);
}

#[tokio::test]
async fn a_user_only_the_other_one_knows_is_made_at_first_sight_if_a_setting_says_so() {
    let server = with(shared().with(settings::joblib_foreign_users, "true")).await;
    let root = superuser(&server, "root").await;
    let id = Uuid::from_u128(77);
    let token = Key::new(SECRET.as_bytes()).mint(id, now(&server), Millis(60_000), None);
    let shown = send(&server, Method::GET, "/users/me", &token, None).await.expect(200);
    assert_eq!((&shown["id"], &shown["is_superuser"]), (&json!(id), &json!(false)));
    send(&server, Method::DELETE, &format!("/users/{id}"), &root, None).await.expect(204);
    assert_eq!(me(&server, &token).await, 401, "a deleted one is not made again");
}

#[tokio::test]
async fn servers_on_one_store_share_the_secret_they_drew() {
    let server = Server::start().await;
    register(&server, "u@example.org", "p").await;
    let token = token(&server, "u@example.org", "p").await;
    let options = windlass_server::Options { ..server.app.options.clone() };
    let other = windlass_server::App::new(server.engine.clone(), options);
    let request = super::request(From::Here, Method::GET, "/users/me", Some(&token));
    let service = windlass_server::Service::new(other);
    let answer = service.answer(request.body(axum::body::Body::empty()).unwrap()).await;
    assert_eq!(answer.status(), 200);
}

async fn begin(server: &Server) -> (String, String) {
    let told = call(server, From::Elsewhere, Method::POST, "/auth/cli-login", None, None).await.expect(200);
    let text = |name: &str| told[name].as_str().unwrap().to_owned();
    let code = text("code");
    assert!(code.len() == 8 && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()), "{code}");
    assert_eq!(text("approve_url"), format!("/auth/cli-login/{code}"));
    (code, text("secret"))
}

async fn poll(server: &Server, code: &str, secret: &str) -> (u16, Value) {
    let path = format!("/v1/auth/cli-login/{code}?secret={secret}");
    let answer = call(server, From::Elsewhere, Method::GET, &path, None, None).await;
    (answer.status.as_u16(), serde_json::from_slice(&answer.body).unwrap())
}

#[tokio::test]
async fn a_device_is_logged_in_once_by_whoever_approves_it() {
    let server = Server::start().await;
    let user = register(&server, "u@example.org", "p").await;
    let bearer = token(&server, "u@example.org", "p").await;
    let (code, secret) = begin(&server).await;
    let path = format!("/auth/cli-login/{code}");
    assert_eq!(poll(&server, &code, &secret).await, (200, json!({"status": "pending", "token": null})));
    assert_eq!(call(&server, From::Here, Method::PATCH, &path, None, None).await.status, 401);
    let approved = send(&server, Method::PATCH, &path, &bearer, None).await.expect(200);
    assert_eq!(approved, json!({"status": "approved"}));
    assert_eq!(poll(&server, &code, "wrong").await.0, 404);
    let (status, told) = poll(&server, &code, &secret).await;
    assert_eq!((status, &told["status"]), (200, &json!("approved")));
    let shown = send(&server, Method::GET, "/users/me", told["token"].as_str().unwrap(), None).await.expect(200);
    assert_eq!(shown["id"], user["id"]);
    assert_eq!(poll(&server, &code, &secret).await.0, 404, "only once");

    let (code, secret) = begin(&server).await;
    send(&server, Method::DELETE, &format!("/auth/cli-login/{code}"), &bearer, None).await.expect(204);
    assert_eq!(poll(&server, &code, &secret).await.0, 404);
}

#[tokio::test]
async fn a_code_expires_and_is_forgotten_later() {
    let server = Server::start().await;
    let (code, secret) = begin(&server).await;
    server.pass(Millis(299_000)).await;
    assert_eq!(poll(&server, &code, &secret).await.0, 200);
    server.pass(Millis(1_000)).await;
    assert_eq!(poll(&server, &code, &secret).await.0, 410);
    server.pass(Millis(3_600_000)).await;
    assert_eq!(poll(&server, &code, &secret).await.0, 404);
    assert_eq!(poll(&server, "NONESUCH", &secret).await.0, 404);
}

#[tokio::test]
async fn a_device_that_a_stolen_token_approved_gets_nothing_once_the_password_was_changed() {
    let server = Server::start().await;
    register(&server, "u@example.org", "old").await;
    let stolen = token(&server, "u@example.org", "old").await;
    let (code, secret) = begin(&server).await;
    send(&server, Method::PATCH, &format!("/auth/cli-login/{code}"), &stolen, None).await.expect(200);
    let own = token(&server, "u@example.org", "old").await;
    send(&server, Method::PATCH, "/users/me", &own, Some(json!({"password": "new"}))).await.expect(200);
    assert_eq!(poll(&server, &code, &secret).await.0, 404);
}
