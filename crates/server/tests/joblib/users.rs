//! Users: registering, logging in, changing, and what ends their tokens.

use super::{From, call, log_in, register, request, send, superuser, token, with};
use crate::support::{self, Server};
use axum::body::Body;
use http::{Method, header};
use serde_json::{Value, json};
use windlass_core::{Millis, principal::Role};
use windlass_server::{config::values::Values, dialects::joblib::settings, duties};

async fn me(server: &Server, token: &str) -> u16 {
    send(server, Method::GET, "/users/me", token, None).await.status.as_u16()
}

#[tokio::test]
async fn whoever_registers_here_without_an_admin_is_superuser_at_once() {
    let server = Server::start().await;
    let user = register(&server, "Ada@example.org", "correct horse").await;
    assert_eq!(
        user,
        json!({"id": user["id"], "email": "Ada@example.org", "is_active": true, "is_superuser": true, "is_verified": false})
    );
    let token = token(&server, "ada@EXAMPLE.org", "correct horse").await;
    for place in ["/users/me", "/v1/auth/users/me"] {
        assert_eq!(send(&server, Method::GET, place, &token, None).await.expect(200), user, "{place}");
    }
    let twice = json!({"email": "ADA@example.org", "password": "x"});
    let answer = call(&server, From::Here, Method::POST, "/v1/auth/register", None, Some(twice)).await.expect(400);
    assert_eq!(answer, json!({"detail": "REGISTER_USER_ALREADY_EXISTS"}));
    let out = send(&server, Method::POST, "/auth/jwt/logout", &token, None).await;
    assert_eq!((out.status.as_u16(), out.body.len()), (204, 0));
    assert_eq!(me(&server, &token).await, 200, "nothing is kept of a token, so logging out ends none");
}

#[tokio::test]
async fn only_programs_here_register_unless_a_setting_opens_it() {
    let body = json!({"email": "a@example.org", "password": "p"});
    let register = async |server: &Server, from| {
        call(server, from, Method::POST, "/auth/register", None, Some(body.clone())).await
    };
    let guest = async |server: &Server, from| call(server, from, Method::POST, "/v1/auth/guest", None, None).await;
    let server = Server::start().await;
    assert_eq!(register(&server, From::Elsewhere).await.status, 403);
    assert_eq!(guest(&server, From::Elsewhere).await.status, 403);
    let admitted = guest(&server, From::Here).await.expect(200);
    let shown = send(&server, Method::GET, "/users/me", admitted["access_token"].as_str().unwrap(), None).await;
    let shown = shown.expect(200);
    assert_eq!((&shown["email"], &shown["is_superuser"]), (&admitted["email"], &json!(false)));

    let open = Values::default().with(settings::joblib_registration, "anyone").with(settings::joblib_guests, "nobody");
    let server = with(open).await;
    let user = register(&server, From::Elsewhere).await.expect(201);
    assert_eq!(user["is_superuser"], false, "from elsewhere nobody becomes superuser by registering");
    assert_eq!(guest(&server, From::Here).await.status, 403);

    let production = Values::default().with(settings::joblib_admin_email, "root@example.org");
    let server = with(production).await;
    let sent = json!({"email": "b@example.org", "password": "p", "is_superuser": true});
    let user = call(&server, From::Here, Method::POST, "/auth/register", None, Some(sent)).await.expect(201);
    assert_eq!(user["is_superuser"], false);
}

#[tokio::test]
async fn the_default_admin_is_made_and_promoted() {
    let values = Values::default()
        .with(settings::joblib_admin_email, "root@example.org")
        .with(settings::joblib_admin_password, "top secret");
    let server = with(values.clone()).await;
    let started = duties::start(&server.app, None, None).await;
    let root = token(&server, "root@example.org", "top secret").await;
    let shown = send(&server, Method::GET, "/users/me", &root, None).await.expect(200);
    assert_eq!(shown["is_superuser"], true);
    let id = shown["id"].as_str().unwrap();
    // Somebody takes it away; the next start gives it back, and the password stays what it was.
    let change = json!({"is_superuser": false});
    send(&server, Method::PATCH, &format!("/users/{id}"), &root, Some(change)).await.expect(200);
    drop(started);
    let _started = duties::start(&server.app, None, None).await;
    let root = token(&server, "root@example.org", "top secret").await;
    assert_eq!(
        send(&server, Method::GET, &format!("/users/{id}"), &root, None).await.expect(200)["is_superuser"],
        true
    );
}

#[tokio::test]
async fn superusers_manage_others_and_nobody_else_does() {
    let server = Server::start().await;
    let root = superuser(&server, "root").await;
    let user = register(&server, "u@example.org", "first").await;
    let path = format!("/users/{}", user["id"].as_str().unwrap());
    let change = json!({"is_superuser": false, "is_verified": true, "unknown": 1});
    let changed = send(&server, Method::PATCH, &path, &root, Some(change)).await.expect(200);
    assert_eq!((&changed["is_superuser"], &changed["is_verified"]), (&json!(false), &json!(true)));
    let plain = token(&server, "u@example.org", "first").await;
    for (method, at) in [(Method::GET, &path), (Method::DELETE, &path), (Method::POST, &format!("/admin{path}/token"))]
    {
        let refused = send(&server, method.clone(), at, &plain, None).await;
        assert!(!refused.headers.contains_key(header::WWW_AUTHENTICATE));
        assert_eq!(refused.expect(403)["detail"], "Forbidden", "{method} {at}");
        assert_eq!(
            call(&server, From::Here, method.clone(), at, None, None).await.expect(401)["detail"],
            "Unauthorized"
        );
    }
    // What a user may change about itself, and what it may not.
    let own = json!({"email": "v@example.org", "is_superuser": true});
    let changed = send(&server, Method::PATCH, "/users/me", &plain, Some(own)).await.expect(200);
    assert_eq!((&changed["email"], &changed["is_superuser"]), (&json!("v@example.org"), &json!(false)));
    let taken = json!({"email": "root@example.org"});
    let refused = send(&server, Method::PATCH, "/users/me", &plain, Some(taken)).await.expect(400);
    assert_eq!(refused["detail"], "UPDATE_USER_EMAIL_ALREADY_EXISTS");
    register(&server, "u@example.org", "the address is free again").await;
    // For somebody else.
    let minted = send(&server, Method::POST, &format!("/admin{path}/token"), &root, None).await.expect(200);
    let as_user = send(&server, Method::GET, "/users/me", minted["access_token"].as_str().unwrap(), None).await;
    assert_eq!(as_user.expect(200)["id"], user["id"]);
    for missing in ["/users/01890000-0000-7000-8000-000000000000", "/users/nobody"] {
        assert_eq!(send(&server, Method::GET, missing, &root, None).await.expect(404)["detail"], "Not Found");
    }
    let nobody = "/admin/users/01890000-0000-7000-8000-000000000000/token";
    assert_eq!(send(&server, Method::POST, nobody, &root, None).await.expect(404), json!({"detail": "User not found"}));
    send(&server, Method::DELETE, &path, &root, None).await.expect(204);
    assert_eq!(me(&server, &plain).await, 401, "a deleted user has no token");
    assert_eq!(log_in(&server, From::Here, "v@example.org", "first").await.status, 400);
}

#[tokio::test]
async fn a_new_password_and_deactivation_end_the_tokens_before() {
    let server = Server::start().await;
    let root = superuser(&server, "root").await;
    let user = register(&server, "u@example.org", "first").await;
    let path = format!("/users/{}", user["id"].as_str().unwrap());
    let old = token(&server, "u@example.org", "first").await;
    assert_eq!(me(&server, &old).await, 200);
    send(&server, Method::PATCH, "/users/me", &old, Some(json!({"password": "second"}))).await.expect(200);
    assert_eq!(me(&server, &old).await, 401);
    assert_eq!(log_in(&server, From::Here, "u@example.org", "first").await.status, 400);
    // The clock stands still in this test, and the new one is good all the same.
    let new = token(&server, "u@example.org", "second").await;
    assert_eq!(me(&server, &new).await, 200);
    send(&server, Method::PATCH, &path, &root, Some(json!({"is_active": false}))).await.expect(200);
    assert_eq!(me(&server, &new).await, 401);
    let refused = log_in(&server, From::Here, "u@example.org", "second").await.expect(400);
    assert_eq!(refused, json!({"detail": "LOGIN_BAD_CREDENTIALS"}));
    send(&server, Method::PATCH, &path, &root, Some(json!({"is_active": true}))).await.expect(200);
    assert_eq!(me(&server, &new).await, 401, "what was ended stays ended");
    assert_eq!(me(&server, &token(&server, "u@example.org", "second").await).await, 200);
}

#[tokio::test]
async fn tokens_end_with_their_time() {
    let server = with(Values::default().with(settings::joblib_token_lifetime, "10m")).await;
    register(&server, "u@example.org", "p").await;
    let early = token(&server, "u@example.org", "p").await;
    // A token of the same instant would be the same one, which is remembered for a second.
    server.pass(Millis(1)).await;
    let late = token(&server, "u@example.org", "p").await;
    server.pass(Millis(599_000)).await;
    assert_eq!(me(&server, &early).await, 200);
    server.pass(Millis(2_000)).await;
    assert_ne!(early, late);
    assert_eq!(me(&server, &late).await, 401);
}

#[tokio::test]
async fn guessing_passwords_is_slowed_down() {
    let server = Server::start().await;
    register(&server, "u@example.org", "right").await;
    for _ in 0..10 {
        assert_eq!(log_in(&server, From::Here, "u@example.org", "wrong").await.status, 400);
    }
    let refused = log_in(&server, From::Here, "U@example.org", "right").await;
    assert_eq!((refused.status.as_u16(), refused.headers.contains_key(header::RETRY_AFTER)), (429, true));
    assert_eq!(log_in(&server, From::Elsewhere, "u@example.org", "right").await.status, 200, "somebody else may");
}

#[tokio::test]
async fn faults_are_told_in_the_validators_form_and_repeat_no_secret() {
    let server = Server::start().await;
    let post = async |path: &str, kind: Option<&str>, body: &str| {
        let request = request(From::Here, Method::POST, path, None);
        let request = kind.into_iter().fold(request, |request, kind| request.header(header::CONTENT_TYPE, kind));
        let answer = server.call(request.body(Body::from(body.to_owned())).unwrap()).await;
        assert!(!String::from_utf8_lossy(&answer.body).contains("hush"), "{path}: {body}");
        answer.expect(422)["detail"].clone()
    };
    let json = Some("application/json");
    let kinds = |told: &Value| -> Vec<String> {
        told.as_array().unwrap().iter().map(|fault| format!("{} {}", fault["type"], fault["loc"])).collect()
    };
    let told = post("/auth/register", json, r#"{"password": "hush"}"#).await;
    assert_eq!(kinds(&told), [r#""missing" ["body","email"]"#]);
    for (kind, body, expected) in [
        (json, r#"{"email": "no address", "password": "hush"}"#, r#""value_error" ["body","email"]"#),
        (json, r#"{"email": "a@b.c", "password": 1}"#, r#""string_type" ["body","password"]"#),
        (json, r#"{"email": "a@b.c", "password": ""}"#, r#""value_error" ["body","password"]"#),
        (json, r#"["hush"]"#, r#""model_attributes_type" ["body"]"#),
        (json, r#"{"password": "hush""#, r#""json_invalid" ["body",18]"#),
        (Some("application/x-www-form-urlencoded"), "password=hush", r#""model_attributes_type" ["body"]"#),
        (None, r#"{"email": "a@b.c", "password": "hush"}"#, r#""model_attributes_type" ["body"]"#),
        (json, "", r#""missing" ["body"]"#),
    ] {
        assert_eq!(kinds(&post("/auth/register", kind, body).await), [expected], "{body}");
    }
    let deep = format!("{{\"email\": {}1{}}}", "[".repeat(80), "]".repeat(80));
    assert_eq!(kinds(&post("/auth/register", json, &deep).await), [r#""json_invalid" ["body",0]"#]);
    // Login takes a form, and nothing else.
    let both = [r#""missing" ["body","username"]"#, r#""missing" ["body","password"]"#];
    let sent = r#"{"username": "a@b.c", "password": "hush"}"#;
    assert_eq!(kinds(&post("/auth/jwt/login", json, sent).await), both);
}

#[tokio::test]
async fn our_own_tokens_pass_for_users() {
    let server = Server::start().await;
    let admin = send(&server, Method::GET, "/users/me", &support::token(Role::Admin), None).await.expect(200);
    assert_eq!((&admin["is_superuser"], &admin["email"]), (&json!(true), &json!("test-admin@windlass.invalid")));
    let worker = send(&server, Method::GET, "/users/me", &support::token(Role::Worker), None).await.expect(200);
    assert_eq!(worker["is_superuser"], false);
    assert_ne!(worker["id"], admin["id"]);
    let change = Some(json!({"password": "x"}));
    send(&server, Method::PATCH, "/users/me", &support::token(Role::Admin), change).await.expect(400);
}

#[tokio::test]
async fn a_slash_too_many_leads_back_and_what_is_not_there_says_so() {
    let server = Server::start().await;
    let answer = call(&server, From::Here, Method::GET, "/users/me/?a=1", None, None).await;
    assert_eq!((answer.status.as_u16(), &answer.headers[header::LOCATION]), (307, &"/users/me?a=1".parse().unwrap()));
    let nothing = call(&server, From::Here, Method::GET, "/v1/joblib/nothing", None, None).await;
    assert_eq!(nothing.expect(404)["detail"], "Not Found");
    let other = call(&server, From::Here, Method::PUT, "/users/me", None, None).await;
    assert_eq!(other.headers[header::ALLOW], "GET, HEAD, OPTIONS, PATCH");
    assert_eq!(other.expect(405)["detail"], "Method Not Allowed");
    assert_eq!(call(&server, From::Here, Method::GET, "//evil.example/", None, None).await.status, 404);
}

#[tokio::test]
async fn who_took_the_default_admins_address_does_not_become_superuser_without_its_password() {
    let values = Values::default()
        .with(settings::joblib_admin_email, "root@example.org")
        .with(settings::joblib_admin_password, "top secret");
    for (password, promoted) in [("guessed", false), ("top secret", true)] {
        let server = with(values.clone()).await;
        super::register(&server, "root@example.org", password).await;
        let started = duties::start(&server.app, None, None).await;
        let bearer = token(&server, "root@example.org", password).await;
        let shown = send(&server, Method::GET, "/users/me", &bearer, None).await.expect(200);
        assert_eq!(shown["is_superuser"], promoted, "{password}");
        drop(started);
    }
}
