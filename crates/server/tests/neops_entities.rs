//! Devices, interfaces and groups that neops runs are about.

use crate::support::Server;
use http::Method;
use serde_json::{Value, json};
use windlass_core::{commands::all::All, principal::Role};
use windlass_plan::neops::{
    reference::EntityType::{Device, Group, Interface},
    updates::Update,
};
use windlass_server::dialects::neops::{entities, locks};

const DEVICES: &str = "/api/v1/entities/device";

#[tokio::test]
async fn passwords_are_shown_to_admins_who_ask_for_one_entity_and_to_nobody_else() {
    let server = Server::start().await;
    let device = json!({"hostname": "sw1", "password": "s3cret-pw", "facts": {"a": 1}});
    assert_eq!(server.put(&format!("{DEVICES}/5"), device).await.expect(201)["outcome"], "created");
    let get = async |role| server.send(role, Method::GET, &format!("{DEVICES}/5"), None).await.expect(200);
    assert_eq!(get(Role::Admin).await["password"], "s3cret-pw");
    for role in [Role::Editor, Role::Viewer] {
        assert_eq!(get(role).await, json!({"id": 5, "hostname": "sw1", "facts": {"a": 1}}));
    }
    let list = server.get("/api/v1/entities?type=device").await.expect(200);
    assert_eq!(list, json!({"items": [{"id": 5, "hostname": "sw1", "facts": {"a": 1}}], "next": null}));
    // Whoever cannot see it does not remove it by sending the rest back.
    let put = async |body: Value| {
        server.send(Role::Editor, Method::PUT, &format!("{DEVICES}/5"), Some(body)).await.expect(200)
    };
    assert_eq!(put(json!({"hostname": "sw1", "facts": {"a": 1}})).await["outcome"], "unchanged");
    assert_eq!(put(json!({"hostname": "sw2"})).await["outcome"], "updated");
    assert_eq!(get(Role::Admin).await, json!({"id": 5, "hostname": "sw2", "password": "s3cret-pw"}));
    put(json!({"hostname": "sw2", "password": null})).await;
    assert_eq!(get(Role::Admin).await["password"], Value::Null);
    let events = server.get("/api/v1/events?namespace=neops&follow=false").await;
    assert!(!String::from_utf8_lossy(&events.body).contains("s3cret-pw"));
}

#[tokio::test]
async fn entities_are_checked_listed_in_pages_and_deleted() {
    let server = Server::start().await;
    let bad = [
        (format!("{DEVICES}/0"), json!({})),
        (format!("{DEVICES}/x"), json!({})),
        ("/api/v1/entities/planet/1".into(), json!({})),
        ("/api/v1/entities/global/1".into(), json!({})),
        (format!("{DEVICES}/5"), json!({"id": 6})),
        (format!("{DEVICES}/5"), json!({"hostname": 7})),
        (format!("{DEVICES}/5"), json!({"connectionState": "maybe"})),
        ("/api/v1/entities/interface/5".into(), json!({"device": 7})),
    ];
    for (path, body) in bad {
        let answer = server.put(&path, body.clone()).await;
        assert!([400, 422].contains(&answer.status.as_u16()), "{path} {body}: {}", answer.status);
    }
    for id in 1..=5 {
        server.put(&format!("{DEVICES}/{id}"), json!({})).await.expect(201);
    }
    let first = server.get("/api/v1/entities?type=device&limit=3").await.expect(200);
    assert_eq!((first["items"].as_array().unwrap().len(), &first["next"]), (3, &json!(3)));
    let second = server.get("/api/v1/entities?type=device&limit=3&after=3").await.expect(200);
    assert_eq!((second["items"].as_array().unwrap().len(), &second["next"]), (2, &Value::Null));
    assert_eq!(server.delete(&format!("{DEVICES}/5")).await.status, 204);
    server.delete(&format!("{DEVICES}/5")).await.expect(404);
    server.get(&format!("{DEVICES}/5")).await.expect(404);
    let status = server.send(Role::Viewer, Method::PUT, &format!("{DEVICES}/5"), Some(json!({}))).await.status;
    assert_eq!(status, 403);
}

#[tokio::test]
async fn what_a_run_changed_is_kept_under_ids_of_our_own() {
    let server = Server::start().await;
    server.put(&format!("{DEVICES}/5"), json!({"hostname": "five", "groups": [{"id": 2}]})).await.expect(201);
    server.put("/api/v1/entities/interface/11", json!({"name": "e1", "device": {"id": 5}})).await.expect(201);
    server.put("/api/v1/entities/group/2", json!({"name": "g", "devices": [{"id": 5}, {"id": 9}]})).await.expect(201);
    let updates = json!({"updates": [
        {"operation": "patch", "entity": "device", "id": 5, "path": "software_release", "value": "17.3"},
        {"operation": "create", "entity": "device", "id": 1969352685, "data": {"hostname": "new1", "ip": null}},
        {"operation": "create", "entity": "device", "id": 1969352686, "data": {"hostname": "five"},
            "identifierFields": ["hostname"], "skipIfIdentifierExists": true},
        {"operation": "patch", "entity": "device", "id": 1969352686, "path": "vendor", "value": "v"},
        {"operation": "create", "entity": "interface", "id": 1969352687, "data": {"name": "e2", "device": {"id": 1969352685}}},
        {"operation": "delete", "entity": "interface", "id": 11}]});
    let updates = Update::read_all(&updates, "dbUpdates").unwrap();
    let commands = entities::apply(&server.app, &updates).await.unwrap();
    server.engine.run(All { commands }).await.unwrap();
    let five = server.get(&format!("{DEVICES}/5")).await.expect(200);
    assert_eq!((&five["softwareRelease"], &five["vendor"]), (&json!("17.3"), &json!("v")));
    let new = server.get(&format!("{DEVICES}/1000")).await.expect(200);
    assert_eq!(new, json!({"id": 1000, "hostname": "new1"}));
    server.get("/api/v1/entities/interface/11").await.expect(404);
    let expand = async |from, ids: &[u64], to| {
        entities::expand(&server.app, from, ids, to).await.unwrap().into_iter().collect::<Vec<_>>()
    };
    assert_eq!(expand(Device, &[5, 1000], Interface).await, [1000]);
    assert_eq!(expand(Group, &[2], Device).await, [5, 9]);
    assert_eq!(expand(Interface, &[1000], Device).await, [1000]);
    assert_eq!(expand(Device, &[5, 77], Group).await, [2]);
    let many = entities::get_many(&server.app, Device, &[5, 77]).await.unwrap();
    assert_eq!((&many[&5]["hostname"], &many[&77]), (&json!("five"), &json!({"id": 77})));
}

#[tokio::test]
async fn locks_are_taken_all_or_none() {
    let server = Server::start().await;
    let (one, two) = (windlass_api::Uuid::from_u128(1), windlass_api::Uuid::from_u128(2));
    let run = async |commands| server.engine.run(All { commands }).await.is_ok();
    assert!(run(locks::take(one, &[(Device, 1), (Device, 2)])).await);
    assert!(!run(locks::take(two, &[(Device, 2), (Device, 3)])).await);
    let held = async |run| locks::held(&server.app, run, &[(Device, 3), (Device, 2)]).await.unwrap();
    assert_eq!((held(two).await, held(one).await), (Some(("device/2".into(), one)), None));
    assert!(run(locks::release(&[(Device, 2), (Device, 1)])).await);
    assert!(run(locks::take(two, &[(Device, 2), (Device, 3)])).await, "the first try left nothing behind");
}
