//! A load of concurrent callers whose every acknowledgement is recorded, and the check of that record against what the
//! store holds afterwards. Used by the crash tests of both stores.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    str::FromStr,
    sync::{Arc, Mutex},
    time::Duration,
};
use windlass_core::{
    JobId, JobKey, Leased, Millis, Namespace, State, Tags, WorkerId,
    commands::{
        cancel::Cancel,
        claim::Claim,
        complete::Complete,
        fail::Fail,
        holder::Holder,
        release::Release,
        submit::{NewJob, Submit},
    },
    policy::{JobPolicy, RetryPolicy},
};
use windlass_engine::{Engine, Store, ids};

/// What the engine said was done. Written down only after it said so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ack {
    Submitted(JobId),
    Claimed(JobId, u32),
    Completed(JobId, u64),
    Failed(JobId),
    Cancelled(JobId),
}

impl fmt::Display for Ack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ack::Submitted(id) => write!(f, "submitted {id} 0 ."),
            Ack::Claimed(id, attempt) => write!(f, "claimed {id} {attempt} ."),
            Ack::Completed(id, result) => write!(f, "completed {id} {result} ."),
            Ack::Failed(id) => write!(f, "failed {id} 0 ."),
            Ack::Cancelled(id) => write!(f, "cancelled {id} 0 ."),
        }
    }
}

impl FromStr for Ack {
    type Err = ();
    /// A line that was cut off by a kill does not end in a dot, and is no acknowledgement.
    fn from_str(line: &str) -> Result<Self, ()> {
        let [what, id, number, "."] = line.split(' ').collect::<Vec<_>>()[..] else { return Err(()) };
        let (id, number): (JobId, u64) = (id.parse().map_err(drop)?, number.parse().map_err(drop)?);
        match what {
            "submitted" => Ok(Ack::Submitted(id)),
            "claimed" => Ok(Ack::Claimed(id, number as u32)),
            "completed" => Ok(Ack::Completed(id, number)),
            "failed" => Ok(Ack::Failed(id)),
            "cancelled" => Ok(Ack::Cancelled(id)),
            _ => Err(()),
        }
    }
}

pub type Recorder = Arc<dyn Fn(Ack) + Send + Sync>;

pub fn ns() -> Namespace {
    Namespace::default()
}

/// So many callers, until the process is killed or the task is dropped.
pub fn start(engine: &Engine, callers: usize, record: Recorder) -> tokio::task::JoinSet<()> {
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..callers {
        let (engine, record) = (engine.clone(), record.clone());
        tasks.spawn(async move {
            let worker = WorkerId::new(&format!("w{number}")).expect("a fine name");
            let mut mine = Vec::new();
            loop {
                if one_round(&engine, &worker, &record, &mut mine).await.is_err() {
                    tokio::time::sleep(Duration::from_millis(5)).await; // The store is away: nothing was acknowledged, come back.
                }
            }
        });
    }
    tasks
}

async fn one_round(
    engine: &Engine,
    worker: &WorkerId,
    record: &Recorder,
    mine: &mut Vec<JobId>,
) -> Result<(), windlass_engine::Error> {
    let id = ids::job_id();
    let retry = RetryPolicy { attempts: 50, losses_max: 50, ..RetryPolicy::default() };
    let policy = JobPolicy { retry, ..JobPolicy::default() };
    let job = NewJob { payload: "{}".into(), policy, ..NewJob::new(id) };
    engine.run(Submit { namespace: ns(), job }).await?;
    record(Ack::Submitted(id));
    mine.push(id);
    if ids::seed().is_multiple_of(20) {
        let at = ids::seed() as usize % mine.len();
        let cancel =
            Cancel { namespace: ns(), job: mine.swap_remove(at), by: "load".into(), mode: None, message: "".into() };
        let target = cancel.job;
        if let Ok(job) = engine.run(cancel).await {
            assert_eq!(job.state, State::Cancelled);
            record(Ack::Cancelled(target));
        }
    }
    for leased in claim(engine, worker, 1 + ids::seed() as usize % 2, Millis(400)).await? {
        record(Ack::Claimed(leased.lease.job, leased.job.live.attempt));
        report(engine, record, &leased).await?;
    }
    Ok(())
}

async fn claim(
    engine: &Engine,
    worker: &WorkerId,
    max: usize,
    lease: Millis,
) -> Result<Vec<Leased>, windlass_engine::Error> {
    let claim = Claim { lease: Some(lease), ..Claim::new(&ns(), worker.clone(), Tags::default(), ids::secrets(max)) };
    engine.claim(claim, Duration::ZERO).await
}

async fn report(engine: &Engine, record: &Recorder, leased: &Leased) -> Result<(), windlass_engine::Error> {
    let holder = Holder::lease(&ns(), leased.lease);
    let (job, number) = (leased.lease.job, ids::seed());
    let answer = match number % 20 {
        0 => return Ok(()),
        1 => return engine.run(Release { holder }).await.map(drop).or_else(only_the_store),
        2 | 3 => {
            engine
                .run(Fail { holder, message: "again".into(), retryable: number % 3 > 0, result: Default::default() })
                .await
        }
        _ => engine.run(Complete { holder, result: number.to_string().as_str().into() }).await,
    };
    match answer {
        Ok(report) if !report.replayed => match report.job.state {
            State::Completed => record(Ack::Completed(job, number)),
            State::Failed => record(Ack::Failed(job)),
            _ => {}
        },
        Ok(_) => {}
        Err(error) => return only_the_store(error),
    }
    Ok(())
}

fn only_the_store(error: windlass_engine::Error) -> Result<(), windlass_engine::Error> {
    if matches!(error, windlass_engine::Error::Store(_)) { Err(error) } else { Ok(()) }
}

/// Claims and completes until every job has ended, as patient workers would after a crash.
#[allow(dead_code)]
pub async fn drain(engine: &Engine, record: &Recorder) {
    let worker = WorkerId::new("drain").expect("a fine name");
    let query = windlass_engine::store::JobQuery {
        namespace: Some(ns()),
        states: State::ALL.into_iter().filter(|state| !state.is_final()).collect(),
        limit: 1,
        ..Default::default()
    };
    while !engine.store().jobs(&query).await.expect("the store is back").is_empty() {
        let leases = claim(engine, &worker, 100, Millis(30_000)).await.expect("the store is back");
        if leases.is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await; // Until leases of those who died run out, in real time.
            drop(engine.tick().await);
        }
        for leased in leases {
            record(Ack::Claimed(leased.lease.job, leased.job.live.attempt));
            let number = ids::seed();
            let complete =
                Complete { holder: Holder::lease(&ns(), leased.lease), result: number.to_string().as_str().into() };
            if engine.run(complete).await.is_ok_and(|report| !report.replayed) {
                record(Ack::Completed(leased.lease.job, number));
            }
        }
    }
}

/// Everything acknowledged is there; so is what is acknowledged while the rest is worked off. How many jobs were completed.
pub async fn check_and_drain(store: &dyn Store, engine: &Engine, acks: &mut Vec<Ack>) -> usize {
    check(store, acks).await;
    let drained = Arc::new(Mutex::new(Vec::new()));
    let record: Recorder = {
        let drained = drained.clone();
        Arc::new(move |ack| drained.lock().expect("no panic").push(ack))
    };
    drain(engine, &record).await;
    acks.extend(drained.lock().expect("no panic").drain(..));
    check(store, acks).await;
    acks.iter().filter(|ack| matches!(ack, Ack::Completed(..))).count()
}

/// Nothing acknowledged is lost, nothing ended twice, no attempt was handed out twice.
pub async fn check(store: &dyn Store, acks: &[Ack]) {
    let mut attempts: HashSet<(JobId, u32)> = HashSet::new();
    let mut ends: HashMap<JobId, &Ack> = HashMap::new();
    for ack in acks {
        match ack {
            Ack::Submitted(_) => {}
            Ack::Claimed(id, attempt) => {
                assert!(attempts.insert((*id, *attempt)), "{id} attempt {attempt} leased twice")
            }
            Ack::Completed(id, _) | Ack::Failed(id) | Ack::Cancelled(id) => {
                if let Some(before) = ends.insert(*id, ack) {
                    panic!("{id} ended twice: {before:?} and {ack:?}");
                }
            }
        }
    }
    for ack in acks {
        check_one(store, ack).await;
    }
    check_events(store).await;
    assert_eq!(store.check().await.expect("readable"), Vec::<String>::new());
}

async fn check_one(store: &dyn Store, ack: &Ack) {
    let (Ack::Submitted(id) | Ack::Claimed(id, _) | Ack::Completed(id, _) | Ack::Failed(id) | Ack::Cancelled(id)) = ack;
    let key = JobKey::new(&ns(), *id);
    let job = store.job(&key).await.expect("readable").unwrap_or_else(|| panic!("lost: {ack:?}"));
    match ack {
        Ack::Submitted(_) => {}
        Ack::Claimed(_, attempt) => assert!(job.live.attempt >= *attempt, "lost: {ack:?}"),
        Ack::Completed(_, result) => {
            assert_eq!(job.state, State::Completed, "lost: {ack:?}");
            let body = store.body(&key).await.expect("readable").expect("the job is there");
            assert_eq!(body.result, Some(result.to_string().as_str().into()), "another result: {ack:?}");
        }
        Ack::Failed(_) => assert_eq!(job.state, State::Failed, "lost: {ack:?}"),
        Ack::Cancelled(_) => assert_eq!(job.state, State::Cancelled, "lost: {ack:?}"),
    }
}

/// Numbered without gaps, one ending for each job, and it agrees with the job.
async fn check_events(store: &dyn Store) {
    let mut ended: HashMap<JobId, &'static str> = HashMap::new();
    let mut after = 0;
    loop {
        let page = store.events_after(after, 1_000).await.expect("readable");
        if page.events.is_empty() {
            break;
        }
        for (number, event) in page.events {
            assert_eq!(number, after + 1, "a gap in the events");
            after = number;
            if event.what.ends_job() {
                let id = event.what.job().expect("ends a job");
                let before = ended.insert(id, event.what.name());
                assert_eq!(before, None, "{id} ended twice in the events");
            }
        }
    }
    for (id, name) in ended {
        let job = store.job(&JobKey::new(&ns(), id)).await.expect("readable").expect("kept");
        assert_eq!(job.state.name(), name);
    }
}

/// A knob from the environment.
pub fn knob(name: &str, normally: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(normally)
}
