//! neops' own worker and its generated client, unmodified, in processes of their own.

use crate::{ADMIN, NO_PLUGINS, Plain, Server, program};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    time::{Duration, Instant},
};
use windlass_engine::testing::eventually_blocking;

/// As its own command does, but for the search for garbage in what is imported, which is a tenth of the start.
const START: &str = "import gc; gc.disable(); from neops_worker_sdk.cli.neops_worker import main; gc.enable(); main()";

/// Installed by `scripts/clients`: `worker` or `client`, with the Python that both need.
fn python(environment: &str) -> Command {
    let folder = program("windlass").parent().and_then(Path::parent).unwrap().join("clients");
    let start = fs::read_to_string(folder.join("neops_python"));
    let start = start.unwrap_or_else(|_| panic!("{} is not there; run scripts/clients first", folder.display()));
    let mut command = Command::new(start.trim());
    command.envs(NO_PLUGINS).env("PYTHONPATH", folder.join(format!("neops_{environment}")));
    command
}

fn ours(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("clients").join(name)
}

/// A process of `neops_worker` with the blocks of the tests.
pub struct NeopsWorker {
    child: Child,
    told: PathBuf,
}

impl NeopsWorker {
    /// Heartbeats and polls every second. What its blocks tell is written below the folder.
    pub fn start(url: &str, name: &str, folder: &Path, more: &[(&str, &str)]) -> Self {
        let told = folder.join(format!("{name}.told"));
        let mut command = python("worker");
        command
            .args(["-c", START])
            .env("URL_BLACKBOARD", url)
            .env("DIR_FUNCTION_BLOCKS", ours("neops_blocks"))
            .env("WORKER_NAME", name)
            .env("POLL_INTERVAL", "1")
            .env("HEARTBEAT_INTERVAL", "1")
            .env("STARTUP_RETRY_TIMEOUT", "30")
            .env("NEOPS_TOLD", &told)
            .envs(more.iter().copied())
            .stdout(Stdio::null());
        Self { child: command.spawn().expect("the worker starts"), told }
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("our own child can be signalled");
    }

    /// Its end, if it comes soon.
    pub fn ends(&mut self, within: Duration) -> ExitStatus {
        let begun = Instant::now();
        eventually_blocking("the worker ends", || {
            assert!(begun.elapsed() < within, "the worker goes on");
            self.child.try_wait().expect("our own child can be waited for")
        })
    }

    /// All that its blocks have told so far.
    pub fn told(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.told).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("whole lines")).collect()
    }
}

impl Drop for NeopsWorker {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Lets the generated client ask for everything.
pub fn neops_client(url: &str) -> Output {
    python("client").arg(ours("neops_client.py")).arg(url).output().expect("the client starts")
}

/// Blocks that the worker of the tests registers.
pub const BLOCKS: usize = 8;

/// A server, and what people ask it.
pub struct NeopsWorld {
    pub server: Server,
    pub calls: Plain,
    pub folder: tempfile::TempDir,
}

impl NeopsWorld {
    /// A worker is unreachable after 3 s, offline after 9 s, and deleted 5 s later.
    pub async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let env = [("WORKER_UNREACHABLE_THRESHOLD_MS", "3000"), ("WORKER_OFFLINE_DELETE_THRESHOLD_MS", "5000")];
        let env = env.iter().map(|(name, value)| (*name, PathBuf::from(value))).collect();
        let server = Server::start_in(&folder.path().join("data"), None, &[], env).await;
        Self::at(server, folder)
    }

    pub fn at(server: Server, folder: tempfile::TempDir) -> Self {
        let calls = Plain::connect(server.address(), ADMIN);
        Self { server, calls, folder }
    }

    pub fn worker(&self, name: &str, more: &[(&str, &str)]) -> NeopsWorker {
        NeopsWorker::start(&self.server.url, name, self.folder.path(), more)
    }

    pub fn get(&mut self, path: &str) -> Value {
        let (status, answer) = self.calls.call("GET", path, &Value::Null);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    pub fn post(&mut self, path: &str, body: &Value, expected: u16) -> Value {
        let (status, answer) = self.calls.call("POST", path, body);
        assert_eq!(status, expected, "{path}: {answer}");
        answer
    }

    /// The worker of this name, once it is in this state and has registered its blocks.
    pub fn comes(&mut self, name: &str, state: &str) -> Value {
        eventually_blocking(format!("{name} is {state}"), || {
            let workers = self.get("/workers?populateFunctionBlocks=true&findDeleted=true");
            let fits = |worker: &&Value| {
                let blocks = worker["functionBlockIds"].as_array().map_or(0, Vec::len);
                worker["name"] == name && worker["state"] == state && blocks == BLOCKS
            };
            workers.as_array().unwrap().iter().find(fits).cloned()
        })
    }

    /// A workflow of these steps: a label, a block and its parameters.
    pub fn publish(&mut self, name: &str, seed: &str, steps: &[(&str, &str, Value)]) {
        let step = |(label, block, parameters): &(&str, &str, Value)| {
            let block = format!("fb.test/{block}:1");
            json!({"type": "functionBlock", "label": label, "functionBlock": block, "parameters": parameters})
        };
        let steps: Vec<Value> = steps.iter().map(step).collect();
        let workflow = json!({"type": "workflow", "label": "wf", "name": name, "package": "wf.test", "majorVersion": 1,
            "minorVersion": 0, "patchVersion": 0, "seedEntity": seed, "steps": steps});
        self.post("/workflow-definition/publish", &json!({ "workflow": workflow }), 201);
    }

    pub fn start(&mut self, name: &str, ids: &[u64], parameters: Value) -> String {
        let body = json!({"workflow": format!("wf.test/{name}:1"), "executeOnParameters": {"ids": ids},
            "parameters": parameters});
        self.post("/workflow-execution", &body, 201)["uuid"].as_str().unwrap().to_owned()
    }

    pub fn run(&mut self, run: &str) -> Value {
        self.get(&format!("/workflow-execution/id/{run}"))
    }

    /// The run, once it is in this state.
    pub fn becomes(&mut self, run: &str, status: &str) -> Value {
        eventually_blocking(format!("{run} is {status}"), || {
            let seen = self.run(run);
            let over = seen["status"].as_str().is_some_and(|status| status.ends_with("_ack"));
            assert!(!over || seen["status"] == status, "{run} is not {status}: {seen}");
            (seen["status"] == status).then_some(seen)
        })
    }

    /// The jobs of a run, in the order in which they were made: `type label resultStatus retryCount`.
    pub fn jobs(&mut self, run: &str) -> Vec<String> {
        let page = self.get(&format!("/workflow-execution/{run}/jobs?limit=200"));
        let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let line =
            |job: &Value| ["type", "stepLabel", "resultStatus", "retryCount"].map(|name| word(&job[name])).join(" ");
        page["items"].as_array().unwrap().iter().map(line).collect()
    }
}
