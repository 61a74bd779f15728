//! What a job server over HTTP can do here at most: jobs in memory, one log, one sync for all who wait. It knows no leases that
//! run out, no events, no retries, and never reads its log. It serves the few paths the load needs.

use super::log::Log;
use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    routing::{get, post},
};
use bytes::Bytes;
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{json, value::RawValue};
use std::{
    collections::{HashMap, VecDeque},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    net::TcpListener,
    sync::Notify,
    time::{Instant, timeout_at},
};

#[derive(Args)]
pub struct CeilingServer {
    #[arg(long)]
    listen: String,
    #[arg(long)]
    data: PathBuf,
}

impl CeilingServer {
    pub async fn run(self) -> anyhow::Result<()> {
        serve(TcpListener::bind(&self.listen).await?, &self.data).await
    }
}

pub async fn serve(listener: TcpListener, folder: &Path) -> anyhow::Result<()> {
    let shared = Arc::new(Shared { index: Mutex::default(), bell: Notify::new(), log: Log::open(folder)? });
    let routes = Router::new()
        .route("/readyz", get(async || "ready"))
        .route("/api/v1/stats", get(async || Json(json!({"store": "ceiling"}))))
        .route("/api/v1/tokens", post(async || Json(json!({"token": "none", "id": "none"}))))
        .route("/api/v1/jobs", post(submit))
        .route("/api/v1/jobs/batch", post(submit_many))
        .route("/api/v1/leases/claim", post(claim))
        .route("/api/v1/leases/complete", post(complete))
        .route("/api/v1/leases/batch", post(complete_many));
    axum::serve(listener, routes.with_state(shared)).await?;
    Ok(())
}

struct Shared {
    index: Mutex<Index>,
    bell: Notify,
    log: Log,
}

#[derive(Default)]
struct Index {
    last: u64,
    pending: VecDeque<Job>,
    held: HashMap<u64, Job>,
}

#[derive(Clone, Serialize)]
struct Job {
    id: u64,
    payload: Arc<RawValue>,
}

#[derive(Deserialize)]
struct New {
    payload: Box<RawValue>,
}

#[derive(Deserialize)]
struct Many {
    jobs: Vec<New>,
}

#[derive(Deserialize)]
struct Want {
    #[serde(default = "one")]
    max: usize,
    #[serde(default)]
    wait_ms: u64,
}

fn one() -> usize {
    1
}

#[derive(Deserialize)]
struct Done<'a> {
    lease: &'a str,
    next: Option<Want>,
}

#[derive(Deserialize)]
struct ManyDone<'a> {
    #[serde(borrow)]
    operations: Vec<Done<'a>>,
}

#[derive(Serialize)]
struct Lease {
    lease: String,
    job: Job,
}

#[derive(Serialize)]
struct Leases {
    leases: Vec<Lease>,
}

#[derive(Serialize)]
struct Ended {
    state: &'static str,
    leases: Vec<Lease>,
}

type Handled = Result<String, (StatusCode, String)>;

impl Shared {
    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Others see a job when it is on disk, not before.
    async fn add(&self, jobs: Vec<New>, body: Bytes) -> Handled {
        self.log.append(body).await.map_err(broken)?;
        let mut index = self.index();
        for new in jobs {
            index.last += 1;
            let job = Job { id: index.last, payload: new.payload.into() };
            index.pending.push_back(job);
        }
        let last = index.last;
        drop(index);
        self.bell.notify_one();
        Ok(format!(r#"{{"id":"{last}","state":"pending"}}"#))
    }

    fn take(&self, max: usize) -> Vec<Lease> {
        let mut index = self.index();
        let count = max.min(index.pending.len());
        let jobs: Vec<Job> = index.pending.drain(..count).collect();
        index.held.extend(jobs.iter().map(|job| (job.id, job.clone())));
        // The bell keeps one ring at most, so who took something passes it on.
        if count > 0 && !index.pending.is_empty() {
            self.bell.notify_one();
        }
        jobs.into_iter().map(|job| Lease { lease: job.id.to_string(), job }).collect()
    }

    async fn end(&self, leases: &[Done<'_>], body: Bytes) -> Result<(), (StatusCode, String)> {
        {
            let mut index = self.index();
            for done in leases {
                let held = done.lease.parse().ok().and_then(|id| index.held.remove(&id));
                held.ok_or_else(|| (StatusCode::CONFLICT, "nobody holds this job".to_owned()))?;
            }
        }
        self.log.append(body).await.map_err(broken)
    }

    async fn claim(&self, want: &Want) -> Vec<Lease> {
        let until = Instant::now() + Duration::from_millis(want.wait_ms);
        loop {
            let leases = self.take(want.max);
            if !leases.is_empty() || timeout_at(until, self.bell.notified()).await.is_err() {
                return leases;
            }
        }
    }
}

fn broken(error: anyhow::Error) -> (StatusCode, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, (StatusCode, String)> {
    serde_json::from_slice(body).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))
}

async fn submit(State(shared): State<Arc<Shared>>, body: Bytes) -> Handled {
    shared.add(vec![read(&body)?], body).await
}

async fn submit_many(State(shared): State<Arc<Shared>>, body: Bytes) -> Handled {
    shared.add(read::<Many>(&body)?.jobs, body).await
}

async fn claim(State(shared): State<Arc<Shared>>, body: Bytes) -> Result<Json<Leases>, (StatusCode, String)> {
    Ok(Json(Leases { leases: shared.claim(&read(&body)?).await }))
}

async fn complete(State(shared): State<Arc<Shared>>, body: Bytes) -> Result<Json<Ended>, (StatusCode, String)> {
    let done: Done = read(&body)?;
    shared.end(std::slice::from_ref(&done), body.clone()).await?;
    let leases = match &done.next {
        Some(want) => shared.claim(want).await,
        None => Vec::new(),
    };
    Ok(Json(Ended { state: "completed", leases }))
}

async fn complete_many(State(shared): State<Arc<Shared>>, body: Bytes) -> Handled {
    shared.end(&read::<ManyDone<'_>>(&body)?.operations, body.clone()).await?;
    Ok(r#"{"state":"completed"}"#.to_owned())
}
