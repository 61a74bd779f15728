//! Schedules: written, shown, fired by the calendar.

use crate::support::Server;
use axum::body::Body;
use http::Method;
use serde_json::json;
use std::time::Duration;
use windlass_core::{Millis, Namespace, Timestamp, commands::fire::PutSchedule, principal::Role, schedule::Schedule};
use windlass_engine::testing::eventually;
use windlass_server::{Options, scheduler};

#[tokio::test]
async fn a_schedule_is_written_shown_and_deleted() {
    let server = Server::start().await;
    let body =
        json!({"cron": "0 3 * * *", "time_zone": "Europe/Berlin", "job": {"payload": {"n": 1}, "tags": ["gpu"]}});
    let written = server.put("/api/v1/schedules/nightly", body.clone()).await.expect(200);
    assert_eq!((&written["schedule"], &written["fired"]), (&body, &json!(0)));
    assert_eq!(written["next"].as_array().unwrap().len(), 5);
    let every = server.put("/api/v1/schedules/often", json!({"every_ms": 60_000, "job": {}})).await.expect(200);
    let next: Vec<i64> = every["next"]
        .as_array()
        .unwrap()
        .iter()
        .map(|at| at.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond())
        .collect();
    assert!(next.windows(2).all(|pair| pair[1] - pair[0] == 60_000), "{next:?}");
    let all = server.get("/api/v1/schedules").await.expect(200);
    assert_eq!((&all["items"][0]["name"], &all["items"][1]["name"]), (&json!("nightly"), &json!("often")));
    let paused = json!({"every_ms": 60_000, "paused": true, "job": {}});
    assert_eq!(server.put("/api/v1/schedules/often", paused).await.expect(200)["next"], json!([]));
    server.delete("/api/v1/schedules/often").await.expect(204);
    server.delete("/api/v1/schedules/often").await.expect(404);
    server.get("/api/v1/schedules/often").await.expect(404);
}

#[tokio::test]
async fn a_schedule_tells_the_last_jobs_it_made_and_what_became_of_them() {
    let server = Server::start().await;
    server.put("/api/v1/schedules/often", json!({"every_ms": 60_000, "job": {"tags": ["t"]}})).await.expect(200);
    for _ in 0..2 {
        server.pass(Millis(60_000)).await;
    }
    let told = server.get("/api/v1/schedules/often").await.expect(200);
    let recent = told["recent"].as_array().unwrap();
    assert_eq!((recent.len(), &recent[0]["state"]), (2, &json!("pending")), "{told}");
    let last = recent[0]["job"].as_str().unwrap();
    server.post(&format!("/api/v1/jobs/{last}/cancel"), json!({})).await.expect(200);
    let told = server.get("/api/v1/schedules/often").await.expect(200);
    assert_eq!((&told["recent"][0]["state"], &told["recent"][1]["state"]), (&json!("cancelled"), &json!("pending")));
    let listed = server.get("/api/v1/schedules").await.expect(200);
    assert!(listed["items"][0].get("recent").is_none());
}

#[tokio::test]
async fn a_job_run_by_hand_is_in_the_schedules_history() {
    let server = Server::start().await;
    let body = json!({"cron": "0 3 * * *", "paused": true, "job": {"name": "by hand", "payload": 7}});
    server.put("/api/v1/schedules/nightly", body).await.expect(200);
    let made = server.post("/api/v1/schedules/nightly/run", json!({})).await.expect(201);
    let job = server.get(&format!("/api/v1/jobs/{}", made["id"].as_str().unwrap())).await.expect(200);
    assert_eq!((&job["name"], &job["payload"]), (&json!("by hand"), &json!(7)));
    let told = server.get("/api/v1/schedules/nightly").await.expect(200);
    assert_eq!((&told["fired"], &told["recent"][0]["job"]), (&json!(1), &made["id"]), "{told}");
    assert_eq!(told["schedule"]["paused"], true);
    server.post("/api/v1/schedules/ghost/run", json!({})).await.expect(404);
}

#[tokio::test]
async fn running_a_schedule_again_with_the_same_key_makes_no_second_job() {
    let server = Server::start().await;
    for name in ["a", "b"] {
        server.put(&format!("/api/v1/schedules/{name}"), json!({"every_ms": 60_000, "job": {}})).await.expect(200);
    }
    let run = async |name: &str| {
        let request = Server::request(Role::Admin, Method::POST, &format!("/api/v1/schedules/{name}/run"));
        server.call(request.header("idempotency-key", "k").body(Body::empty()).unwrap()).await
    };
    let first = run("a").await.expect(201);
    let again = run("a").await.expect(200);
    assert_eq!((&again["id"], &again["existing"]), (&first["id"], &json!(true)));
    run("b").await.expect(422);
    assert_eq!(server.get("/api/v1/schedules/a").await.expect(200)["fired"], 1);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_its_field() {
    let server = Server::start().await;
    server.put("/api/v1/definitions/d", json!({"payload_schema": {"type": "string"}})).await.expect(200);
    let table = [
        (json!({"job": {}}), 422, "cron"),
        (json!({"cron": "0 3 * * *", "every_ms": 1000, "job": {}}), 422, "cron"),
        (json!({"cron": "soon", "job": {}}), 422, "cron"),
        (json!({"cron": "0 3 * * *", "time_zone": "Nowhere", "job": {}}), 422, "time_zone"),
        (json!({"every_ms": 1000, "time_zone": "UTC", "job": {}}), 422, "time_zone"),
        (json!({"every_ms": 10, "job": {}}), 422, "rule.every"),
        (json!({"every_ms": 1000, "job": {"after": ["0199a000-0000-7000-8000-000000000000"]}}), 422, "job.after"),
        (json!({"every_ms": 1000, "job": {"idempotency_key": "k"}}), 422, "job.idempotency_key"),
        (json!({"every_ms": 1000, "job": {"definition": "ghost"}}), 404, "job.definition"),
        (json!({"every_ms": 1000, "job": {"definition": "d", "payload": 7}}), 422, "job."),
        (json!({"every_ms": 1000, "job": {"retry": {"attempts": 0}}}), 422, "policy.retry.attempts"),
    ];
    for (body, status, field) in table {
        let problem = server.put("/api/v1/schedules/s", body.clone()).await.expect(status);
        assert_eq!(problem["field"], field, "{body}");
    }
}

async fn move_to(server: &Server, namespace: &str, name: &str, ago: i64) {
    let namespace = Namespace::new(namespace).unwrap();
    let row = server.engine.read_record::<Schedule>(&namespace, name).await.unwrap().unwrap();
    let now = server.engine.now().await.unwrap();
    let schedule = Schedule { next_at: Timestamp(now.0 - ago), ..row };
    server.engine.run(PutSchedule { namespace, schedule }).await.unwrap();
}

async fn jobs(server: &Server, namespace: &str) -> usize {
    let page = server.get(&format!("/api/v1/jobs?namespace={namespace}")).await.expect(200);
    page["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn what_is_due_by_the_calendar_fires_once_however_many_look() {
    let server = Server::start().await;
    let job = json!({"payload": 1, "name": "each night", "facets": {"a": "b"}});
    let daily = |missed: &str| json!({"cron": "0 3 * * *", "missed": missed, "job": job});
    server.put("/api/v1/schedules/late", daily("once")).await.expect(200);
    server.put("/api/v1/schedules/gone", daily("skip")).await.expect(200);
    server.put("/api/v1/schedules/elsewhere?namespace=other", daily("once")).await.expect(200);
    assert_eq!(scheduler::tick(&server.app).await.unwrap().map(|wait| wait <= Duration::from_secs(86_400)), Some(true));
    assert_eq!(jobs(&server, "default").await, 0);
    // Three days without a server.
    for (namespace, name) in [("default", "late"), ("default", "gone"), ("other", "elsewhere")] {
        move_to(&server, namespace, name, 3 * 86_400_000).await;
    }
    let (first, second) = tokio::join!(scheduler::tick(&server.app), scheduler::tick(&server.app));
    assert!(first.is_ok() && second.is_ok());
    assert_eq!((jobs(&server, "default").await, jobs(&server, "other").await), (1, 1), "one makes up for all");
    let named = server.get("/api/v1/jobs?name=each").await.expect(200);
    assert_eq!(named["items"][0]["name"], "each night");
    let late = server.get("/api/v1/schedules/late").await.expect(200);
    let gone = server.get("/api/v1/schedules/gone").await.expect(200);
    assert_eq!((&late["fired"], &gone["fired"]), (&json!(1), &json!(0)));
    let next = |shown: &serde_json::Value| shown["next"][0].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let now = server.engine.now().await.unwrap().0;
    assert!(next(&late).as_millisecond() > now && next(&gone).as_millisecond() > now, "both go on from now");
    assert_eq!(jobs(&server, "default").await, 1);
}

#[tokio::test]
async fn the_scheduler_hears_of_a_schedule_and_sleeps_until_its_time() {
    let server = Server::in_real_time(Options::default()).await;
    let running = tokio::spawn(scheduler::run(server.app.clone()));
    server.put("/api/v1/schedules/fast", json!({"cron": "* * * * * *", "job": {}})).await.expect(200);
    eventually("it fires twice", async || (jobs(&server, "default").await >= 2).then_some(())).await;
    running.abort();
}
