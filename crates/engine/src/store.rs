//! The seam between the engine and whatever keeps its rows.
//!
//! Set-based on purpose: the engine hands over a whole batch of commands at a time, and a batch is one transaction. A
//! store that can only do one row at a time cannot be fast; one that knows rules cannot be right. The rules are in
//! `windlass-core`; a store loads the rows a decision asks for and writes the rows it comes to.

pub use crate::bulletin::Subject;
use async_trait::async_trait;
use std::{sync::Arc, time::Duration};
use thiserror::Error;
use windlass_core::{
    Attempt, Context, Decider, Decision, Event, Facet, Job, JobId, JobKey, Limits, LogAppend, Namespace, Payload,
    Record, RecordKey, Refusal, Reply, RunId, State, StateCounts, Timestamp, Wake, WorkerId, WorkerKey,
    commands::due::Due,
    decider::{Item, WaitingClaims},
    job::NAME_CHARS_MAX,
    stall::Stalls,
};

/// Named by what the caller should do.
#[derive(Clone, Debug, Error)]
pub enum StoreError {
    /// Somebody else was faster, and repeating did not help. Nothing was written; try again.
    #[error("the store was busy with conflicting writes: {0}")]
    Conflict(String),
    /// The store cannot be reached or did not answer. Nothing may be assumed written unless it says so; try again later.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// No room left. Nothing was written; it is accepted again once there is room.
    #[error("the store is full: {0}")]
    Full(String),
    /// What is stored cannot be right, or a sync failed: stop and look.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
}

/// Commands to be run as one transaction.
#[derive(Clone, Debug)]
pub struct Batch {
    pub items: Vec<Item>,
    pub limits: Limits,
    /// Who may take what it makes ready, in the same transaction.
    pub waiting: Option<Arc<dyn WaitingClaims>>,
    /// When this server did not respond.
    pub stalls: Stalls,
}

impl Batch {
    pub fn new(items: Vec<Item>, limits: Limits) -> Self {
        Self { items, limits, waiting: None, stalls: Stalls::default() }
    }

    /// What decides it.
    pub fn decider(&self, now: Timestamp, first_seq: i64) -> Decider<'_> {
        let context = Context { now, first_seq, limits: self.limits, stalls: self.stalls };
        Decider::new(&self.items, context).joined_by(self.waiting.as_deref())
    }
}

/// What a committed batch came to. By the time it exists, a crash of the process cannot undo it; nor can a power cut, unless
/// the store says that it is [`Store::unsynced`].
#[derive(Debug, Default)]
pub struct Committed {
    /// One per item, in order; behind them one per claim that joined, unless none could.
    pub replies: Vec<Result<Reply, Refusal>>,
    pub events: Vec<Event>,
    /// The public number of the first event, where the store numbers while committing.
    pub first_event: Option<u64>,
    pub wakes: Vec<Wake>,
    /// Workers that should ask what became of what they hold.
    pub notices: Vec<WorkerKey>,
    /// Jobs whose log grew.
    pub logged: Vec<JobKey>,
    pub next_due: Option<Timestamp>,
    /// The time this batch was decided at.
    pub now: Timestamp,
    /// How long the commit took; the batcher gathers accordingly. Zero where the sync is apart.
    pub commit_time: Duration,
}

impl Committed {
    /// Takes from a decision what is told once it is written.
    pub fn of(decision: &mut Decision, now: Timestamp) -> Self {
        Self {
            replies: std::mem::take(&mut decision.replies),
            events: std::mem::take(&mut decision.events),
            wakes: std::mem::take(&mut decision.wakes),
            notices: std::mem::take(&mut decision.notices),
            logged: decision.logs.iter().map(|append| append.job.clone()).collect(),
            next_due: decision.next_due,
            now,
            ..Self::default()
        }
    }
}

/// Which jobs to list: newest first, by id; with `name` first by name, the last name first.
#[derive(Clone, Debug, Default)]
pub struct JobQuery {
    /// None: all namespaces, for the engine's own duties.
    pub namespace: Option<Namespace>,
    /// Empty: any.
    pub states: Vec<State>,
    pub facet: Option<Facet>,
    pub name: Option<NamePrefix>,
    pub run: Option<RunId>,
    /// Held by this worker now.
    pub holder: Option<WorkerId>,
    /// Only ids before this one: the last one of the page before.
    pub before: Option<(Namespace, JobId)>,
    pub limit: usize,
}

/// Jobs whose name begins with a text.
#[derive(Clone, Debug)]
pub struct NamePrefix {
    pub prefix: Arc<str>,
    /// What the job in [`JobQuery::before`] is called.
    pub before: Option<Arc<str>>,
}

impl NamePrefix {
    /// No name that is looked for comes after this one. All names from the prefix up to it begin with the prefix, whatever
    /// a caller says was before.
    pub fn last(&self) -> String {
        let last = [&*self.prefix, &char::MAX.to_string().repeat(NAME_CHARS_MAX)].concat();
        self.before.as_deref().map_or(last.clone(), |before| last.min(before.to_owned()))
    }
}

impl JobQuery {
    /// What a job must be, in plain words; the reference for the statements of stores.
    pub fn fits(&self, job: &Job) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| job.key.namespace == *namespace)
            && (self.states.is_empty() || self.states.contains(&job.state))
            && self.facet.as_ref().is_none_or(|facet| job.spec.facets.contains(facet))
            && self.name.as_ref().is_none_or(|name| name_of(job).is_some_and(|own| own.starts_with(&*name.prefix)))
            && self.run.is_none_or(|run| job.run() == Some(run))
            && self.holder.as_ref().is_none_or(|worker| job.holder() == Some(worker))
            && self.before.as_ref().is_none_or(|(namespace, id)| {
                let before = self.name.as_ref().and_then(|name| name.before.as_deref());
                self.rank(job) < (before, *id, namespace)
            })
    }

    /// What the list is sorted by, in descending order.
    fn rank<'a>(&self, job: &'a Job) -> (Option<&'a str>, JobId, &'a Namespace) {
        (name_of(job).filter(|_| self.name.is_some()), job.key.id, &job.key.namespace)
    }

    pub fn sort(&self, jobs: &mut [Job]) {
        jobs.sort_by(|a, b| self.rank(b).cmp(&self.rank(a)));
    }

    /// Goes on after the last job of a page.
    pub fn go_on_after(&mut self, last: &Job) {
        self.before = Some((last.key.namespace.clone(), last.key.id));
        if let Some(name) = &mut self.name {
            name.before = last.spec.name.clone();
        }
    }
}

fn name_of(job: &Job) -> Option<&str> {
    job.spec.name.as_deref()
}

/// Which records to list: by key.
#[derive(Clone, Debug)]
pub struct RecordQuery {
    pub namespace: Namespace,
    pub kind: Arc<str>,
    pub parent: Option<Arc<str>>,
    pub facet: Option<Facet>,
    /// Only keys after this one.
    pub after: Option<Arc<str>>,
    pub limit: usize,
}

impl RecordQuery {
    /// Records of a kind that are read at a time, where nothing else is said: of small ones.
    pub const PAGE: usize = 500;

    /// All of a kind, in pages.
    pub fn all(namespace: Namespace, kind: &str) -> Self {
        Self { namespace, kind: kind.into(), parent: None, facet: None, after: None, limit: Self::PAGE }
    }
}

/// The parts of a job that are kept apart from its row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobBody {
    pub payload: Payload,
    pub result: Option<Payload>,
    /// Past attempts in order; the present or last one is told by the job itself.
    pub attempts: Vec<Attempt>,
    /// Jobs that wait, or waited, for this one, by id.
    pub children: Vec<JobId>,
}

#[derive(Clone, Debug, Default)]
pub struct EventPage {
    /// With their public numbers: strictly growing, without gaps.
    pub events: Vec<(u64, Event)>,
    /// The lowest number still kept (one more than the last, when none is).
    pub oldest: u64,
    /// The highest number given.
    pub last: u64,
}

/// What is due, and when to look again.
#[derive(Clone, Debug, Default)]
pub struct DuePage {
    /// By the clock that decides.
    pub now: Timestamp,
    /// By the clock on the wall, which may jump.
    pub wall: Timestamp,
    /// How often the clock that decides had to be set forward. After each time what is held needs grace, before anything is
    /// taken for overdue.
    pub steps: u64,
    /// At most as many as asked for, the longest due first.
    pub due: Vec<Due>,
    /// The earliest due time after those.
    pub next: Option<Timestamp>,
}

/// News from another server on the same store.
#[derive(Clone, Debug)]
pub enum Bell {
    /// Jobs can be claimed.
    Wakes(Vec<Wake>),
    /// Something about these workers changed; they are named by [`WorkerKey::hint`].
    Notices(Vec<u64>),
    /// These jobs or runs ended; they are named by [`Subject::hint`].
    Ended(Vec<u64>),
    /// Something happened, but not told what: look.
    Something,
}

/// Queues looked at for [`Store::oldest_pending`] and [`Store::queue_heads`].
pub const QUEUES_MAX: usize = 1_000;

/// What may be thrown away.
#[derive(Clone, Copy, Debug)]
pub struct Trim {
    pub events_before: Timestamp,
    pub limit: usize,
}

/// Object safe, so that the engine and everything above it are compiled once for all stores.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Drives the decider: load what it needs, let it decide, write, commit. Whole or not at all.
    async fn run(&self, batch: Batch) -> Result<Committed, StoreError>;

    /// Returns when every batch that was decided before this call has been written or given up, on other servers too. Needed by those
    /// that run several batches at a time.
    async fn outlast_batches(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// How many batches may usefully be on their way at once.
    fn in_flight(&self) -> usize {
        1
    }

    /// Whether other servers were at work on it when it was opened, and could hear what we could not.
    fn others(&self) -> bool {
        false
    }

    /// Whether a power cut could still take back what batches wrote.
    fn unsynced(&self) -> bool {
        false
    }

    /// Waits for the disk, on this very thread: all that was written before the call is safe after it. Once it fails, it fails
    /// for good.
    fn sync(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Reads never wait for writers. They do wait for the disk where they would show a promise that is not kept yet.
    async fn job(&self, key: &JobKey) -> Result<Option<Job>, StoreError>;
    /// Those of the named jobs that there are, in the order of their names. In one go where the store can: a step of a workflow
    /// may have a thousand before it. Most have none, and no names cost nothing.
    async fn jobs_named(&self, keys: &[JobKey]) -> Result<Vec<Job>, StoreError> {
        let mut found = Vec::with_capacity(keys.len());
        for key in keys {
            found.extend(self.job(key).await?);
        }
        Ok(found)
    }
    /// The results of those of the named jobs that have one, in the same way.
    async fn results(&self, keys: &[JobKey]) -> Result<Vec<(JobKey, Payload)>, StoreError> {
        let mut found = Vec::new();
        for key in keys {
            let result = self.body(key).await?.and_then(|body| body.result);
            found.extend(result.map(|result| (key.clone(), result)));
        }
        Ok(found)
    }
    /// The payloads of those of the named jobs that have one no larger than `bytes_max`, in the same way.
    async fn small_payloads(&self, keys: &[JobKey], bytes_max: usize) -> Result<Vec<(JobKey, Payload)>, StoreError> {
        let mut found = Vec::new();
        for key in keys {
            let payload = self.body(key).await?.map(|body| body.payload);
            let small = payload.filter(|payload| (1..=bytes_max).contains(&payload.as_bytes().len()));
            found.extend(small.map(|payload| (key.clone(), payload)));
        }
        Ok(found)
    }
    async fn jobs(&self, query: &JobQuery) -> Result<Vec<Job>, StoreError>;
    /// How many jobs fit, counting no further than `max`.
    async fn count(&self, query: &JobQuery, max: usize) -> Result<usize, StoreError>;
    /// How many jobs a namespace has in each state; or how many of them are of one definition. Exact, and kept with every change:
    /// it costs the same however many jobs there are.
    async fn job_counts(&self, namespace: &Namespace, definition: Option<&str>) -> Result<StateCounts, StoreError>;
    /// How many bytes a namespace keeps, about: payloads, results, logs, records and events. May be a moment old.
    async fn stored_bytes(&self, namespace: &Namespace) -> Result<u64, StoreError> {
        Ok(self.job_counts(namespace, None).await?.bytes())
    }
    /// The pending job that has waited longest in its place, of the heads of so many queues (a lane and a priority) as can be
    /// looked at; none where nothing is pending. Says how old the oldest is, and costs nothing that grows with the jobs.
    async fn oldest_pending(&self) -> Result<Option<Job>, StoreError>;
    /// The first job in each of a namespace's queues (a lane and a priority), those that have waited longest first, no more than
    /// `limit`; of so many queues as can be looked at.
    async fn queue_heads(&self, namespace: &Namespace, limit: usize) -> Result<Vec<Job>, StoreError>;
    /// Namespaces that have records or jobs, by name, no more than `limit`.
    async fn namespaces(&self, limit: usize) -> Result<Vec<Namespace>, StoreError>;
    /// How many pending jobs of the same lane go before this one, counting no further than `max`.
    async fn ahead(&self, job: &Job, max: usize) -> Result<usize, StoreError>;
    async fn body(&self, key: &JobKey) -> Result<Option<JobBody>, StoreError>;
    async fn record(&self, key: &RecordKey) -> Result<Option<Record>, StoreError>;
    async fn records(&self, query: &RecordQuery) -> Result<Vec<Record>, StoreError>;
    /// How many records fit, however many pages that is. Stores that can count without reading do.
    async fn count_records(&self, query: &RecordQuery) -> Result<usize, StoreError> {
        let (mut query, mut count) = (query.clone(), 0);
        loop {
            let found = self.records(&query).await?;
            count += found.len();
            let Some(last) = found.last().filter(|_| found.len() == query.limit) else { return Ok(count) };
            query.after = Some(last.key.key.clone());
        }
    }
    /// Pieces after `after`, until `bytes_max` is reached; at least one if there is one.
    async fn read_log(&self, key: &JobKey, after: u64, bytes_max: usize) -> Result<Vec<LogAppend>, StoreError>;
    /// Events numbered above `after`.
    async fn events_after(&self, after: u64, limit: usize) -> Result<EventPage, StoreError>;
    async fn due(&self, limit: usize) -> Result<DuePage, StoreError>;
    /// Removes what is past its time and not a row of its own: old events, lanes nobody uses. Returns how much went.
    async fn trim(&self, trim: Trim) -> Result<usize, StoreError>;
    /// Looks for damage. Empty: none found.
    async fn check(&self) -> Result<Vec<String>, StoreError>;

    /// Namespaces whose pending jobs have more than so many distinct sets of tags, as far as is known. Must not take long.
    fn crowded(&self, _max: usize) -> Vec<Namespace> {
        Vec::new()
    }

    /// While only the disk's reserve is left, how many bytes it has. Commands that may not use it are refused meanwhile (see
    /// `Command::may_use_reserve`). Must not take long.
    fn reserve_left(&self) -> Option<u64> {
        None
    }

    /// News from other servers; none where there can be no other.
    fn bells(&self) -> Option<tokio::sync::mpsc::Receiver<Bell>> {
        None
    }
}
