//! The real worker program, as a process, against a real server.
#![allow(dead_code, reason = "each test file uses some of it")]

#[path = "../../../sdk/tests/support/mod.rs"]
pub mod server;

pub use server::{Server, json};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{path::Path, process::Stdio};
use tokio::process::{Child, Command};
use windlass_core::principal::Role;
use windlass_engine::testing::eventually;
use windlass_sdk::api::{
    JobSettings,
    job::{Retry, SubmitJob},
};

pub struct Program {
    pub child: Child,
    /// In the environment of everything it starts by itself.
    mark: String,
}

/// `windlass-worker` in a folder of its own, with leases that are short and yet outlast a machine that stands still for two seconds.
pub fn program(server: &Server, name: &str, flags: &[&str]) -> Program {
    Program::start(worker(name, flags), server)
}

fn worker(name: &str, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass-worker"));
    // Before the other flags, because --exec takes the rest of the line.
    let lease: &[&str] = if flags.contains(&"--lease-ms") { &[] } else { &["--lease-ms", "4000"] };
    command.args(["--name", name]).args(lease).args(flags);
    command
}

/// The same with what it says about itself in a file, every failed call included.
pub fn logging_program(server: &Server, name: &str, flags: &[&str], log: &Path) -> Program {
    let mut command = worker(name, flags);
    command.env("WINDLASS_LOG", "info,windlass_sdk=debug").stderr(std::fs::File::create(log).unwrap());
    Program::start(command, server)
}

/// With all it started: a test leaves nothing behind, not even of a shell that gives each job a group of its own.
impl Drop for Program {
    fn drop(&mut self) {
        if self.child.id().is_none() {
            return;
        }
        self.signal(Signal::SIGKILL);
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment.split(|&byte| byte == 0).any(|variable| variable == self.mark.as_bytes()) {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
    }
}

impl Program {
    /// Any worker, told where the server is.
    pub fn start(mut command: Command, server: &Server) -> Self {
        let work = server.folder().join("work");
        command
            .env("WINDLASS_SERVER", server.url())
            .env("WINDLASS_TOKEN", server::token(Role::Worker))
            .env("WINDLASS_WORK_DIR", &work)
            .stdin(Stdio::null());
        Self { child: command.spawn().unwrap(), mark: format!("WINDLASS_WORK_DIR={}", work.display()) }
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().expect("it runs") as i32)
    }

    pub fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap();
    }

    /// Waits for its end.
    pub async fn ends(&mut self) -> Option<i32> {
        tokio::time::timeout(server::PATIENCE, self.child.wait()).await.expect("the worker ends").unwrap().code()
    }

    pub async fn drains(mut self) {
        self.signal(Signal::SIGTERM);
        assert_eq!(self.ends().await, Some(0));
    }
}

pub fn shell(text: &str) -> SubmitJob {
    let payload = json(serde_json::json!({ "shell": text }));
    let retry = Some(Retry { attempts: Some(1), ..Retry::default() });
    SubmitJob { payload, ..SubmitJob::default() }.with(JobSettings { retry, ..JobSettings::default() })
}

/// Waits for a file with something in it.
pub async fn content(file: &Path) -> String {
    let look = async || std::fs::read_to_string(file).ok().filter(|text| text.ends_with('\n'));
    eventually(format!("{} comes", file.display()), look).await.trim().to_owned()
}

/// Waits until a process is gone; one that nobody waits for any more counts as gone.
pub async fn gone(pid: i32) {
    let look = async || {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let over = state.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'));
        (state.is_empty() || over).then_some(())
    };
    eventually(format!("process {pid} is gone"), look).await;
}

pub fn attempts_of(job: &windlass_sdk::api::job::Job) -> Vec<(u32, &str)> {
    job.attempts.iter().map(|attempt| (attempt.number, attempt.error.reason.as_str())).collect()
}
