//! Clients that misbehave on real sockets, and what that does to the others: nothing.

use crate::socket::{Listening, listen, listen_with, quick, read_answer, read_to_end};
use crate::support::{Server, token};
use axum::body::Body;
use futures_util::stream;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::sleep,
};
use windlass_core::principal::Role;
use windlass_engine::testing::eventually;
use windlass_server::{
    listener::Limits,
    route::{Access, Route},
};

const HEALTH_ONCE: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("nothing")
}

fn post(path: &str, role: Role, length: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-length: {length}\r\n\r\n",
        token(role)
    )
}

async fn health(stream: &mut TcpStream) -> String {
    stream.write_all(HEALTH).await.unwrap();
    read_answer(stream).await
}

#[tokio::test]
async fn a_head_that_does_not_end_is_cut_off_however_it_trickles() {
    let server = listen(quick()).await;
    let began = Instant::now();
    let mut stream = server.connect().await;
    // A byte every now and then must not buy more time.
    for byte in b"GET /healthz HTTP/1.1\r\nhost: local" {
        if stream.write_all(&[*byte]).await.is_err() {
            break;
        }
        sleep(Duration::from_millis(25)).await; // The client trickles.
    }
    assert_eq!(read_to_end(&mut stream).await, "");
    assert!(began.elapsed() < Duration::from_millis(1_400), "{:?}", began.elapsed());
}

#[tokio::test]
async fn an_idle_connection_outlives_the_head_s_time_but_not_its_own() {
    let server = listen(quick()).await;
    let mut stream = server.connect().await;
    assert_eq!(status(&health(&mut stream).await), "200");
    sleep(Duration::from_millis(700)).await; // How long a connection may be idle is what is tested.
    assert_eq!(status(&health(&mut stream).await), "200", "idle for longer than a head may take");
    let began = Instant::now();
    assert_eq!(read_to_end(&mut stream).await, "");
    assert!(began.elapsed() >= Duration::from_millis(1_300) && began.elapsed() < Duration::from_secs(4));
}

#[tokio::test]
async fn half_a_body_is_answered_with_408() {
    let server = listen(quick()).await;
    let half = post("/api/v1/jobs", Role::Editor, 100) + "{\"payload\": ";
    let answer = server.exchange(half.as_bytes()).await;
    assert_eq!(status(&answer), "408", "{answer}");
    assert!(answer.contains("/docs/errors#timeout") && answer.contains("request_id"));
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_before_it_is_sent() {
    let server = listen(quick()).await;
    let answer = server.exchange(post("/api/v1/jobs", Role::Editor, 1 << 40).as_bytes()).await;
    assert_eq!(status(&answer), "413", "{answer}");
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, "x".repeat(1 << 20));
    let head = post("/api/v1/jobs", Role::Editor, 0).replace("content-length: 0", "transfer-encoding: chunked");
    let answer = server.exchange((head + &chunk.repeat(3) + "0\r\n\r\n").as_bytes()).await;
    assert_eq!(status(&answer), "413", "{answer}");
}

#[tokio::test]
async fn json_that_is_too_deep_is_refused() {
    let server = listen(quick()).await;
    let body = format!("{{\"payload\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let answer = server.exchange((post("/api/v1/jobs", Role::Editor, body.len()) + &body).as_bytes()).await;
    assert_eq!(status(&answer), "400", "{answer}");
    assert!(answer.contains("64 levels"));
}

#[tokio::test]
async fn it_is_always_clear_where_a_request_ends() {
    let server = listen(quick()).await;
    let smuggled = "GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let chunked = format!("0\r\n\r\n{smuggled}");
    for (framing, body) in [
        ("content-length: +3", "abc"),
        ("content-length: 3\r\ncontent-length: 4", "abcd"),
        ("content-length: 3, 4", "abcd"),
        ("content-length: -1", ""),
        ("content-length: 0x3", "abc"),
        ("transfer-encoding: chunked\r\ntransfer-encoding: chunked", &chunked),
        ("transfer-encoding: chunked, chunked", &chunked),
        ("transfer-encoding: identity, chunked", &chunked),
        ("transfer-encoding: chunked, identity", &chunked),
        ("transfer-encoding: xchunked", &chunked),
    ] {
        let request = format!("POST /healthz HTTP/1.1\r\nhost: localhost\r\n{framing}\r\n\r\n{body}{smuggled}");
        let answer = server.exchange(request.as_bytes()).await;
        assert_eq!(status(&answer), "400", "{framing}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{framing}: nothing is read after it\n{answer}");
    }
    // A length beside chunks: the chunks count, as the standard says, and nothing is read after them.
    for framing in
        ["transfer-encoding: chunked\r\ncontent-length: 5", "content-length: 5\r\ntransfer-encoding: chunked"]
    {
        let request = format!("POST /healthz HTTP/1.1\r\nhost: localhost\r\n{framing}\r\n\r\n{chunked}");
        let answer = server.exchange(request.as_bytes()).await;
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{framing}: {answer}");
    }
}

#[tokio::test]
async fn garbage_is_answered_or_dropped_and_hurts_nobody() {
    let server = listen(quick()).await;
    let long = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "x".repeat(100_000));
    let many = format!("GET / HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "a: b\r\n".repeat(500));
    let junk: [&[u8]; 6] = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\0\0\0\0\r\n\r\n",
        b"GET\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        long.as_bytes(),
        many.as_bytes(),
    ];
    for bytes in junk {
        let answer = server.exchange(bytes).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    assert_eq!(status(&health(&mut server.connect().await).await), "200");
}

#[tokio::test]
async fn requests_sent_in_one_go_are_answered_in_order() {
    let server = listen(quick()).await;
    let mut stream = server.connect().await;
    let three = [
        HEALTH,
        b"GET /nowhere HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    ];
    stream.write_all(&three.concat()).await.unwrap();
    let answers = read_to_end(&mut stream).await;
    let statuses: Vec<&str> = answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    assert_eq!(statuses, ["200", "404", "200"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_idle_connections_and_slow_heads_do_not_hurt_others() {
    let server = listen(Limits { idle: Duration::from_secs(60), ..quick() }).await;
    let mut crowd = Vec::new();
    for n in 0..1_000 {
        let mut stream = server.connect().await;
        if n % 2 == 0 {
            stream.write_all(b"GET /heal").await.unwrap();
        }
        crowd.push(stream);
    }
    let mut times = Vec::new();
    let mut stream = server.connect().await;
    for _ in 0..200 {
        let began = Instant::now();
        assert_eq!(status(&health(&mut stream).await), "200");
        times.push(began.elapsed());
    }
    times.sort();
    assert!(times[197] < Duration::from_millis(100), "p99 {:?}", times[197]);
}

#[tokio::test]
async fn over_the_cap_connections_are_told_and_closed_and_places_come_back() {
    let server = listen(Limits { connections: 2, ..quick() }).await;
    let mut first = server.connect().await;
    let mut second = server.connect().await;
    assert_eq!((status(&health(&mut first).await), status(&health(&mut second).await)), ("200", "200"));
    let answer = server.exchange(HEALTH).await;
    assert_eq!(status(&answer), "503", "{answer}");
    assert!(answer.to_lowercase().contains("retry-after") && answer.contains("connection: close"));
    drop(first);
    let answered = async || (status(&server.exchange(HEALTH_ONCE).await) == "200").then_some(());
    eventually("the place comes back", answered).await;
}

#[tokio::test]
async fn stopping_answers_those_who_wait_and_closes_those_who_do_not() {
    let server = listen(quick()).await;
    let body = json!({"worker": "w", "wait_ms": 30_000}).to_string();
    let mut waiting = server.connect().await;
    let claim = post("/api/v1/leases/claim", Role::Worker, body.len()) + &body;
    waiting.write_all(claim.as_bytes()).await.unwrap();
    let mut idle = server.connect().await;
    health(&mut idle).await;
    let mut unused = server.connect().await;
    let default = windlass_core::Namespace::default();
    eventually("the claim waits", async || (server.server.engine.waiting(&default) > 0).then_some(())).await;
    let began = Instant::now();
    server.server.app.drain.cancel();
    let answer = read_to_end(&mut waiting).await;
    assert!(status(&answer) == "200" && answer.contains(r#"{"leases":[]}"#), "{answer}");
    assert_eq!((read_to_end(&mut idle).await, read_to_end(&mut unused).await), (String::new(), String::new()));
    server.task.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(TcpStream::connect(server.address).await.is_err(), "nobody new is let in");
}

#[tokio::test]
async fn health_is_told_to_everybody_and_figures_to_viewers() {
    let server = listen(quick()).await;
    let get = |path: &str, token: &str| {
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: {token}\r\n\r\n")
    };
    for path in ["/healthz", "/readyz", "/health"] {
        assert_eq!(status(&server.exchange(get(path, "none").as_bytes()).await), "200", "{path}");
    }
    let health = server.exchange(get("/health", "none").as_bytes()).await;
    assert!(health.contains(r#"{"status":"ok","mode":"normal","healthy":true}"#), "{health}");
    assert_eq!(status(&server.exchange(get("/metrics", "none").as_bytes()).await), "401");
    let bearer = format!("Bearer {}", token(Role::Viewer));
    server.server.post("/api/v1/jobs", json!({})).await.expect(201);
    let figures = server.exchange(get("/metrics", &bearer).as_bytes()).await;
    for line in [
        r#"windlass_http_requests_total{method="POST",route="/api/v1/jobs",status="201"} 1"#,
        r#"windlass_jobs{state="pending"} 1"#,
        "windlass_http_connections 1",
        "windlass_engine_commands_total ",
        "windlass_http_request_seconds_bucket",
    ] {
        assert!(figures.contains(line), "{line}\n{figures}");
    }
}

/// With nothing but this.
async fn listen_on(route: Route) -> Listening {
    let server = Server::start().await;
    let service = windlass_server::Service::of(server.app.clone(), &[route]);
    listen_with(server, service, quick()).await
}

#[tokio::test]
async fn event_streams_end_when_the_server_stops() {
    let waiting = || async {
        let begun = stream::iter([Ok::<_, std::io::Error>("data: 1\n\n")]);
        let body = Body::from_stream(stream::select(begun, stream::pending()));
        ([("content-type", "text/event-stream")], body)
    };
    let server = listen_on(Route::get("/", Access::Open, waiting)).await;
    let mut reader = server.connect().await;
    reader.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut all = String::new();
    while !all.contains("data: 1") {
        let mut piece = [0; 4_096];
        let count = reader.read(&mut piece).await.unwrap();
        all += std::str::from_utf8(&piece[..count]).unwrap();
    }
    let began = Instant::now();
    server.server.app.drain.cancel();
    all += &read_to_end(&mut reader).await;
    assert!(all.contains("data: 1") && all.ends_with("0\r\n\r\n"), "ended as a whole answer: {all}");
    server.task.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off() {
    struct Told(Option<tokio::sync::oneshot::Sender<()>>);
    impl Drop for Told {
        fn drop(&mut self) {
            // Whoever listened may be gone.
            let _ = self.0.take().map(|told| told.send(()));
        }
    }
    let (told, over) = tokio::sync::oneshot::channel();
    let told = std::sync::Mutex::new(Some(Told(Some(told))));
    let told = std::sync::Arc::new(told);
    let endless = move || {
        let told = told.lock().unwrap().take();
        async move {
            let piece = |told: Option<Told>| async { Some((Ok::<_, std::io::Error>(vec![b'x'; 65_536]), told)) };
            Body::from_stream(Box::pin(stream::unfold(told, piece)))
        }
    };
    let server = listen_on(Route::get("/", Access::Open, endless)).await;
    let mut deaf = server.connect().await;
    deaf.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    tokio::time::timeout(Duration::from_secs(5), over).await.expect("cut off in time").unwrap();
}

#[tokio::test]
async fn who_needs_no_token_and_who_may_send_it_as_a_password() {
    let server = listen(quick()).await;
    let get = async |path: &str, more: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{more}\r\n");
        let answer = server.exchange(request.as_bytes()).await;
        status(&answer).to_owned()
    };
    // test:test-viewer
    let password = "authorization: Basic dGVzdDp0ZXN0LXZpZXdlcg==\r\n";
    for (path, more, expected) in [
        ("/api/workflows", "", "200"),
        ("/api/workflows", "x-forwarded-for: 10.0.0.9\r\n", "401"),
        ("/api/workflows", "via: 1.1 proxy\r\n", "401"),
        ("/api/workflows", "authorization: Bearer nonsense\r\n", "401"),
        ("/api/workflows", password, "200"),
        ("/~test-viewer/api/workflows", "x-forwarded-for: 10.0.0.9\r\n", "200"),
        ("/~test-viewer//api/workflows", "x-forwarded-for: 10.0.0.9\r\n", "200"),
        ("/~nonsense/api/workflows", "", "401"),
        ("/~/api/workflows", "", "401"),
        ("/~test-viewer/api/v1/jobs", "", "404"),
        ("/~test-viewer/metrics", "", "404"),
        ("//api/workflows", "", "200"),
        ("//api/v1/jobs", "", "404"),
        ("//api/workflows", "via: 1.1 proxy\r\n", "401"),
        ("/api/v1/jobs", "", "401"),
        ("/api/v1/jobs", password, "401"),
    ] {
        assert_eq!(get(path, more).await, expected, "{path} with {more:?}");
    }
}

#[tokio::test]
async fn a_heartbeat_needs_no_length_and_no_type_and_nothing_is_compressed() {
    let server = listen(quick()).await;
    // As workflow-graph's own worker sends it: no Content-Length, no Transfer-Encoding, no Content-Type.
    let beat =
        "POST /api/jobs/no-lease/heartbeat HTTP/1.1\r\nhost: localhost\r\naccept: */*\r\nconnection: close\r\n\r\n";
    let answer = server.exchange(beat.as_bytes()).await;
    assert_eq!(status(&answer), "409", "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "without a body: {answer}");
    let list =
        "GET /api/workflows HTTP/1.1\r\nhost: localhost\r\naccept-encoding: gzip, br\r\nconnection: close\r\n\r\n";
    let answer = server.exchange(list.as_bytes()).await.to_ascii_lowercase();
    assert!(answer.contains("content-type: application/json") && !answer.contains("content-encoding"), "{answer}");
    let limits = windlass_server::listener::Limits::default();
    assert!(limits.idle >= std::time::Duration::from_secs(120), "its pool keeps connections for 90 s");
}

/// Times that nothing here should run into, however slow the machine is.
fn patient() -> Limits {
    let long = Duration::from_secs(60);
    Limits { head: long, body: long, idle: long, write: long, ..quick() }
}

/// A head, and later its body: what many clients send.
fn head(line: &str, role: Role, length: usize) -> String {
    let token = token(role);
    format!("{line} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-length: {length}\r\n\r\n")
}

#[tokio::test]
async fn a_refusal_before_the_body_came_keeps_the_connection_or_says_that_it_closes() {
    let server = listen(patient()).await;
    let foreign = head("POST /api/v1/jobs", Role::Editor, 4).replace("host: localhost", "host: elsewhere.example");
    let no_token = head("POST /api/v1/jobs", Role::Editor, 4).replace("Bearer test-", "Bearer wrong-");
    let by_page =
        head("POST /api/v1/jobs", Role::Editor, 4).replace("content-", "origin: http://evil.example\r\ncontent-");
    for (request, expected) in [
        (no_token.clone(), "401"),
        (head("POST /api/v1/jobs", Role::Viewer, 4), "403"),
        (by_page, "403"),
        (foreign, "421"),
        (head("POST /api/v1/nothing", Role::Editor, 4), "404"),
        (head("POST /nothing/at/all", Role::Editor, 4), "404"),
        (head("PATCH /api/v1/jobs", Role::Editor, 4), "405"),
        (head("POST /api/v1/artifacts?name=a", Role::Viewer, 4), "403"),
        (head("POST /api/v1/artifacts?name=", Role::Editor, 4), "422"),
        // Nobody wants the body of these.
        (head("GET /healthz", Role::Viewer, 4), "200"),
        (head("GET /api/v1/jobs", Role::Viewer, 4), "200"),
        // workflow-graph
        (head("POST /api/workflows", Role::Viewer, 4), "403"),
        (head("POST /api/workflows", Role::Editor, 4), "415"),
        (head("POST /api/jobs/no-lease/complete", Role::Worker, 4), "415"),
        // Silo
        (head("POST /api/items", Role::Viewer, 4), "403"),
        (head("POST /api/items", Role::Worker, 4), "401"),
        (head("POST /api/none/such", Role::Editor, 4), "404"),
    ] {
        let mut stream = server.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = read_answer(&mut stream).await;
        assert_eq!(status(&answer), expected, "{request}{answer}");
        assert!(!answer.contains("connection: close"), "a few bytes are read away: {answer}");
        stream.write_all(b"1234").await.unwrap();
        let next = health(&mut stream).await;
        assert_eq!(status(&next), "200", "after {request}: {next}");
        // Later requests are not mistaken for what was left of the first.
        assert_eq!(status(&health(&mut stream).await), "200");
    }
    // Too much to be read away: the answer says so.
    for (request, expected) in [
        (head("POST /api/v1/jobs", Role::Editor, 1 << 30), "413"),
        (head("POST /api/v1/jobs", Role::Viewer, 1 << 20), "403"),
        (no_token.replace("content-length: 4", "transfer-encoding: chunked"), "401"),
        (no_token.replace("content-length", "expect: 100-continue\r\ncontent-length"), "401"),
    ] {
        let mut stream = server.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = read_to_end(&mut stream).await;
        assert_eq!(status(&answer), expected, "{request}{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "and nothing is said beside it: {answer}");
    }
}

#[tokio::test]
async fn a_request_that_waits_outlives_what_was_left_of_the_one_before() {
    // The rest of a refused body ends after the next request began: that must not make the connection idle.
    let server = listen(Limits { idle: Duration::from_secs(3), ..patient() }).await;
    let mut stream = server.connect().await;
    stream.write_all(head("POST /api/v1/jobs", Role::Viewer, 4).as_bytes()).await.unwrap();
    assert_eq!(status(&read_answer(&mut stream).await), "403");
    let body = json!({"worker": "w", "wait_ms": 5_000}).to_string();
    let claim = format!("1234{}{body}", post("/api/v1/leases/claim", Role::Worker, body.len()));
    stream.write_all(claim.as_bytes()).await.unwrap();
    let answer = read_answer(&mut stream).await;
    assert!(status(&answer) == "200" && answer.contains("leases"), "{answer}");
}

#[tokio::test]
async fn bodies_on_their_way_have_a_bound_in_all_and_a_share_for_each_principal() {
    let bodies = windlass_server::room::Limits { total: 1 << 20, share: 600 << 10 };
    let server = Server::with(windlass_server::Options { bodies, ..Default::default() }).await;
    let service = windlass_server::Service::new(server.app.clone());
    let server = listen_with(server, service, patient()).await;
    let taken = async |bytes: u64| {
        let taken = async || (server.server.app.rooms.taken() == bytes).then_some(());
        eventually(format!("{bytes} bytes are taken"), taken).await;
    };
    let large = |role: Role| post("/api/v1/jobs", role, 400 << 10);
    let mut first = server.connect().await;
    first.write_all(large(Role::Editor).as_bytes()).await.unwrap();
    taken(400 << 10).await;
    let answer = server.exchange(large(Role::Editor).as_bytes()).await;
    assert_eq!(status(&answer), "429", "{answer}");
    assert!(answer.contains("bodies_per_principal_max") && answer.contains("retry-after: "), "{answer}");
    // One that does not say how long it is gets as far as there is room.
    let chunk = format!("{:x}\r\n{}\r\n", 300 << 10, "x".repeat(300 << 10));
    let head = post("/api/v1/jobs", Role::Editor, 0).replace("content-length: 0", "transfer-encoding: chunked");
    let answer = server.exchange((head + &chunk + "0\r\n\r\n").as_bytes()).await;
    assert_eq!(status(&answer), "429", "{answer}");
    let mut second = server.connect().await;
    second.write_all(large(Role::Admin).as_bytes()).await.unwrap();
    taken(800 << 10).await;
    let worker = post("/api/v1/leases/batch", Role::Worker, 400 << 10);
    let answer = server.exchange(worker.as_bytes()).await;
    assert_eq!(status(&answer), "503", "{answer}");
    assert!(answer.contains("bodies_max") && answer.contains("retry-after: "), "{answer}");
    // Others are served, small bodies among them.
    let small = json!({"payload": 1}).to_string();
    let submit = post("/api/v1/jobs", Role::Editor, small.len()) + &small;
    let mut stream = server.connect().await;
    stream.write_all(submit.as_bytes()).await.unwrap();
    let answer = read_answer(&mut stream).await;
    assert_eq!(status(&answer), "201", "{answer}");
    // What is answered or given up makes room.
    drop(second);
    taken(400 << 10).await;
    first.write_all(&vec![b' '; 400 << 10]).await.unwrap();
    assert_eq!(status(&read_answer(&mut first).await), "400");
    taken(0).await;
}

#[tokio::test]
async fn a_request_with_two_names_for_the_server_is_refused() {
    let server = listen(quick()).await;
    for hosts in ["host: localhost\r\nhost: localhost", "host: localhost\r\nHost: elsewhere.example"] {
        let request = format!("GET /api/workflows HTTP/1.1\r\n{hosts}\r\nconnection: close\r\n\r\n");
        let answer = server.exchange(request.as_bytes()).await;
        assert_eq!(status(&answer), "400", "{answer}");
        assert!(answer.contains("more than one Host header"), "{answer}");
    }
}
