//! A server under measurement: one that runs already, or one started for the purpose.

use super::connection::{Address, Connection};
use anyhow::{Context, bail};
use http::Method;
use serde_json::{Value, json};
use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

const START: Duration = Duration::from_secs(30);

pub struct Subject {
    pub address: Address,
    pub token: String,
    pub worker_token: String,
    worker_token_id: String,
    /// Of its own, so that nobody's real jobs are claimed.
    pub namespace: String,
    pub store: String,
    started: Option<Started>,
}

struct Started {
    child: Child,
    folder: TempDir,
}

impl Drop for Started {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Subject {
    pub async fn all(urls: &[String], tokens: &[String], database: Option<&str>) -> anyhow::Result<Vec<Self>> {
        if urls.is_empty() {
            return Ok(vec![Self::start(database).await?]);
        }
        let mut subjects = Vec::new();
        for (at, url) in urls.iter().enumerate() {
            let token =
                tokens.get(at).or(tokens.first()).context("a running server needs --token with an admin token")?;
            subjects.push(Self::join(Address::parse(url)?, token.clone(), None).await?);
        }
        Ok(subjects)
    }

    pub async fn start(database: Option<&str>) -> anyhow::Result<Self> {
        let mut arguments = vec!["serve"];
        arguments.extend(database.iter().flat_map(|database| ["--database", database]));
        Self::spawn(&arguments).await
    }

    /// The server that `bench ceiling` compares with.
    pub async fn start_ceiling() -> anyhow::Result<Self> {
        Self::spawn(&["bench", "ceiling-server"]).await
    }

    async fn spawn(arguments: &[&str]) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let listen = format!("127.0.0.1:{port}");
        let token = format!("wl_admin_{}", uuid::Uuid::new_v4().simple());
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments).args(["--listen", &listen, "--data"]).arg(folder.path());
        command.env("WINDLASS_ADMIN_TOKEN", &token).stdout(Stdio::null()).stderr(Stdio::inherit());
        let child = command.spawn().context("the server cannot be started")?;
        let started = Started { child, folder };
        let address = Address::parse(&format!("http://{listen}"))?;
        wait_until_ready(&address).await?;
        Self::join(address, token, Some(started)).await
    }

    async fn join(address: Address, token: String, started: Option<Started>) -> anyhow::Result<Self> {
        let namespace = format!("bench-{}", &uuid::Uuid::new_v4().simple().to_string()[..8]);
        let mut admin = Connection::open(&address, &token).await?;
        let wanted = json!({"principal": namespace, "role": "worker", "namespaces": [namespace]}).to_string();
        let made: Value = serde_json::from_slice(&admin.post("/api/v1/tokens", wanted).await?)?;
        let (_, stats) = admin.call(Method::GET, "/api/v1/stats", "").await?;
        let store = serde_json::from_slice::<Value>(&stats)?["store"].as_str().unwrap_or("unknown").to_owned();
        let text = |name: &str| made[name].as_str().map(str::to_owned).context("the server made no worker token");
        let (worker_token, worker_token_id) = (text("token")?, text("id")?);
        Ok(Self { address, token, worker_token, worker_token_id, namespace, store, started })
    }

    /// Processor time the server took so far, where it is a child of ours.
    pub fn cpu(&self) -> Option<Duration> {
        cpu_of(&self.started.as_ref()?.child)
    }

    /// Memory of the server, where it is a child of ours: now, and at most so far.
    pub fn memory_mb(&self) -> Option<f64> {
        self.status("VmRSS:")
    }

    pub fn memory_peak_mb(&self) -> Option<f64> {
        self.status("VmHWM:")
    }

    fn status(&self, name: &str) -> Option<f64> {
        let pid = self.started.as_ref()?.child.id();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let kilobytes = status.lines().find_map(|line| line.strip_prefix(name))?.trim().strip_suffix(" kB")?;
        Some(kilobytes.parse::<f64>().ok()? / 1e3)
    }

    /// What the files of a server of ours take.
    pub fn stored_mb(&self) -> f64 {
        self.started.as_ref().map_or(0.0, |started| bytes_below(started.folder.path()) as f64 / 1e6)
    }

    /// A token nobody needs any more is not left behind.
    pub async fn clean_up(&self) {
        if let Ok(mut admin) = Connection::open(&self.address, &self.token).await {
            drop(admin.call(Method::DELETE, &format!("/api/v1/tokens/{}", self.worker_token_id), "").await);
        }
    }
}

pub fn cpu_of(child: &Child) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 10))
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let one = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(data) if data.is_dir() => bytes_below(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    };
    entries.map(one).sum()
}

async fn wait_until_ready(address: &Address) -> anyhow::Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < START {
        if let Ok(mut connection) = Connection::open(address, "none").await
            && connection.call(Method::GET, "/readyz", "").await.is_ok_and(|(status, _)| status.is_success())
        {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bail!("the server did not become ready within {} s", START.as_secs())
}
