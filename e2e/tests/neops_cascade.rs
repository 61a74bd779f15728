//! Each step of the cascade beside its threshold: a worker that falls silent with a job in hand, one that leaves with a job in
//! hand, and one that is alive and never reports. Results that come after the end of their job are refused.

use serde_json::{Value, json};
use std::{
    path::PathBuf,
    time::{Duration, Instant},
};
use windlass_e2e::{ADMIN, Plain, Server};
use windlass_engine::testing::eventually_blocking;

const UNREACHABLE: u64 = 2_000;
const OFFLINE: u64 = 4_000;
const DELETED: u64 = 3_000;
const STUCK: u64 = 6_000;
/// How much later than its time something may be seen, on a machine that has other things to do.
const LATE: Duration = Duration::from_millis(2_500);

struct World {
    people: Plain,
    workers: Plain,
    _server: Server,
    _folder: tempfile::TempDir,
}

fn block() -> Value {
    json!({"name": "change", "package": "fb", "majorVersion": 1, "minorVersion": 0, "patchVersion": 0})
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let env = [
            ("WORKER_UNREACHABLE_THRESHOLD_MS", UNREACHABLE),
            ("WORKER_OFFLINE_THRESHOLD_MS", OFFLINE),
            ("WORKER_OFFLINE_DELETE_THRESHOLD_MS", DELETED),
            ("BLACKBOARD_STUCK_JOB_TIMEOUT", STUCK),
        ];
        let env = env.iter().map(|(name, value)| (*name, PathBuf::from(value.to_string()))).collect();
        let server = Server::start_in(&folder.path().join("data"), None, &[], env).await;
        let token = server.worker_token().await;
        let (people, workers) = (Plain::connect(server.address(), ADMIN), Plain::connect(server.address(), &token));
        let mut world = Self { people, workers, _server: server, _folder: folder };
        let mut body = block();
        let more = json!({"description": "", "fbType": "execute", "runOn": "global", "reversible": true,
            "parameterJsonSchema": {"type": "object"}, "resultDataJsonSchema": {"type": "object"}});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(world.workers.call("POST", "/function-blocks/register", &body).0, 201);
        let steps = [json!({"type": "functionBlock", "label": "a", "functionBlock": "fb/change:1"})];
        let workflow = json!({"type": "workflow", "label": "w", "name": "one", "package": "wf", "majorVersion": 1,
            "minorVersion": 0, "patchVersion": 0, "seedEntity": "global", "steps": steps});
        let (status, answer) =
            world.people.call("POST", "/workflow-definition/publish", &json!({"workflow": workflow}));
        assert_eq!(status, 201, "{answer}");
        world
    }

    fn get(&mut self, path: &str) -> Value {
        self.people.call("GET", path, &Value::Null).1
    }

    fn post(&mut self, path: &str, body: &Value) -> u16 {
        self.workers.call("POST", path, body).0
    }

    fn push(&mut self, job: &str) -> u16 {
        let body = json!({"jobExecutionId": job, "status": "success", "result": {"success": true, "data": {}}});
        self.post("/blackboard/job/result", &body)
    }

    fn next(&mut self, worker: &str, kind: &str) -> String {
        let body = json!({"functionBlockIds": [block()], "workerId": worker});
        eventually_blocking(format!("there is a job to {kind}"), || {
            let (_, jobs) = self.workers.call("POST", "/blackboard/job", &body);
            let job = jobs.get(0)?;
            assert_eq!(job["type"], kind);
            Some(job["jobId"].as_str().unwrap().to_owned())
        })
    }

    /// A run whose work a worker has in hand. Since when, by the worker's last sign of life and by the claim.
    fn in_hand(&mut self) -> Held {
        let body = json!({"workflow": "wf/one:1", "executeOnParameters": {}, "parameters": {}});
        let (_, run) = self.people.call("POST", "/workflow-execution", &body);
        let run = run["uuid"].as_str().unwrap().to_owned();
        let (_, told) = self.workers.call("POST", "/workers/register", &json!({"version": "0.2.0"}));
        let worker = told["uuid"].as_str().unwrap().to_owned();
        let acquire = self.next(&worker, "acquire");
        assert_eq!(self.push(&acquire), 201);
        let job = self.next(&worker, "execute");
        let claimed = Instant::now();
        assert_eq!(self.post(&format!("/workers/{worker}/ping"), &Value::Null), 200);
        Held { run, worker, job, claimed, pinged: Instant::now() }
    }

    /// The code of the reason for which a run ended its way forward, once it has one.
    fn reason(&mut self, run: &str) -> Option<String> {
        self.get(&format!("/workflow-execution/id/{run}"))["reasonCode"].as_str().map(str::to_owned)
    }

    /// The rollback that follows, so that the next run finds no job of this one.
    fn undone(&mut self) {
        let (_, told) = self.workers.call("POST", "/workers/register", &json!({"version": "0.2.0"}));
        let worker = told["uuid"].as_str().unwrap().to_owned();
        let job = self.next(&worker, "rollback");
        assert_eq!(self.push(&job), 201);
    }
}

struct Held {
    run: String,
    worker: String,
    job: String,
    claimed: Instant,
    pinged: Instant,
}

fn told(what: &str, set_ms: u64, took: Duration) {
    println!("{what}: set to {:.1} s, seen after {:.2} s", set_ms as f64 / 1e3, took.as_secs_f64());
    let set = Duration::from_millis(set_ms);
    // What is measured begins at the answer of the call that begins it on the server.
    assert!(took + Duration::from_millis(300) >= set && took <= set + LATE, "{what} after {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_step_of_the_cascade_comes_at_its_time_and_late_results_are_refused() {
    let mut world = World::new().await;

    let held = world.in_hand();
    let path = format!("/workers/{}", held.worker);
    for (state, set) in [("unreachable", UNREACHABLE), ("offline", OFFLINE)] {
        eventually_blocking(state, || (world.get(&path)["state"] == state).then_some(()));
        told(&format!("silent worker {state}"), set, held.pinged.elapsed());
    }
    let why = eventually_blocking("its run fails", || world.reason(&held.run));
    told("the job of a silent worker fails", OFFLINE, held.pinged.elapsed());
    assert_eq!(why, "worker_lost");
    assert_eq!(world.push(&held.job), 409, "too late");
    eventually_blocking("it is deleted", || (world.get(&path)["statusCode"] == 404).then_some(()));
    told("silent worker deleted", OFFLINE + DELETED, held.pinged.elapsed());
    assert_eq!(world.post(&format!("{path}/ping"), &Value::Null), 404);
    world.undone();

    let held = world.in_hand();
    let begun = Instant::now();
    assert_eq!(world.post(&format!("/workers/{}/unregister", held.worker), &Value::Null), 200);
    let why = eventually_blocking("its run fails", || world.reason(&held.run));
    told("the job of a worker that unregistered fails", 0, begun.elapsed());
    assert_eq!(why, "worker_lost");
    assert_eq!(world.push(&held.job), 409, "too late");
    world.undone();

    let held = world.in_hand();
    let ping = format!("/workers/{}/ping", held.worker);
    let why = eventually_blocking("its run fails", || {
        assert_eq!(world.post(&ping, &Value::Null), 200);
        world.reason(&held.run)
    });
    told("the job of a worker that is alive and never reports fails", STUCK, held.claimed.elapsed());
    assert_eq!(why, "job_timed_out");
    assert_eq!(world.push(&held.job), 409, "too late");
}
