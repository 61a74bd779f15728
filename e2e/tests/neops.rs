//! neops' own worker and its generated client, unmodified, against the real server: nothing is changed but the address.

use jiff::Timestamp;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::time::Duration;
use windlass_e2e::{ADMIN, NEOPS_BLOCKS as BLOCKS, NeopsWorld, Plain, neops_client};
use windlass_engine::testing::eventually_blocking;

const SOON: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn the_worker_starts_serves_and_leaves_when_it_is_asked_to() {
    let mut world = NeopsWorld::new().await;
    let mut worker = world.worker("first", &[]);
    let shown = world.comes("first", "online");
    let uuid = shown["uuid"].as_str().unwrap().to_owned();
    let said = neops_client(&world.server.url);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    worker.signal(Signal::SIGTERM);
    assert_eq!(worker.ends(SOON).code(), Some(0), "drained");
    let left = world.get(&format!("/workers/{uuid}"));
    assert_eq!((&left["state"], &left["lastPingAt"]), (&json!("offline"), &json!("1970-01-01T00:00:00.000Z")));
    assert_eq!(world.get("/function-blocks/registrations/list").as_array().unwrap().len(), BLOCKS, "its blocks stay");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_worker_goes_through_the_cascade_and_another_comes_in_its_place() {
    let mut world = NeopsWorld::new().await;
    let worker = world.worker("first", &[]);
    let uuid = world.comes("first", "online")["uuid"].as_str().unwrap().to_owned();
    worker.signal(Signal::SIGKILL);
    // All on one machine: its clock says when the last ping came and when this test looks.
    let since = |ping: &str| Timestamp::now().duration_since(ping.parse().unwrap()).as_secs_f64();
    let mut ping = String::new();
    for (state, after) in [("unreachable", 3.0), ("offline", 9.0)] {
        let shown = world.comes("first", state);
        ping = shown["lastPingAt"].as_str().unwrap().to_owned();
        let took = since(&ping);
        println!("{state} {took:.1} s after its last ping; set to {after} s");
        assert!((after..after + 3.0).contains(&took), "{state} after {took}");
    }
    let gone = eventually_blocking("it is deleted", || {
        let (status, _) = world.calls.call("GET", &format!("/workers/{uuid}"), &Value::Null);
        (status == 404).then(|| since(&ping))
    });
    println!("deleted {gone:.1} s after its last ping; set to 14 s");
    assert!(gone >= 14.0, "deleted after {gone}");
    let _second = world.worker("second", &[]);
    world.comes("second", "online");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_was_deleted_ends_and_one_outlives_a_restart_of_the_server() {
    let mut world = NeopsWorld::new().await;
    let mut worker = world.worker("first", &[]);
    let uuid = world.comes("first", "online")["uuid"].as_str().unwrap().to_owned();
    world.server.kill();
    world.server.restart().await;
    world.calls = Plain::connect(world.server.address(), ADMIN);
    assert_eq!(world.comes("first", "online")["uuid"], json!(uuid), "the same one");
    let (status, _) = world.calls.call("DELETE", &format!("/workers/{uuid}"), &Value::Null);
    assert_eq!(status, 204);
    assert_eq!(worker.ends(SOON).code(), Some(1), "its ping was answered 404");
}
