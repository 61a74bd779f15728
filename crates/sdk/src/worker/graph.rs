//! workflow-graph's worker protocol under the same worker loop: register, poll, renew, send logs, ask whether to go on, report.
//!
//! It has a call for each of these where the native protocol has one for all, so this keeps for every lease when it last said
//! what. Works with the original server as well, which holds no claims open, knows no way to give a job back, and sets
//! every renewed lease to thirty seconds, whatever was asked for.

use super::graph_wire as wire;
use crate::{
    Client, Error,
    client::{TIMEOUT, escape},
};
use futures_util::future::join_all;
use reqwest::{Method, RequestBuilder, StatusCode};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard},
    time::Duration,
};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use windlass_api::{
    Json, Problem, Uuid,
    job::{Answer, State},
    lease::{
        Batch, BatchDone, Claim, Claimed, Do, Leased, Operation, OperationDone, Sync, SyncLease, Synced, SyncedLease,
    },
    log::{LogChunk, OutputStream},
    worker::RegisterWorker,
};

/// Between two questions whether the job was cancelled.
pub(super) const CANCEL_POLL: Duration = Duration::from_secs(2);
/// Between two claims where the server does not hold them open; ours is asked to hold them so long.
const IDLE_POLL: Duration = Duration::from_secs(2);
const TTL: Duration = Duration::from_secs(30);
/// A renewed lease is thirty seconds long at the original server; three chances within it.
const BEAT_MAX: Duration = Duration::from_secs(10);
/// A claim under way when the worker is to end is answered within its hold; a server that is gone is not waited for.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);
/// The server keeps no more of an error text.
const ERROR_BYTES_MAX: usize = 16 << 10;

type ClaimTask = JoinHandle<Result<Option<wire::Claimed>, Error>>;

pub(crate) struct GraphClient {
    client: Client,
    held: Mutex<HashMap<String, Known>>,
    /// A claim runs in a task of its own: its answer may be a lease, which must not get lost with a loop that is to end.
    asking: tokio::sync::Mutex<Option<ClaimTask>>,
}

/// What is known about a lease beyond what the loop knows.
#[derive(Clone)]
struct Known {
    workflow: String,
    job: String,
    sequence: u64,
    granted: Instant,
    granted_at_ms: u64,
    beat_every: Duration,
    beat: Instant,
    polled: Instant,
    cancelled: bool,
    /// The server has the piece of log that the loop will offer next, because something else in the same call failed.
    ahead: bool,
    /// So many pieces of the final report's log are with the server: a report that has to be repeated goes on after them.
    reported: usize,
}

impl GraphClient {
    pub fn new(client: Client) -> Self {
        Self { client, held: Mutex::default(), asking: tokio::sync::Mutex::default() }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.held.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn known(&self, lease: &str) -> Option<Known> {
        self.held().get(lease).cloned()
    }

    fn note(&self, lease: &str, change: impl FnOnce(&mut Known)) {
        if let Some(known) = self.held().get_mut(lease) {
            change(known);
        }
    }

    fn post(&self, path: &str) -> RequestBuilder {
        self.client.plain_request(Method::POST, path).timeout(TIMEOUT)
    }

    /// The answer's status where it is success or one of those that mean something here.
    async fn send(&self, request: RequestBuilder, meant: &[StatusCode]) -> Result<(StatusCode, bytes::Bytes), Error> {
        let response = request.send().await.map_err(|error| self.client.unreachable(&error))?;
        let status = response.status();
        let body = response.bytes().await.map_err(|error| self.client.unreachable(&error))?;
        if status.is_success() || meant.contains(&status) {
            return Ok((status, body));
        }
        let text = String::from_utf8_lossy(&body);
        let detail = format!("{} answered {status} {}", self.client.base(), text.trim());
        Err(problem(status, detail.trim_end()))
    }

    pub async fn register(&self, registration: &RegisterWorker) -> Result<(), Error> {
        let body = wire::Register { worker_id: &registration.worker, labels: &registration.tags };
        self.send(self.post("/api/workers/register").json(&body), &[]).await.map(drop)
    }

    /// One job at most; asks again and again until the wait is over where the server answers at once.
    pub async fn claim(&self, claim: &Claim) -> Result<Claimed, Error> {
        let until = Instant::now() + Duration::from_millis(claim.wait_ms.unwrap_or_default());
        loop {
            let asked = Instant::now();
            if let Some(leased) = self.ask(claim).await? {
                return Ok(Claimed { leases: vec![leased] });
            }
            let pause = IDLE_POLL.saturating_sub(asked.elapsed());
            if Instant::now() + pause >= until {
                return Ok(Claimed { leases: Vec::new() });
            }
            sleep(pause).await;
        }
    }

    async fn ask(&self, claim: &Claim) -> Result<Option<Leased>, Error> {
        let mut asking = self.asking.lock().await;
        let task = asking.get_or_insert_with(|| {
            let hold = Duration::from_millis(claim.wait_ms.unwrap_or_default()).min(IDLE_POLL);
            let body = wire::Claim {
                worker_id: &claim.worker,
                labels: claim.tags.as_deref().unwrap_or_default(),
                lease_ttl_secs: claim.lease_ms.map_or(TTL.as_secs(), |lease_ms| lease_ms.div_ceil(1_000)),
            };
            let request = self.post("/api/jobs/claim").header("prefer", format!("wait={}", hold.as_secs())).json(&body);
            tokio::spawn(ask(self.client.clone(), request))
        });
        let answer = task.await;
        *asking = None;
        match answer {
            Ok(answer) => answer?.map(|claimed| self.hold(claimed)).transpose(),
            Err(error) => Err(Error::Setup(format!("the claim broke off: {error}"))),
        }
    }

    /// What a claim got that was under way when the loop stopped waiting for it.
    pub async fn claimed_meanwhile(&self) -> Vec<Leased> {
        let mut asking = self.asking.lock().await;
        let Some(task) = asking.as_mut() else { return Vec::new() };
        let answer = timeout(ANSWER_PATIENCE, task).await;
        *asking = None;
        match answer {
            Ok(Ok(Ok(Some(claimed)))) => self.hold(claimed).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn hold(&self, claimed: wire::Claimed) -> Result<Leased, Error> {
        let confused = |error: serde_json::Error| self.confused(&error);
        let job: wire::Job = serde_json::from_str(claimed.job.get()).map_err(confused)?;
        let (lease, now) = (claimed.lease, Instant::now());
        let length = Duration::from_secs(lease.ttl_secs.max(1));
        let known = Known {
            workflow: job.workflow_id,
            job: job.job_id.clone(),
            sequence: 0,
            granted: now,
            granted_at_ms: lease.granted_at_ms,
            beat_every: (length / 3).min(BEAT_MAX),
            beat: now,
            polled: now,
            cancelled: false,
            ahead: false,
            reported: 0,
        };
        self.held().insert(lease.lease_id.clone(), known);
        Ok(Leased {
            lease: lease.lease_id,
            // Jobs have no number of their own here; this one tells executions apart on this host.
            job: Uuid::new_v4(),
            attempt: job.attempt.saturating_add(1),
            lease_ms: Some(u64::try_from(length.as_millis()).unwrap_or(u64::MAX)),
            until: None,
            deadline: None,
            deadline_ms: None,
            tags: job.required_labels,
            definition: None,
            run: None,
            node: Some(job.job_id),
            after: Vec::new(),
            traceparent: None,
            payload: Some(claimed.job),
        })
    }

    fn confused(&self, error: &dyn std::fmt::Display) -> Error {
        Error::Confused { url: self.client.base().to_owned(), why: error.to_string(), retry_after: None }
    }

    /// Leases that are due are renewed, jobs that are due are asked about, logs are sent.
    pub async fn sync(&self, sync: &Sync) -> Result<Synced, Error> {
        if sync.leases.is_empty() {
            let path = format!("/api/workers/{}/heartbeat", escape(&sync.worker));
            let (status, _) = self.send(self.post(&path), &[StatusCode::NOT_FOUND]).await?;
            let unknown_worker = status == StatusCode::NOT_FOUND;
            return Ok(Synced { unknown_worker, draining: false, leases: Vec::new() });
        }
        let answers = join_all(sync.leases.iter().map(|lease| self.keep(lease))).await;
        if let Some(error) = answers.iter().find_map(|answer| answer.as_ref().err()) {
            for (lease, _) in
                sync.leases.iter().zip(&answers).filter(|(lease, answer)| answer.is_ok() && !lease.chunks.is_empty())
            {
                self.note(&lease.lease, |known| known.ahead = true);
            }
            return Err(error.clone());
        }
        let leases: Vec<SyncedLease> = answers.into_iter().flatten().collect();
        for (lease, _) in sync.leases.iter().zip(&leases).filter(|(_, answer)| !answer.held) {
            self.held().remove(&lease.lease);
        }
        Ok(Synced { unknown_worker: false, draining: false, leases })
    }

    async fn keep(&self, lease: &SyncLease) -> Result<SyncedLease, Error> {
        let gone = |cancelled| SyncedLease { held: false, cancelled, until: None, log_bytes_dropped: 0 };
        let Some(known) = self.known(&lease.lease) else { return Ok(gone(false)) };
        if known.beat.elapsed() >= known.beat_every && !self.beat(&lease.lease).await? {
            return Ok(gone(known.cancelled));
        }
        let mut cancelled = known.cancelled;
        // Due a little early rather than a turn late.
        if !cancelled && known.polled.elapsed() >= CANCEL_POLL - CANCEL_POLL / 8 {
            cancelled = self.was_cancelled(&lease.lease, &known).await?;
        }
        // Where the log finds the lease dead, so does a renewal.
        if !lease.chunks.is_empty() && !self.log(&lease.lease, &lease.chunks).await? && !self.beat(&lease.lease).await?
        {
            return Ok(gone(cancelled));
        }
        Ok(SyncedLease { held: true, cancelled, until: None, log_bytes_dropped: 0 })
    }

    /// False: the lease is gone.
    async fn beat(&self, lease: &str) -> Result<bool, Error> {
        let begun = Instant::now();
        let (status, _) = self.send(self.post(&on(lease, "heartbeat")), &[StatusCode::CONFLICT]).await?;
        self.note(lease, |known| known.beat = begun);
        Ok(status != StatusCode::CONFLICT)
    }

    async fn was_cancelled(&self, lease: &str, known: &Known) -> Result<bool, Error> {
        let path = format!("/api/jobs/{}/{}/cancelled", escape(&known.workflow), escape(&known.job));
        let request = self.client.plain_request(Method::GET, &path).timeout(TIMEOUT);
        let (_, body) = self.send(request, &[]).await?;
        let cancelled: bool = serde_json::from_slice(&body).map_err(|error| self.confused(&error))?;
        self.note(lease, |known| (known.polled, known.cancelled) = (Instant::now(), cancelled));
        Ok(cancelled)
    }

    /// False: the server does not take it under this lease.
    async fn log(&self, lease: &str, said: &[LogChunk]) -> Result<bool, Error> {
        let Some(known) = self.known(lease) else { return Ok(false) };
        if known.ahead {
            self.note(lease, |known| known.ahead = false);
            return Ok(true);
        }
        let chunks = known.chunks(said);
        let next = known.sequence + chunks.len() as u64;
        let (status, _) =
            self.send(self.post(&on(lease, "logs")).json(&wire::Logs { chunks }), &[StatusCode::CONFLICT]).await?;
        self.note(lease, |known| known.sequence = next);
        Ok(status != StatusCode::CONFLICT)
    }

    /// Only what a report consists of, for one lease: pieces of log, and the end.
    pub async fn batch(&self, batch: &Batch) -> Result<BatchDone, Error> {
        let (mut operations, mut logs) = (Vec::with_capacity(batch.operations.len()), 0);
        for operation in &batch.operations {
            if operation.what == Do::Log {
                logs += 1;
                self.last_log(operation, logs).await?;
                operations.push(done(State::Running));
            } else {
                operations.push(self.operation(operation).await?);
            }
        }
        Ok(BatchDone { operations, leases: Vec::new(), claim_problem: None })
    }

    /// What a dead lease printed is nobody's business; the report says that it is dead.
    async fn last_log(&self, operation: &Operation, number: usize) -> Result<(), Error> {
        if self.known(&operation.lease).is_some_and(|known| known.reported < number) {
            self.log(&operation.lease, &operation.chunks).await?;
            self.note(&operation.lease, |known| known.reported = number);
        }
        Ok(())
    }

    async fn operation(&self, operation: &Operation) -> Result<Answer<OperationDone>, Error> {
        let lease = &operation.lease;
        let ended = match operation.what {
            Do::Renew | Do::Progress | Do::Log => return Ok(done(State::Running)),
            Do::Complete => {
                let body = wire::Complete { outputs: outputs(operation.result.as_ref()) };
                self.end(self.post(&on(lease, "complete")).json(&body)).await
            }
            Do::Fail => self.fail(lease, &operation.message, operation.permanent).await,
            Do::Release => self.release(lease).await,
        };
        match ended {
            Ok(answer) => {
                self.held().remove(lease);
                Ok(answer)
            }
            Err(error) => Err(error),
        }
    }

    async fn end(&self, request: RequestBuilder) -> Result<Answer<OperationDone>, Error> {
        let (status, _) = self.send(request, &[StatusCode::CONFLICT]).await?;
        if status != StatusCode::CONFLICT {
            return Ok(done(State::Completed));
        }
        let detail = "the lease is not live any more".to_owned();
        Ok(Answer::Refused {
            problem: Problem { kind: "#lease-lost".into(), status: 409, detail, ..Problem::default() },
        })
    }

    /// A cancelled job is not to be tried again; the original server would.
    async fn fail(&self, lease: &str, message: &str, permanent: bool) -> Result<Answer<OperationDone>, Error> {
        let cancelled = self.known(lease).is_some_and(|known| known.cancelled);
        let error = if cancelled { "cancelled" } else { &message[..message.floor_char_boundary(ERROR_BYTES_MAX)] };
        let body = wire::Fail { error, retryable: !permanent && !cancelled };
        self.end(self.post(&on(lease, "fail")).json(&body)).await
    }

    /// Windlass takes a job back unharmed. The original has no such call: there it costs an attempt.
    async fn release(&self, lease: &str) -> Result<Answer<OperationDone>, Error> {
        let unknown = [StatusCode::CONFLICT, StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED];
        let (status, _) = self.send(self.post(&on(lease, "release")), &unknown).await?;
        match status {
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
                self.fail(lease, "the worker was stopped before the job had ended", false).await
            }
            status if status.is_success() => Ok(done(State::Pending)),
            _ => self.end(self.post(&on(lease, "heartbeat"))).await,
        }
    }
}

async fn ask(client: Client, request: RequestBuilder) -> Result<Option<wire::Claimed>, Error> {
    let graph = GraphClient::new(client);
    let (_, body) = graph.send(request, &[]).await?;
    serde_json::from_slice(&body).map_err(|error| graph.confused(&error))
}

/// Lease ids are made for paths, but they come from outside.
fn on(lease: &str, verb: &str) -> String {
    format!("/api/jobs/{}/{verb}", escape(lease))
}

fn done(state: State) -> Answer<OperationDone> {
    Answer::Done(OperationDone { state, replayed: false, cancelled: false, until: None })
}

fn problem(status: StatusCode, detail: &str) -> Error {
    let code = match status {
        StatusCode::UNAUTHORIZED => "unauthorized",
        StatusCode::FORBIDDEN => "forbidden",
        _ => "refused",
    };
    let (kind, status, detail) = (format!("#{code}"), status.as_u16(), detail.to_owned());
    Error::Problem(Box::new(Problem { kind, status, detail, ..Problem::default() }))
}

impl Known {
    /// One line each, as the original's worker sends them; the time is the server's, by our own watch since the claim.
    fn chunks<'a>(&'a self, said: &'a [LogChunk]) -> Vec<wire::Chunk<'a>> {
        let since = u64::try_from(self.granted.elapsed().as_millis()).unwrap_or_default();
        let lines = said.iter().flat_map(|said| said.data.split_inclusive('\n').map(move |line| (said, line)));
        let chunk = |(at, (said, data)): (usize, (&LogChunk, &'a str))| wire::Chunk {
            workflow_id: &self.workflow,
            job_id: &self.job,
            sequence: self.sequence + at as u64,
            data,
            timestamp_ms: said.time_ms.unwrap_or_else(|| self.granted_at_ms.saturating_add(since)),
            stream: if said.stream == Some(OutputStream::Stderr) { "stderr" } else { "stdout" },
        };
        lines.enumerate().map(chunk).collect()
    }
}

/// A flat map of strings: members that are none are written as JSON, and so is a result that is no object.
fn outputs(result: Option<&Json>) -> BTreeMap<String, String> {
    let Some(result) = result else { return BTreeMap::new() };
    let text = |json: &serde_json::Value| json.as_str().map_or_else(|| json.to_string(), str::to_owned);
    match serde_json::from_str(result.get()) {
        Ok(serde_json::Value::Object(members)) => {
            members.iter().map(|(name, value)| (name.clone(), text(value))).collect()
        }
        Ok(serde_json::Value::Null) | Err(_) => BTreeMap::new(),
        Ok(other) => BTreeMap::from([("result".to_owned(), text(&other))]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_become_maps_of_strings() {
        let table: [(&str, &[(&str, &str)]); 5] = [
            (r#"{"a":"b","n":1,"l":[1,"x"]}"#, &[("a", "b"), ("l", "[1,\"x\"]"), ("n", "1")]),
            ("[1]", &[("result", "[1]")]),
            ("\"text\"", &[("result", "text")]),
            ("null", &[]),
            ("{}", &[]),
        ];
        for (json, expected) in table {
            let json = serde_json::value::RawValue::from_string(json.to_owned()).unwrap();
            let found = outputs(Some(&json));
            let found: Vec<(&str, &str)> = found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(found, expected, "{json}");
        }
        assert!(outputs(None).is_empty());
    }

    fn known() -> Known {
        Known {
            workflow: "w".into(),
            job: "j".into(),
            sequence: 7,
            granted: Instant::now(),
            granted_at_ms: 1_000_000,
            beat_every: BEAT_MAX,
            beat: Instant::now(),
            polled: Instant::now(),
            cancelled: false,
            ahead: false,
            reported: 0,
        }
    }

    fn said(data: &str, stream: Option<OutputStream>, time_ms: Option<u64>) -> LogChunk {
        LogChunk { data: data.into(), stream, time_ms }
    }

    #[tokio::test]
    async fn logs_are_lines_with_numbers_that_go_on() {
        let known = known();
        let said = [said("one\ntwo\n", None, None), said("thr", Some(OutputStream::Stderr), Some(5))];
        let chunks = known.chunks(&said);
        let lines: Vec<_> = chunks.iter().map(|chunk| (chunk.sequence, chunk.data, chunk.stream)).collect();
        assert_eq!(lines, [(7, "one\n", "stdout"), (8, "two\n", "stdout"), (9, "thr", "stderr")]);
        assert!(chunks[0].timestamp_ms >= 1_000_000);
        assert_eq!(chunks[2].timestamp_ms, 5, "as the worker said");
    }

    /// A server that takes the logs of one lease and breaks down over the other.
    #[tokio::test]
    async fn what_the_server_took_beside_a_failure_is_not_sent_again() {
        let taken = std::sync::Arc::new(Mutex::new(Vec::new()));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = axum::Router::new().fallback({
            let taken = taken.clone();
            move |uri: axum::http::Uri| {
                taken.lock().unwrap().push(uri.path().to_owned());
                let breaks = uri.path().contains("/bad/");
                std::future::ready(if breaks { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK })
            }
        });
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let graph = GraphClient::new(Client::builder(url).build().unwrap());
        let lease = |name: &str| {
            graph.held().insert(name.to_owned(), known());
            SyncLease { lease: name.into(), chunks: vec![said("x\n", None, None)], ..SyncLease::default() }
        };
        let sync = Sync { worker: "w".into(), leases: vec![lease("good"), lease("bad")] };
        for _ in 0..2 {
            graph.sync(&sync).await.unwrap_err();
        }
        let taken = taken.lock().unwrap();
        let times = |path: &str| taken.iter().filter(|one| *one == path).count();
        assert_eq!((times("/api/jobs/good/logs"), times("/api/jobs/bad/logs")), (1, 2), "{taken:?}");
        server.abort();
    }
}
