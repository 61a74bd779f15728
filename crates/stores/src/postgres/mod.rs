//! PostgreSQL 15 or newer, shared by any number of servers.
//!
//! The server is the batcher: many commands become one transaction of a few set-based statements over a few connections.
//! Rules never live in SQL, except the claim's selection. `run` has the transaction, `load` and `write` its two halves,
//! `at_once` what needs only one of them by what is `known` or was read `ahead`; `heads` and `lanes` the claim; `events` numbers the feed;
//! `doorbell` wakes other servers.

mod address;
mod ahead;
mod at_once;
mod bulk;
mod check;
mod claim_at_once;
mod columns;
mod connection;
mod counts;
mod doorbell;
mod events;
mod failure;
mod heads;
mod hosts;
mod join_at_once;
mod known;
mod lanes;
mod load;
mod marks;
mod migrate;
mod open;
mod outlast;
mod pipe;
mod pooler;
mod read;
mod rows;
mod run;
mod spot;
mod statements;
mod time;
mod tls;
mod write;

pub use open::{OpenError, name_of_url, session};

use ahead::Ahead;
use async_trait::async_trait;
use connection::{Pool, Target};
use doorbell::Doorbell;
use known::Known;
use lanes::Lanes;
use marks::Marks;
use parking_lot::Mutex;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64},
    },
    time::Duration,
};
use windlass_core::{Job, JobKey, LogAppend, Namespace, Payload, Record, RecordKey, StateCounts};
use windlass_engine::{
    Bulk, bulk as whole,
    clock::Clock,
    store::{Batch, Bell, Committed, DuePage, EventPage, JobBody, JobQuery, RecordQuery, Store, StoreError, Trim},
};

/// How to use a database.
#[derive(Clone)]
pub struct Options {
    /// `postgres://user:password@host:5432/database`; several hosts may be named, the one that takes writes is used.
    /// `?sslmode=`, `sslrootcert=` as with libpq, `pooled=true` behind a pooler.
    pub url: String,
    /// None: the database's clock, so that servers with skewed clocks agree.
    pub clock: Option<Arc<dyn Clock>>,
    /// Batches on their way at once, each on a connection of its own.
    pub in_flight: usize,
    /// Connections for reads.
    pub readers: usize,
    /// Tell and hear other servers about new work.
    pub notify: bool,
    pub schema: String,
    pub statement_timeout: Duration,
    /// How long to go on trying while the database does not answer.
    pub patience: Duration,
    /// Bring an older schema forward; false: refuse to start with one.
    pub migrate: bool,
    /// After so many claims from a lane its mark is moved on, past what they left behind.
    pub mark_every: usize,
    /// Start although the database may lose what it acknowledged.
    pub allow_unsafe: bool,
}

impl Options {
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            clock: None,
            in_flight: 2,
            readers: 4,
            notify: true,
            schema: "windlass".into(),
            statement_timeout: Duration::from_secs(30),
            patience: Duration::from_secs(5),
            migrate: true,
            mark_every: 1_000,
            allow_unsafe: false,
        }
    }
}

pub struct Postgres {
    inner: Arc<Inner>,
    bells: Mutex<Option<tokio::sync::mpsc::Receiver<Bell>>>,
}

/// What outlives a caller that goes away.
struct Inner {
    target: Arc<Target>,
    writers: Arc<Pool>,
    readers: Arc<Pool>,
    readers_for_numbers: Arc<Pool>,
    numbering: tokio::sync::Mutex<()>,
    lanes: Arc<Lanes>,
    clock: Option<Arc<dyn Clock>>,
    time: time::Time,
    /// So many more batches look whether the ids of new jobs are taken.
    wary_for: AtomicU32,
    patience: Duration,
    attempt_max: Duration,
    in_flight: usize,
    doorbell: Option<Doorbell>,
    marks: Marks,
    known: Known,
    ahead: Ahead,
    /// How often batches waited for an answer.
    flights: AtomicU64,
    /// Other servers were at work when this one came.
    others: bool,
}

impl Postgres {
    pub async fn connect(options: Options) -> Result<Self, OpenError> {
        open::open(options).await
    }

    /// How often batches waited for an answer of the database since this was opened, for tests that count.
    #[cfg(feature = "testing")]
    pub fn flights(&self) -> u64 {
        self.inner.flights.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// Name and text of every prepared statement, for tests that look at their plans.
#[cfg(feature = "testing")]
pub fn statement_texts() -> Vec<(&'static str, String)> {
    statements::TEXTS.iter().map(|(name, text)| (*name, columns::filled(text))).collect()
}

/// What the sessions that run batches are set to, for the same tests.
#[cfg(feature = "testing")]
pub fn writer_settings() -> String {
    connection::WRITER_SETTINGS.iter().map(|setting| format!("SET {setting};")).collect()
}

#[async_trait]
impl Store for Postgres {
    fn others(&self) -> bool {
        self.inner.others
    }

    /// In a task of its own: a caller that goes away must not leave a half transaction behind.
    async fn run(&self, batch: Batch) -> Result<Committed, StoreError> {
        let inner = self.inner.clone();
        let task = tokio::spawn(async move { inner.run_batch(&batch).await });
        task.await.map_err(|error| StoreError::Corrupt(format!("a batch was not finished: {error}")))?
    }

    /// Those that are under way when this is called, by their locks. A server that died in the middle of one is given up by the database
    /// within a minute (`idle_in_transaction_session_timeout`).
    async fn outlast_batches(&self) -> Result<(), StoreError> {
        self.inner.outlast_batches().await
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight
    }

    fn crowded(&self, max: usize) -> Vec<Namespace> {
        self.inner.lanes.crowded(max)
    }

    async fn job(&self, key: &JobKey) -> Result<Option<Job>, StoreError> {
        self.inner.job(key).await
    }

    async fn jobs_named(&self, keys: &[JobKey]) -> Result<Vec<Job>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.inner.jobs_named(keys).await
    }

    async fn results(&self, keys: &[JobKey]) -> Result<Vec<(JobKey, Payload)>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.inner.results(keys).await
    }

    async fn small_payloads(&self, keys: &[JobKey], bytes_max: usize) -> Result<Vec<(JobKey, Payload)>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.inner.small_payloads(keys, bytes_max).await
    }

    async fn jobs(&self, query: &JobQuery) -> Result<Vec<Job>, StoreError> {
        self.inner.jobs(query).await
    }

    async fn count(&self, query: &JobQuery, max: usize) -> Result<usize, StoreError> {
        self.inner.count(query, max).await
    }

    async fn job_counts(&self, namespace: &Namespace, definition: Option<&str>) -> Result<StateCounts, StoreError> {
        self.inner.job_counts(namespace, definition).await
    }

    async fn ahead(&self, job: &Job, max: usize) -> Result<usize, StoreError> {
        self.inner.ahead(job, max).await
    }

    async fn oldest_pending(&self) -> Result<Option<Job>, StoreError> {
        self.inner.oldest_pending().await
    }

    async fn queue_heads(&self, namespace: &Namespace, limit: usize) -> Result<Vec<Job>, StoreError> {
        self.inner.queue_heads(namespace, limit).await
    }

    async fn namespaces(&self, limit: usize) -> Result<Vec<Namespace>, StoreError> {
        self.inner.namespaces_in_use(limit).await
    }

    async fn body(&self, key: &JobKey) -> Result<Option<JobBody>, StoreError> {
        self.inner.body(key).await
    }

    async fn record(&self, key: &RecordKey) -> Result<Option<Record>, StoreError> {
        self.inner.record(key).await
    }

    async fn records(&self, query: &RecordQuery) -> Result<Vec<Record>, StoreError> {
        self.inner.records(query).await
    }

    async fn count_records(&self, query: &RecordQuery) -> Result<usize, StoreError> {
        self.inner.count_records(query).await
    }

    async fn read_log(&self, key: &JobKey, after: u64, bytes_max: usize) -> Result<Vec<LogAppend>, StoreError> {
        self.inner.read_log(key, after, bytes_max).await
    }

    async fn events_after(&self, after: u64, limit: usize) -> Result<EventPage, StoreError> {
        self.inner.events_after(after, limit).await
    }

    async fn due(&self, limit: usize) -> Result<DuePage, StoreError> {
        self.inner.due(limit).await
    }

    async fn trim(&self, trim: Trim) -> Result<usize, StoreError> {
        self.inner.trim(trim).await
    }

    async fn check(&self) -> Result<Vec<String>, StoreError> {
        self.inner.check().await
    }

    /// Given once; whoever asks first hears the bells.
    fn bells(&self) -> Option<tokio::sync::mpsc::Receiver<Bell>> {
        self.bells.lock().take()
    }
}

#[async_trait]
impl Bulk for Postgres {
    async fn all_records(&self, after: Option<&RecordKey>, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.inner.all_records(after, limit).await
    }

    async fn insert(&self, rows: whole::Rows) -> Result<(), StoreError> {
        self.inner.insert(rows).await
    }
}
