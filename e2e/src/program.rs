//! Child processes: `windlass serve` and `windlass-worker`.

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};
use windlass_sdk::{
    Client,
    api::token::{CreateToken, Role},
};

const READY: Duration = Duration::from_secs(30);

/// Tests read their counts from the environment, so that a longer run needs no other program.
pub fn knob(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// A program of this workspace, built beside the tests; or those of another build, to measure them.
pub fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let folder = test.parent().and_then(Path::parent).expect("tests lie in a folder below the programs");
    let path = std::env::var_os("WINDLASS_PROGRAMS").map_or(folder.to_owned(), PathBuf::from).join(name);
    assert!(path.exists(), "{} is not there; build it first: cargo build --workspace --bins", path.display());
    path
}

/// A server on a folder or a database, at one address through all its lives.
pub struct Server {
    pub data: PathBuf,
    pub url: String,
    listen: String,
    database: Option<String>,
    child: Option<Child>,
    more: Vec<String>,
    env: Vec<(&'static str, PathBuf)>,
}

pub const ADMIN: &str = "wl_admin_0123456789abcdef0123456789abcdef";

impl Server {
    pub async fn start(data: &Path, database: Option<&str>) -> Self {
        Self::start_with(data, database, &[]).await
    }

    /// With further arguments for `windlass serve`.
    pub async fn start_with(data: &Path, database: Option<&str>, more: &[&str]) -> Self {
        Self::start_in(data, database, more, Vec::new()).await
    }

    /// With these variables as well.
    pub async fn start_in(
        data: &Path,
        database: Option<&str>,
        more: &[&str],
        env: Vec<(&'static str, PathBuf)>,
    ) -> Self {
        Self::start_on(Ipv4Addr::LOCALHOST, data, database, more, env).await
    }

    /// On another address of this machine.
    pub async fn start_on(
        address: Ipv4Addr,
        data: &Path,
        database: Option<&str>,
        more: &[&str],
        env: Vec<(&'static str, PathBuf)>,
    ) -> Self {
        let port = TcpListener::bind((address, 0)).unwrap().local_addr().unwrap().port();
        let listen = format!("{address}:{port}");
        let url = format!("http://{listen}");
        let more = more.iter().map(ToString::to_string).collect();
        let database = database.map(str::to_owned);
        let mut server = Self { data: data.to_owned(), url, listen, database, child: None, more, env };
        server.restart().await;
        server
    }

    /// Starts it again after its end, and waits until it serves.
    pub async fn restart(&mut self) -> Duration {
        let begun = Instant::now();
        let mut command = Command::new(program("windlass"));
        command.args(["serve", "--listen", &self.listen, "--data"]).arg(&self.data).args(&self.more);
        if let Some(database) = &self.database {
            command.args(["--database", database]);
        }
        command.env("WINDLASS_ADMIN_TOKEN", ADMIN).stdout(Stdio::null());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        self.child = Some(command.spawn().expect("the server starts"));
        while !self.is_ready().await {
            let ended = self.child.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "the server ended with {ended:?} instead of serving");
            assert!(begun.elapsed() < READY, "the server does not become ready");
            tokio::time::sleep(Duration::from_millis(5)).await; // The pause between two looks: the time is measured.
        }
        begun.elapsed()
    }

    async fn is_ready(&self) -> bool {
        let Ok(mut stream) = tokio::net::TcpStream::connect(&self.listen).await else { return false };
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let ask = format!("GET /readyz HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.listen);
        let mut answer = String::new();
        stream.write_all(ask.as_bytes()).await.is_ok()
            && stream.read_to_string(&mut answer).await.is_ok()
            && answer.starts_with("HTTP/1.1 200")
    }

    pub fn signal(&self, signal: Signal) {
        if let Some(child) = &self.child {
            kill(Pid::from_raw(child.id() as i32), signal).expect("our own child can be signalled");
        }
    }

    pub fn address(&self) -> &str {
        &self.listen
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        self.wait();
    }

    pub fn wait(&mut self) -> Option<ExitStatus> {
        self.child.take().map(|mut child| child.wait().expect("our own child can be waited for"))
    }

    pub fn admin(&self) -> Client {
        self.client(ADMIN)
    }

    pub fn client(&self, token: &str) -> Client {
        Client::builder(&self.url).token(token).build().unwrap()
    }

    /// In a namespace of its own.
    pub fn admin_of(&self, namespace: &str) -> Client {
        Client::builder(&self.url).token(ADMIN).namespace(namespace).build().unwrap()
    }

    /// A fresh worker's token.
    pub async fn worker_token(&self) -> String {
        let principal = format!("worker-{}", uuid::Uuid::new_v4().simple());
        let wanted = CreateToken { principal, role: Role::Worker, namespaces: vec![], expires_ms: None };
        self.admin().create_token(&wanted).await.unwrap().token
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.kill();
        }
    }
}

/// A `windlass-worker` that runs commands.
pub struct Worker {
    child: Option<Child>,
    _folder: tempfile::TempDir,
}

impl Worker {
    pub fn start(url: &str, token: &str, name: &str, slots: usize, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(program("windlass-worker"));
        command
            .args(["--server", url, "--name", name, "--slots", &slots.to_string(), "--allow-commands", "--work-dir"])
            .arg(folder.path())
            .args(more)
            .env("WINDLASS_TOKEN", token)
            .stdout(Stdio::null());
        Self { child: Some(command.spawn().expect("the worker starts")), _folder: folder }
    }

    pub fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("it runs");
        kill(Pid::from_raw(child.id() as i32), signal).expect("our own child can be signalled");
    }

    /// Asks it to finish what it holds, and waits for its end.
    pub fn drain(mut self) -> ExitStatus {
        self.signal(Signal::SIGTERM);
        self.child.take().expect("it runs").wait().expect("our own child can be waited for")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}
