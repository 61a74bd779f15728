//! Many neops workers with many blocks each: nobody gets a job for a block it lacks, and whoever finds nothing costs nothing that
//! stays.

use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::SystemTime,
};
use windlass_e2e::{ADMIN, Plain, Server, knob};
use windlass_engine::testing::eventually_blocking;

const WORKERS: usize = 200;
const BLOCKS_EACH: usize = 50;
const BLOCKS: usize = 400;
/// Steps of a workflow: as many acquire jobs wait at once.
const STEPS: usize = 100;

fn versionable(block: usize) -> Value {
    json!({"name": format!("b{block}"), "package": "fb", "majorVersion": 1, "minorVersion": 0, "patchVersion": 0})
}

struct Crowd {
    server: Server,
    people: Plain,
    workers: Plain,
    /// The uuid of each, and its blocks.
    all: Vec<(String, BTreeSet<usize>)>,
    _folder: tempfile::TempDir,
}

impl Crowd {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(&folder.path().join("data"), None).await;
        let token = server.worker_token().await;
        let (people, workers) = (Plain::connect(server.address(), ADMIN), Plain::connect(server.address(), &token));
        let mut crowd = Self { server, people, workers, all: Vec::new(), _folder: folder };
        for block in 0..BLOCKS {
            let mut body = versionable(block);
            let more = json!({"description": "", "fbType": "check", "runOn": "global", "isPure": true,
                "parameterJsonSchema": {"type": "object"}, "resultDataJsonSchema": {"type": "object"}});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            assert_eq!(crowd.workers.call("POST", "/function-blocks/register", &body).0, 201);
        }
        for worker in 0..WORKERS {
            let (status, told) = crowd.workers.call("POST", "/workers/register", &json!({"version": "0.2.0"}));
            assert_eq!(status, 201);
            let blocks = (0..BLOCKS_EACH).map(|at| (worker * 2 + at * 7) % BLOCKS).collect();
            crowd.all.push((told["uuid"].as_str().unwrap().to_owned(), blocks));
        }
        crowd
    }

    /// What a worker is handed.
    fn poll(&mut self, worker: usize, limit: usize) -> Vec<Value> {
        let (uuid, blocks) = &self.all[worker];
        let blocks: Vec<Value> = blocks.iter().map(|block| versionable(*block)).collect();
        let body = json!({"functionBlockIds": blocks, "workerId": uuid, "limit": limit});
        let (status, jobs) = self.workers.call("POST", "/blackboard/job", &body);
        assert_eq!(status, 201, "{jobs}");
        jobs.as_array().unwrap().clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_a_job_for_a_block_it_lacks() {
    let mut crowd = Crowd::new().await;
    let runs = knob("WINDLASS_NEOPS_JOBS", 2_000) / STEPS;
    for at in 0..4 {
        let step = |step: usize| json!({"type": "functionBlock", "label": format!("s{step}"), "functionBlock": format!("fb/b{}:1", at * STEPS + step)});
        let workflow = json!({"type": "workflow", "label": "w", "name": format!("w{at}"), "package": "wf", "majorVersion": 1,
            "minorVersion": 0, "patchVersion": 0, "seedEntity": "global", "steps": (0..STEPS).map(step).collect::<Vec<_>>()});
        let (status, answer) =
            crowd.people.call("POST", "/workflow-definition/publish", &json!({"workflow": workflow}));
        assert_eq!(status, 201, "{answer}");
    }
    for run in 0..runs {
        let body = json!({"workflow": format!("wf/w{}:1", run % 4), "executeOnParameters": {}, "parameters": {}});
        assert_eq!(crowd.people.call("POST", "/workflow-execution", &body).0, 201);
    }
    let (mut seen, mut polls) = (BTreeSet::new(), 0);
    while seen.len() < runs * STEPS {
        let before = seen.len();
        for worker in 0..WORKERS {
            for job in crowd.poll(worker, 100) {
                let block = job["functionBlockId"].as_str().unwrap();
                let number: usize =
                    block.strip_prefix("fb/b").unwrap().strip_suffix(":1.0.0").unwrap().parse().unwrap();
                assert!(crowd.all[worker].1.contains(&number), "worker {worker} got {block}");
                assert!(seen.insert(job["jobId"].as_str().unwrap().to_owned()), "handed out twice");
            }
            polls += 1;
        }
        assert!(seen.len() > before, "{} of {} jobs were handed out", seen.len(), runs * STEPS);
    }
    println!("{} jobs in {polls} polls of {WORKERS} workers with {BLOCKS_EACH} blocks each", seen.len());
}

/// Every file below a folder: its size, and when it was written.
fn files(folder: &Path, found: &mut BTreeMap<PathBuf, (u64, SystemTime)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let (path, data) = (entry.as_ref().unwrap().path(), entry.unwrap().metadata().unwrap());
        match data.is_dir() {
            true => files(&path, found),
            false => drop(found.insert(path, (data.len(), data.modified().unwrap()))),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn polls_that_find_nothing_write_nothing() {
    let mut crowd = Crowd::new().await;
    let look = |crowd: &Crowd| {
        let mut found = BTreeMap::new();
        files(&crowd.server.data, &mut found);
        found
    };
    // What the server does of its own accord may come in between once; polls are in between every time.
    eventually_blocking("the files stay as they are", || {
        let before = look(&crowd);
        for worker in 0..WORKERS {
            assert!(crowd.poll(worker, 1).is_empty());
        }
        (look(&crowd) == before).then_some(())
    });
}
