//! neops' own worker and its generated client, unmodified, in processes of their own.

use crate::program;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    time::{Duration, Instant},
};
use windlass_engine::testing::eventually_blocking;

/// Installed by `scripts/clients`: `worker` or `client`, with the Python that both need.
fn python(environment: &str) -> Command {
    let folder = program("windlass").parent().and_then(Path::parent).unwrap().join("clients");
    let start = fs::read_to_string(folder.join("neops_python"));
    let start = start.unwrap_or_else(|_| panic!("{} is not there; run scripts/clients first", folder.display()));
    let mut command = Command::new(start.trim());
    command.env("PYTHONPATH", folder.join(format!("neops_{environment}")));
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
            .args(["-c", "from neops_worker_sdk.cli.neops_worker import main; main()"])
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
