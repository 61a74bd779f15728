//! At trace level, with everything that can go wrong going wrong: no token and no lease id in the log or in an error.

#[path = "support/socket.rs"]
mod socket;
#[path = "support/socketio.rs"]
mod socketio;
mod support;

use serde_json::{Value, json};
use socket::{listen, quick};
use std::{
    io,
    sync::{Arc, Mutex},
};
use support::token;
use tracing_subscriber::util::SubscriberInitExt;
use windlass_core::principal::Role;
use windlass_server::{bootstrap, logs, secret::Secret};

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_in_no_log_and_in_no_error() {
    let captured = Captured::default();
    let writer = captured.clone();
    logs::subscriber("trace", logs::Format::Json, false, move || writer.clone()).init();

    let server = listen(quick()).await;
    let folder = tempfile::tempdir().unwrap();
    let configured = Secret::new("a-configured-admin-token");
    bootstrap::admin(&server.server.engine, Some(&configured), folder.path(), true).await.unwrap();
    bootstrap::admin(&server.server.engine, None, folder.path(), true).await.unwrap();
    let admin = std::fs::read_to_string(folder.path().join("admin.token")).unwrap().trim().to_owned();
    let mut secrets = vec![admin.clone(), configured.reveal().to_owned(), token(Role::Worker), token(Role::Editor)];
    let mut errors = String::new();

    let mut call = async |path: &str, bearer: &str, body: &Value| {
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {bearer}\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = server.exchange(request.as_bytes()).await;
        if !answer.starts_with("HTTP/1.1 2") {
            errors.push_str(&answer);
        }
        answer.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str::<Value>(body).ok()).unwrap_or_default()
    };
    let worker = token(Role::Worker);
    for _ in 0..3 {
        call("/api/v1/jobs", &admin, &json!({"payload": {"n": 1}})).await;
    }
    let claimed = call("/api/v1/leases/claim", &worker, &json!({"worker": "w", "max": 3})).await;
    let leases: Vec<String> =
        claimed["leases"].as_array().unwrap().iter().map(|lease| lease["lease"].as_str().unwrap().to_owned()).collect();
    assert_eq!(leases.len(), 3);
    call("/api/v1/leases/logs", &worker, &json!({"lease": leases[0], "data": "hello\n"})).await;
    call("/api/v1/leases/complete", &worker, &json!({"lease": leases[0], "result": 1})).await;
    call("/api/v1/leases/fail", &worker, &json!({"lease": leases[0], "message": "too late"})).await;
    call("/api/v1/leases/release", &worker, &json!({"lease": leases[1]})).await;
    call("/api/v1/leases/renew", &worker, &json!({"lease": leases[1]})).await;
    call("/api/v1/leases/renew", "wl_work_a-token-nobody-issued", &json!({"lease": leases[2]})).await;
    call("/api/v1/leases/renew", &worker, &json!({"lease": leases[2], "unknown": 1})).await;
    call("/api/v1/leases/renew", &token(Role::Viewer), &json!({"lease": leases[2]})).await;
    call(&format!("/api/v1/jobs?token={}", "wl_admin_in-the-query"), &admin, &json!({"bad": 1})).await;
    call(&format!("/nothing/{}", leases[2]), &admin, &json!({})).await;
    // In the path, for clients that can send no header: right, wrong, where it leads nowhere, and where there is nothing.
    let in_path = token(Role::Viewer);
    for (path, expected) in [
        (format!("/~{in_path}/api/workflows"), "200"),
        (format!("/~{in_path}/api/workflows/none/status"), "404"),
        (format!("/~{in_path}/api/workflows?limit=x"), "400"),
        (format!("/~{in_path}/api/v1/jobs"), "404"),
        (format!("/~{in_path}/nothing/here"), "404"),
        (format!("/~{in_path}"), "404"),
        ("/~wl_view_nobody-issued-this/api/workflows".to_owned(), "401"),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let answer = server.exchange(request.as_bytes()).await;
        assert_eq!(answer.split(' ').nth(1), Some(expected), "{path}");
        assert!(!answer.contains(&in_path) && !answer.contains("wl_view_nobody"), "{path} is answered with {answer}");
    }
    let request = format!(
        "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {in_path}\r\n\r\n"
    );
    let metrics = server.exchange(request.as_bytes()).await;
    assert!(metrics.contains("route=\"/api/workflows\"") && !metrics.contains(&in_path), "{metrics}");
    secrets.extend(users(&server, &mut errors).await);
    // In what is said over Socket.IO.
    let unsigned = "eyJhbGciOiJIUzI1NiJ9.a-token.nobody-signed";
    drop(socketio::Client::connect(&server, &token(Role::Editor)).await);
    socketio::Client::open(&server).await.introduce(json!({ "token": unsigned })).await;
    secrets.push(unsigned.to_owned());
    secrets.extend(leases);
    secrets.extend([in_path, "wl_view_nobody-issued-this".to_owned()]);
    secrets.extend(["wl_work_a-token-nobody-issued", "wl_admin_in-the-query"].map(str::to_owned));

    let log = String::from_utf8(captured.0.lock().unwrap().clone()).unwrap();
    assert!(
        log.contains("\"route\":\"/api/v1/leases/claim\"") && log.contains("answered"),
        "the log was captured: {log}"
    );
    for secret in &secrets {
        assert!(!log.contains(secret.as_str()), "the log holds {secret}");
    }
    // The one path that names a lease is the caller's own, and an answer to nobody else.
    let errors: Vec<&str> = errors.lines().filter(|line| !line.contains("there is nothing at")).collect();
    for secret in &secrets {
        assert!(!errors.iter().any(|line| line.contains(secret.as_str())), "an error holds {secret}");
    }
}

/// Users' passwords, tokens and devices' secrets, right and wrong.
async fn users(server: &socket::Listening, errors: &mut String) -> Vec<String> {
    const JSON: &str = "application/json";
    const FORM: &str = "application/x-www-form-urlencoded";
    let mut call = async |method: &str, path: &str, kind: &str, bearer: &str, body: &str| {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {bearer}\r\n\
             content-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = server.exchange(request.as_bytes()).await;
        if !answer.starts_with("HTTP/1.1 2") {
            errors.push_str(&answer);
        }
        answer.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str::<Value>(body).ok()).unwrap_or_default()
    };
    let registration = r#"{"email": "ada@example.org", "password": "correct-horse"}"#;
    let user = call("POST", "/auth/register", JSON, "", registration).await;
    assert_eq!(user["is_superuser"], true, "{user}");
    call("POST", "/auth/register", JSON, "", registration).await;
    call("POST", "/auth/register", JSON, "", r#"{"password": "correct-horse", "email": 1}"#).await;
    call("POST", "/auth/register", JSON, "", r#"{"password": "correct-horse""#).await;
    let right = "username=ada%40example.org&password=correct-horse";
    let token = call("POST", "/auth/jwt/login", FORM, "", right).await["access_token"].as_str().unwrap().to_owned();
    call("POST", "/auth/jwt/login", FORM, "", "username=ada%40example.org&password=battery-staple").await;
    call("POST", "/auth/jwt/login", JSON, "", r#"{"username": "ada", "password": "battery-staple"}"#).await;
    let (head, _) = token.rsplit_once('.').unwrap();
    let forged = format!("{head}.c2lnbmVkLWJ5LW5vYm9keQ");
    call("GET", "/users/me", JSON, &forged, "").await;
    call("GET", "/users/me", JSON, &token, "").await;
    call("PATCH", "/users/me", JSON, &token, r#"{"password": "correct-horse", "email": "none"}"#).await;
    let device = call("POST", "/auth/cli-login", JSON, "", "").await;
    let (code, secret) = (device["code"].as_str().unwrap(), device["secret"].as_str().unwrap());
    for path in [format!("/auth/cli-login/{code}?secret={secret}"), format!("/auth/cli-login/NONESUCH?secret={secret}")]
    {
        call("GET", &path, JSON, "", "").await;
    }
    let signed = |token: &str| token.rsplit_once('.').unwrap().1.to_owned();
    let words = ["correct-horse", "battery-staple", secret].map(str::to_owned);
    words.into_iter().chain([signed(&token), signed(&forged)]).collect()
}

#[tokio::test]
async fn the_admin_token_is_kept_replaced_and_refused_when_short() {
    use std::os::unix::fs::PermissionsExt;
    use windlass_server::bootstrap::{Admin, BootstrapError, admin};
    let server = support::Server::start().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("admin.token");
    let valid = async |token: &str| {
        server.app.auth.forget();
        server.app.auth.caller(token).await.is_ok()
    };
    let engine = &server.engine;
    assert_eq!(admin(engine, None, folder.path(), true).await.unwrap(), Admin::File { path: path.clone(), new: true });
    let first = std::fs::read_to_string(&path).unwrap().trim().to_owned();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(first.starts_with("wl_admin_") && valid(&first).await);
    assert_eq!(admin(engine, None, folder.path(), true).await.unwrap(), Admin::File { path: path.clone(), new: false });
    assert!(valid(&first).await, "a second start keeps it");

    std::fs::remove_file(&path).unwrap();
    admin(engine, None, folder.path(), true).await.unwrap();
    let second = std::fs::read_to_string(&path).unwrap().trim().to_owned();
    assert!(!valid(&first).await && valid(&second).await, "a lost file is replaced, and the old token is void");

    let set = |text: &str| Secret::new(text);
    assert!(matches!(admin(engine, Some(&set("short")), folder.path(), true).await, Err(BootstrapError::TooShort)));
    admin(engine, Some(&set("one-admin-token-set")), folder.path(), true).await.unwrap();
    assert!(valid("one-admin-token-set").await);
    admin(engine, Some(&set("another-admin-token")), folder.path(), true).await.unwrap();
    assert!(!valid("one-admin-token-set").await && valid("another-admin-token").await);
    admin(engine, None, folder.path(), true).await.unwrap();
    assert!(!valid("another-admin-token").await, "one that is no longer set is void");
}
