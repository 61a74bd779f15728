//! Rooms, jobs, tasks and workers, as the client of the protocol uses them.

use crate::support::{Answer, Server};
use axum::body::Body;
use http::{Method, header};
use serde_json::{Value, json};
use windlass_core::{Millis, principal::Role};

const ADMIN: Role = Role::Admin;
const ANN: Role = Role::Editor;
const BOB: Role = Role::Worker;

async fn send(server: &Server, role: Role, method: Method, path: &str, body: Option<Value>) -> Answer {
    let request = Server::request(role, method, &format!("/v1/joblib{path}"));
    let request = match body {
        Some(body) => request.header(header::CONTENT_TYPE, "application/json").body(Body::from(body.to_string())),
        None => request.body(Body::empty()),
    };
    server.call(request.unwrap()).await
}

async fn get(server: &Server, path: &str) -> Value {
    send(server, ANN, Method::GET, path, None).await.expect(200)
}

/// As the client sends it: the schema under another name, the worker left out while it is unknown.
async fn serve(server: &Server, role: Role, room: &str, name: &str, worker: Option<&str>) -> Answer {
    let mut body = json!({"category": "modifiers", "name": name, "schema_": {"title": name, "n": 1}});
    if let Some(worker) = worker {
        body["worker_id"] = json!(worker);
    }
    send(server, role, Method::PUT, &format!("/rooms/{room}/jobs"), Some(body)).await
}

async fn submit(server: &Server, room: &str, job: &str, payload: Value) -> Answer {
    send(server, ANN, Method::POST, &format!("/rooms/{room}/tasks/{job}"), Some(json!({"payload": payload}))).await
}

async fn claim(server: &Server, role: Role, worker: &str) -> Value {
    let claimed = send(server, role, Method::POST, "/tasks/claim", Some(json!({"worker_id": worker}))).await;
    claimed.expect(200)["task"].clone()
}

async fn patch(server: &Server, role: Role, task: &str, body: Value) -> Answer {
    send(server, role, Method::PATCH, &format!("/tasks/{task}"), Some(body)).await
}

fn id(shown: &Value) -> &str {
    shown["id"].as_str().unwrap()
}

fn worker_of(shown: &Value) -> String {
    shown["worker_id"].as_str().unwrap().to_owned()
}

/// A problem document with exactly the type a client looks for.
#[track_caller]
fn problem(answer: Answer, status: u16, kind: &str, detail: &str) {
    let content = answer.headers[header::CONTENT_TYPE].to_str().unwrap().to_owned();
    let body = answer.expect(status);
    assert_eq!(content, "application/problem+json", "{body}");
    assert_eq!(body["type"], format!("/v1/problems/{kind}"));
    assert_eq!((&body["detail"], &body["status"]), (&json!(detail), &json!(status)));
    assert_eq!(body.as_object().unwrap().len(), 4);
}

#[tokio::test]
async fn a_task_goes_its_way_from_submit_to_completed() {
    let server = Server::start().await;
    let served = serve(&server, ADMIN, "@global", "Rotate", None).await.expect(201);
    let worker = worker_of(&served);
    assert_eq!(served["full_name"], "@global:modifiers:Rotate");
    assert_eq!((&served["schema"]["title"], &served["workers"]), (&json!("Rotate"), &json!([worker])));
    assert_eq!(claim(&server, ADMIN, &worker).await, Value::Null);
    let answer = submit(&server, "room1", "@global:modifiers:Rotate", json!({"angle": 1.50})).await;
    let place = answer.headers[header::LOCATION].to_str().unwrap().to_owned();
    assert_eq!(answer.headers[header::RETRY_AFTER], "1");
    let task = answer.expect(202);
    assert_eq!(place, format!("/v1/joblib/tasks/{}", id(&task)));
    assert_eq!(
        (&task["status"], &task["job_name"], &task["room_id"], &task["queue_position"], &task["worker_id"]),
        (&json!("pending"), &json!("@global:modifiers:Rotate"), &json!("room1"), &json!(1), &Value::Null)
    );
    assert_eq!(
        (&task["started_at"], &task["error"], &task["payload"]),
        (&Value::Null, &Value::Null, &json!({"angle": 1.5}))
    );
    assert!(task["created_at"].as_str().unwrap().ends_with("000Z"));
    let second = submit(&server, "room2", "%40global%3Amodifiers%3ARotate", json!({})).await.expect(202);
    assert_eq!(second["queue_position"], 2, "counted over all rooms");
    let claimed = claim(&server, ADMIN, &worker).await;
    assert_eq!((id(&claimed), &claimed["status"], worker_of(&claimed)), (id(&task), &json!("claimed"), worker.clone()));
    problem(
        patch(&server, ADMIN, id(&task), json!({"status": "completed"})).await,
        409,
        "invalid-task-transition",
        "Cannot transition from 'claimed' to 'completed'",
    );
    let running = patch(&server, ADMIN, id(&task), json!({"status": "running", "error": "dropped"})).await.expect(200);
    assert!(running["started_at"].is_string() && running["error"].is_null(), "{running}");
    let done = patch(&server, ADMIN, id(&task), json!({"status": "completed", "error": "a warning"})).await.expect(200);
    assert_eq!((&done["status"], &done["error"]), (&json!("completed"), &json!("a warning")));
    assert_eq!(get(&server, &format!("/tasks/{}", id(&task))).await, done);
    for again in [json!({"status": "completed"}), json!({"status": "completed", "error": "a warning"})] {
        let answer = patch(&server, ADMIN, id(&task), again).await;
        let why = "Cannot transition from 'completed' to 'completed'";
        problem(answer, 409, "invalid-task-transition", why);
    }
    let listed = get(&server, "/rooms/room1/tasks").await;
    assert_eq!((&listed["total"], &listed["limit"], &listed["items"][0]), (&json!(1), &json!(50), &done));
}

#[tokio::test]
async fn a_page_of_large_payloads_ends_early_and_goes_on_behind_its_last_task() {
    let server = Server::start().await;
    serve(&server, ANN, "r", "Job", None).await.expect(201);
    for _ in 0..12 {
        submit(&server, "r", "r:modifiers:Job", json!({"text": "x".repeat(1_000_000)})).await.expect(202);
    }
    let first = get(&server, "/rooms/r/tasks?limit=500").await;
    let shown = first["items"].as_array().unwrap().len();
    assert_eq!((shown, &first["total"]), (9, &json!(12)), "8 MiB, and the one that went beyond");
    let rest = get(&server, &format!("/rooms/r/tasks?limit=500&offset={shown}")).await;
    assert_eq!(rest["items"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn who_may_move_a_task_and_in_which_order_it_is_asked() {
    let server = Server::start().await;
    let worker = worker_of(&serve(&server, ANN, "r", "Job", None).await.expect(201));
    let task = submit(&server, "r", "r:modifiers:Job", json!({})).await.expect(202);
    let running = || json!({"status": "running"});
    problem(patch(&server, ANN, id(&task), running()).await, 403, "forbidden", "Task not claimed by any worker");
    problem(
        patch(&server, ADMIN, id(&task), json!({"status": "claimed"})).await,
        409,
        "invalid-task-transition",
        "Cannot transition from 'pending' to 'claimed'",
    );
    claim(&server, ANN, &worker).await;
    problem(patch(&server, BOB, id(&task), running()).await, 403, "forbidden", "Not authorized to update this task");
    let nobody = "00000000-0000-4000-8000-000000000000";
    problem(patch(&server, BOB, nobody, running()).await, 404, "task-not-found", &format!("Task '{nobody}' not found"));
    assert_eq!(patch(&server, ANN, "x", running()).await.expect(422)["detail"][0]["type"], "uuid_parsing");
    assert_eq!(patch(&server, ANN, id(&task), json!({"status": "odd"})).await.expect(422)["detail"][0]["type"], "enum");
    let failed = patch(&server, ANN, id(&task), json!({"status": "failed", "error": "no"})).await.expect(200);
    assert_eq!((&failed["error"], &failed["started_at"]), (&json!("no"), &Value::Null), "it was never started");
    let cancelled = submit(&server, "r", "r:modifiers:Job", json!({})).await.expect(202);
    let cancelled =
        patch(&server, ADMIN, id(&cancelled), json!({"status": "cancelled", "error": "late"})).await.expect(200);
    assert_eq!((&cancelled["status"], &cancelled["error"]), (&json!("cancelled"), &json!("late")));
}

#[tokio::test]
async fn registering_says_what_it_finds() {
    let server = Server::start().await;
    problem(
        serve(&server, ANN, "@global", "A", None).await,
        403,
        "forbidden",
        "Admin required for @global/@internal job registration",
    );
    problem(
        serve(&server, ANN, "a:b", "A", None).await,
        400,
        "invalid-room-id",
        "Room ID 'a:b' contains invalid characters (@ or :)",
    );
    let odd = json!({"category": "odd", "name": "A"});
    problem(
        send(&server, ANN, Method::PUT, "/rooms/r/jobs", Some(odd)).await,
        400,
        "invalid-category",
        "Category 'odd' not in allowed list: ['modifiers', 'selections', 'analysis']",
    );
    let first = serve(&server, ANN, "r", "A", None).await.expect(201);
    let worker = worker_of(&first);
    let again = serve(&server, ANN, "r", "A", Some(&worker)).await.expect(200);
    assert_eq!((&again["id"], &again["workers"]), (&first["id"], &json!([worker])));
    let other = serve(&server, ANN, "r", "A", None).await.expect(200);
    assert_ne!(worker_of(&other), worker, "each call without a worker makes one");
    assert_eq!(other["workers"].as_array().unwrap().len(), 2);
    let equal = json!({"category": "modifiers", "name": "A", "schema": {"n": 1.0, "title": "A"}, "worker_id": worker});
    send(&server, ANN, Method::PUT, "/rooms/r/jobs", Some(equal)).await.expect(200);
    let another = json!({"category": "modifiers", "name": "A", "schema_": {}, "worker_id": worker});
    problem(
        send(&server, ANN, Method::PUT, "/rooms/r/jobs", Some(another)).await,
        409,
        "schema-conflict",
        "Schema mismatch for job 'r:modifiers:A'",
    );
    for (role, id) in [(BOB, worker.as_str()), (ANN, "00000000-0000-4000-8000-000000000000")] {
        let why = format!("Worker '{id}' not found or not owned by user");
        problem(serve(&server, role, "r", "New", Some(id)).await, 404, "worker-not-found", &why);
    }
    problem(
        send(&server, ANN, Method::GET, "/rooms/r/jobs/r:modifiers:New", None).await,
        404,
        "job-not-found",
        "Job 'r:modifiers:New' not found",
    );
    for (body, kind) in [
        (json!({"category": "modifiers", "name": "A", "schema": null}), "dict_type"),
        (json!({"category": "modifiers", "name": "A", "schema": [1]}), "dict_type"),
        (json!({"category": "modifiers"}), "missing"),
        (json!({"category": "modifiers", "name": "A\nB"}), "value_error"),
        (json!({"category": "modifiers", "name": "A".repeat(250)}), "value_error"),
    ] {
        let told = send(&server, ANN, Method::PUT, "/rooms/r/jobs", Some(body)).await.expect(422);
        assert_eq!(told["detail"][0]["type"], kind, "{told}");
    }
}

#[tokio::test]
async fn lists_show_what_is_seen_from_a_room() {
    let server = Server::start().await;
    for (room, name) in [("@global", "G"), ("@internal", "I"), ("r1", "A"), ("r2", "B"), ("r1", "a:b/tasks")] {
        serve(&server, ADMIN, room, name, None).await.expect(201);
        server.clock.advance(Millis(10));
    }
    for (room, expected) in [
        ("r1", vec!["a:b/tasks", "A", "I", "G"]),
        ("r2", vec!["B", "I", "G"]),
        ("@global", vec!["G"]),
        ("@internal", vec!["I"]),
        ("r", vec!["I", "G"]),
    ] {
        let listed = get(&server, &format!("/rooms/{room}/jobs")).await;
        let names: Vec<&str> =
            listed["items"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect();
        assert_eq!((names, &listed["total"]), (expected.clone(), &json!(expected.len())), "{room}");
        let workers = get(&server, &format!("/rooms/{room}/workers")).await;
        assert_eq!(workers["total"], expected.len(), "{room}: each has a worker of its own");
        assert_eq!(workers["items"][0]["job_count"], 1);
    }
    let none = get(&server, "/rooms/r1/jobs?limit=0").await;
    assert_eq!((&none["items"], &none["total"]), (&json!([]), &json!(4)));
    let page = get(&server, "/rooms/r1/jobs?limit=1&offset=1").await;
    assert_eq!((&page["items"][0]["name"], &page["limit"], &page["offset"]), (&json!("A"), &json!(1), &json!(1)));
    assert_eq!(get(&server, "/workers").await["total"], 5);
    let any = get(&server, "/rooms/elsewhere/jobs/r1:modifiers:A").await;
    assert_eq!((&any["room_id"], &any["worker_id"]), (&json!("r1"), &Value::Null));
    problem(
        send(&server, ANN, Method::GET, "/rooms/r1/jobs/A", None).await,
        404,
        "job-not-found",
        "Invalid job name format: A",
    );
    problem(
        submit(&server, "r1", "@internal:modifiers:I", json!({})).await,
        503,
        "internal-job-not-configured",
        "Internal job '@internal:modifiers:I' is registered but no executor is available",
    );
    for query in ["limit=501", "limit=-1", "offset=x", "status=odd"] {
        send(&server, ANN, Method::GET, &format!("/rooms/r1/tasks?{query}"), None).await.expect(422);
    }
}

#[tokio::test]
async fn tasks_are_listed_by_room_and_by_job() {
    let server = Server::start().await;
    let worker = worker_of(&serve(&server, ANN, "r1", "A", None).await.expect(201));
    serve(&server, ANN, "r1", "B", Some(&worker)).await.expect(201);
    let mut sent = Vec::new();
    for (room, job) in [("r1", "A"), ("r2", "A"), ("r1", "B"), ("r1", "A"), ("r1", "A")] {
        let task = submit(&server, room, &format!("r1:modifiers:{job}"), json!({"n": sent.len()})).await.expect(202);
        sent.push(id(&task).to_owned());
        server.clock.advance(Millis(5));
    }
    let ids = |listed: &Value| -> Vec<usize> {
        let items = listed["items"].as_array().unwrap();
        items.iter().map(|item| sent.iter().position(|sent| sent == id(item)).unwrap()).collect()
    };
    let listed = get(&server, "/rooms/r1/tasks").await;
    assert_eq!((ids(&listed), &listed["total"]), (vec![4, 3, 2, 0], &json!(4)));
    let positions: Vec<&Value> =
        listed["items"].as_array().unwrap().iter().map(|item| &item["queue_position"]).collect();
    assert_eq!(positions, [&json!(4), &json!(3), &json!(1), &json!(1)], "of the same job, all rooms together");
    assert_eq!(ids(&get(&server, "/rooms/r1/tasks?limit=2&offset=1").await), [3, 2]);
    assert_eq!(ids(&get(&server, "/rooms/r1/tasks?offset=9").await), [0; 0]);
    assert_eq!(ids(&get(&server, "/rooms/r1/jobs/r1:modifiers:A/tasks").await), [4, 3, 0]);
    assert_eq!(ids(&get(&server, "/rooms/r2/jobs/r1:modifiers:A/tasks").await), [1]);
    let claimed = claim(&server, ANN, &worker).await;
    assert_eq!(id(&claimed), sent[0], "the oldest, whatever its job");
    assert_eq!(ids(&get(&server, "/rooms/r1/tasks?status=claimed").await), [0]);
    assert_eq!(ids(&get(&server, "/rooms/r1/tasks?status=pending").await), [4, 3, 2]);
    for expected in [1, 2, 3, 4] {
        assert_eq!(id(&claim(&server, ANN, &worker).await), sent[expected]);
    }
    assert_eq!(claim(&server, ANN, &worker).await, Value::Null);
}

#[tokio::test]
async fn a_worker_that_goes_takes_its_tasks_and_its_jobs_along() {
    for how in ["deleted", "silent"] {
        let server = Server::start().await;
        let worker = worker_of(&serve(&server, ANN, "r", "A", None).await.expect(201));
        let first = submit(&server, "r", "r:modifiers:A", json!({})).await.expect(202);
        let done = submit(&server, "r", "r:modifiers:A", json!({})).await.expect(202);
        let waits = submit(&server, "r", "r:modifiers:A", json!({})).await.expect(202);
        claim(&server, ANN, &worker).await;
        claim(&server, ANN, &worker).await;
        patch(&server, ANN, id(&done), json!({"status": "failed", "error": "own"})).await.expect(200);
        if how == "deleted" {
            let gone = send(&server, ANN, Method::DELETE, &format!("/workers/{worker}"), None).await;
            assert_eq!((gone.status.as_u16(), gone.body.len()), (204, 0));
        } else {
            server.pass(Millis(59_999)).await;
            assert_eq!(get(&server, "/workers").await["total"], 1);
            server.pass(Millis(1)).await;
        }
        let failed = get(&server, &format!("/tasks/{}", id(&first))).await;
        assert_eq!(
            (&failed["status"], &failed["error"], &failed["worker_id"]),
            (&json!("failed"), &json!("Worker disconnected"), &Value::Null),
            "{how}"
        );
        let own = get(&server, &format!("/tasks/{}", id(&done))).await;
        assert_eq!((&own["error"], &own["worker_id"]), (&json!("own"), &Value::Null));
        let job = get(&server, "/rooms/r/jobs/r:modifiers:A").await;
        assert_eq!(job["workers"], json!([]), "a pending task keeps it");
        problem(
            patch(&server, ANN, id(&first), json!({"status": "completed"})).await,
            403,
            "forbidden",
            "Not authorized to update this task",
        );
        let beat = send(&server, ANN, Method::PATCH, &format!("/workers/{worker}"), None).await;
        problem(beat, 404, "worker-not-found", &format!("Worker '{worker}' not found"));
        patch(&server, ADMIN, id(&waits), json!({"status": "cancelled"})).await.expect(200);
        problem(
            send(&server, ANN, Method::GET, "/rooms/r/jobs/r:modifiers:A", None).await,
            404,
            "job-not-found",
            "Job 'r:modifiers:A' not found",
        );
        submit(&server, "r", "r:modifiers:A", json!({})).await.expect(404);
        send(&server, ANN, Method::GET, "/rooms/r/jobs/r:modifiers:A/tasks", None).await.expect(404);
        assert_eq!(get(&server, "/rooms/r/tasks").await["total"], 3, "its tasks can still be read");
        let back = serve(&server, ANN, "r", "A", None).await.expect(201);
        assert_eq!(back["id"], job["id"], "it comes back as what it was");
    }
}

#[tokio::test]
async fn workers_are_their_owners() {
    let server = Server::start().await;
    let made = send(&server, ANN, Method::POST, "/workers", None).await.expect(201);
    let worker = id(&made).to_owned();
    server.clock.advance(Millis(1_000));
    let path = format!("/workers/{worker}");
    let beat = send(&server, ANN, Method::PATCH, &path, None).await.expect(200);
    assert_ne!(beat["last_heartbeat"], made["last_heartbeat"]);
    for role in [BOB, ADMIN] {
        let beat = send(&server, role, Method::PATCH, &path, None).await;
        problem(beat, 403, "forbidden", "Worker belongs to different user");
        let claimed = send(&server, role, Method::POST, "/tasks/claim", Some(json!({"worker_id": worker}))).await;
        problem(claimed, 403, "forbidden", "Worker belongs to a different user");
    }
    let nobody = "00000000-0000-4000-8000-000000000000";
    let claimed = send(&server, ANN, Method::POST, "/tasks/claim", Some(json!({"worker_id": nobody}))).await;
    problem(claimed, 404, "worker-not-found", &format!("Worker {nobody} not found"));
    send(&server, ANN, Method::POST, "/tasks/claim", Some(json!({}))).await.expect(422);
    problem(
        send(&server, BOB, Method::DELETE, &path, None).await,
        403,
        "forbidden",
        "Worker belongs to different user",
    );
    assert_eq!(send(&server, ADMIN, Method::DELETE, &path, None).await.status.as_u16(), 204, "a superuser may");
}

async fn ask(server: &Server, task: &str, prefer: &'static str) -> Answer {
    let path = format!("/v1/joblib/tasks/{task}");
    let request = Server::request(ANN, Method::GET, &path).header("prefer", prefer);
    server.call(request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn a_reader_waits_for_the_end_of_a_task_and_no_longer() {
    let server = Server::start().await;
    let worker = worker_of(&serve(&server, ANN, "r", "A", None).await.expect(201));
    // The end may come before the reader has looked; the later it comes, the less likely that is.
    for later in 0..1_000 {
        let task = submit(&server, "r", "r:modifiers:A", json!({})).await.expect(202);
        claim(&server, ANN, &worker).await;
        let now = ask(&server, id(&task), "wait=0").await;
        assert!(!now.headers.contains_key("preference-applied"));
        let fail = async {
            for _ in 0..later * 10 {
                tokio::task::yield_now().await;
            }
            patch(&server, ANN, id(&task), json!({"status": "failed"})).await.expect(200);
        };
        let (waited, ()) = tokio::join!(ask(&server, id(&task), "respond-async, wait=600"), fail);
        let applied = waited.headers.get("preference-applied").cloned();
        let waited = waited.expect(200);
        assert_eq!((&waited["status"], &waited["error"]), (&json!("failed"), &Value::Null));
        let after = ask(&server, id(&task), "wait=5").await;
        assert!(!after.headers.contains_key("preference-applied"), "it was over already");
        if let Some(applied) = applied {
            assert_eq!(applied, "wait=60");
            return;
        }
    }
    panic!("no reader ever waited");
}
