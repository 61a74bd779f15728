//! Every route against every kind of caller, and against every other route. Made from the table, so that a new route is in it.

use crate::support::{Server, token};
use axum::body::Body;
use http::{Method, Request, StatusCode, header};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tower::ServiceExt;
use windlass_core::{
    Namespace, Timestamp,
    commands::{
        principals::CreatePrincipal,
        tokens::{IssueToken, RevokeToken},
    },
    principal::Role,
};
use windlass_engine::Engine;
use windlass_server::{
    Options, Service, auth, listener,
    route::{Access, Nameless, Route},
    without_token::WithoutToken,
};

/// Routes that concern no namespace, so that a token's namespaces do not matter to them. Each with the reason.
const EVERYWHERE: &[(&str, &str)] = &[
    ("/api/v1/me", "everybody may know who they are"),
    ("/api/v1/tokens", "shows and makes only what lies within the caller's namespaces"),
    ("/api/v1/tokens/{id}", "finds only what lies within the caller's namespaces"),
    ("/api/v1/principals", "shows only what lies within the caller's namespaces"),
    ("/api/v1/principals/{name}", "finds only what lies within the caller's namespaces"),
    ("/api/v1/principals/{name}/enable", "finds only what lies within the caller's namespaces"),
    ("/api/v1/session", "everybody may know who they are, and end their own session"),
    ("/api/v1/session/codes", "signs in as the caller, with the same limits"),
    ("/api/v1/namespaces", "shows only the caller's namespaces"),
    ("/api/v1/dialects", "which protocols are served is no secret; who called is told only to those without limits"),
    ("/api/v1/audit", "shows only what lies within the caller's namespaces"),
];

/// Open to everybody who is on this machine, unless a setting says otherwise.
const HERE: &[&str] = &["/v1/auth/guest"];

/// Reads that need a token even from this machine. Each with the reason.
const NAMED: &[(&str, &str)] = &[
    ("/users/me", "somebody without a name is nobody"),
    ("/v1/auth/users/me", "somebody without a name is nobody"),
    ("/v1/joblib/rooms/{room_id}/providers/{*provider_name}", "somebody else's process works for the answer"),
];

/// Names that a path with a name in it cannot reach, because another path is spelled like that.
const RESERVED: &[(&str, &str)] = &[
    ("/api/v1/jobs/{id}", "ids are UUIDs, and none is spelled like a word"),
    ("/users/{id}", "ids are UUIDs, and none is spelled me"),
    ("/v1/joblib/tasks/{task_id}", "ids are UUIDs, and none is spelled claim"),
    ("/v1/auth/users/{id}", "ids are UUIDs, and none is spelled me"),
    ("/workers/{uuid}", "ids are UUIDs, and none is spelled like a word"),
    ("/workflow-definition/{id}", "ids have a slash and a colon, and no word has"),
    ("/workflow-definition/{id}/restore", "ids have a slash and a colon, and no word has"),
    ("/workflow-execution/{id}", "ids are UUIDs, and none is spelled like a word"),
    ("/api/items/{part}", "no item may be called by-uuid"),
    ("/api/items/{part}/bom", "no item may be called by-uuid"),
    ("/api/items/{part}/dag", "no item may be called by-uuid"),
    ("/api/items/{part}/revisions", "no item may be called by-uuid"),
    ("/api/items/{part}/edit-sessions", "no item may be called by-uuid"),
    ("/api/items/{part}/files", "no item may be called by-uuid"),
    ("/api/items/{part}/bom/{child}", "no item may be called expanded, flat, merge or where-used"),
    (
        "/api/v1/workers/{worker}",
        "workers of the names register, heartbeat and unregister can be listed, but not addressed",
    ),
];

pub fn fill(path: &str) -> String {
    let part = |part: &str| match part {
        "{id}" | "{job}" | "{run}" => "01890000-0000-7000-8000-000000000000".to_owned(),
        name if name.starts_with('{') => "some-name".to_owned(),
        word => word.to_owned(),
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// Only the status: some answers do not end by themselves.
pub async fn status(server: &Server, route: &Route, token: Option<&str>) -> StatusCode {
    let mut request =
        Request::builder().method(route.method.clone()).uri(fill(route.path)).header(header::HOST, "localhost");
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    answered(server, request).await
}

async fn answered(server: &Server, request: http::request::Builder) -> StatusCode {
    let answer = server.service().oneshot(request.body(Body::from("{}")).unwrap());
    tokio::time::timeout(Duration::from_secs(10), answer).await.expect("an answer in time").unwrap().status()
}

async fn issue(engine: &Engine, name: &str, role: Role, namespaces: Vec<Namespace>, expires_at: Option<Timestamp>) {
    let name: Arc<str> = name.into();
    engine
        .run(CreatePrincipal { namespace: auth::system_namespace(), name: name.clone(), role, namespaces })
        .await
        .unwrap();
    let hash = auth::hash(&name).into();
    let issue = IssueToken {
        namespace: auth::system_namespace(),
        principal: name.clone(),
        hash,
        shown: name,
        expires_at,
        made_by: None,
        session: false,
    };
    engine.run(issue).await.unwrap();
}

#[tokio::test]
async fn every_route_lets_in_whom_its_row_says_and_nobody_else() {
    let server = Server::start().await;
    let past = Some(Timestamp(1));
    let elsewhere = || vec![Namespace::new("elsewhere").unwrap()];
    for (kind, role) in [("people", Role::Admin), ("work", Role::Worker)] {
        issue(&server.engine, &format!("expired-{kind}"), role, vec![], past).await;
        issue(&server.engine, &format!("revoked-{kind}"), role, vec![], None).await;
        issue(&server.engine, &format!("foreign-{kind}"), role, elsewhere(), None).await;
        let hash = auth::hash(&format!("revoked-{kind}")).into();
        server.engine.run(RevokeToken { namespace: auth::system_namespace(), hash }).await.unwrap();
    }
    let mut cells = 0;
    for route in windlass_server::routes() {
        let at = format!("{} {}", route.method, route.path);
        let open = route.access == Access::Open;
        for nobody in [
            None,
            Some("unknown"),
            Some("expired-people"),
            Some("expired-work"),
            Some("revoked-people"),
            Some("revoked-work"),
        ] {
            let got = status(&server, &route, nobody).await;
            assert_eq!(got == StatusCode::UNAUTHORIZED, !open, "{at} for {nobody:?}: {got}");
            cells += 1;
        }
        for role in [Role::Viewer, Role::Editor, Role::Admin, Role::Worker] {
            let got = status(&server, &route, Some(&token(role))).await;
            assert_eq!(got == StatusCode::UNAUTHORIZED, is_no_token(&route, role), "{at} for {role:?}: {got}");
            let expected = may(role, route.access) && !HERE.contains(&route.path);
            assert_eq!(let_in(got), expected, "{at} for {role:?}: {got}");
            cells += 1;
        }
        let whole_server = EVERYWHERE.iter().any(|(path, _)| *path == route.path);
        for (kind, role) in [("people", Role::Admin), ("work", Role::Worker)] {
            let got = status(&server, &route, Some(&format!("foreign-{kind}"))).await;
            let expected = open && !HERE.contains(&route.path) || whole_server && may(role, route.access);
            assert_eq!(let_in(got), expected, "{at} for foreign-{kind}: {got}");
            cells += 1;
        }
    }
    assert!(cells >= 12 * 25, "{cells} is not all of it");
}

pub fn let_in(got: StatusCode) -> bool {
    !matches!(got, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

/// Silo keeps people and runners apart: a token of one kind is unknown where the other calls.
fn is_no_token(route: &Route, role: Role) -> bool {
    let crossed = match route.access {
        Access::Worker => role != Role::Worker,
        Access::Viewer | Access::Editor | Access::Admin => role == Role::Worker,
        Access::Open | Access::Any | Access::EditorOrWorker => false,
    };
    route.surface.name == "silo" && crossed
}

/// Written out once more, not taken from the code under test.
pub fn may(role: Role, access: Access) -> bool {
    match access {
        Access::Open | Access::Any => true,
        Access::Viewer => matches!(role, Role::Viewer | Role::Editor | Role::Admin),
        Access::Editor => matches!(role, Role::Editor | Role::Admin),
        Access::Admin => role == Role::Admin,
        Access::Worker => role == Role::Worker,
        Access::EditorOrWorker => matches!(role, Role::Editor | Role::Admin | Role::Worker),
    }
}

/// As a program on the server's machine calls, or something that passes for one.
async fn open_status(
    server: &Server,
    route: &Route,
    extra: Option<&'static str>,
    version: http::Version,
) -> StatusCode {
    let here = "127.0.0.1:3000".parse().unwrap();
    let peer = listener::Peer { address: "127.0.0.1:9".parse().unwrap(), local: here, tls: false };
    let request = Request::builder().method(route.method.clone()).uri(fill(route.path)).version(version);
    let request = request.header(header::HOST, "127.0.0.1:3000").extension(peer);
    answered(server, extra.into_iter().fold(request, |request, name| request.header(name, "203.0.113.9"))).await
}

#[tokio::test]
async fn callers_without_a_token_get_what_the_surface_gives_them_and_no_more() {
    let with = async |without_token| Server::with(Options { without_token, ..Options::default() }).await;
    let (never, here) = (with(WithoutToken::Never).await, with(WithoutToken::Loopback).await);
    let there: Vec<Namespace> = ["wfg", "neops"].map(|name| Namespace::new(name).unwrap()).into();
    issue(&here.engine, "editor-there", Role::Editor, there.clone(), None).await;
    issue(&here.engine, "worker-there", Role::Worker, there, None).await;
    let mut open = 0;
    for route in windlass_server::routes().into_iter().filter(|route| route.access != Access::Open) {
        let at = format!("{} {}", route.method, route.path);
        let got = let_in(open_status(&here, &route, None, http::Version::HTTP_11).await);
        let mut with_token = false;
        for token in ["editor-there", "worker-there"] {
            with_token |= let_in(status(&here, &route, Some(token)).await);
        }
        let named = NAMED.iter().any(|(path, _)| *path == route.path);
        let reads = route.method == Method::GET && may(Role::Viewer, route.access) && !named;
        let expected = match route.surface.name {
            "workflow_graph" | "neops" => with_token,
            "joblib" => reads,
            _ => false,
        };
        assert_eq!(got, expected, "{at}");
        open += u32::from(got);
        assert!(!let_in(open_status(&never, &route, None, http::Version::HTTP_11).await), "{at} although never");
        for sign in ["x-real-ip", "cf-connecting-ip", "true-client-ip", "forwarded", "x-forwarded-for", "via"] {
            let got = open_status(&here, &route, Some(sign), http::Version::HTTP_11).await;
            assert_eq!(got, StatusCode::UNAUTHORIZED, "{at} with {sign}");
        }
        let old = open_status(&here, &route, None, http::Version::HTTP_10).await;
        assert_eq!(old, StatusCode::UNAUTHORIZED, "{at} over HTTP/1.0");
    }
    assert!(open >= 19, "{open} is not all of it");
    let caller = auth::Caller::nameless(&Namespace::new("wfg").unwrap(), Nameless::Works);
    assert!(!caller.may(Access::Admin) && caller.check_namespace(&Namespace::default()).is_err());
}

#[tokio::test]
async fn a_revoked_token_is_void_at_once() {
    let server = Server::start().await;
    issue(&server.engine, "leaked", Role::Admin, vec![], None).await;
    let list = windlass_server::routes()
        .into_iter()
        .find(|route| route.path == "/api/v1/jobs" && route.method == Method::GET)
        .unwrap();
    assert_eq!(status(&server, &list, Some("leaked")).await, StatusCode::OK);
    server
        .engine
        .run(RevokeToken { namespace: auth::system_namespace(), hash: auth::hash("leaked").into() })
        .await
        .unwrap();
    server.app.auth.forget();
    assert_eq!(status(&server, &list, Some("leaked")).await, StatusCode::UNAUTHORIZED);
}

/// Does a path of the table match this one, which may hold words where the first holds names?
fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<_>, Vec<_>) = (pattern.split('/').collect(), path.split('/').collect());
    let rest = pattern.last().is_some_and(|part| part.starts_with("{*"));
    let fits = pattern.iter().zip(&path).all(|(want, have)| want.starts_with('{') || want == have);
    fits && (pattern.len() == path.len() || rest && path.len() >= pattern.len())
}

#[tokio::test]
async fn no_route_is_hidden_behind_another() {
    let routes = windlass_server::routes();
    let mut methods: BTreeMap<&'static str, Vec<Method>> = BTreeMap::new();
    for route in &routes {
        let seen = methods.entry(route.path).or_default();
        assert!(!seen.contains(&route.method), "{} {} is there twice", route.method, route.path);
        seen.push(route.method.clone());
    }
    let echo = |path: &&'static str| {
        let path = *path;
        Route::get(path, Access::Open, move || async move { path })
    };
    let echoes: Vec<Route> = methods.keys().map(echo).collect();
    let service = Service::of(Server::start().await.app, &echoes);
    for path in methods.keys() {
        let request = Request::builder().uri(fill(path)).header(header::HOST, "localhost");
        let body = service.answer(request.body(Body::empty()).unwrap()).await.into_body();
        let reached = axum::body::to_bytes(body, 1_000).await.unwrap();
        assert_eq!(reached, path.as_bytes(), "{path} leads elsewhere");
    }
    for (hidden, lost) in methods.iter().flat_map(|pattern| methods.iter().map(move |path| (pattern, path))).filter_map(
        |((pattern, has), (path, other))| {
            let lost: Vec<_> = has.iter().filter(|method| !other.contains(method)).collect();
            (pattern != path && matches(pattern, path) && !lost.is_empty()).then_some((*pattern, (*path, lost)))
        },
    ) {
        let known = RESERVED.iter().any(|(path, _)| *path == hidden);
        assert!(
            known,
            "{hidden} cannot be reached where it is spelled {lost:?}: reserve the word, or move one of them"
        );
    }
}

#[tokio::test]
async fn what_is_not_there_says_so_and_what_is_there_says_how() {
    let server = Server::start().await;
    let call = async |method: Method, path: &str| {
        let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost");
        server.call(request.body(Body::empty()).unwrap()).await
    };
    let mut methods: BTreeMap<&str, Vec<Method>> = BTreeMap::new();
    for route in windlass_server::routes() {
        methods.entry(route.path).or_default().push(route.method);
    }
    for (path, has) in &methods {
        for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
            if has.contains(&method) {
                continue;
            }
            let answer = call(method.clone(), &fill(path)).await;
            let problem: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
            // One protocol's original knows no other method of a path than those it has.
            let is_as_in_the_original = answer.status == 404 && problem["statusCode"] == 404;
            assert!(answer.status == 405 || is_as_in_the_original, "{method} {path}: {}", answer.status);
            let allow = answer.headers.get(header::ALLOW).expect("Allow").to_str().unwrap().to_owned();
            assert!(has.iter().all(|method| allow.split(", ").any(|word| word == method.as_str())), "{path}: {allow}");
            assert!(!allow.split(", ").any(|word| word == method.as_str()), "{path}: {allow}");
            assert_eq!(problem["request_id"], answer.headers["x-request-id"].to_str().unwrap());
        }
        for beside in [format!("{}/nothing/here/at/all", fill(path)), format!("{}x-y-z", fill(path))] {
            let answer = call(Method::TRACE, &beside).await;
            assert!(matches!(answer.status.as_u16(), 404 | 405), "{beside}: {}", answer.status);
        }
    }
    for path in ["/nowhere", "/api", "/api/v1", "/api/v1/", "/api/v1/jobs/", "//api/v1/jobs", "/api/v1/../v1/jobs"] {
        let answer = call(Method::GET, path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(answer.headers[header::CONTENT_TYPE], "application/problem+json");
    }
}

#[tokio::test]
async fn browsers_are_told_what_pages_may_do() {
    let server = Server::with(windlass_server::Options {
        origins: vec!["https://app.example".into()],
        ..windlass_server::Options::default()
    })
    .await;
    let call = async |method: Method, path: &str, headers: &[(&str, &str)]| {
        let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost:3000");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        server.call(request.body(Body::from("{}")).unwrap()).await
    };
    let asked = ("access-control-request-method", "POST");
    let listed = call(Method::OPTIONS, "/api/v1/jobs", &[("origin", "https://app.example"), asked]).await;
    assert_eq!(
        (listed.status.as_u16(), &listed.headers["access-control-allow-origin"]),
        (204, &"https://app.example".parse().unwrap())
    );
    assert!(listed.headers["access-control-allow-methods"].to_str().unwrap().contains("POST"));
    let foreign = call(Method::OPTIONS, "/api/v1/jobs", &[("origin", "https://evil.example"), asked]).await;
    assert!(foreign.status == 403 && !foreign.headers.contains_key("access-control-allow-origin"));

    let bearer = format!("Bearer {}", token(Role::Admin));
    let auth = ("authorization", bearer.as_str());
    for route in windlass_server::routes().into_iter().filter(|route| route.method != Method::GET) {
        let (method, path) = (route.method.clone(), fill(route.path));
        for sign in [("origin", "https://evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site")] {
            let answer = call(method.clone(), &path, &[auth, sign]).await;
            assert_eq!(answer.status, 403, "{method} {path} with {sign:?}");
            assert!(String::from_utf8_lossy(&answer.body).contains("foreign-origin"));
        }
    }
    let answer = call(Method::GET, "/api/v1/jobs", &[auth, ("origin", "https://app.example")]).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.headers["access-control-allow-origin"]),
        (200, &"https://app.example".parse().unwrap())
    );
    assert_eq!(answer.headers["x-content-type-options"], "nosniff");
    let own = call(Method::GET, "/healthz", &[("x-request-id", "mine-1")]).await;
    assert_eq!(own.headers["x-request-id"], "mine-1");
}

#[tokio::test]
async fn a_name_that_is_not_ours_gets_nothing() {
    let server = Server::start().await;
    for route in windlass_server::routes() {
        let request = Request::builder().method(route.method.clone()).uri(fill(route.path));
        let request = request.header(header::HOST, "evil.example:3000");
        let request = request.header(header::AUTHORIZATION, format!("Bearer {}", token(Role::Admin)));
        let answer = server.call(request.body(Body::from("{}")).unwrap()).await;
        assert_eq!(answer.status, 421, "{} {}", route.method, route.path);
    }
}
