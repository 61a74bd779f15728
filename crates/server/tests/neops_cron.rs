//! Workflows of neops that start by the calendar.

use crate::support::Server;
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_core::{
    Millis, RecordKey, Timestamp,
    commands::records::{Expect, PutRecord},
    stage,
};
use windlass_server::{
    Options,
    config::values::Values,
    dialects::neops::{Neops, Own, Settings, cron},
};

const NOON: Timestamp = Timestamp(1_794_744_000_000);

async fn server() -> (Server, Neops) {
    let server = Server::at(NOON, Options::default()).await;
    let block = json!({"name": "x", "package": "b", "majorVersion": 1, "minorVersion": 0, "patchVersion": 0, "description": "d",
        "fbType": "check", "parameterJsonSchema": {"type": "object"}, "resultDataJsonSchema": {"type": "object"}});
    server.work("/function-blocks/register", block).await.expect(201);
    let neops = another(&server);
    (server, neops)
}

/// As another server on the same store has it.
fn another(server: &Server) -> Neops {
    Neops::new(server.app.clone(), Arc::new(Own::new(Settings::read(&Values::default()))))
}

fn schedule(change: impl FnOnce(&mut Value)) -> Value {
    let mut cron = json!({"title": "t", "description": "d", "query": "", "concurrency": true, "enabled": true,
        "parameters": {"site": "x"}, "crontab": {"second": "*/10", "minute": "*", "hour": "*", "dayOfMonth": "*", "month": "*",
            "dayOfWeek": "*", "timezone": "Europe/Berlin"}});
    change(&mut cron);
    cron
}

async fn publish(server: &Server, minor: u32, cron: Value) {
    let workflow = json!({"type": "workflow", "label": "w", "name": "n", "package": "p", "majorVersion": 1, "minorVersion": minor,
        "patchVersion": 0, "seedEntity": "global", "cron": [cron],
        "steps": [{"type": "functionBlock", "label": "s", "functionBlock": "b/x:1"}]});
    server.post("/workflow-definition/publish", json!({"workflow": workflow})).await.expect(201);
}

/// Lets ten seconds go by, and tells how many runs there are.
async fn later(server: &Server, neops: &Neops) -> usize {
    server.pass(Millis::from_secs(10)).await;
    cron::tick(neops).await.unwrap();
    runs(server).await.len()
}

async fn runs(server: &Server) -> Vec<Value> {
    server.get("/workflow-execution").await.expect(200).as_array().unwrap().clone()
}

#[tokio::test]
async fn due_times_start_one_run_each_however_many_servers_there_are() {
    let (server, neops) = server().await;
    publish(&server, 0, schedule(|_| {})).await;
    let other = another(&server);
    for neops in [&neops, &other] {
        cron::follow(neops).await.unwrap();
        cron::tick(neops).await.unwrap();
    }
    assert_eq!(runs(&server).await.len(), 0, "not before its time");
    server.pass(Millis::from_secs(10)).await;
    let (one, two) = tokio::join!(cron::tick(&neops), cron::tick(&other));
    assert!(one.is_ok() && two.is_ok());
    let started = runs(&server).await;
    assert_eq!(started.len(), 1);
    assert_eq!((&started[0]["triggerType"], &started[0]["parameters"]), (&json!("CRON"), &json!({"site": "x"})));
    assert_eq!(later(&server, &neops).await, 2);
    // Nobody was there: what was missed is let go.
    server.pass(Millis::from_secs(3_600)).await;
    cron::tick(&neops).await.unwrap();
    assert_eq!(runs(&server).await.len(), 2);
    let page = server.get("/workflow-definition/page?hasRun=true").await.expect(200);
    assert_eq!(page["items"][0]["lastRun"]["triggerType"], "CRON");
}

#[tokio::test]
async fn a_schedule_starts_nothing_while_it_must_not() {
    let (server, neops) = server().await;
    publish(&server, 0, schedule(|cron| cron["enabled"] = json!(false))).await;
    cron::follow(&neops).await.unwrap();
    assert_eq!(later(&server, &neops).await, 0, "switched off");
    publish(&server, 1, schedule(|cron| cron["condition"] = json!({"type": "jmes", "jmes": "parameters.site == 'y'"})))
        .await;
    cron::follow(&neops).await.unwrap();
    assert_eq!(later(&server, &neops).await, 0, "its condition does not hold");
    publish(&server, 2, schedule(|cron| cron["concurrency"] = json!(false))).await;
    cron::follow(&neops).await.unwrap();
    assert_eq!(later(&server, &neops).await, 1);
    assert_eq!(later(&server, &neops).await, 1, "the first has not ended");
    // The newest live version says what counts.
    server.delete("/workflow-definition/p%2Fn:1.2.0").await.expect(200);
    server.delete("/workflow-definition/p%2Fn:1.1.0").await.expect(200);
    cron::follow(&neops).await.unwrap();
    assert_eq!(later(&server, &neops).await, 1, "switched off again");
}

#[tokio::test]
async fn a_schedule_that_ended_the_server_twice_starts_nothing_until_another_version_is_published() {
    let (server, neops) = server().await;
    publish(&server, 0, schedule(|_| {})).await;
    cron::follow(&neops).await.unwrap();
    let name = "neops/cron/p/n#0@p/n:1.0.0";
    let key = RecordKey { namespace: stage::system_namespace(), kind: stage::BEGUN.into(), key: name.into() };
    let value = json!({"times": 2}).to_string().into();
    let put = PutRecord { key, expect: Expect::Nothing, parent: None, value, facets: vec![], expires_at: None };
    server.engine.run(put).await.unwrap();
    assert_eq!(later(&server, &neops).await, 0);
    assert_eq!(later(&server, &neops).await, 0);
    publish(&server, 1, schedule(|_| {})).await;
    cron::follow(&neops).await.unwrap();
    assert_eq!(later(&server, &neops).await, 1);
}
