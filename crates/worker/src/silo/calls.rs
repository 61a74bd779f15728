//! What a runner says to the server, and what the server's answers mean to it.

use reqwest::{Method, Response, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use windlass_sdk::{
    Client,
    worker::{Outage, WorkerCall},
};

const TIMEOUT: Duration = Duration::from_secs(30);
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Why a call did not do what it was to do.
#[derive(Debug)]
pub enum Trouble {
    /// The token is not, or no longer, good for anything.
    Denied(String),
    /// The job is cancelled, timed out, or somebody else's.
    Lost(String),
    /// The server understood and will not have it.
    Refused(u16, String),
    /// Nobody knows whether it was heard; asking again may help.
    Later(String),
}

impl Trouble {
    /// Whether a job's report says that there is no such job to work on any more.
    pub fn ends_the_job(&self) -> bool {
        matches!(self, Trouble::Lost(_) | Trouble::Refused(404 | 409 | 410, _))
    }

    pub fn text(&self) -> &str {
        let (Trouble::Denied(text) | Trouble::Lost(text) | Trouble::Refused(_, text) | Trouble::Later(text)) = self;
        text
    }
}

/// How long to wait before asking again: 1 to 60 seconds, doubling, and up to half of it at random, so that runners that
/// were cut off together do not come back together.
#[derive(Default)]
pub struct Backoff {
    tries: u32,
}

impl Backoff {
    pub fn wait(&mut self) -> Duration {
        let bound = Duration::from_secs(1).saturating_mul(1 << self.tries.min(6)).min(WAIT_MAX);
        self.tries = self.tries.saturating_add(1);
        bound.mul_f64(rand::random_range(0.5..=1.0)).max(Duration::from_secs(1))
    }
}

/// One call with a JSON body, as a value, so that it can be repeated.
pub struct Call {
    pub method: Method,
    pub path: String,
    pub body: Value,
}

impl Call {
    pub fn post(path: impl Into<String>, body: Value) -> Self {
        Self { method: Method::POST, path: path.into(), body }
    }
    fn kind(&self) -> WorkerCall {
        match self.path.as_str() {
            "/api/runner/heartbeat" => WorkerCall::Renew,
            "/api/runner/claim" => WorkerCall::Claim,
            _ => WorkerCall::Report,
        }
    }
    pub fn put(path: impl Into<String>, body: Value) -> Self {
        Self { method: Method::PUT, path: path.into(), body }
    }
}

/// A job as the claim hands it over.
#[derive(Clone, Debug, Deserialize)]
pub struct Claimed {
    pub job: Job,
    /// All that was said, for the command to read.
    #[serde(skip)]
    pub whole: Value,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Job {
    pub id: String,
    pub compute_command: String,
    #[serde(default)]
    pub args: serde_json::Map<String, Value>,
    pub part_number: Option<String>,
    pub revision_number: Option<u32>,
    pub timeout_seconds: u64,
}

impl Job {
    pub fn path(&self, what: &str) -> String {
        format!("/api/runner/jobs/{}/{what}", self.id)
    }
}

/// The server, as a runner sees it.
#[derive(Clone)]
pub struct Server {
    pub client: Client,
    outage: Arc<Outage>,
}

impl Server {
    pub fn new(client: Client) -> Self {
        Self { client, outage: Arc::default() }
    }

    pub async fn call(&self, call: &Call) -> Result<Value, Trouble> {
        let answer = self.answer(call).await;
        self.note(call.kind(), &answer);
        answer
    }

    /// An outage is told at its start and at its end, and not by each call.
    fn note<T>(&self, kind: WorkerCall, answer: &Result<T, Trouble>) {
        match answer {
            Err(Trouble::Later(why)) => self.outage.failed(kind, why),
            Ok(_) | Err(Trouble::Denied(_) | Trouble::Lost(_) | Trouble::Refused(..)) => self.outage.answered(kind),
        }
    }

    async fn answer(&self, call: &Call) -> Result<Value, Trouble> {
        let request = self.client.plain_request(call.method.clone(), &call.path).timeout(TIMEOUT).json(&call.body);
        let response = self.sent(request).await?;
        let body = response.bytes().await.map_err(|error| self.unheard(&error))?;
        if body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&body).map_err(|error| Trouble::Later(format!("the answer is not valid JSON: {error}")))
    }

    /// Sends anything, and sorts what may go wrong.
    pub async fn send(&self, request: reqwest::RequestBuilder) -> Result<Response, Trouble> {
        let answer = self.sent(request).await;
        self.note(WorkerCall::Report, &answer);
        answer
    }

    async fn sent(&self, request: reqwest::RequestBuilder) -> Result<Response, Trouble> {
        let response = request.send().await.map_err(|error| self.unheard(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = response.bytes().await.unwrap_or_default();
        let said: Value = serde_json::from_slice(&body).unwrap_or_default();
        Err(sort(status, &said))
    }

    pub fn unheard(&self, error: &reqwest::Error) -> Trouble {
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        Trouble::Later(format!("{} cannot be reached: {cause}", self.client.base()))
    }

    /// Calls until there is an answer that will not change, or until nobody wants to know any more.
    pub async fn insist(&self, call: &Call, give_up: &CancellationToken) -> Result<Value, Trouble> {
        let mut backoff = Backoff::default();
        loop {
            let why = match self.call(call).await {
                Err(Trouble::Later(why)) => why,
                answer => return answer,
            };
            let wait = backoff.wait();
            tokio::select! {
                () = sleep(wait) => {}
                () = give_up.cancelled() => {
                    self.outage.gave_up(call.kind());
                    return Err(Trouble::Later(why));
                }
            }
        }
    }

    /// None: there is nothing to do. Asking again with the same `request` gives the same job once more; servers that do not
    /// know that ignore it.
    pub async fn claim(&self, tags: Option<&[String]>, request: &str) -> Result<Option<Claimed>, Trouble> {
        let mut body = serde_json::json!({ "request_id": request });
        if let Some(tags) = tags {
            body["tags"] = tags.into();
        }
        let whole = self.call(&Call::post("/api/runner/claim", body)).await?;
        if whole.is_null() {
            return Ok(None);
        }
        let read = Claimed::deserialize(&whole);
        let claimed = read.map_err(|error| {
            tracing::warn!(%error, "the claimed job cannot be read, retrying");
            Trouble::Later(format!("the claimed job cannot be read: {error}"))
        })?;
        Ok(Some(Claimed { whole, ..claimed }))
    }
}

pub fn sort(status: StatusCode, said: &Value) -> Trouble {
    let message = said["message"].as_str().map_or_else(|| format!("status {status}"), str::to_owned);
    // A refused transition says what the job's state is; other conflicts are about what was sent.
    let transition = said["status"].is_string();
    match status.as_u16() {
        401 => Trouble::Denied(message),
        409 if !transition => Trouble::Refused(409, message),
        403 | 409 => Trouble::Lost(message),
        // Something between here and the server says these, or the server itself for a while.
        408 | 421 | 425 | 429 => Trouble::Later(message),
        code @ 400..=499 => Trouble::Refused(code, message),
        _ => Trouble::Later(message),
    }
}

/// A name as part of a path; slashes stay.
pub fn escape(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    name.bytes().map(|byte| if plain(byte) { (byte as char).to_string() } else { format!("%{byte:02X}") }).collect()
}
