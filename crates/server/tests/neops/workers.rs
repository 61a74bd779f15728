//! Workers come, fall silent, leave and are cleared away; their blocks stay.

use super::{SECOND, bare, echo, get, poll, polled, post, push, quick, ready, send, submit, worker};
use crate::support::Server;
use http::Method;
use serde_json::{Value, json};
use windlass_core::Millis;
use windlass_server::dialects::neops::job::Type;

async fn state(server: &Server, id: &str) -> String {
    get(server, &format!("/workers/{id}")).await["state"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_silent_worker_goes_through_the_cascade_and_a_ping_brings_it_back_until_it_is_deleted() {
    let server = quick().await;
    let id = worker(&server, "one").await;
    let ping = format!("/workers/{id}/ping");
    for (seconds, expected) in [(1, "online"), (1, "unreachable"), (3, "unreachable"), (1, "offline")] {
        server.pass(Millis(seconds * 1_000)).await;
        assert_eq!(state(&server, &id).await, expected);
        assert_eq!(polled(&server, &id).await.len(), 0, "nothing, and still 201");
    }
    assert_eq!(bare(&server, &ping).await.expect(200), json!({"success": true}));
    assert_eq!(state(&server, &id).await, "online");
    server.pass(Millis(15_999)).await;
    assert_eq!(state(&server, &id).await, "offline");
    server.pass(Millis(1)).await;
    for path in [&ping, &format!("/workers/{id}/unregister")] {
        bare(&server, path).await.expect(404);
    }
    poll(&server, &id, &["echo"]).await.expect(404);
    send(&server, Method::GET, &format!("/workers/{id}"), None).await.expect(404);
    assert_eq!(get(&server, "/workers").await, json!([]));
    let former = get(&server, "/workers?findDeleted=true").await;
    assert_eq!(former[0]["uuid"], json!(id));
    assert!(former[0]["deletedAt"].is_string());
    assert!(get(&server, &format!("/workers/{id}?findDeleted=true")).await["deletedAt"].is_string());
}

#[tokio::test]
async fn one_that_unregisters_is_offline_at_once_and_its_blocks_stay() {
    let server = quick().await;
    let (id, _) = ready(&server).await;
    server.pass(SECOND).await;
    bare(&server, &format!("/workers/{id}/unregister")).await.expect(200);
    let shown = get(&server, &format!("/workers/{id}")).await;
    assert_eq!((&shown["state"], &shown["lastPingAt"]), (&json!("offline"), &json!("1970-01-01T00:00:00.000Z")));
    assert_ne!(shown["lastSeenAt"], shown["lastPingAt"]);
    assert_eq!(get(&server, &format!("/workers/{id}/function-blocks")).await, json!(["fb.example/echo:1.0.0"]));
    let serving = get(&server, "/function-blocks/fb.example/echo/1.0.0/workers").await;
    assert_eq!(serving[0]["uuid"], json!(id), "the link outlives it");
    assert_eq!(polled(&server, &id).await.len(), 0);
    bare(&server, &format!("/workers/{id}/ping")).await.expect(200);
    assert_eq!(polled(&server, &id).await.len(), 1, "it is back");
}

#[tokio::test]
async fn a_job_of_a_worker_that_left_comes_again_as_another_one_and_a_late_result_is_refused() {
    let server = quick().await;
    let (id, job) = ready(&server).await;
    assert_eq!(polled(&server, &id).await[0]["jobId"], json!(job.to_string()));
    bare(&server, &format!("/workers/{id}/unregister")).await.expect(200);
    server.pass(Millis(1)).await;
    push(&server, &job.to_string(), "success", json!({"success": true})).await.expect(409);
    let other = worker(&server, "two").await;
    let again = polled(&server, &other).await;
    assert_ne!(again[0]["jobId"], json!(job.to_string()));
    let shown = get(&server, &format!("/workers/{other}/jobs")).await;
    assert_eq!((&shown[0]["retryCount"], &shown[0]["status"]), (&json!(1), &json!("polled")));
    let lost = get(&server, &format!("/workers/{id}/jobs?status=pushed")).await;
    assert_eq!((&lost[0]["resultStatus"], &lost[0]["canceled"]), (&json!("failed-ack"), &json!(false)));
}

#[tokio::test]
async fn clearing_away_counts_the_jobs_that_were_in_hand() {
    let server = quick().await;
    let (id, job) = ready(&server).await;
    let rollback = submit(&server, "fb.example/echo:1", Type::Rollback).await;
    assert_eq!(polled(&server, &id).await[0]["jobId"], json!(job.to_string()));
    assert_eq!(polled(&server, &id).await[0]["jobId"], json!(rollback.to_string()));
    let none = json!({"cleanedUpWorkerIds": [], "failedJobCount": 0});
    assert_eq!(bare(&server, "/workers/cleanup-offline").await.expect(200), none, "it is online");
    bare(&server, &format!("/workers/{id}/unregister")).await.expect(200);
    assert_eq!(bare(&server, "/workers/cleanup").await.expect(200), none, "not for long enough");
    let all = bare(&server, "/workers/cleanup-offline").await.expect(200);
    assert_eq!(all, json!({"cleanedUpWorkerIds": [id], "failedJobCount": 2}));
    let rows = get(&server, "/blackboard/jobs?status=pushed").await;
    assert!(rows.as_array().unwrap().iter().all(|row| row["workerDeleted"] == true), "{rows}");
    let other = worker(&server, "two").await;
    let deleted = send(&server, Method::DELETE, &format!("/workers/{other}"), None).await;
    assert_eq!((deleted.status.as_u16(), deleted.body.len()), (204, 0));
    send(&server, Method::DELETE, &format!("/workers/{other}"), None).await.expect(404);
}

#[tokio::test]
async fn blocks_are_registered_resolved_deleted_and_brought_back() {
    let server = Server::start().await;
    let id = worker(&server, "one").await;
    let created = post(&server, "/function-blocks/register", echo(Some(&id))).await;
    assert_eq!((created.status.as_u16(), created.body.len()), (201, 0));
    post(&server, "/function-blocks/register", echo(Some(&id))).await.expect(201);
    let at = "/function-blocks/fb.example/echo/1.0.0";
    let block = get(&server, at).await;
    assert_eq!((&block["id"], &block["markdownHelpText"]), (&json!("fb.example/echo:1.0.0"), &json!("")));
    let list = get(&server, "/function-blocks/registrations/list?package=fb.example&populateWorkers=true").await;
    assert_eq!((list.as_array().unwrap().len(), &list[0]["workers"][0]["uuid"]), (1, &json!(id)));
    let empty = send(&server, Method::DELETE, at, None).await;
    assert_eq!((empty.status.as_u16(), empty.body.len()), (200, 0));
    send(&server, Method::GET, at, None).await.expect(404);
    send(&server, Method::DELETE, at, None).await.expect(404);
    let deleted = get(&server, "/function-blocks/registrations/list?findDeleted=true").await;
    assert!(deleted[0]["functionBlock"]["deletedAt"].is_string());
    post(&server, "/function-blocks/register", echo(None)).await.expect(201);
    get(&server, "/function-blocks/registrations/fb.example/echo/1.0.0").await;
}

#[tokio::test]
async fn blocks_that_break_what_is_registered_or_cannot_be_are_refused_with_the_place() {
    let server = Server::start().await;
    post(&server, "/function-blocks/register", echo(None)).await.expect(201);
    let changed = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut block = echo(None);
        change(&mut block);
        block
    };
    let table: Vec<(serde_json::Value, u16, &str)> = vec![
        (changed(&|b| b["parameterJsonSchema"]["required"] = json!(["message", "count"])), 400, "count"),
        (changed(&|b| b["resultDataJsonSchema"]["properties"] = json!({})), 400, "echoed"),
        (changed(&|b| b["runOn"] = json!("device")), 400, "runOn"),
        (changed(&|b| b["runOn"] = json!("moon")), 400, "runOn"),
        (changed(&|b| b["fbType"] = json!("other")), 400, "fbType"),
        (changed(&|b| b["isPure"] = json!("true")), 400, "boolean"),
        (changed(&|b| b["name"] = json!("a/b")), 400, "name"),
        (changed(&|b| b["name"] = json!("x".repeat(250))), 400, "250"),
        (changed(&|b| b["majorVersion"] = json!(1.5)), 400, "whole number"),
        (changed(&|b| b["parameterJsonSchema"] = json!({"type": 7})), 400, "parameterJsonSchema"),
        (changed(&|b| b["parameterJsonSchema"] = json!({"$ref": "http://x.example/s"})), 400, "parameterJsonSchema"),
        (changed(&|b| b["workerId"] = json!("nobody")), 400, "workerId"),
        (changed(&|b| b["workerId"] = json!("355f48a3-28e6-483f-b771-b61d305162bd")), 404, "Worker"),
    ];
    for (body, status, place) in table {
        let told = post(&server, "/function-blocks/register", body.clone()).await;
        let told = told.expect(status);
        assert!(told["message"].as_str().unwrap().contains(place), "{told} does not say {place}");
    }
}

/// What the server says of this dialect: what it is about, the words, and whether something should be done.
async fn signs(server: &Server) -> Vec<(String, String, Option<String>)> {
    let all = server.get("/api/v1/dialects").await.expect(200);
    let mine = all["items"].as_array().unwrap().iter().find(|item| item["name"] == "neops").unwrap().clone();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let sign = |sign: &Value| (text(&sign["what"]).unwrap(), text(&sign["text"]).unwrap(), text(&sign["advice"]));
    mine["signs"].as_array().into_iter().flatten().map(sign).collect()
}

#[tokio::test]
async fn whoever_runs_the_server_is_told_when_workers_or_the_network_are_wanted() {
    let server = quick().await;
    let (worker, job) = ready(&server).await;
    let words = |what: &str, text: &str| (what.to_owned(), text.to_owned(), None::<String>);
    let waits = |count: u32, online: u32| {
        let wait = if count == 1 { "1 job waits".to_owned() } else { format!("{count} jobs wait") };
        let serve =
            if online == 1 { "1 online worker serves".to_owned() } else { format!("{online} online workers serve") };
        words("waiting", &format!("{wait} for fb.example/echo:1.0.0, which {serve}"))
    };
    let there = |text: &str| words("workers", text);
    assert_eq!(signs(&server).await, [there("1 online, 0 unreachable, 0 offline"), waits(1, 1)]);
    for _ in 0..10 {
        submit(&server, "fb.example/echo:1", Type::Execute).await;
    }
    assert!(signs(&server).await[1].2.as_deref().unwrap().contains("Add workers"));
    let text = server.get("/metrics").await;
    let text = String::from_utf8(text.body.to_vec()).unwrap();
    for line in
        ["windlass_api_jobs_pending{api=\"neops\"} 11", "windlass_api_workers{api=\"neops\",state=\"online\"} 1"]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
    server.pass(Millis(3 * SECOND.0)).await;
    let quiet = signs(&server).await;
    assert_eq!(quiet[0].1, "0 online, 1 unreachable, 0 offline");
    for sign in &quiet {
        assert!(sign.2.as_deref().unwrap().contains("network"), "{sign:?}");
    }
    let why = server.get(&format!("/api/v1/jobs/{job}/why?namespace=neops")).await.expect(200);
    let help = why["reasons"][0]["help"].as_str().unwrap();
    assert!(help.contains("neops_worker with the function block fb.example/echo:1.0.0"), "{why}");
    for _ in 0..4 {
        bare(&server, &format!("/workers/{worker}/ping")).await.expect(200);
        server.pass(Millis(3 * SECOND.0)).await;
    }
    let often = signs(&server).await;
    assert!(often[1].1.contains("4 times in the last hour, one last"), "{often:?}");
    let viewer = json!({"principal": "guest", "role": "viewer", "namespaces": ["film"]});
    let token = server.post("/api/v1/tokens", viewer).await.expect(201)["token"].as_str().unwrap().to_owned();
    let request = http::Request::builder().uri("/api/v1/dialects").header("authorization", format!("Bearer {token}"));
    let shown =
        server.call(request.header("host", "localhost").body(axum::body::Body::empty()).unwrap()).await.expect(200);
    assert!(!shown.to_string().contains("signs"), "not to those who may not look there: {shown}");
}
