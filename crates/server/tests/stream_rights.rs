//! Streams end with the rights they were opened with, and with nothing else; so do claims that wait.

use crate::support::Server;
use axum::body::Body;
use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::time::Duration;
use tower::ServiceExt;
use windlass_core::Millis;
use windlass_server::{App, Options, Service};

const ADMIN: &str = "test-admin";
/// For a machine that stalls.
const PATIENCE: Duration = Duration::from_secs(60);
/// One of each surface that has streams.
const STREAMS: [&str; 4] =
    ["/api/v1/events", "/api/v1/jobs/{job}/logs/stream", "/api/events", "/api/workflows/none/jobs/a/logs/stream"];

fn request(token: &str, method: Method, path: &str, body: &Value) -> Request<Body> {
    let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost");
    let request = request.header(header::CONTENT_TYPE, "application/json");
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    request.header(header::AUTHORIZATION, format!("Bearer {token}")).body(body).unwrap()
}

/// Servers on one store, as several are on one database.
struct World {
    server: Server,
    other: Service,
    job: String,
}

impl World {
    async fn start() -> Self {
        let server = Server::start().await;
        let other = Service::new(App::new(server.engine.clone(), Options::default()));
        let job = server.post("/api/v1/jobs", json!({})).await.expect(201);
        let job = job["id"].as_str().unwrap().to_owned();
        Self { server, other, job }
    }

    /// A token and its id.
    async fn make(&self, by: &str, body: Value) -> (String, String) {
        let made = self.server.call(request(by, Method::POST, "/api/v1/tokens", &body)).await.expect(201);
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        (text("token"), text("id"))
    }

    async fn open(&self, token: &str, path: &str, on_other: bool) -> Stream {
        let request = request(token, Method::GET, &path.replace("{job}", &self.job), &Value::Null);
        let response =
            if on_other { self.other.clone().oneshot(request).await.unwrap() } else { self.server.open(request).await };
        assert_eq!(response.status(), 200, "{path}");
        Stream { body: response.into_body(), path: path.to_owned() }
    }

    async fn open_all(&self, token: &str, on_other: bool) -> Vec<Stream> {
        let mut open = Vec::new();
        for path in STREAMS {
            open.push(self.open(token, path, on_other).await);
        }
        open
    }
}

struct Stream {
    body: Body,
    path: String,
}

impl Stream {
    /// Reads until it is over.
    async fn ends(mut self) {
        let over = async { while self.body.frame().await.is_some() {} };
        tokio::time::timeout(PATIENCE, over).await.unwrap_or_else(|_| panic!("{} goes on", self.path));
    }

    /// What was said so far, if nobody ended it.
    fn goes_on(&mut self) {
        use futures_util::FutureExt;
        loop {
            match self.body.frame().now_or_never() {
                Some(Some(frame)) => drop(frame.unwrap()),
                Some(None) => panic!("{} was ended", self.path),
                None => return,
            }
        }
    }
}

#[tokio::test]
async fn ending_a_token_ends_its_streams_and_those_of_what_it_made_on_every_surface_and_no_others() {
    for on_other in [false, true] {
        let world = World::start().await;
        let (deputy, id) = world.make(ADMIN, json!({"principal": "deputy", "role": "admin"})).await;
        let (child, _) = world.make(&deputy, json!({"principal": "child", "role": "viewer"})).await;
        let (again, _) = world.make(ADMIN, json!({"principal": "deputy", "role": "admin"})).await;
        let (bystander, _) = world.make(ADMIN, json!({"principal": "bystander", "role": "viewer"})).await;
        let mut stay = Vec::new();
        for token in [&again, &bystander] {
            stay.extend(world.open_all(token, on_other).await);
        }
        let mut go = world.open_all(&deputy, on_other).await;
        go.extend(world.open_all(&child, on_other).await);
        world.server.delete(&format!("/api/v1/tokens/{id}")).await.expect(204);
        for stream in go {
            stream.ends().await;
        }
        stay.iter_mut().for_each(Stream::goes_on);
    }
}

#[tokio::test]
async fn a_stream_ends_when_its_token_runs_out_or_its_principal_may_less() {
    let world = World::start().await;
    let viewer = |name: &str| json!({"principal": name, "role": "viewer"});
    let short = json!({"principal": "short", "role": "viewer", "expires_ms": 2_000});
    let (short, _) = world.make(ADMIN, short).await;
    let (changed, _) = world.make(ADMIN, viewer("changed")).await;
    let (disabled, _) = world.make(ADMIN, viewer("disabled")).await;
    let (bystander, _) = world.make(ADMIN, viewer("bystander")).await;
    let mut stays = world.open(&bystander, STREAMS[0], false).await;
    let mut open = Vec::new();
    for token in [&short, &changed, &disabled] {
        open.push(world.open(token, STREAMS[0], false).await);
    }
    world.server.put("/api/v1/principals/changed", json!({"namespaces": ["mine"]})).await.expect(200);
    world.server.delete("/api/v1/principals/disabled").await.expect(204);
    world.server.pass(Millis(2_001)).await;
    for stream in open {
        stream.ends().await;
    }
    stays.goes_on();
}

#[tokio::test]
async fn a_claim_that_waits_gets_nothing_once_its_token_has_ended() {
    for path in ["/api/v1/leases/claim", "/api/jobs/claim"] {
        let world = World::start().await;
        let native = path.starts_with("/api/v1");
        let (worker, id) = world.make(ADMIN, json!({"principal": "farm", "role": "worker"})).await;
        let tags = json!(["later"]);
        // What was there before.
        world.server.work("/api/v1/leases/claim", json!({"worker": "first"})).await.expect(200);
        let body = |name: &str| match native {
            true => json!({"worker": name, "tags": tags, "wait_ms": 60_000}),
            false => json!({"worker_id": name, "labels": tags, "lease_ttl_secs": 30}),
        };
        let ask = || world.server.call(request(&worker, Method::POST, path, &body("w")));
        let submit = async {
            tokio::time::sleep(Duration::from_millis(1_500)).await; // Longer than a token is remembered.
            world.server.delete(&format!("/api/v1/tokens/{id}")).await.expect(204);
            if native {
                world.server.post("/api/v1/jobs", json!({"tags": tags})).await.expect(201);
                return;
            }
            let job = json!({"id": "a", "name": "a", "status": "queued", "command": "true", "depends_on": [],
                "required_labels": tags});
            let workflow = json!({"name": "w", "trigger": "manual", "jobs": [job]});
            let made = world.server.call(request(ADMIN, Method::POST, "/api/workflows", &workflow)).await.expect(201);
            let run = format!("/api/workflows/{}/run", made["id"].as_str().unwrap());
            world.server.call(request(ADMIN, Method::POST, &run, &Value::Null)).await.expect(202);
        };
        let (answer, ()) = tokio::join!(ask(), submit);
        // On a machine that stalls the shorter wait may be over first.
        let refused = answer.status == StatusCode::UNAUTHORIZED || (!native && answer.body == b"null");
        assert!(refused, "{} {}", answer.status, String::from_utf8_lossy(&answer.body));
        let (next, _) = world.make(ADMIN, json!({"principal": "other", "role": "worker"})).await;
        let found = world.server.call(request(&next, Method::POST, path, &body("other"))).await.expect(200);
        assert!(found["leases"][0]["job"].is_string() || found["job"].is_object(), "nobody else holds it: {found}");
    }
}

#[tokio::test]
async fn a_wait_for_an_end_or_for_lines_ends_with_its_token_and_tells_nothing() {
    for on_other in [false, true] {
        let world = World::start().await;
        let (stays, _) = world.make(ADMIN, json!({"principal": "stays", "role": "viewer"})).await;
        let source = json!({"source": "steps: {a: {tags: [none]}}"});
        let run = world.server.post("/api/v1/runs", source).await.expect(201);
        for path in [
            format!("/api/v1/jobs/{}/wait?wait_ms=60000", world.job),
            format!("/api/v1/jobs/{}/logs?wait_ms=60000", world.job),
            format!("/api/v1/runs/{}/wait?wait_ms=60000", run["id"].as_str().unwrap()),
        ] {
            let (reader, id) = world.make(ADMIN, json!({"principal": "reader", "role": "viewer"})).await;
            let ask = async |token: &str, path: &str| {
                let request = request(token, Method::GET, path, &Value::Null);
                let service = if on_other { world.other.clone() } else { world.server.service() };
                service.oneshot(request).await.unwrap().status()
            };
            for token in [&reader, &stays] {
                // From here on the server remembers it, so that it waits as soon as it is asked.
                assert_eq!(ask(token, "/api/v1/jobs").await, 200);
            }
            let waits = async {
                tokio::select! {
                    status = ask(&reader, &path) => assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}"),
                    status = ask(&stays, &path) => panic!("{path}: {status} for the one that stays"),
                }
            };
            let end = async { world.server.delete(&format!("/api/v1/tokens/{id}")).await.expect(204) };
            let both = async { tokio::join!(waits, end) };
            tokio::time::timeout(PATIENCE, both).await.expect("it ends in time");
        }
    }
}
