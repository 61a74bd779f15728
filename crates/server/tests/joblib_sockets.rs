//! Socket.IO: who is let in, what is told to whom, and what becomes of a worker whose socket is gone.

use crate::socket::{Listening, listen, listen_with, quick, read_answer};
use crate::socketio::{Client, Got};
use crate::support::{Server, token};
use axum::body::Body;
use http::{Method, Request, StatusCode, header};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use windlass_core::{Millis, principal::Role};
use windlass_engine::testing::eventually;
use windlass_server::Service;

const JOB: &str = "@global:modifiers:Rotate";
const ROTATE: &str = r#"{"category": "modifiers", "name": "Rotate", "schema_": {"type": "object"}}"#;

fn admin() -> String {
    token(Role::Admin)
}

async fn call(server: &Listening, role: Role, method: Method, path: &str, body: &str) -> (StatusCode, Value) {
    let request = Server::request(role, method, path).header(header::CONTENT_TYPE, "application/json");
    let answer = server.server.call(request.body(Body::from(body.to_owned())).unwrap()).await;
    (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
}

/// A worker with the one extension.
async fn register(server: &Listening) -> String {
    let (status, job) = call(server, Role::Admin, Method::PUT, "/v1/joblib/rooms/@global/jobs", ROTATE).await;
    assert!(status.is_success(), "{job}");
    job["worker_id"].as_str().unwrap().to_owned()
}

async fn submit(server: &Listening) -> String {
    let path = format!("/v1/joblib/rooms/room1/tasks/{JOB}");
    let (status, task) = call(server, Role::Admin, Method::POST, &path, r#"{"payload": {}}"#).await;
    assert_eq!(status, 202, "{task}");
    task["id"].as_str().unwrap().to_owned()
}

async fn is_there(server: &Listening, worker: &str) -> bool {
    let (_, page) = call(server, Role::Admin, Method::GET, "/v1/joblib/workers?limit=500", "").await;
    page["items"].as_array().unwrap().iter().any(|one| one["id"] == worker)
}

/// A client in the room of the job, for this worker.
async fn serving(server: &Listening, token: &str, worker: &str) -> Client {
    let mut client = Client::connect(server, token).await;
    client.emit("join_job_room", json!({"job_name": JOB, "worker_id": worker})).await;
    client.is_heard().await;
    client
}

#[tokio::test]
async fn only_who_says_who_they_are_is_let_in() {
    let server = listen(quick()).await;
    for (auth, expected) in [
        (json!({}), "No authentication token"),
        (json!({"token": ""}), "No authentication token"),
        (json!({"token": 7}), "No authentication token"),
        (json!("text"), "No authentication token"),
        (json!({"token": "eyJ.eyJ.x"}), "Invalid token"),
        (json!({"token": "wl_nothing"}), "Invalid token"),
    ] {
        let answer = Client::open(&server).await.introduce(auth.clone()).await;
        assert_eq!(answer, format!("44{}", json!({ "message": expected })), "{auth}");
    }
    let mut client = Client::connect(&server, &admin()).await;
    assert_eq!(client.ask("room_join", json!({"room_id": "r1"})).await["room_id"], "r1");
    assert_eq!(client.ask("room_leave", json!({"room_id": "r1"})).await, json!({"room_id": "r1"}));
}

/// A call of the transport that polls: status and body.
async fn polled(server: &Listening, method: &str, query: &str, body: &str) -> (String, String) {
    let mut stream = server.connect().await;
    let length = body.len();
    let request = format!(
        "{method} /socket.io/?EIO=4&transport=polling{query} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let answer = read_answer(&mut stream).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().to_owned(), body.to_owned())
}

#[tokio::test]
async fn a_poll_is_answered_at_once_when_its_worker_leaves() {
    let server = listen(quick()).await;
    let worker = register(&server).await;
    let (_, open) = polled(&server, "GET", "", "").await;
    let open: Value = serde_json::from_str(open.strip_prefix('0').unwrap()).unwrap();
    let sid = format!("&sid={}", open["sid"].as_str().unwrap());
    polled(&server, "POST", &sid, &format!("40{}", json!({"token": admin()}))).await;
    while !polled(&server, "GET", &sid, "").await.1.contains(r#"40{"sid":"#) {}
    let room = json!({"job_name": JOB, "worker_id": worker});
    polled(&server, "POST", &sid, &format!("42{}", json!(["join_job_room", room]))).await;
    let leave = format!("42{}", json!(["leave_job_room", room]));
    // The client's next poll is on its way when it says so; a ping would end it after 25 s only.
    let leaves = async { tokio::join!(polled(&server, "GET", &sid, ""), polled(&server, "POST", &sid, &leave)) };
    let quickly = Duration::from_secs(10);
    let ((status, noop), _) = tokio::time::timeout(quickly, leaves).await.expect("the poll waits for a ping");
    assert_eq!((status.as_str(), noop.as_str()), ("200", "6"));
    let again = tokio::time::timeout(quickly, polled(&server, "GET", &sid, "")).await;
    assert_eq!(again.expect("the next poll waits for a ping").1, "6");
}

#[tokio::test]
async fn polling_works_as_clients_expect_it() {
    let server = listen(quick()).await;
    let ask = async |method: &str, query: &str, body: &str| polled(&server, method, query, body).await;
    let (status, open) = ask("GET", "", "").await;
    assert_eq!(status, "200");
    let open: Value = serde_json::from_str(open.strip_prefix('0').unwrap()).unwrap();
    let sid = format!("&sid={}", open["sid"].as_str().unwrap());
    assert_eq!(open["upgrades"], json!(["websocket"]));
    assert_eq!((&open["pingInterval"], &open["pingTimeout"]), (&json!(25_000), &json!(20_000)));
    assert_eq!(open["maxPayload"], 1_000_000);
    let (_, ok) = ask("POST", &sid, &format!("40{}", json!({"token": admin()}))).await;
    assert_eq!(ok, "ok");
    // A ping may come first.
    while !ask("GET", &sid, "").await.1.contains(r#"40{"sid":"#) {}
    ask(
        "POST",
        &sid,
        &format!("421{}\u{1e}422{}", json!(["room_join", {"room_id": "a"}]), json!(["room_leave", {"room_id": "a"}])),
    )
    .await;
    let (_, both) = ask("GET", &sid, "").await;
    assert!(both.contains("431[{") && both.contains("\u{1e}432[{"), "{both}");
    assert_eq!(ask("POST", "&sid=unknown", "2").await.0, "400");
    assert_eq!(ask("POST", &sid, &"x".repeat(1_000_001)).await.0, "413");
}

#[tokio::test]
async fn a_task_is_told_to_its_workers_and_its_status_to_its_room() {
    let server = listen(quick()).await;
    let worker = register(&server).await;
    let mut serving = serving(&server, &admin(), &worker).await;
    let mut other = Client::connect(&server, &admin()).await;
    other.emit("join_job_room", json!({"job_name": "@global:modifiers:Other", "worker_id": worker})).await;
    other.is_heard().await;
    let mut watcher = Client::connect(&server, &admin()).await;
    watcher.ask("room_join", json!({"room_id": "room1"})).await;
    let task = submit(&server).await;
    let available = serving.next_of("task_available").await;
    assert_eq!(available, json!({"job_name": JOB, "room_id": "room1", "task_id": task}));
    let claim = json!({ "worker_id": worker }).to_string();
    call(&server, Role::Admin, Method::POST, "/v1/joblib/tasks/claim", &claim).await;
    let path = format!("/v1/joblib/tasks/{task}");
    for body in [r#"{"status": "running"}"#, r#"{"status": "failed", "error": "ouch"}"#] {
        assert_eq!(call(&server, Role::Admin, Method::PATCH, &path, body).await.0, 200);
    }
    let mut told = Vec::new();
    while told.len() < 4 {
        told.push(watcher.next_of("task_status_event").await);
    }
    let of = |key: &str| told.iter().map(|event| event[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("status"), ["pending", "claimed", "running", "failed"]);
    assert_eq!(of("queue_position"), [json!(1), json!(null), json!(null), json!(null)]);
    assert_eq!(of("worker_id"), [json!(null), json!(worker), json!(worker), json!(worker)]);
    assert_eq!(of("error"), [json!(null), json!(null), json!(null), json!("ouch")]);
    assert_eq!(of("name"), [JOB; 4]);
    assert!(of("started_at")[..2] == [json!(null), json!(null)] && told[2]["started_at"].is_string());
    assert_eq!(other.events_until_quiet().await, [], "another job's worker hears nothing");
}

#[tokio::test]
async fn stale_lists_are_told_once_for_each_change() {
    let server = listen(quick()).await;
    let worker = register(&server).await;
    for at in 0..100 {
        let body = json!({"category": "modifiers", "name": format!("E{at}"), "worker_id": worker}).to_string();
        let (status, _) = call(&server, Role::Admin, Method::PUT, "/v1/joblib/rooms/r1/jobs", &body).await;
        assert_eq!(status, 201);
    }
    let mut watcher = Client::connect(&server, &admin()).await;
    watcher.ask("room_join", json!({"room_id": "r1"})).await;
    let path = format!("/v1/joblib/workers/{worker}");
    assert_eq!(call(&server, Role::Admin, Method::DELETE, &path, "").await.0, 204);
    let told = watcher.events_until_quiet().await;
    let expected = ["jobs_invalidate"; 2].map(|name| (name.to_owned(), json!({})));
    assert_eq!(told, expected, "once in r1, and once in @global");
}

#[tokio::test]
async fn a_worker_whose_last_socket_is_gone_is_doubted_and_removed() {
    let server = listen(quick()).await;
    let worker = register(&server).await;
    let (first, second) = (serving(&server, &admin(), &worker).await, serving(&server, &admin(), &worker).await);
    drop(first);
    server.server.pass(Millis(20_000)).await;
    assert!(is_there(&server, &worker).await, "it has another socket");
    drop(second);
    let gone = async || {
        server.server.pass(Millis(1_000)).await;
        (!is_there(&server, &worker).await).then_some(())
    };
    // Twenty seconds after the first pass: well before its heartbeats are missed at sixty, if it takes a few looks.
    eventually("the worker is removed", gone).await;
}

#[tokio::test]
async fn a_socket_that_comes_back_and_any_call_lift_the_doubt() {
    let server = listen(quick()).await;
    let worker = register(&server).await;
    let client = serving(&server, &admin(), &worker).await;
    drop(client);
    doubted(&server, &worker).await;
    let client = serving(&server, &admin(), &worker).await;
    trusted(&server, &worker).await;
    server.server.pass(Millis(20_000)).await;
    assert!(is_there(&server, &worker).await);
    drop(client);
    doubted(&server, &worker).await;
    let claim = json!({ "worker_id": worker }).to_string();
    call(&server, Role::Admin, Method::POST, "/v1/joblib/tasks/claim", &claim).await;
    server.server.pass(Millis(20_000)).await;
    assert!(is_there(&server, &worker).await);
}

async fn doubt_of(server: &Listening, worker: &str) -> Option<windlass_core::Timestamp> {
    let namespace = windlass_core::Namespace::new("joblib").unwrap();
    let read = server.server.engine.read_record::<windlass_core::worker::Worker>(&namespace, worker).await.unwrap();
    read.expect("it is there").doubt_until
}

async fn doubted(server: &Listening, worker: &str) {
    eventually("it is doubted", async || doubt_of(server, worker).await.map(drop)).await;
}

async fn trusted(server: &Listening, worker: &str) {
    eventually("it is trusted", async || doubt_of(server, worker).await.is_none().then_some(())).await;
}

#[tokio::test]
async fn others_and_those_who_leave_bring_no_doubt_on_a_worker() {
    let server = listen(quick()).await;
    let worker = register(&server).await;
    let mine = serving(&server, &admin(), &worker).await;
    let mut foreign = serving(&server, &token(Role::Editor), &worker).await;
    submit(&server).await;
    foreign.next_of("task_available").await;
    drop(foreign);
    let mut leaving = serving(&server, &admin(), &worker).await;
    leaving.emit("leave_job_room", json!({"job_name": JOB, "worker_id": worker})).await;
    leaving.is_heard().await;
    drop((mine, leaving));
    // The last one that did not leave: from its end on it is doubted, and only then.
    doubted(&server, &worker).await;
    let worker = register(&server).await;
    let mut leaving = serving(&server, &admin(), &worker).await;
    leaving.emit("leave_job_room", json!({"job_name": JOB, "worker_id": worker})).await;
    leaving.is_heard().await;
    let foreign = serving(&server, &token(Role::Editor), &worker).await;
    drop((leaving, foreign));
    let open = || server.server.app.metrics.open_connections();
    eventually("they are gone", async || (open() == 0).then_some(())).await;
    assert_eq!(doubt_of(&server, &worker).await, None);
}

#[tokio::test]
async fn the_end_of_the_server_closes_sockets_and_doubts_nobody() {
    let server = listen(quick()).await;
    let worker = register(&server).await;
    let mut client = serving(&server, &admin(), &worker).await;
    let mut silent = Client::open(&server).await;
    server.server.app.drain.cancel();
    loop {
        match client.packet().await {
            Got::Text(_) => {}
            other => break assert_eq!(other, Got::Close),
        }
    }
    assert!(matches!(silent.packet().await, Got::Close | Got::End), "also where nobody said who it was");
    server.task.await.unwrap();
    let namespace = windlass_core::Namespace::new("joblib").unwrap();
    let read = server.server.engine.read_record::<windlass_core::worker::Worker>(&namespace, &worker).await.unwrap();
    assert_eq!(read.unwrap().doubt_until, None);
}

#[tokio::test]
async fn garbage_ends_its_session_or_is_overlooked_and_nobody_else_notices() {
    let server = listen(quick()).await;
    let worker = register(&server).await;
    let mut bystander = serving(&server, &admin(), &worker).await;
    for garbage in [
        "",
        "9",
        "4",
        "42",
        "42[",
        "42{}",
        "4[]",
        "42[1,2]",
        "451-[\"x\",{\"_placeholder\":true,\"num\":0}]",
        "6",
        "0{}",
        "40junk",
        "4\u{0}",
        "41",
        "5",
    ] {
        let mut client = Client::connect(&server, &admin()).await;
        client.send(garbage).await;
        client.send_bytes(&[0, 1, 2, 255]).await;
        client.send("1").await;
        while let Got::Text(_) = client.packet().await {}
    }
    let mut deep = Client::connect(&server, &admin()).await;
    let nest = format!("42[\"room_join\",{}{}]", "[".repeat(200_000), "]".repeat(200_000));
    deep.send(nest).await;
    for (event, data) in [
        ("nobody_knows", json!({})),
        ("room_join", json!(null)),
        ("room_join", json!({"room_id": ["x"]})),
        ("join_job_room", json!({"worker_id": worker})),
        ("join_job_room", json!({"job_name": "x".repeat(10_000), "worker_id": worker})),
    ] {
        let mut client = Client::connect(&server, &admin()).await;
        client.emit(event, data).await;
        client.is_heard().await;
    }
    submit(&server).await;
    bystander.next_of("task_available").await;
}

#[tokio::test]
async fn a_message_that_is_too_large_ends_its_session() {
    let server = listen(quick()).await;
    let mut client = Client::connect(&server, &admin()).await;
    client.send("4".repeat(1_000_001)).await;
    assert!(matches!(client.packet().await, Got::Close | Got::End));
}

#[tokio::test]
async fn pages_of_other_origins_get_no_socket() {
    let server = Server::start().await;
    for (origin, expected) in [("http://evil.example", 403), ("http://127.0.0.1:3000", 200)] {
        let request = Request::get("/socket.io/?EIO=4&transport=polling").header(header::HOST, "127.0.0.1:3000");
        let answer = server.call(request.header(header::ORIGIN, origin).body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status, expected, "{origin}");
    }
}

/// Sessions that poll hold no connection, so there is a cap for them, and a lower one for those that have not said who they are.
#[tokio::test]
async fn sessions_are_counted_and_those_that_say_nothing_end() {
    const STRANGERS_MAX: usize = 1_000;
    let server = listen(quick()).await;
    let mut known = Client::connect(&server, &admin()).await;
    let open = async || {
        let request = Request::get("/socket.io/?EIO=4&transport=polling").header(header::HOST, "127.0.0.1:3000");
        server.server.call(request.body(Body::empty()).unwrap()).await.status
    };
    for _ in 0..STRANGERS_MAX {
        assert_eq!(open().await, 200);
    }
    assert_eq!(open().await, 503);
    assert_eq!(known.ask("room_join", json!({"room_id": "r1"})).await["room_id"], "r1");
    // Ten real seconds: the library's own timer.
    let ended = async || (open().await == 200).then_some(());
    eventually("those who did not say who they are make room", ended).await;
}

#[tokio::test]
async fn two_polls_of_one_session_at_once_end_it() {
    let server = Server::start().await;
    let listening = {
        let service = Service::new(server.app.clone());
        listen_with(server, service, quick()).await
    };
    let get = async |query: &str| {
        let mut stream = listening.connect().await;
        let request = format!("GET /socket.io/?EIO=4&transport=polling{query} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    };
    let mut stream = get("").await;
    let answer = read_answer(&mut stream).await;
    let (_, open) = answer.split_once("\r\n\r\n0").unwrap();
    let sid = serde_json::from_str::<Value>(open).unwrap()["sid"].as_str().unwrap().to_owned();
    let query = format!("&sid={sid}");
    // The ping that every session begins with, so that both of the next two wait.
    let mut ping = get(&query).await;
    assert!(read_answer(&mut ping).await.ends_with("\r\n\r\n2"));
    let (mut first, mut second) = (get(&query).await, get(&query).await);
    let answers = (read_answer(&mut first).await, read_answer(&mut second).await);
    assert!(answers.0.starts_with("HTTP/1.1 400") || answers.1.starts_with("HTTP/1.1 400"), "{answers:?}");
    let mut third = get(&query).await;
    assert!(read_answer(&mut third).await.starts_with("HTTP/1.1 400"), "the session is over");
}

/// Whether its socket ends, and with it what it is told.
async fn is_closed(client: &mut Client) -> bool {
    let ends = async {
        loop {
            match client.packet().await {
                Got::Text(text) if text.starts_with("41") => return,
                Got::Text(_) => {}
                Got::Close | Got::End => return,
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), ends).await.is_ok()
}

#[tokio::test]
async fn a_socket_ends_with_the_token_or_the_user_it_was_opened_with_and_others_go_on() {
    let server = listen(quick()).await;
    let call = async |token: &str, method: Method, path: &str, body: Value| {
        let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost");
        let request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        let request = request.header(header::CONTENT_TYPE, "application/json");
        server.server.call(request.body(Body::from(body.to_string())).unwrap()).await
    };
    let made = call(&admin(), Method::POST, "/api/v1/tokens", json!({"principal": "p", "role": "editor"})).await;
    let made = made.expect(201);
    let mut users = Vec::new();
    for name in ["a", "b", "c"] {
        let email = format!("{name}@example.org");
        let user = crate::joblib::register(&server.server, &email, "right").await;
        let bearer = crate::joblib::token(&server.server, &email, "right").await;
        users.push((Client::connect(&server, &bearer).await, format!("/users/{}", user["id"].as_str().unwrap())));
    }
    let mut of_token = Client::connect(&server, made["token"].as_str().unwrap()).await;
    let mut stays = Client::connect(&server, &admin()).await;
    let path = format!("/api/v1/tokens/{}", made["id"].as_str().unwrap());
    call(&admin(), Method::DELETE, &path, Value::Null).await.expect(204);
    call(&admin(), Method::PATCH, &users[0].1, json!({"is_active": false})).await.expect(200);
    call(&admin(), Method::PATCH, &users[1].1, json!({"password": "another"})).await.expect(200);
    call(&admin(), Method::DELETE, &users[2].1, Value::Null).await.expect(204);
    assert!(is_closed(&mut of_token).await, "the token was revoked");
    for (client, path) in &mut users {
        assert!(is_closed(client).await, "{path}");
    }
    stays.is_heard().await;
}
