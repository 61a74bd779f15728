//! Signing in to the dashboard: the cookie, the key of the page, one-time codes, and the page itself.

use crate::support::{Answer, Server, token};
use axum::body::Body;
use http::{Method, Request, header};
use serde_json::{Value, json};
use windlass_core::{Millis, principal::Role};

const HOST: &str = "127.0.0.1:3000";

struct Page {
    cookie: String,
    key: String,
}

impl Page {
    async fn open(server: &Server, body: Value) -> Self {
        let answer = ask(server, Method::POST, "/api/v1/session", &[], Some(body)).await;
        let cookie = answer.headers[header::SET_COOKIE].to_str().unwrap().to_owned();
        assert!(cookie.contains("; HttpOnly; SameSite=Strict; Max-Age="), "{cookie}");
        assert!(!cookie.contains("Path="), "browsers then send it only to what lies beside the call");
        let key = answer.expect(201)["page_key"].as_str().unwrap().to_owned();
        Self { cookie: cookie.split(';').next().unwrap().to_owned(), key }
    }

    async fn get(&self, server: &Server, path: &str) -> Answer {
        ask(server, Method::GET, path, &[("cookie", &self.cookie)], None).await
    }

    async fn post(&self, server: &Server, path: &str, key: &str) -> Answer {
        let headers = [("cookie", self.cookie.as_str()), ("windlass-page-key", key)];
        ask(server, Method::POST, path, &headers, Some(json!({}))).await
    }
}

async fn ask(server: &Server, method: Method, path: &str, headers: &[(&str, &str)], body: Option<Value>) -> Answer {
    let request = Request::builder().method(method).uri(path).header(header::HOST, HOST);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    server.call(request.body(body.map_or_else(Body::empty, |body| Body::from(body.to_string()))).unwrap()).await
}

#[tokio::test]
async fn a_token_is_exchanged_for_a_cookie_that_needs_the_key_of_the_page_to_change_anything() {
    let server = Server::start().await;
    let page = Page::open(&server, json!({"token": token(Role::Editor)})).await;
    let session = page.get(&server, "/api/v1/session").await.expect(200);
    assert_eq!((&session["role"], &session["page_key"]), (&json!("editor"), &json!(page.key)));
    page.get(&server, "/api/v1/jobs").await.expect(200);
    for wrong in ["", "no", &"0".repeat(32)] {
        let refused = page.post(&server, "/api/v1/jobs", wrong).await.expect(403);
        assert!(refused["type"].as_str().unwrap().ends_with("#foreign-origin"), "{refused}");
    }
    page.post(&server, "/api/v1/jobs", &page.key).await.expect(201);
    // What the token may not, its session may not either.
    page.get(&server, "/api/v1/tokens").await.expect(403);
}

#[tokio::test]
async fn a_session_ends_by_itself_with_its_token_and_when_its_owner_signs_out() {
    let server = Server::start().await;
    let one = Page::open(&server, json!({"token": token(Role::Viewer)})).await;
    let headers = [("cookie", one.cookie.as_str()), ("windlass-page-key", &one.key)];
    ask(&server, Method::DELETE, "/api/v1/session", &headers, None).await.expect(204);
    one.get(&server, "/api/v1/session").await.expect(401);

    let two = Page::open(&server, json!({"token": token(Role::Viewer)})).await;
    server.pass(Millis::from_secs(12 * 3_600 + 1)).await;
    server.app.auth.forget();
    two.get(&server, "/api/v1/session").await.expect(401);

    let three = Page::open(&server, json!({"token": token(Role::Viewer)})).await;
    let tokens = server.get("/api/v1/tokens").await.expect(200);
    let of_viewer = |one: &&Value| one["principal"] == token(Role::Viewer) && one["made_by"].is_null();
    let id = tokens["items"].as_array().unwrap().iter().find(of_viewer).unwrap()["id"].as_str().unwrap();
    server.delete(&format!("/api/v1/tokens/{id}")).await.expect(204);
    three.get(&server, "/api/v1/session").await.expect(401);
}

#[tokio::test]
async fn a_code_opens_one_session_and_workers_open_none() {
    let server = Server::start().await;
    let code = server.post("/api/v1/session/codes", json!({})).await.expect(201)["code"].clone();
    let page = Page::open(&server, json!({"code": code})).await;
    assert_eq!(page.get(&server, "/api/v1/session").await.expect(200)["role"], "admin");
    let sign_in = |body: Value| ask(&server, Method::POST, "/api/v1/session", &[], Some(body));
    sign_in(json!({"code": code})).await.expect(401);
    sign_in(json!({"token": "wrong"})).await.expect(401);
    sign_in(json!({"token": token(Role::Worker)})).await.expect(403);
    sign_in(json!({})).await.expect(422);
    let foreign = [("origin", "http://evil.example")];
    let body = Some(json!({"token": token(Role::Viewer)}));
    ask(&server, Method::POST, "/api/v1/session", &foreign, body).await.expect(403);
}

#[tokio::test]
async fn the_dashboard_is_found_from_the_root_and_below_any_prefix() {
    let server = Server::start().await;
    let browser = ask(&server, Method::GET, "/", &[("accept", "text/html,application/xhtml+xml")], None).await;
    assert_eq!((browser.status.as_u16(), &browser.headers[header::LOCATION]), (303, &"ui/".parse().unwrap()));
    let other = ask(&server, Method::GET, "/", &[("accept", "*/*")], None).await;
    assert_ne!(other.status.as_u16(), 303);
    for (path, base) in [
        ("/ui/", "./"),
        ("/ui/jobs", "./"),
        ("/ui/jobs/x", "../"),
        ("/ui/runs/x/y", "../../"),
        ("/ui/n/team/jobs/x", "../../../"),
    ] {
        let page = ask(&server, Method::GET, path, &[], None).await;
        assert_eq!(page.status.as_u16(), 200);
        let policy = page.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.contains("script-src 'self';") && !policy.contains("unsafe"), "{policy}");
        let text = String::from_utf8(page.body).unwrap();
        assert!(text.contains(&format!("<base href=\"{base}\"")), "{path}");
        let script = text.split("src=\"./").nth(1).unwrap().split('"').next().unwrap();
        let file = ask(&server, Method::GET, &format!("/ui/{script}"), &[], None).await;
        assert_eq!((file.status.as_u16(), &file.body[..2]), (200, &[0x1f, 0x8b][..]));
        assert_eq!(file.headers[header::CONTENT_ENCODING], "gzip");
    }
    assert_eq!(ask(&server, Method::GET, "/ui/assets/none.js", &[], None).await.status.as_u16(), 404);
}

/// However many pages listen, and however much happens between two messages.
#[tokio::test]
async fn pages_are_told_what_changed_in_their_namespace_and_only_there() {
    use http_body_util::BodyExt;
    let server = Server::start().await;
    let request = |path: &str| Server::request(Role::Viewer, Method::GET, path).body(Body::empty()).unwrap();
    let mut body = server.open(request("/api/v1/pulse?namespace=team")).await.into_body();
    let mut other = server.open(request("/api/v1/pulse?namespace=team")).await.into_body();
    server.post("/api/v1/jobs?namespace=elsewhere", json!({})).await.expect(201);
    let mut ids = Vec::new();
    for _ in 0..3 {
        let made = server.post("/api/v1/jobs?namespace=team", json!({})).await.expect(201);
        ids.push(made["id"].as_str().unwrap().to_owned());
    }
    for stream in [&mut body, &mut other] {
        let (mut text, mut told) = (String::new(), 0);
        while told < 3 {
            let frame = stream.frame().await.unwrap().unwrap().into_data().unwrap();
            text += std::str::from_utf8(&frame).unwrap();
            told = text.matches("\":\"submitted\"").count();
        }
        assert!(text.starts_with("event: hello\n"), "{text}");
        assert!(ids.iter().all(|id| text.contains(id.as_str())), "{text}");
    }
}

#[tokio::test]
async fn codes_and_sessions_of_one_principal_displace_its_own_oldest_and_those_of_no_other() {
    let server = Server::start().await;
    let make_code = async |role: Role| {
        let made = server.send(role, Method::POST, "/api/v1/session/codes", Some(json!({}))).await;
        json!({"code": made.expect(201)["code"]})
    };
    let sign_in = async |body: Value| ask(&server, Method::POST, "/api/v1/session", &[], Some(body)).await;
    let (of_admin, first) = (make_code(Role::Admin).await, make_code(Role::Viewer).await);
    let mut last = first.clone();
    for _ in 0..200 {
        last = make_code(Role::Viewer).await;
    }
    sign_in(of_admin).await.expect(201);
    sign_in(last).await.expect(201);
    sign_in(first).await.expect(401);

    let other = Page::open(&server, json!({"token": token(Role::Admin)})).await;
    let mut pages = Vec::new();
    for _ in 0..102 {
        pages.push(Page::open(&server, json!({"token": token(Role::Viewer)})).await);
        server.pass(Millis(1)).await;
    }
    for (page, status) in [(&other, 200), (&pages[0], 401), (&pages[1], 401), (&pages[2], 200), (&pages[101], 200)] {
        page.get(&server, "/api/v1/session").await.expect(status);
    }
}
