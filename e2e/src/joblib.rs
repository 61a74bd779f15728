//! ZnDraw's own client, unmodified, in processes of its own; and the calls of those who submit to it.

use crate::{NO_PLUGINS, Plain, Server, program};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};
use windlass_engine::testing::eventually_blocking;

const SOON: Duration = Duration::from_secs(60);

/// Installed by `scripts/clients`.
fn python() -> PathBuf {
    let folder = program("windlass").parent().and_then(|folder| folder.parent()).unwrap().to_owned();
    let path = folder.join("clients/joblib/bin/python");
    assert!(path.exists(), "{} is not there; run scripts/clients first", path.display());
    path
}

/// A process with a `JobManager`, and what it says.
pub struct JoblibWorker {
    child: Child,
    input: Option<ChildStdin>,
    said: Receiver<Value>,
}

impl JoblibWorker {
    /// With the token of a user, and further arguments of `clients/joblib_worker.py`.
    pub fn start(url: &str, token: &str, more: &[&str]) -> Self {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("clients/joblib_worker.py");
        let mut command = Command::new(python());
        command.envs(NO_PLUGINS).arg(script).args([url, token]).args(more).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the worker starts");
        let (tell, said) = mpsc::channel();
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let event: Value = serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why} in {line:?}"));
                // Nobody listens once the test is over.
                drop(tell.send(event));
            }
        });
        Self { input: child.stdin.take(), child, said }
    }

    /// Ready to serve, as it says itself.
    pub fn ready(url: &str, token: &str, more: &[&str]) -> (Self, String) {
        let worker = Self::start(url, token, more);
        let id = worker.hears("ready")["worker"].as_str().unwrap().to_owned();
        (worker, id)
    }

    /// The next line of this kind.
    pub fn hears(&self, event: &str) -> Value {
        let (begun, mut others) = (Instant::now(), Vec::new());
        loop {
            let left = SOON.saturating_sub(begun.elapsed());
            match self.said.recv_timeout(left) {
                Ok(said) if said["event"] == event => return said,
                Ok(other) => others.push(other),
                Err(why) => panic!("the worker never said {event:?} ({why}), only {others:?}"),
            }
        }
    }

    /// All that it has said of this kind so far and was not heard yet.
    pub fn heard(&self, event: &str) -> Vec<Value> {
        self.said.try_iter().filter(|said| said["event"] == event).collect()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("our own child can be signalled");
    }

    /// Lets it disconnect as a program does that is done.
    pub fn disconnect(&mut self) {
        self.input = None;
    }

    pub fn wait(&mut self) -> bool {
        self.child.wait().expect("our own child can be waited for").success()
    }
}

impl Drop for JoblibWorker {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A user, by the calls that ZnDraw makes.
pub struct JoblibUser {
    pub token: String,
    calls: Plain,
}

impl JoblibUser {
    /// Registers somebody new. Without a configured admin everybody on this machine becomes a superuser.
    pub fn register(server: &Server, name: &str) -> Self {
        let account = json!({"email": format!("{name}@example.org"), "password": "correct horse"});
        let (status, answer) = Plain::connect(server.address(), "none").call("POST", "/auth/register", &account);
        assert_eq!(status, 201, "{answer}");
        Self::login(server, name)
    }

    pub fn login(server: &Server, name: &str) -> Self {
        let form = format!("username={name}%40example.org&password=correct+horse");
        let mut calls = Plain::connect(server.address(), "none");
        let (status, answer) = calls.post_form("/auth/jwt/login", &form);
        assert_eq!(status, 200, "{answer}");
        let token = answer["access_token"].as_str().unwrap().to_owned();
        Self { calls: Plain::connect(server.address(), &token), token }
    }

    /// The same user on another server, or after this one started again.
    pub fn at(&self, server: &Server) -> Self {
        Self { token: self.token.clone(), calls: Plain::connect(server.address(), &self.token) }
    }

    pub fn call(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        self.calls.call(method, &format!("/v1/joblib{path}"), body)
    }

    pub fn submit(&mut self, room: &str, job: &str, payload: Value) -> String {
        let (status, task) = self.call("POST", &format!("/rooms/{room}/tasks/{job}"), &json!({ "payload": payload }));
        assert_eq!(status, 202, "{task}");
        task["id"].as_str().unwrap().to_owned()
    }

    pub fn task(&mut self, id: &str) -> Value {
        let (status, task) = self.call("GET", &format!("/tasks/{id}"), &Value::Null);
        assert_eq!(status, 200, "{task}");
        task
    }

    pub fn becomes(&mut self, id: &str, status: &str) -> Value {
        let what = format!("task {id} is {status}");
        eventually_blocking(what, || Some(self.task(id)).filter(|task| task["status"] == status))
    }
}
