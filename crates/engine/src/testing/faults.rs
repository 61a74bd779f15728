//! Faults: the n-th call of the store fails, before or after it took effect, and whoever called asks again.
//!
//! A caller that hears nothing does not know whether its call was carried out. Every call can therefore be repeated, and
//! after all the repeating the store must hold exactly what it holds when nothing ever fails.

use super::{
    Fresh, START, TestResult,
    snapshot::{Scope, Snapshot, snapshot},
};
use crate::store::{Batch, Committed, DuePage, EventPage, JobBody, JobQuery, RecordQuery, Store, StoreError, Trim};
use async_trait::async_trait;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use windlass_core::{
    Command, Job, JobKey, Limits, LogAppend, Millis, Namespace, Record, RecordKey, Refusal, Reply, WorkerId,
    commands::{
        cancel::Cancel,
        claim::Claim,
        complete::Complete,
        definitions::PutDefinition,
        fail::Fail,
        fire::PutSchedule,
        holder::Holder,
        records::{Expect, PutRecord},
        release::Release,
        renew::Renew,
        submit::{NewJob, Submit},
        submit_run::{RunNode, SubmitRun},
    },
    decider::Item,
    job::{ConcurrencyKey, UniqueKey, UniqueUntil},
    schedule::{Rule, Schedule, Template},
};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// The call never reached the store.
    Before,
    /// The call was carried out and its answer was lost.
    After,
}

/// No call fails but the one.
pub const ALONE: usize = usize::MAX;

/// A store whose n-th call fails, and then the one `apart` calls later, and so on; all others go through.
pub struct Faulty {
    inner: Arc<dyn Store>,
    next: AtomicUsize,
    apart: usize,
    when: When,
    calls: AtomicUsize,
}

impl Faulty {
    pub fn new(inner: Arc<dyn Store>, nth: usize, when: When) -> Self {
        Self { inner, next: AtomicUsize::new(nth), apart: ALONE, when, calls: AtomicUsize::new(0) }
    }

    /// How many calls there were.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::Acquire)
    }

    async fn through<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let failed = || StoreError::Unavailable("as the test wants it".into());
        let number = self.calls.fetch_add(1, Ordering::AcqRel) + 1;
        if number != self.next.load(Ordering::Acquire) {
            return call.await;
        }
        // The call that follows is the same one again.
        self.next.store(number.saturating_add(self.apart).saturating_add(1), Ordering::Release);
        match self.when {
            When::Before => Err(failed()),
            When::After => call.await.and(Err(failed())),
        }
    }
}

#[async_trait]
impl Store for Faulty {
    async fn run(&self, batch: Batch) -> Result<Committed, StoreError> {
        self.through(self.inner.run(batch)).await
    }
    async fn job(&self, key: &JobKey) -> Result<Option<Job>, StoreError> {
        self.through(self.inner.job(key)).await
    }
    async fn jobs(&self, query: &JobQuery) -> Result<Vec<Job>, StoreError> {
        self.through(self.inner.jobs(query)).await
    }
    async fn count(&self, query: &JobQuery, max: usize) -> Result<usize, StoreError> {
        self.through(self.inner.count(query, max)).await
    }
    async fn job_counts(
        &self,
        namespace: &windlass_core::Namespace,
        definition: Option<&str>,
    ) -> Result<windlass_core::StateCounts, StoreError> {
        self.through(self.inner.job_counts(namespace, definition)).await
    }
    async fn ahead(&self, job: &windlass_core::Job, max: usize) -> Result<usize, StoreError> {
        self.through(self.inner.ahead(job, max)).await
    }
    async fn oldest_pending(&self) -> Result<Option<Job>, StoreError> {
        self.through(self.inner.oldest_pending()).await
    }
    async fn queue_heads(&self, namespace: &windlass_core::Namespace, limit: usize) -> Result<Vec<Job>, StoreError> {
        self.through(self.inner.queue_heads(namespace, limit)).await
    }
    async fn namespaces(&self, limit: usize) -> Result<Vec<windlass_core::Namespace>, StoreError> {
        self.through(self.inner.namespaces(limit)).await
    }
    async fn body(&self, key: &JobKey) -> Result<Option<JobBody>, StoreError> {
        self.through(self.inner.body(key)).await
    }
    async fn record(&self, key: &RecordKey) -> Result<Option<Record>, StoreError> {
        self.through(self.inner.record(key)).await
    }
    async fn records(&self, query: &RecordQuery) -> Result<Vec<Record>, StoreError> {
        self.through(self.inner.records(query)).await
    }
    async fn read_log(&self, key: &JobKey, after: u64, bytes_max: usize) -> Result<Vec<LogAppend>, StoreError> {
        self.through(self.inner.read_log(key, after, bytes_max)).await
    }
    async fn events_after(&self, after: u64, limit: usize) -> Result<EventPage, StoreError> {
        self.through(self.inner.events_after(after, limit)).await
    }
    async fn due(&self, limit: usize) -> Result<DuePage, StoreError> {
        self.through(self.inner.due(limit)).await
    }
    async fn trim(&self, trim: Trim) -> Result<usize, StoreError> {
        self.through(self.inner.trim(trim)).await
    }
    async fn check(&self) -> Result<Vec<String>, StoreError> {
        self.through(self.inner.check()).await
    }
}

/// The same work with the n-th call failing, for every n there is: nothing acknowledged is lost, nothing happens twice. Calls that are
/// `apart` fail in the same play.
pub async fn nth_call_fails(fresh: impl AsyncFn() -> Fresh, whens: &[When], apart: usize) {
    let clean = play(fresh().await, (0, ALONE), When::Before, None).await;
    let (clean, calls, told) = clean.unwrap_or_else(|why| panic!("{why}"));
    assert!(calls > 20, "the work takes only {calls} calls");
    for &when in whens {
        for nth in 1..=calls.min(apart) {
            let played = play(fresh().await, (nth, apart), when, Some(told)).await;
            let (after, ..) = played.unwrap_or_else(|why| panic!("call {nth} fails {when:?}: {why}"));
            if let Some(difference) = clean.first_difference(&after) {
                panic!("call {nth} fails {when:?}, and then {difference}");
            }
        }
    }
}

/// Gives back what the store holds in the end, how many calls it took and how many events were told.
async fn play(
    fresh: Fresh,
    (nth, apart): (usize, usize),
    when: When,
    told: Option<u64>,
) -> TestResult<(Snapshot, usize, u64)> {
    let Fresh { store, clock, keep } = fresh;
    let faulty = Faulty { apart, ..Faulty::new(store.clone(), nth, when) };
    let mut work = Work { store: &faulty, told: 0 };
    work.all(&clock).await?;
    let mut scope = Scope::new(&[Namespace::default()], &["note"]);
    scope.told = told.unwrap_or(work.told);
    let after = snapshot(&*store, &scope).await?;
    let damage = store.check().await.map_err(|error| error.to_string())?;
    drop(keep);
    if damage.is_empty() { Ok((after, faulty.calls(), scope.told)) } else { Err(format!("damage: {damage:?}")) }
}

/// A caller that asks again whenever it hears nothing.
struct Work<'a> {
    store: &'a Faulty,
    told: u64,
}

impl Work<'_> {
    async fn run(&mut self, commands: Vec<Command>) -> TestResult<Vec<Result<Reply, Refusal>>> {
        let items =
            commands.into_iter().enumerate().map(|(at, command)| Item { command, seed: at as u64 + 1, by: None });
        let batch = Batch::new(items.collect(), Limits::default());
        for _ in 0..3 {
            match self.store.run(batch.clone()).await {
                Ok(committed) => {
                    self.told += committed.events.len() as u64;
                    return Ok(committed.replies);
                }
                Err(StoreError::Unavailable(_)) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Err("it failed more than once".into())
    }

    /// Runs a command that must be accepted, or have been accepted when it was asked before.
    async fn one(&mut self, command: impl Into<Command>) -> TestResult<Option<Reply>> {
        let command: Command = command.into();
        let name = command.name();
        match self.run(vec![command]).await?.remove(0) {
            Ok(reply) => Ok(Some(reply)),
            Err(Refusal::Exists { .. } | Refusal::Final { .. } | Refusal::LeaseLost { .. }) => Ok(None),
            Err(refusal) => Err(format!("{name} was refused: {refusal}")),
        }
    }

    async fn claim(&mut self, request: &str, max: u128) -> TestResult<Vec<Holder>> {
        let secrets = (0..max).map(|at| uuid::Uuid::from_u128(request.len() as u128 * 100 + at)).collect();
        let mut claim = Claim::new(&ns(), WorkerId::trusted("w1"), Default::default(), secrets);
        claim.request_id = Some(request.into());
        match self.one(claim).await? {
            Some(Reply::Leases(leases)) => Ok(leases.iter().map(|leased| Holder::lease(&ns(), leased.lease)).collect()),
            other => Err(format!("a claim was answered with {other:?}")),
        }
    }

    async fn tick(&mut self) -> TestResult<()> {
        for _ in 0..10 {
            let Ok(page) = self.store.due(10).await else { continue };
            if page.due.is_empty() {
                return Ok(());
            }
            self.run(page.due.into_iter().map(Command::Due).collect()).await?;
        }
        Err("the sweep never comes to an end".into())
    }

    /// One of everything that a worker and its users do.
    async fn all(&mut self, clock: &crate::clock::Simulated) -> TestResult<()> {
        self.submit_all().await?;
        let held = self.claim("q", 4).await?;
        let [first, second, third, fourth] = &held[..] else { return Err(format!("{} leases", held.len())) };
        let (first, second, third) = (first.clone(), second.clone(), third.clone());
        self.one(Renew { holder: first.clone(), length: None }).await?;
        self.one(Complete { holder: first, result: "1".into() }).await?;
        self.one(Fail { holder: second, message: "again".into(), retryable: true, result: Default::default() }).await?;
        self.one(Release { holder: third }).await?;
        self.one(Cancel {
            namespace: ns(),
            job: fourth.job_key().id,
            by: "alice".into(),
            mode: None,
            message: "".into(),
        })
        .await?;
        self.run(vec![record("a"), record("b")]).await?;
        clock.set(START + Millis(5_000));
        self.tick().await?;
        for request in ["qq", "qqq", "qqqq", "qqqqq"] {
            for holder in self.claim(request, 3).await? {
                self.one(Complete { holder, result: "2".into() }).await?;
            }
        }
        clock.set(START + Limits::default().retention);
        self.tick().await
    }

    async fn submit_all(&mut self) -> TestResult<()> {
        for number in 1..=5 {
            let mut job = new(number);
            job.unique =
                Some(UniqueKey { key: format!("u{number}").into(), body_hash: "h".into(), until: UniqueUntil::Final });
            job.concurrency = (number > 3).then(|| ConcurrencyKey { key: "k".into(), limit: 1 });
            self.one(Submit { namespace: ns(), job }).await?;
        }
        let node = |name: &str, need: Option<&str>, number| RunNode {
            name: name.into(),
            needs: need.into_iter().map(Into::into).collect(),
            job: new(number),
        };
        let nodes = vec![node("a", None, 11), node("b", Some("a"), 12)];
        let id = windlass_core::RunId::from_u128(1);
        self.one(SubmitRun::new(ns(), id, nodes)).await?;
        self.one(PutDefinition { namespace: ns(), name: "build".into(), body: "{}".into() }).await?;
        let template = Template { payload: "tidy".into(), ..Template::default() };
        let rule = Rule::Every(Millis::from_secs(86_400 * 30));
        let schedule = Schedule::new("tidy", rule, START + Millis(4_000), template);
        self.put_schedule(schedule).await
    }

    /// Putting a schedule again writes it again, so this looks first.
    async fn put_schedule(&mut self, schedule: Schedule) -> TestResult<()> {
        let key = RecordKey { namespace: ns(), kind: "schedule".into(), key: schedule.name.clone() };
        for _ in 0..4 {
            let Ok(found) = self.store.record(&key).await else { continue };
            if found.is_some() {
                return Ok(());
            }
            let put = PutSchedule { namespace: ns(), schedule: schedule.clone() };
            let items = vec![Item { command: put.into(), seed: 1, by: None }];
            let _maybe_done = self.store.run(Batch::new(items, Limits::default())).await;
        }
        Err("the schedule never came to be".into())
    }
}

fn ns() -> Namespace {
    Namespace::default()
}

fn new(number: u128) -> NewJob {
    NewJob::new(windlass_core::JobId::from_u128(number))
}

fn record(key: &str) -> Command {
    let key = RecordKey { namespace: ns(), kind: "note".into(), key: key.into() };
    let (expect, value) = (Expect::Nothing, "{}".into());
    PutRecord { key, expect, parent: None, value, facets: Vec::new(), expires_at: None }.into()
}
