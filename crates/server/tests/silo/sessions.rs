//! Edit locks.

use super::*;
use windlass_core::Millis;
use windlass_server::dialects::silo::sessions;

async fn lock(silo: &Silo, who: &str, object: &str) -> Answer {
    let body = json!({"workstation_id": "ws-1", "context_level": "sketch", "object_id": object});
    silo.call(who, "POST", "/api/items/P/edit-sessions", body).await
}

async fn graph(silo: &Silo) {
    silo.item("P", "part").await;
    let node = |key: &str, kind: &str| json!({"node_key": key, "node_type": kind});
    let edge = |source: &str, target: &str| json!({"source_key": source, "target_key": target});
    let body = json!({
        "nodes": [node("Sketch001", "sketch"), node("Sketch003", "sketch"), node("Pad003", "pad"),
            node("Fillet005", "fillet"), node("Pocket002", "pocket")],
        "edges": [edge("Sketch001", "Pad003"), edge("Pad003", "Fillet005"), edge("Sketch003", "Pad003"),
            edge("Sketch003", "Pocket002")],
    });
    silo.put("/api/items/P/dag", body).await.expect(200);
}

#[tokio::test]
async fn overlaps_are_told_the_same_object_is_refused_and_releases_are_heard() {
    let silo = Silo::start(&[]).await;
    graph(&silo).await;
    let mut heard = events::Reader::open(&silo, None).await;
    let (ann, bob) = (token(Role::Editor), token(Role::Admin));
    let first = lock(&silo, &ann, "Sketch001").await.expect(200);
    assert_eq!(first["interference"], "none");
    assert_eq!(first["dependency_cone"], json!(["Sketch001", "Pad003", "Fillet005"]));
    let again = lock(&silo, &ann, "Sketch001").await.expect(200);
    assert_eq!(again["session_id"], first["session_id"]);
    let soft = lock(&silo, &bob, "Sketch003").await.expect(200);
    assert_eq!((&soft["interference"], &soft["conflicts"][0]["user"]), (&json!("soft"), &json!(ann)));
    assert_eq!(soft["conflicts"][0]["shared"], json!(["Fillet005", "Pad003"]));
    let hard = lock(&silo, &bob, "Sketch001").await.refused(409, "hard_interference");
    assert_eq!((&hard["holder"]["user"], &hard["holder"]["object_id"]), (&json!(ann), &json!("Sketch001")));
    for body in [
        json!({}),
        json!({"workstation_id": "", "context_level": "sketch", "object_id": "x"}),
        json!({"workstation_id": "w", "context_level": "room", "object_id": "x"}),
    ] {
        silo.post("/api/items/P/edit-sessions", body).await.refused(400, "invalid_request");
    }
    assert_eq!(silo.get("/api/items/P/edit-sessions").await.as_array().unwrap().len(), 2);
    let own = silo.call(&ann, "GET", "/api/edit-sessions", Value::Null).await.expect(200);
    assert_eq!(all(&own, "object_id"), [&json!("Sketch001")]);
    let path = |session: &Value| format!("/api/items/P/edit-sessions/{}", text(&session["session_id"]));
    silo.call(&ann, "DELETE", &path(&soft), Value::Null).await.refused(403, "forbidden");
    silo.call(&bob, "POST", &format!("{}/heartbeat", path(&first)), Value::Null).await.refused(403, "forbidden");
    silo.call(&ann, "POST", &format!("{}/heartbeat", path(&first)), Value::Null).await.expect(200);
    assert_eq!(silo.call(&bob, "DELETE", &path(&first), Value::Null).await.status, 204, "an admin may force it");
    let told = heard.until("edit.interference_resolved", 1).await;
    let names: Vec<&str> = told.iter().map(|(_, name, _)| name.as_str()).collect();
    let expected =
        ["edit.session_acquired", "edit.session_acquired", "edit.session_released", "edit.interference_resolved"];
    assert_eq!(names, expected);
    assert_eq!(told[3].2["session_id"], soft["session_id"]);
    lock(&silo, &bob, "Sketch001").await.expect(200);
}

#[tokio::test]
async fn of_many_who_want_one_object_one_gets_it() {
    let silo = Silo::start(&[]).await;
    silo.item("P", "part").await;
    let body =
        |n: usize| json!({"workstation_id": format!("ws-{n}"), "context_level": "assembly", "object_id": "Main"});
    let wanted = (0..10).map(|n| silo.post("/api/items/P/edit-sessions", body(n)));
    let got = futures_util::future::join_all(wanted).await.into_iter().filter(|answer| answer.status == 200).count();
    assert_eq!(got, 1);
}

#[tokio::test]
async fn a_lock_nobody_keeps_is_gone_and_swept() {
    let settings = Values::default().with(windlass_server::dialects::silo::settings::silo_lock_timeout, "100ms");
    let silo = Silo::with(&[], settings).await;
    graph(&silo).await;
    let (ann, bob) = (token(Role::Editor), token(Role::Admin));
    let old = lock(&silo, &ann, "Sketch001").await.expect(200);
    silo.listening.server.pass(Millis(150)).await;
    assert_eq!(silo.get("/api/items/P/edit-sessions").await, json!([]));
    let new = lock(&silo, &bob, "Sketch001").await.expect(200);
    assert_ne!(new["session_id"], old["session_id"]);
    silo.listening.server.pass(Millis(150)).await;
    assert_eq!(sessions::sweep(silo.app()).await.map_err(|error| error.message).unwrap(), 1);
    assert_eq!(sessions::sweep(silo.app()).await.map_err(|error| error.message).unwrap(), 0);
}
