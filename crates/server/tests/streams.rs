//! Events and logs: replayed, followed, filtered, bounded.

use crate::support::Server;
use axum::body::Body;
use futures_util::FutureExt;
use http::{Method, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::time::Duration;
use windlass_core::{
    Namespace,
    commands::{principals::CreatePrincipal, tokens::IssueToken},
    principal::Role,
};
use windlass_engine::testing::eventually;
use windlass_server::auth;

/// A reader of one stream.
struct Reader {
    body: Body,
    text: String,
}

impl Reader {
    async fn open(server: &Server, path: &str, last: Option<u64>) -> Self {
        let mut request = Server::request(Role::Viewer, Method::GET, path);
        if let Some(last) = last {
            request = request.header("last-event-id", last.to_string());
        }
        let response = server.open(request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
        Self { body: response.into_body(), text: String::new() }
    }

    /// The next event: its number, name and data.
    async fn next(&mut self) -> Option<(Option<u64>, String, Value)> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
                if let Some(event) = field("event: ") {
                    let data = serde_json::from_str(&field("data: ").unwrap()).unwrap();
                    return Some((field("id: ").map(|id| id.parse().unwrap()), event, data));
                }
            }
            let frame = tokio::time::timeout(Duration::from_secs(10), self.body.frame()).await.expect("in time")?;
            self.text += core::str::from_utf8(&frame.unwrap().into_data().unwrap()).unwrap();
        }
    }

    async fn names(&mut self, count: usize) -> Vec<String> {
        let mut names = Vec::new();
        for _ in 0..count {
            names.push(self.next().await.unwrap().1);
        }
        names
    }
}

async fn run_one(server: &Server) -> String {
    let job = server.post("/api/v1/jobs", json!({"retry": {"attempts": 1}})).await.expect(201);
    let claimed = server.work("/api/v1/leases/claim", json!({"worker": "w"})).await.expect(200);
    let report = json!({"lease": claimed["leases"][0]["lease"], "message": "bad\nid: 9\n\ndata: x"});
    server.work("/api/v1/leases/fail", report).await.expect(200);
    job["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn events_are_replayed_and_then_live_without_gap_or_double() {
    let server = Server::start().await;
    let first = run_one(&server).await;
    let mut reader = Reader::open(&server, "/api/v1/events?after=0", None).await;
    let expected = ["submitted", "worker_registered", "claimed", "failed"];
    assert_eq!(reader.names(4).await, expected);
    let second = run_one(&server).await;
    assert_eq!(reader.names(2).await, ["submitted", "claimed"]);
    let (number, name, data) = reader.next().await.unwrap();
    assert_eq!(
        (name.as_str(), &data["job"], &data["message"]),
        ("failed", &json!(second), &json!("bad\nid: 9\n\ndata: x"))
    );
    let mut again = Reader::open(&server, "/api/v1/events", number.map(|number| number - 1)).await;
    assert_eq!(again.next().await.unwrap().2, data, "the header goes on where it was");
    let mut one = Reader::open(&server, &format!("/api/v1/events?after=0&type=failed,claimed&job={first}"), None).await;
    assert_eq!(one.names(2).await, ["claimed", "failed"]);
}

/// However much happens elsewhere, and however long it takes to pass over it.
#[tokio::test]
async fn a_reader_that_does_not_follow_is_told_all_of_its_namespace_and_then_the_stream_ends() {
    let server = Server::start().await;
    server.post("/api/v1/jobs?namespace=b", json!({})).await.expect(201);
    for _ in 0..3 {
        server.post("/api/v1/jobs/batch?namespace=a", json!({"jobs": vec![json!({}); 500]})).await.expect(200);
    }
    server.post("/api/v1/jobs?namespace=b", json!({})).await.expect(201);
    for (path, expected) in [
        ("/api/v1/events?namespace=b&after=0&follow=false", 2),
        ("/api/v1/events?namespace=b&follow=false", 0),
        ("/api/v1/events?namespace=b&after=1502&follow=false", 0),
        ("/api/v1/events?namespace=nobody&after=0&follow=false", 0),
        ("/api/v1/events?namespace=a&after=0&follow=false", 1_500),
    ] {
        let mut reader = Reader::open(&server, path, None).await;
        let mut told = 0;
        while reader.next().await.is_some() {
            told += 1;
        }
        assert_eq!(told, expected, "{path}");
    }
}

#[tokio::test]
async fn a_number_that_was_never_given_is_told_as_a_gap() {
    let server = Server::start().await;
    run_one(&server).await;
    let mut reader = Reader::open(&server, "/api/v1/events?after=99999", None).await;
    let (id, name, data) = reader.next().await.unwrap();
    assert_eq!((name.as_str(), &data["requested"]), ("gap", &json!(99_999)));
    assert_eq!(data["oldest"], json!(id.unwrap() + 1));
    server.send(Role::Viewer, Method::GET, "/api/v1/events?after=x", None).await.expect(400);
}

#[tokio::test]
async fn nobody_hears_of_namespaces_that_are_not_theirs() {
    let server = Server::start().await;
    let namespaces = vec![Namespace::new("mine").unwrap()];
    let name: std::sync::Arc<str> = "limited".into();
    let create =
        CreatePrincipal { namespace: auth::system_namespace(), name: name.clone(), role: Role::Viewer, namespaces };
    server.engine.run(create).await.unwrap();
    let hash = auth::hash("limited-token").into();
    let (namespace, shown) = (auth::system_namespace(), "limited".into());
    let issue = IssueToken { namespace, principal: name, hash, shown, expires_at: None, made_by: None, session: false };
    server.engine.run(issue).await.unwrap();
    server.post("/api/v1/jobs?namespace=other", json!({})).await.expect(201);
    server.put("/api/v1/definitions/d?namespace=other", json!({})).await.expect(200);
    let mine = server.post("/api/v1/jobs?namespace=mine", json!({})).await.expect(201);
    let request = |path: &str| {
        let request = http::Request::builder().uri(path).header(header::HOST, "localhost");
        let request = request.header(header::AUTHORIZATION, "Bearer limited-token");
        request.body(Body::empty()).unwrap()
    };
    let all = server.open(request("/api/v1/events?namespace=*&after=0")).await;
    let mut reader = Reader { body: all.into_body(), text: String::new() };
    assert_eq!(reader.next().await.unwrap().2["job"], mine["id"], "the first thing it hears is its own");
    for path in ["/api/v1/events?namespace=other", "/api/v1/events", "/api/v1/events?namespace=system"] {
        assert_eq!(server.open(request(path)).await.status(), 403, "{path}");
    }
    let worker = server.send(Role::Worker, Method::GET, "/api/v1/events", None).await;
    worker.expect(403);
}

#[tokio::test]
async fn a_principal_has_so_many_streams() {
    let server = Server::start().await;
    let mut open = Vec::new();
    for _ in 0..windlass_server::streams::STREAMS_MAX {
        open.push(Reader::open(&server, "/api/v1/events", None).await);
    }
    let problem = server.send(Role::Viewer, Method::GET, "/api/v1/events", None).await.expect(429);
    assert_eq!(problem["type"], "/docs/errors#too-many");
    open.pop();
    let free = async || {
        let request = Server::request(Role::Viewer, Method::GET, "/api/v1/events").body(Body::empty()).unwrap();
        (server.open(request).await.status() == 200).then_some(())
    };
    eventually("its place is free again", free).await;
}

#[tokio::test]
async fn a_reader_that_takes_nothing_holds_a_bounded_amount() {
    let server = Server::start().await;
    let stuck = Reader::open(&server, "/api/v1/events?after=0", None).await;
    let message = "x".repeat(60_000);
    for _ in 0..40 {
        server.post("/api/v1/jobs", json!({"retry": {"attempts": 1}})).await.expect(201);
        let claimed = server.work("/api/v1/leases/claim", json!({"worker": "w"})).await.expect(200);
        let report = json!({"lease": claimed["leases"][0]["lease"], "message": message});
        server.work("/api/v1/leases/fail", report).await.expect(200);
    }
    tokio::time::sleep(Duration::from_millis(200)).await; // Time for it to fill what it must not: nothing tells that it stopped.
    let mut read = 0;
    let mut body = stuck.body;
    // What waits is there at once; what follows is only made when there is room, by somebody who has no turn now.
    while let Some(Some(Ok(frame))) = body.frame().now_or_never() {
        read += frame.into_data().unwrap().len();
    }
    assert!(read <= 2 * (128 << 10), "{read} bytes waited");
}

#[tokio::test]
async fn a_log_is_paged_followed_and_downloaded() {
    let server = Server::start().await;
    let job = server.post("/api/v1/jobs", json!({})).await.expect(201);
    let path = format!("/api/v1/jobs/{}/logs", job["id"].as_str().unwrap());
    let claimed = server.work("/api/v1/leases/claim", json!({"worker": "w"})).await.expect(200);
    let lease = claimed["leases"][0]["lease"].clone();
    let empty = server.get(&path).await.expect(200);
    assert_eq!((&empty["pieces"], &empty["ended"]), (&json!([]), &json!(false)));
    let mut reader = Reader::open(&server, &format!("{path}/stream"), None).await;
    let waiting = format!("{path}?wait_ms=10000");
    let write = async {
        tokio::time::sleep(Duration::from_millis(50)).await; // Mostly the page waits by now; right either way.
        server.work("/api/v1/leases/logs", json!({"lease": lease, "data": "one\n"})).await.expect(200);
    };
    let (page, ()) = tokio::join!(server.get(&waiting), write);
    let page = page.expect(200);
    assert_eq!((&page["pieces"][0]["data"], &page["next"]), (&json!("one\n"), &json!(1)));
    server.work("/api/v1/leases/logs", json!({"lease": lease, "data": "two\r\ndata: x\n\n"})).await.expect(200);
    server.work("/api/v1/leases/complete", json!({"lease": lease})).await.expect(200);
    let page = server.get(&format!("{path}?after=1&wait_ms=10000")).await.expect(200);
    assert_eq!((&page["next"], &page["ended"]), (&json!(2), &json!(true)));
    assert_eq!(reader.next().await.unwrap().2["data"], "one\n");
    assert_eq!(reader.next().await.unwrap().2["data"], "two\r\ndata: x\n\n");
    let (_, name, data) = reader.next().await.unwrap();
    assert_eq!((name.as_str(), &data["state"]), ("end", &json!("completed")));
    assert!(reader.next().await.is_none());
    let text = server.get(&format!("{path}?format=text")).await;
    assert_eq!(text.headers[header::CONTENT_TYPE], "text/plain; charset=utf-8");
    assert_eq!(String::from_utf8(text.body).unwrap(), "one\ntwo\r\ndata: x\n\n");
    let accept = Server::request(Role::Viewer, Method::GET, &path).header(header::ACCEPT, "text/plain");
    assert_eq!(server.call(accept.body(Body::empty()).unwrap()).await.body, b"one\ntwo\r\ndata: x\n\n");
    server.get("/api/v1/jobs/0199a000-0000-7000-8000-000000000000/logs").await.expect(404);
}

#[tokio::test]
async fn a_log_that_was_cut_off_says_so() {
    let server = Server::start().await;
    let job = server.post("/api/v1/jobs", json!({})).await.expect(201);
    let path = format!("/api/v1/jobs/{}/logs", job["id"].as_str().unwrap());
    let claimed = server.work("/api/v1/leases/claim", json!({"worker": "w"})).await.expect(200);
    let lease = claimed["leases"][0]["lease"].clone();
    for number in 0..70 {
        let piece = json!({"lease": lease, "data": format!("{number:02}{}", "x".repeat(249_998))});
        server.work("/api/v1/leases/logs", piece).await.expect(200);
    }
    let page = server.get(&path).await.expect(200);
    let dropped = page["dropped_bytes"].as_u64().unwrap();
    assert!(dropped > 0 && page["pieces"].as_array().unwrap().len() < 6);
    let text = String::from_utf8(server.get(&format!("{path}?format=text")).await.body).unwrap();
    assert!(text.len() <= (16 << 20) + 200, "{}", text.len());
    let (before, after) = text.split_once("\n[windlass: ").unwrap();
    assert!(before.starts_with("00x") && before.len() > 7 << 20, "the beginning is there");
    let (said, after) = after.split_once("]\n").unwrap();
    assert!(said.starts_with(&format!("{dropped} bytes are missing here")), "{said}");
    assert!(after[after.len() - 250_000..].starts_with("69x"), "and the newest part");
    assert_eq!(before.len() as u64 + after.len() as u64 + dropped, 70 * 250_000, "and nothing else is missing");

    // Page by page the line is told once, and places only grow.
    let (mut next, mut lines, mut length) = (0, Vec::new(), 0);
    loop {
        let page = server.get(&format!("{path}?after={next}")).await.expect(200);
        let pieces = page["pieces"].as_array().unwrap();
        for piece in pieces {
            if piece["stream"] == "windlass" {
                lines.push(piece.clone());
            } else {
                length += piece["data"].as_str().unwrap().len() as u64;
            }
        }
        if pieces.is_empty() {
            break;
        }
        assert!(page["next"].as_u64().unwrap() > next);
        next = page["next"].as_u64().unwrap();
    }
    assert_eq!((lines.len(), length + dropped), (1, 70 * 250_000));
    assert_eq!(lines[0]["missing_bytes"], dropped);

    // Who follows is told as well, and a reader that went on from what is gone by now is told that something is.
    let mut reader = Reader::open(&server, &format!("{path}/stream"), None).await;
    let mut told = 0;
    while told == 0 {
        let (_, _, data) = reader.next().await.unwrap();
        told += usize::from(data["stream"] == "windlass");
    }
    let kept: u64 = before.len() as u64 / 250_000;
    let page = server.get(&format!("{path}?after={}", kept + 1)).await.expect(200);
    assert_eq!((&page["pieces"][0]["stream"], &page["pieces"][0]["missing_bytes"]), (&json!("windlass"), &Value::Null));
}

#[tokio::test]
async fn a_piece_of_a_log_carries_its_stream_and_the_time_the_worker_told() {
    let server = Server::start().await;
    let job = server.post("/api/v1/jobs", json!({})).await.expect(201);
    let path = format!("/api/v1/jobs/{}/logs", job["id"].as_str().unwrap());
    let claimed = server.work("/api/v1/leases/claim", json!({"worker": "w"})).await.expect(200);
    let lease = claimed["leases"][0]["lease"].clone();
    let mut reader = Reader::open(&server, &format!("{path}/stream"), None).await;
    let log = "/api/v1/leases/logs";
    server.work(log, json!({"lease": lease, "data": "whose\n"})).await.expect(200);
    server.work(log, json!({"lease": lease, "data": "oops\n", "stream": "stderr", "time_ms": 1_000})).await.expect(200);
    let chunks = json!([
        {"data": "a\n", "stream": "stdout", "time_ms": 2_000},
        {"data": "b\n", "stream": "stderr", "time_ms": 1_999},
    ]);
    let sync = json!({"worker": "w", "leases": [{"lease": lease, "chunks": chunks}]});
    server.work("/api/v1/leases/sync", sync).await.expect(200);
    let operation = json!({"do": "log", "lease": lease, "chunks": [{"data": "c\n", "stream": "stdout"}]});
    server.work("/api/v1/leases/batch", json!({"operations": [operation]})).await.expect(200);
    let expected = [
        ("whose\n", Value::Null, Value::Null),
        ("oops\n", json!("stderr"), json!("1970-01-01T00:00:01.000Z")),
        ("a\n", json!("stdout"), json!("1970-01-01T00:00:02.000Z")),
        ("b\n", json!("stderr"), json!("1970-01-01T00:00:01.999Z")),
        ("c\n", json!("stdout"), Value::Null),
    ];
    let page = server.get(&path).await.expect(200);
    for (at, (data, stream, worker_at)) in expected.iter().enumerate() {
        let piece = &page["pieces"][at];
        assert_eq!((&piece["data"], &piece["stream"], &piece["worker_at"]), (&json!(data), stream, worker_at));
        let (id, _, told) = reader.next().await.unwrap();
        assert_eq!(&told, piece);
        // Within a piece there is no place to go on from: who comes back in between gets the whole piece again.
        assert_eq!(id.is_some(), *data != "a\n", "{data}");
    }
    assert_eq!((page["pieces"].as_array().unwrap().len(), &page["next"]), (5, &json!(4)));
    let text = server.get(&format!("{path}?format=text")).await.body;
    assert_eq!(String::from_utf8(text).unwrap(), "whose\noops\na\nb\nc\n");

    let both = json!({"lease": lease, "data": "x", "chunks": [{"data": "y"}]});
    server.work(log, both).await.expect(422);
    let many = vec![json!({"data": "x"}); 4_097];
    let refused = server.work(log, json!({"lease": lease, "chunks": many})).await.expect(422);
    assert!(refused.to_string().contains("at most 4096"), "{refused}");
    let foreign = server.work(log, json!({"lease": lease, "data": "x", "stream": "windlass"})).await;
    assert!(foreign.status.is_client_error(), "what the server says only the server says");
}
