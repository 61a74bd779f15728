//! Whole runs with neops' own worker: what it does, in which order, and what the server says of it.

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    path::Path,
    time::Duration,
};
use windlass_e2e::{ADMIN, NeopsWorker, NeopsWorld, Plain, Server};
use windlass_engine::testing::eventually_blocking;

const SOON: Duration = Duration::from_secs(30);

fn says(message: &str) -> Value {
    json!({ "message": message })
}

/// What blocks did, without what they acquired.
fn did(worker: &NeopsWorker) -> Vec<String> {
    let told = worker.told();
    let done = told.iter().filter(|line| line["what"] != "acquire");
    done.map(|line| format!("{} {}", line["what"].as_str().unwrap(), line["message"].as_str().unwrap())).collect()
}

fn began(worker: &NeopsWorker) {
    eventually_blocking("its block began", || worker.told().iter().find(|line| line["what"] == "began").cloned());
}

/// Milliseconds of the clock in a time as the API tells it.
fn millis(time: &Value) -> i64 {
    let time: jiff::Timestamp = time.as_str().unwrap_or_else(|| panic!("no time: {time}")).parse().unwrap();
    time.as_millisecond()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pure_block_that_fails_is_tried_again_as_new_jobs() {
    let mut world = NeopsWorld::new().await;
    let worker = world.worker("first", &[]);
    world.comes("first", "online");
    world.publish("raises", "global", &[("a", "raises", says("no"))]);
    let run = world.start("raises", &[], json!({}));
    let ended = world.becomes(&run, "failed_safe_ack");
    assert_eq!(ended["reasonCode"], "step_failed");
    assert!(ended["reason"].as_str().unwrap().contains("Error executing function block: no"), "{ended}");
    let expected = [
        "acquire a success-ack 0",
        "execute a failed-ack 0",
        "execute a failed-ack 1",
        "execute a failed-ack 2",
        "execute a failed-ack 3",
    ];
    assert_eq!(world.jobs(&run), expected);
    assert_eq!(did(&worker), ["run Raises no"; 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_third_step_fails_is_rolled_back_in_reverse() {
    let mut world = NeopsWorld::new().await;
    let worker = world.worker("first", &[]);
    world.comes("first", "online");
    let steps = [("a", "change", says("one")), ("b", "change", says("two")), ("c", "breaks", says("three"))];
    world.publish("three", "global", &steps);
    let run = world.start("three", &[], json!({}));
    let ended = world.becomes(&run, "failed_safe_ack");
    assert_eq!((&ended["reasonCode"], &ended["unsafeCause"]), (&json!("step_failed"), &Value::Null));
    assert_eq!((&ended["reason"], &ended["cmsResourcesLocked"]), (&json!("step c: broken"), &json!(false)));
    let expected = [
        "run Change one",
        "run Change two",
        "run Breaks three",
        "rollback Breaks three",
        "rollback Change two",
        "rollback Change one",
    ];
    assert_eq!(did(&worker), expected);
    let ledger = world.get(&format!("/workflow-execution/{run}/remediation"));
    assert_eq!(ledger["complete"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_irreversible_step_keeps_its_locks_until_it_is_remedied() {
    let mut world = NeopsWorld::new().await;
    let worker = world.worker("first", &[]);
    world.comes("first", "online");
    let steps = [("a", "change", says("one")), ("b", "burn", says("two")), ("c", "breaks", says("three"))];
    world.publish("burns", "device", &steps);
    let run = world.start("burns", &[5], json!({}));
    let ended = world.becomes(&run, "failed_unsafe_ack");
    assert_eq!(ended["unsafeCause"], "rollback_blocked");
    assert_eq!(ended["heldLocks"], json!({"devices": [5], "deviceGroups": [], "interfaces": []}));
    assert_eq!(did(&worker), ["run Change one", "run Burn two", "run Breaks three"], "nothing is rolled back");
    let path = format!("/workflow-execution/{run}/remediation");
    let ledger = world.get(&path);
    let burnt = ledger["entries"].as_array().unwrap().iter().find(|entry| entry["stepLabel"] == "b").unwrap();
    let body = json!({"jobs": [burnt["jobUuid"]], "note": "put back by hand", "continueRollback": true});
    let answer = world.post(&format!("{path}/resolve"), &body, 200);
    assert_eq!((&answer["resolvedJobs"], &answer["createdRollbackJobs"]), (&json!(1), &json!(2)));
    let free = eventually_blocking("it is remedied", || {
        Some(world.run(&run)).filter(|run| run["status"] == "failed_safe_ack")
    });
    assert_eq!((&free["cmsResourcesLocked"], &free["heldLocks"]), (&json!(false), &Value::Null));
    assert_eq!(did(&worker)[3..], ["rollback Breaks three", "rollback Change one"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_runs_for_one_device_the_second_waits_says_so_and_goes_on_at_once() {
    let mut world = NeopsWorld::new().await;
    let workers = ["first", "second"].map(|name| world.worker(name, &[]));
    for name in ["first", "second"] {
        world.comes(name, "online");
    }
    world.publish("slow", "device", &[("a", "slow", json!({"message": "{{ parameters.who }}", "seconds": 4}))]);
    let first = world.start("slow", &[5], json!({"who": "one"}));
    world.becomes(&first, "running");
    let second = world.start("slow", &[5], json!({"who": "two"}));
    let waits = world.becomes(&second, "locking");
    let note = waits["retryNote"].as_str().unwrap();
    assert!(note.contains("device/5") && note.contains(&first), "{note}");
    let (first, second) = (world.becomes(&first, "completed_ack"), world.becomes(&second, "completed_ack"));
    let gap = millis(&second["startedAt"]) - millis(&first["finishedAt"]);
    println!("the second run went on {gap} ms after the first gave its lock back");
    assert!((0..1_000).contains(&gap), "{gap} ms");
    assert_eq!(workers.iter().map(|worker| did(worker).len()).sum::<usize>(), 4, "each began and ended once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_asked_to_leave_brings_its_job_to_an_end() {
    let mut world = NeopsWorld::new().await;
    let mut worker = world.worker("first", &[]);
    world.comes("first", "online");
    // Longer than a worker may be silent: it pings while it drains.
    world.publish("slow", "global", &[("a", "slow", json!({"message": "x", "seconds": 6}))]);
    let run = world.start("slow", &[], json!({}));
    began(&worker);
    worker.signal(Signal::SIGTERM);
    world.becomes(&run, "completed_ack");
    assert_eq!(worker.ends(SOON).code(), Some(0), "drained");
    assert_eq!(world.jobs(&run), ["acquire a success-ack 0", "execute a success-ack 0"]);
    world.comes("first", "offline");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_outlasts_the_shutdown_of_its_worker_goes_to_another() {
    let mut world = NeopsWorld::new().await;
    let mut worker = world.worker("first", &[("SHUTDOWN_TIMEOUT", "1")]);
    world.comes("first", "online");
    world.publish("slow", "global", &[("a", "slow", json!({"message": "x", "seconds": 5}))]);
    let run = world.start("slow", &[], json!({}));
    began(&worker);
    worker.signal(Signal::SIGTERM);
    assert_eq!(worker.ends(SOON).code(), Some(1), "its time was over");
    world.comes("first", "offline");
    let jobs = || ["acquire a success-ack 0", "execute a failed-ack 0", "execute a success-ack 1"];
    eventually_blocking("the job failed with its worker", || (world.jobs(&run).len() == jobs().len()).then_some(()));
    let second = world.worker("second", &[]);
    world.becomes(&run, "completed_ack");
    assert_eq!(world.jobs(&run), jobs());
    assert_eq!((did(&worker), did(&second)), (vec!["began x".into()], vec!["began x".into(), "run Slow x".into()]));
}

/// How often each message was said, by all workers together.
fn said(workers: &[NeopsWorker]) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for line in workers.iter().flat_map(did) {
        *all.entry(line).or_default() += 1;
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_share_the_jobs_and_none_is_done_twice() {
    const RUNS: usize = 6;
    let mut world = NeopsWorld::new().await;
    let workers = ["first", "second"].map(|name| world.worker(name, &[]));
    for name in ["first", "second"] {
        world.comes(name, "online");
    }
    world.publish("says", "global", &[("a", "burn", says("{{ parameters.who }}"))]);
    let runs: Vec<String> = (0..RUNS).map(|at| world.start("says", &[], json!({"who": at.to_string()}))).collect();
    for run in &runs {
        world.becomes(run, "completed_ack");
    }
    assert!(workers.iter().all(|worker| !did(worker).is_empty()), "both had some");
    let expected = (0..RUNS).map(|at| (format!("run Burn {at}"), 1)).collect();
    assert_eq!(said(&workers), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_on_one_database_share_runs_and_one_goes_on_without_the_other() {
    let cluster = windlass_stores::testing::Cluster::start();
    let database = cluster.create_database("neops");
    let [one, two, shared] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let artifacts = ["--artifacts", shared.path().to_str().unwrap()];
    let env = || vec![("WORKER_UNREACHABLE_THRESHOLD_MS", "3000".into())];
    let start = async |at: &Path| Server::start_in(at, Some(&database), &artifacts, env()).await;
    let (other, here) = (start(one.path()).await, start(two.path()).await);
    let mut world = NeopsWorld::at(here, two);
    let mut there = NeopsWorld::at(other, one);
    let workers = [there.worker("there", &[]), world.worker("here", &[])];
    for name in ["there", "here"] {
        world.comes(name, "online");
    }
    world.publish("says", "device", &[("a", "rename", says("{{ parameters.who }}"))]);
    let runs: Vec<String> = (0..4).map(|at| world.start("says", &[at + 1], json!({"who": at.to_string()}))).collect();
    for run in &runs {
        there.becomes(run, "completed_ack");
    }
    assert!(workers.iter().all(|worker| !did(worker).is_empty()), "both had some");
    assert_eq!(said(&workers), (0..4).map(|at| (format!("run Rename {at}"), 1)).collect());
    let run = world.start("says", &[9], json!({"who": "alone"}));
    there.server.kill();
    world.becomes(&run, "completed_ack");
    world.comes("there", "unreachable");
    there.server.restart().await;
    world.comes("there", "online");
}

/// An address of this machine that is not loopback, if it has one.
fn own_address() -> Ipv4Addr {
    let outward = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        // Nothing is sent: the system only says which address it would come from.
        socket.connect((Ipv4Addr::new(198, 51, 100, 1), 9))?;
        socket.local_addr()
    });
    match outward {
        Ok(SocketAddr::V4(own)) if !own.ip().is_loopback() && !own.ip().is_unspecified() => *own.ip(),
        _ => Ipv4Addr::new(127, 0, 0, 2),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_elsewhere_brings_its_token_in_the_address() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let env = vec![("WINDLASS_WITHOUT_TOKEN", "never".into())];
    let server = Server::start_on(own_address(), &data, None, &[], env).await;
    println!("the server listens on {}", server.address());
    let token = server.worker_token().await;
    let mut world = NeopsWorld::at(server, folder);
    let mut stranger = Plain::connect(world.server.address(), "none");
    let (status, _) = stranger.call("POST", "/workers/register", &json!({"version": "0.2.0"}));
    assert_eq!(status, 401, "nobody comes without a token");
    let mut refused = NeopsWorker::start(&world.server.url, "refused", world.folder.path(), &[]);
    assert_eq!(refused.ends(SOON).code(), Some(1), "it was told that it may not");
    let url = world.server.url.replace("http://", &format!("http://worker:{token}@"));
    let _worker = NeopsWorker::start(&url, "far", world.folder.path(), &[]);
    world.comes("far", "online");
    world.publish("says", "global", &[("a", "echo", says("hi"))]);
    let run = world.start("says", &[], json!({}));
    world.becomes(&run, "completed_ack");
    let (status, _) = Plain::connect(world.server.address(), ADMIN).call("GET", "/workers/online", &Value::Null);
    assert_eq!(status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_parallel_one_device_goes_on_while_another_is_worked_on() {
    let mut world = NeopsWorld::new().await;
    let workers = ["first", "second"].map(|name| world.worker(name, &[]));
    for name in ["first", "second"] {
        world.comes(name, "online");
    }
    let step = |label: &str, block: &str, on: &str, parameters: Value| {
        json!({"type": "functionBlock", "label": label, "functionBlock": format!("fb.test/{block}:1"), "runOn": on,
            "parameters": parameters})
    };
    let mine = json!({"message": "{{ context.device.hostname }}", "seconds": "{{ context.device.facts.seconds }}"});
    let steps = [
        step("a", "slow", "device", mine),
        step("b", "change", "device", says("{{ context.device.hostname }}")),
        step("c", "echo", "global", says("all")),
    ];
    let workflow = json!({"type": "workflow", "label": "wf", "name": "lanes", "package": "wf.test", "majorVersion": 1,
        "minorVersion": 0, "patchVersion": 0, "seedEntity": "device", "steps": steps,
        "config": {"executionStrategy": {"parallel": true}}});
    world.post("/workflow-definition/publish", &json!({ "workflow": workflow }), 201);
    for (id, name, seconds) in [(1, "slowly", 7), (2, "quickly", 0)] {
        let device = json!({"id": id, "hostname": name, "facts": {"seconds": seconds}});
        let (status, answer) = world.calls.call("PUT", &format!("/api/v1/entities/device/{id}"), &device);
        assert_eq!(status, 201, "{answer}");
    }
    let run = world.start("lanes", &[1, 2], json!({}));
    let all = || workers.iter().flat_map(did).collect::<Vec<_>>();
    let told = eventually_blocking("the quick device is at its second step", || {
        Some(all()).filter(|told| told.contains(&"run Change quickly".into()))
    });
    assert!(!told.contains(&"run Slow slowly".into()), "the slow one is still at its first: {told:?}");
    world.becomes(&run, "completed_ack");
    let told = all();
    for line in ["run Slow slowly", "run Change slowly", "run Echo all"] {
        assert_eq!(told.iter().filter(|told| *told == line).count(), 1, "{line} once: {told:?}");
    }
    let jobs = world.jobs(&run);
    assert_eq!(jobs.len(), 8, "{jobs:?}");
    assert_eq!(jobs.last().unwrap(), "execute c success-ack 0", "the global step waits for both");
}
