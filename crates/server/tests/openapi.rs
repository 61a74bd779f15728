//! The API's description: complete, kept, and served with its pages.

use crate::support::Server;
use http::{Method, header};
use serde_json::Value;
use std::{collections::BTreeSet, sync::LazyLock};
use windlass_core::principal::Role;
use windlass_server::{
    native::{docs::DESCRIPTION, openapi::document},
    route::{Access, Route},
};

/// What is served.
fn served() -> &'static Value {
    static SERVED: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(DESCRIPTION).unwrap());
    &SERVED
}

fn native() -> Vec<Route> {
    windlass_server::native::routes()
}

/// A line for each call and each schema: half as large as with a line for each value, since it is part of the program, and a change
/// still shows where it is.
fn lines(value: &Value, depth: usize) -> String {
    let Some(fields) = value.as_object().filter(|_| depth > 0) else { return value.to_string() };
    let line =
        |(name, value): (&String, &Value)| format!("{}: {}", Value::from(name.as_str()), lines(value, depth - 1));
    format!("{{\n{}\n}}", fields.iter().map(line).collect::<Vec<_>>().join(",\n"))
}

#[test]
fn the_stored_description_is_what_the_routes_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let now = lines(&document(&native()), 3) + "\n";
    if std::env::var_os("WINDLASS_REWRITE").is_some() {
        std::fs::write(path, &now).unwrap();
    }
    assert!(
        DESCRIPTION == now,
        "docs/openapi.json is behind the code; run this test with WINDLASS_REWRITE=1, once more without it, and commit the file"
    );
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(at) = fields.get("$ref").and_then(Value::as_str) {
                found.insert(at.to_owned());
            }
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn every_reference_leads_somewhere_and_every_call_has_its_own_name() {
    let mut found = BTreeSet::new();
    references(served(), &mut found);
    assert!(found.len() > 40, "{found:?}");
    for reference in found {
        let at = reference.strip_prefix('#').expect("nothing outside is referred to");
        assert!(served().pointer(at).is_some(), "{reference}");
    }
    let mut names = BTreeSet::new();
    for (path, methods) in served()["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} of {method} {path} is taken");
            assert!(!operation["summary"].as_str().unwrap().is_empty(), "{method} {path} says nothing");
        }
    }
    assert_eq!(names.len(), native().len());
}

#[test]
fn every_route_has_an_answer() {
    for route in native() {
        assert!(!route.doc.replies.is_empty(), "{} {} has no answer", route.method, route.path);
    }
}

fn header_names(operation: &Value) -> Vec<&str> {
    let parameters = operation["parameters"].as_array().unwrap().iter();
    let headers = parameters.filter(|parameter| parameter["in"] == "header");
    headers.map(|parameter| parameter["name"].as_str().unwrap()).collect()
}

#[test]
fn headers_that_handlers_read_are_told() {
    let at = |path: &str, method: &str| header_names(&served()["paths"][path][method]);
    assert_eq!(at("/api/v1/jobs", "post"), ["Idempotency-Key", "traceparent"]);
    assert_eq!(at("/api/v1/jobs/batch", "post"), ["traceparent"]);
    assert_eq!(at("/api/v1/events", "get"), ["Last-Event-ID"]);
    assert_eq!(at("/api/v1/jobs/{id}/logs/stream", "get"), ["Last-Event-ID"]);
    assert_eq!(at("/api/v1/artifacts", "post"), ["Windlass-Lease"]);
    assert!(at("/api/v1/jobs/{id}", "get").is_empty());
    // One that is read by its name alone would be missing above.
    for folder in ["/src/native", "/src/native/why"] {
        read_by_name(&format!("{}{folder}", env!("CARGO_MANIFEST_DIR")));
    }
}

fn read_by_name(folder: &str) {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for path in paths.filter(|path| path.is_file()) {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("headers.get(\"") && !text.contains("headers().get(\""), "{}", path.display());
    }
}

/// The support's `call` fails where an answer's status is not described.
#[tokio::test]
async fn what_calls_answer_to_nonsense_is_described() {
    let server = Server::start().await;
    // Streams do not end by themselves.
    let streams = |route: &Route| route.path.ends_with("events") || route.path.ends_with("pulse");
    for route in native().iter().filter(|route| route.access != Access::Open && !streams(route)) {
        let role = if route.access == Access::Worker { Role::Worker } else { Role::Admin };
        for (name, query) in
            [("0", "?namespace="), ("%00", ""), ("0", "?limit=x&wait_ms=-1"), ("..%2f", "?namespace=%ff")]
        {
            let parts = route.path.split('/').map(|part| if part.starts_with('{') { name } else { part });
            let path = parts.collect::<Vec<_>>().join("/") + query;
            for body in ["", "{", "[]", "null", r#"{"worker": "", "lease": "x", "name": 7, "job": {}}"#] {
                let request = Server::request(role, route.method.clone(), &path);
                let answer = server.call(request.body(body.into()).unwrap()).await;
                assert!(answer.status.as_u16() < 500, "{} {path} {body}: {}", route.method, answer.status);
            }
        }
    }
}

/// Default deny: only these may be called by anybody.
#[test]
fn only_what_tells_nothing_is_open() {
    let open: Vec<&str> =
        windlass_server::routes().iter().filter(|route| route.access == Access::Open).map(|route| route.path).collect();
    // Who signs in has nothing to show yet.
    let named = ["/api/v1/openapi.json", "/api/v1/session"];
    let allowed = |path: &&str| path.starts_with("/docs") || named.contains(path) || !path.starts_with("/api");
    assert!(open.iter().all(allowed), "{open:?}");
}

#[tokio::test]
async fn the_pages_need_nothing_from_elsewhere() {
    let server = Server::start().await;
    let get = async |path: &str| {
        let request = http::Request::builder()
            .method(Method::GET)
            .uri(path)
            .header(header::HOST, "localhost")
            .body(axum::body::Body::empty())
            .unwrap();
        server.call(request).await
    };
    for (path, content) in [
        ("/docs", "text/html"),
        ("/docs/errors", "text/html"),
        ("/docs/docs.js", "text/javascript"),
        ("/docs/docs.css", "text/css"),
        ("/api/v1/openapi.json", "application/json"),
    ] {
        let answer = get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.headers[header::CONTENT_TYPE].to_str().unwrap().starts_with(content), "{path}");
        let policy = answer.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{path}");
    }
    assert_eq!(get("/api/v1/openapi.json").await.expect(200), *served());
}

/// As a browser puts an address together that has no scheme and no slash in front.
fn resolved(page: &str, link: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[tokio::test]
async fn the_docs_work_behind_a_prefix() {
    let server = Server::start().await;
    let routes: Vec<String> = native().iter().map(|route| route.path.to_owned()).collect();
    for (at, from) in [("/docs", "/docs"), ("/docs/docs.js", "/docs"), ("/docs/errors", "/docs/errors")] {
        let answer =
            server.open(Server::request(Role::Viewer, Method::GET, at).body(axum::body::Body::empty()).unwrap());
        let body = http_body_util::BodyExt::collect(answer.await.into_body()).await.unwrap().to_bytes();
        let text = String::from_utf8(body.to_vec()).unwrap();
        let marks = ["href=\"", "src=\"", "fetch(\""];
        let links = marks.iter().flat_map(|mark| text.split(mark).skip(1)).map(|rest| rest.split('"').next().unwrap());
        let links: Vec<&str> = links.filter(|link| !link.starts_with('#')).collect();
        assert!(!links.is_empty(), "{at}");
        for link in links {
            let path = resolved(&format!("/below/this{from}"), link);
            let path = path.strip_prefix("/below/this").unwrap_or_else(|| panic!("{link} in {at} leaves the prefix"));
            assert!(routes.iter().any(|route| route == path), "{link} in {at} leads to {path}");
        }
    }
}
