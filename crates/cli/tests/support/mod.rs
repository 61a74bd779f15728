//! The real binary against a real server.
#![allow(dead_code, reason = "each test file uses some of it")]

use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::Arc,
};
use tempfile::TempDir;
use windlass_core::{
    commands::{principals::CreatePrincipal, tokens::IssueToken},
    principal::Role,
};
use windlass_engine::{Engine, Settings, clock, memory::Memory};
use windlass_sdk::Client;
use windlass_server::{App, Options, Service, auth};

pub const ADMIN: &str = "test-admin-token-0123456789";
pub const WORKER: &str = "test-worker-token-0123456789";

/// A server on a port of its own, and a folder in which commands run.
pub struct Server {
    pub url: String,
    pub home: TempDir,
    runtime: tokio::runtime::Runtime,
}

impl Server {
    pub fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let url = runtime.block_on(serve());
        Self { url, home: home(), runtime }
    }

    /// `windlass` with this server and its admin token.
    pub fn windlass(&self, args: &[&str]) -> Ran {
        self.with_input(args, "")
    }

    pub fn with_input(&self, args: &[&str], input: &str) -> Ran {
        let mut command = windlass(self.home.path());
        command.args(args).env("WINDLASS_SERVER", &self.url).env("WINDLASS_TOKEN", ADMIN);
        run(command, input)
    }

    /// What `-o json` printed.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Value {
        let mut all = args.to_vec();
        all.extend(["-o", "json"]);
        let ran = self.windlass(&all);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{args:?}: {error}: {}", ran.out))
    }

    /// Does something as a worker.
    pub fn work<T>(&self, work: impl AsyncFnOnce(Client) -> T) -> T {
        let client = Client::builder(&self.url).token(WORKER).build().unwrap();
        self.runtime.block_on(work(client))
    }

    /// A call of a dialect.
    #[track_caller]
    pub fn post(&self, token: &str, path: &str, body: &Value) {
        let client = Client::builder(&self.url).token(token).build().unwrap();
        let request = client.plain_request(http::Method::POST, path).json(body);
        self.runtime.block_on(client.send(request)).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
}

async fn serve() -> String {
    let store = Memory::new(Arc::new(clock::System::default()));
    let engine = Engine::start(Arc::new(store), Settings::default()).await.unwrap();
    for (name, role, token) in [("admin", Role::Admin, ADMIN), ("worker", Role::Worker, WORKER)] {
        let create =
            CreatePrincipal { namespace: auth::system_namespace(), name: name.into(), role, namespaces: vec![] };
        engine.run(create).await.unwrap();
        let hash = auth::hash(token).into();
        let (namespace, principal, shown) = (auth::system_namespace(), name.into(), name.into());
        let issue = IssueToken { namespace, principal, hash, shown, expires_at: None, made_by: None, session: false };
        engine.run(issue).await.unwrap();
    }
    let service = Service::new(App::new(engine, Options::default()));
    let router = axum::Router::new().fallback_service(service);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    url
}

/// A folder that stands in for the user's own, so that nothing of theirs is read or written.
pub fn home() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// The program, knowing nothing but the folder.
pub fn windlass(home: &Path) -> Command {
    let mut command = Command::new(program());
    command.env_clear().env("HOME", home).env("PATH", std::env::var_os("PATH").unwrap_or_default()).current_dir(home);
    command
}

pub fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_windlass"))
}

pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}", self.err);
        self.out
    }

    /// Both outputs hold all of these.
    #[track_caller]
    pub fn says(&self, words: &[&str]) {
        let all = format!("{}{}", self.out, self.err);
        for word in words {
            assert!(all.contains(word), "{word:?} is not in: {all}");
        }
    }
}

pub fn run(mut command: Command, input: &str) -> Ran {
    use std::io::Write;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let feeding = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    feeding.join().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: status.code().unwrap_or(-1), out: text(stdout), err: text(stderr) }
}

/// Runs it with nothing but arguments.
pub fn alone(home: &Path, args: &[&str]) -> Ran {
    let mut command = windlass(home);
    command.args(args);
    run(command, "")
}
