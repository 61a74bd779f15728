//! What becomes of many jobs: waited for together, counted, and their errors grouped.
//!
//! One stream of events tells of all of them. Where it breaks, or tells nothing for a while, lists say what was missed: a thousand jobs
//! a request. Kept are the ids of the jobs that have not ended, and a limited number of different errors.

use super::wait::{exit_code, worst};
use crate::{
    fail::code,
    output::{clean, cut},
};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::{sync::Notify, task::JoinHandle, time::timeout};
use windlass_api::{
    Uuid,
    event::{Event, ListenEvents},
    job::{Job, ListJobs, State},
};
use windlass_sdk::{Client, EventStream};

/// Jobs that are waited for at a time.
pub const OPEN_MAX: usize = 1_000_000;
/// Different errors that are told apart.
const ERRORS_MAX: usize = 50;
const ERROR_CHARS: usize = 160;
/// How often lists are read: while events come, and while they do not.
const LOOK: Duration = Duration::from_secs(15);
const LOOK_DEAF: Duration = Duration::from_secs(2);
/// Jobs read one by one in a look, of those that no list has shown.
const SINGLE_MAX: usize = 100;
const PAGES_MAX: usize = 2_000;
/// Looks in a row that may fail because the server is away.
const TRIES: u32 = 20;

/// How the jobs ended.
#[derive(Debug, Default, Serialize)]
pub struct Outcomes {
    pub completed: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub skipped: u64,
    /// Those that have not ended.
    pub open: usize,
    /// The most frequent first.
    pub errors: Vec<ErrorGroup>,
}

#[derive(Debug, Serialize)]
pub struct ErrorGroup {
    pub error: String,
    pub count: u64,
    /// One of the jobs.
    pub job: Uuid,
}

#[derive(Default)]
struct Counts {
    open: BTreeSet<Uuid>,
    ended: BTreeMap<&'static str, u64>,
    errors: BTreeMap<String, (u64, Uuid)>,
    /// Events may have been missed.
    look: bool,
    deaf: bool,
}

impl Counts {
    fn ended(&mut self, job: Uuid, state: State, error: impl FnOnce() -> String) {
        if !self.open.remove(&job) {
            return;
        }
        *self.ended.entry(state.name()).or_default() += 1;
        if state == State::Failed {
            let known = error();
            let full = self.errors.len() >= ERRORS_MAX && !self.errors.contains_key(&known);
            let group = if full { "other errors".to_owned() } else { known };
            self.errors.entry(group).or_insert((0, job)).0 += 1;
        }
    }
}

/// The first line says what went wrong; the rest is about this job.
fn words(reason: &str, message: &str) -> String {
    let line = cut(&clean(message.lines().next().unwrap_or_default()), ERROR_CHARS);
    if line.is_empty() { reason.to_owned() } else { format!("{reason}: {line}") }
}

/// Jobs that are waited for.
pub struct AwaitedJobs {
    client: Client,
    counts: Arc<Mutex<Counts>>,
    changed: Arc<Notify>,
    listener: JoinHandle<()>,
}

impl Drop for AwaitedJobs {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

fn lock(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AwaitedJobs {
    /// Listens before any of the jobs is there, so that no end is missed.
    pub async fn listen(client: &Client) -> Self {
        let (counts, changed) = (Arc::new(Mutex::new(Counts::default())), Arc::new(Notify::new()));
        let query = ListenEvents { kind: Some("completed,failed,cancelled,skipped".into()), ..ListenEvents::default() };
        let first = client.events(&query).await.ok();
        lock(&counts).deaf = first.is_none();
        let work = hear(client.clone(), query, first, counts.clone(), changed.clone());
        Self { client: client.clone(), listener: tokio::spawn(work), counts, changed }
    }

    /// Before the job is submitted.
    pub fn expect(&self, job: Uuid) -> anyhow::Result<()> {
        let mut counts = lock(&self.counts);
        counts.open.insert(job);
        anyhow::ensure!(
            counts.open.len() <= OPEN_MAX,
            "--wait waits for at most {OPEN_MAX} jobs at a time; submit the rest of the file after these, or without --wait"
        );
        Ok(())
    }

    /// It was not submitted after all, or is another one that was there before.
    pub fn replace(&self, job: Uuid, by: Option<Uuid>) {
        let mut counts = lock(&self.counts);
        counts.open.remove(&job);
        counts.open.extend(by);
        // It may have ended long ago.
        counts.look |= by.is_some();
    }

    pub fn ended(&self) -> u64 {
        lock(&self.counts).ended.values().sum()
    }

    /// Until all have ended, or the time is up. `shown` hears how many have ended.
    pub async fn wait(&self, limit: Option<Duration>, shown: impl Fn(u64)) -> anyhow::Result<()> {
        let (begun, mut looked, mut failures) = (Instant::now(), Instant::now(), 0);
        loop {
            let changed = self.changed.notified();
            let (open, look, deaf) = {
                let counts = lock(&self.counts);
                (counts.open.len(), counts.look, counts.deaf)
            };
            shown(self.ended());
            let left = limit.map(|limit| limit.saturating_sub(begun.elapsed()));
            if open == 0 || left.is_some_and(|left| left.is_zero()) {
                return Ok(());
            }
            let pause = if deaf || failures > 0 { LOOK_DEAF } else { LOOK };
            let pause = pause.saturating_sub(looked.elapsed());
            if !look && !pause.is_zero() {
                drop(timeout(left.map_or(pause, |left| left.min(pause)), changed).await);
                continue;
            }
            lock(&self.counts).look = false;
            looked = Instant::now();
            match self.look().await {
                Ok(()) => failures = 0,
                Err(error) if error.is_temporary() && failures < TRIES => failures += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads the newest jobs back to the oldest that is waited for.
    async fn look(&self) -> Result<(), windlass_sdk::Error> {
        let before = lock(&self.counts).open.clone();
        let Some(&oldest) = before.first() else { return Ok(()) };
        let (mut query, mut seen) = (ListJobs { limit: Some(1_000), ..ListJobs::default() }, BTreeSet::new());
        for _ in 0..PAGES_MAX {
            let page = self.client.jobs(&query).await?;
            seen.extend(page.items.iter().map(|job| job.id).filter(|id| before.contains(id)));
            page.items.iter().for_each(|job| self.saw(job));
            let over = page.items.last().is_none_or(|job| job.id <= oldest);
            query.cursor = page.next;
            if over || query.cursor.is_none() {
                break;
            }
        }
        for &id in before.difference(&seen).take(SINGLE_MAX) {
            match self.client.job(id).await {
                Ok(job) => self.saw(&job),
                // Ended and removed: how it ended is no longer known.
                Err(error) if error.status() == Some(404) => {
                    lock(&self.counts).ended(id, State::Failed, || "the job is no longer kept".to_owned());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn saw(&self, job: &Job) {
        if job.state.is_final() {
            let error = job.error.as_ref();
            let said = || error.map(|error| words(&error.reason, &error.message)).unwrap_or_default();
            lock(&self.counts).ended(job.id, job.state, said);
        }
    }

    pub fn outcomes(&self) -> Outcomes {
        let counts = lock(&self.counts);
        let of = |state: State| counts.ended.get(state.name()).copied().unwrap_or_default();
        let group = |(error, (count, job)): (&String, &(u64, Uuid))| ErrorGroup {
            error: error.clone(),
            count: *count,
            job: *job,
        };
        let mut errors: Vec<ErrorGroup> = counts.errors.iter().map(group).collect();
        errors.sort_by_key(|group| std::cmp::Reverse(group.count));
        Outcomes {
            completed: of(State::Completed),
            failed: of(State::Failed),
            cancelled: of(State::Cancelled),
            skipped: of(State::Skipped),
            open: counts.open.len(),
            errors,
        }
    }
}

/// Takes the stream up again behind the last event, for as long as it is waited.
async fn hear(
    client: Client,
    mut query: ListenEvents,
    first: Option<EventStream>,
    counts: Arc<Mutex<Counts>>,
    changed: Arc<Notify>,
) {
    let mut stream = first;
    loop {
        while let Some(live) = &mut stream
            && let Ok(Some(event)) = live.next().await
        {
            query.after = Some(event.id);
            told(&event, &mut lock(&counts));
            changed.notify_waiters();
        }
        lock(&counts).deaf = true;
        tokio::time::sleep(LOOK_DEAF).await;
        stream = client.events(&query).await.ok();
        if stream.is_some() {
            let mut counts = lock(&counts);
            (counts.deaf, counts.look) = (false, true);
        }
        changed.notify_waiters();
    }
}

fn told(event: &Event, counts: &mut Counts) {
    let state = [State::Completed, State::Failed, State::Cancelled, State::Skipped];
    let Some(state) = state.into_iter().find(|state| state.name() == event.kind) else { return };
    let text = |name: &str| event.rest.get(name).and_then(|value| value.as_str()).unwrap_or_default();
    if let Some(job) = event.job {
        counts.ended(job, state, || words(text("reason"), text("message")));
    }
}

impl Outcomes {
    pub fn exit_code(&self) -> u8 {
        let counts = [
            (self.failed, State::Failed),
            (self.skipped, State::Skipped),
            (self.cancelled, State::Cancelled),
            (self.open as u64, State::Pending),
        ];
        let codes: Vec<u8> =
            counts.into_iter().filter(|(count, _)| *count > 0).map(|(_, state)| exit_code(state)).collect();
        if codes.is_empty() { code::OK } else { worst(&codes) }
    }

    /// Counts in a line, then an error a line.
    pub fn text(&self) -> String {
        let counts = [
            (self.completed, "completed"),
            (self.failed, "failed"),
            (self.cancelled, "cancelled"),
            (self.skipped, "skipped"),
            (self.open as u64, "not done in time"),
        ];
        let said = counts.iter().filter(|(count, what)| *count > 0 || *what == "completed");
        let mut text = said.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ");
        for ErrorGroup { error, count, job } in &self.errors {
            text += &format!("\n{count:>7} × {error}\n{:>10}windlass logs {job}", "");
        }
        text
    }
}
