//! neops' own worker and its generated client, unmodified, against the real server: nothing is changed but the address.

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    time::{Duration, Instant},
};
use windlass_e2e::{ADMIN, NeopsWorker, Plain, Server, neops_client};
use windlass_engine::testing::eventually_blocking;

const SOON: Duration = Duration::from_secs(30);

struct World {
    server: Server,
    calls: Plain,
    folder: tempfile::TempDir,
}

/// Unreachable after 3 s, offline after 9 s, deleted 5 s later.
async fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let env = [("WORKER_UNREACHABLE_THRESHOLD_MS", "3000"), ("WORKER_OFFLINE_DELETE_THRESHOLD_MS", "5000")];
    let env = env.iter().map(|(name, value)| (*name, PathBuf::from(value))).collect();
    let server = Server::start_in(&folder.path().join("data"), None, &[], env).await;
    let calls = Plain::connect(server.address(), ADMIN);
    World { server, calls, folder }
}

impl World {
    fn worker(&self, name: &str, more: &[(&str, &str)]) -> NeopsWorker {
        NeopsWorker::start(&self.server.url, name, self.folder.path(), more)
    }

    fn get(&mut self, path: &str) -> Value {
        let (status, answer) = self.calls.call("GET", path, &Value::Null);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// The worker of this name, once it is in this state and has registered its blocks.
    fn comes(&mut self, name: &str, state: &str) -> Value {
        eventually_blocking(format!("{name} is {state}"), || {
            let workers = self.get("/workers?populateFunctionBlocks=true&findDeleted=true");
            let fits = |worker: &&Value| {
                let blocks = worker["functionBlockIds"].as_array().map_or(0, Vec::len);
                worker["name"] == name && worker["state"] == state && blocks == 8
            };
            workers.as_array().unwrap().iter().find(fits).cloned()
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_worker_starts_serves_and_leaves_when_it_is_asked_to() {
    let mut world = world().await;
    let mut worker = world.worker("first", &[]);
    let shown = world.comes("first", "online");
    let uuid = shown["uuid"].as_str().unwrap().to_owned();
    let said = neops_client(&world.server.url);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    worker.signal(Signal::SIGTERM);
    assert_eq!(worker.ends(SOON).code(), Some(0), "drained");
    let left = world.get(&format!("/workers/{uuid}"));
    assert_eq!((&left["state"], &left["lastPingAt"]), (&json!("offline"), &json!("1970-01-01T00:00:00.000Z")));
    assert_eq!(world.get("/function-blocks/registrations/list").as_array().unwrap().len(), 8, "its blocks stay");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_worker_goes_through_the_cascade_and_another_comes_in_its_place() {
    let mut world = world().await;
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
    let mut world = world().await;
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
