//! The calls of ZnDraw's clients, and the native ones that do the same.

use super::{
    super::http::{
        connection::{Address, Connection},
        load::JOB,
        subject::Subject,
    },
    cycle::Cycle,
};
use anyhow::{Context, bail, ensure};
use http::Method;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const ROOM: &str = "bench";
const JOB_NAME: &str = "bench:modifiers:Bench";
const REGISTER: &str = r#"{"category":"modifiers","name":"Bench","schema":{"type":"object"}}"#;
/// A server may lose a race for a task and say that there is none.
const PATIENCE: Duration = Duration::from_secs(20);

/// A room with one extension in it, and a user who may do everything there.
pub struct Room {
    pub token: String,
}

impl Room {
    pub async fn enter(address: &Address, email: &str, password: &str) -> anyhow::Result<Self> {
        let mut connection = Connection::open(address, "").await?;
        let account = json!({"email": email, "password": password}).to_string();
        // Refused where the user is there already.
        connection.call(Method::POST, "/auth/register", account).await?;
        let form = url_form(&[("username", email), ("password", password)]);
        let (status, answer) = connection.call_form("/auth/jwt/login", form).await?;
        ensure!(status.is_success(), "{email} cannot log in at {address}: {}", String::from_utf8_lossy(&answer));
        Ok(Self { token: text(&serde_json::from_slice(&answer)?, "access_token")? })
    }

    pub async fn worker(&self, address: &Address) -> anyhow::Result<Worker> {
        let mut connection = Connection::open(address, &self.token).await?;
        let (status, answer) = connection.call(Method::PUT, &format!("/v1/joblib/rooms/{ROOM}/jobs"), REGISTER).await?;
        ensure!(status.is_success(), "registering answered {status}: {}", String::from_utf8_lossy(&answer));
        let id = text(&serde_json::from_slice(&answer)?, "worker_id")?;
        Ok(Worker { id, connection })
    }

    pub async fn submit(&self, connection: &mut Connection) -> anyhow::Result<()> {
        submit(connection).await
    }
}

async fn submit(connection: &mut Connection) -> anyhow::Result<()> {
    connection.post(&format!("/v1/joblib/rooms/{ROOM}/tasks/{JOB_NAME}"), JOB).await.map(drop)
}

pub struct Worker {
    pub id: String,
    connection: Connection,
}

impl Worker {
    /// Claims a task that is there, and does it.
    pub async fn work(&mut self) -> anyhow::Result<()> {
        let (claim, begun) = (json!({ "worker_id": self.id }).to_string(), Instant::now());
        let task = loop {
            let answer: Value =
                serde_json::from_slice(&self.connection.post("/v1/joblib/tasks/claim", claim.clone()).await?)?;
            match answer["task"]["id"].as_str() {
                Some(id) => break id.to_owned(),
                None if begun.elapsed() > PATIENCE => bail!("a task that was submitted cannot be claimed"),
                None => {}
            }
        };
        for status in ["running", "completed"] {
            let body = json!({ "status": status }).to_string();
            let (code, answer) = self.connection.call(Method::PATCH, &format!("/v1/joblib/tasks/{task}"), body).await?;
            ensure!(code.is_success(), "{status} answered {code}: {}", String::from_utf8_lossy(&answer));
        }
        Ok(())
    }
}

impl Cycle for Worker {
    async fn cycle(&mut self) -> anyhow::Result<()> {
        submit(&mut self.connection).await?;
        self.work().await
    }
}

/// The same four calls of the native API.
pub struct Native {
    people: Connection,
    worker: Connection,
    name: String,
    namespace: String,
}

impl Native {
    pub async fn open(subject: &Subject, number: usize) -> anyhow::Result<Self> {
        let people = Connection::open(&subject.address, &subject.token).await?;
        let worker = Connection::open(&subject.address, &subject.worker_token).await?;
        Ok(Self { people, worker, name: format!("bench-{number}"), namespace: subject.namespace.clone() })
    }
}

impl Cycle for Native {
    async fn cycle(&mut self) -> anyhow::Result<()> {
        let at = |path: &str| format!("/api/v1/{path}?namespace={}", self.namespace);
        self.people.post(&at("jobs"), JOB).await?;
        let claim = json!({"worker": self.name, "tags": []}).to_string();
        let claimed: Value = serde_json::from_slice(&self.worker.post(&at("leases/claim"), claim).await?)?;
        let lease = claimed["leases"][0]["lease"].as_str().context("a job that was submitted cannot be claimed")?;
        let progress = json!({"lease": lease, "percent": 0.0}).to_string();
        self.worker.post(&at("leases/progress"), progress).await?;
        self.worker.post(&at("leases/complete"), json!({ "lease": lease }).to_string()).await?;
        Ok(())
    }
}

/// A Socket.IO session of a worker, by long polling.
pub struct Ears {
    connection: Connection,
    path: String,
}

impl Ears {
    pub async fn open(address: &Address, room: &Room, worker: &str) -> anyhow::Result<Self> {
        let mut connection = Connection::open(address, "").await?;
        let path = "/socket.io/?EIO=4&transport=polling";
        let (_, open) = connection.call(Method::GET, path, "").await?;
        let open = open.strip_prefix(b"0").context("the server does not speak Engine.IO")?;
        let path = format!("{path}&sid={}", text(&serde_json::from_slice(open)?, "sid")?);
        connection.post(&path, format!("40{}", json!({ "token": room.token }))).await?;
        let mut ears = Self { connection, path };
        ears.hear(|packet| packet.starts_with("40")).await?;
        let join = json!(["join_job_room", {"job_name": JOB_NAME, "worker_id": worker}]);
        ears.connection.post(&ears.path, format!("42{join}")).await?;
        Ok(ears)
    }

    /// Polls until such a packet comes: when it did.
    async fn hear(&mut self, wanted: impl Fn(&str) -> bool) -> anyhow::Result<Instant> {
        loop {
            let (status, packets) = self.connection.call(Method::GET, &self.path, "").await?;
            let at = Instant::now();
            ensure!(status.is_success(), "the session is over: {status}");
            let packets = String::from_utf8_lossy(&packets).into_owned();
            if packets.split('\u{1e}').any(|packet| packet == "2") {
                self.connection.post(&self.path, "3").await?;
            }
            if packets.split('\u{1e}').any(&wanted) {
                return Ok(at);
            }
        }
    }

    /// Waits for this event, and gives itself back with the time at which it came.
    pub async fn hears(mut self, event: &'static str) -> anyhow::Result<(Self, Instant)> {
        let wanted = format!("42[\"{event}\"");
        let at = self.hear(|packet| packet.starts_with(&wanted)).await?;
        Ok((self, at))
    }
}

fn text(value: &Value, name: &str) -> anyhow::Result<String> {
    value[name].as_str().map(str::to_owned).with_context(|| format!("the server did not say its {name}"))
}

fn url_form(pairs: &[(&str, &str)]) -> String {
    let escaped = |text: &str| {
        text.bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
                other => format!("%{other:02X}"),
            })
            .collect::<String>()
    };
    pairs.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect::<Vec<_>>().join("&")
}
