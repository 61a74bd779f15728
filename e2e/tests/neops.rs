//! neops' own worker and its generated client, unmodified, against the real server: nothing is changed but the address.

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
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
    let begun = Instant::now();
    worker.signal(Signal::SIGKILL);
    for (state, after) in [("unreachable", 3.0), ("offline", 9.0)] {
        world.comes("first", state);
        let took = begun.elapsed().as_secs_f64();
        println!("{state} after {took:.1} s; set to {after} s after its last ping");
        assert!((after - 1.5..after + 3.0).contains(&took), "{state} after {took}");
    }
    let gone = eventually_blocking("it is deleted", || {
        let (status, _) = world.calls.call("GET", &format!("/workers/{uuid}"), &Value::Null);
        (status == 404).then(|| begun.elapsed())
    });
    println!("deleted after {gone:?}; set to 14 s after its last ping");
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
