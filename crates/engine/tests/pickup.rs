//! From a job that becomes ready to the worker that waits for it: one transaction, in the order of the line.

use std::{sync::Arc, time::Duration};
use tokio::{
    task::JoinHandle,
    time::{Instant, timeout},
};
use windlass_core::{
    JobId, JobKey, Leased, Millis, Namespace, State, Tags, WorkerId,
    commands::{
        claim::{Claim, Offer},
        complete::Complete,
        fail::Fail,
        holder::Holder,
        submit::{NewJob, Submit},
        workers::RegisterWorker,
    },
    policy::{Backoff, RetryPolicy, WorkerPolicy},
};
use windlass_engine::{
    Engine, Error, Settings, StoreError,
    clock::{Simulated, System},
    ids,
    memory::Memory,
    testing::{
        START, eventually,
        faults::{Faulty, When},
    },
};

const SOON: Duration = Duration::from_secs(20);

fn ns() -> Namespace {
    Namespace::default()
}

async fn engine() -> Engine {
    Engine::start(Arc::new(Memory::new(Arc::new(System::default()))), Settings::default()).await.unwrap()
}

fn new(tags: &[&str]) -> NewJob {
    NewJob { tags: tags.iter().copied().collect(), ..NewJob::new(ids::job_id()) }
}

fn submit(job: NewJob) -> Submit {
    Submit { namespace: ns(), job }
}

fn claim(worker: &str, tags: &[&str], max: usize) -> Claim {
    Claim::new(&ns(), WorkerId::new(worker).unwrap(), tags.iter().copied().collect::<Tags>(), ids::secrets(max))
}

type Waiting = JoinHandle<Result<Vec<Leased>, Error>>;

/// A claim that has looked, found nothing and waits, behind all that waited before.
async fn wait(engine: &Engine, claim: Claim) -> Waiting {
    let before = engine.parked();
    let waiting = tokio::spawn({
        let engine = engine.clone();
        async move { engine.claim(claim, SOON).await }
    });
    eventually("it waits", async || (engine.parked() > before).then_some(())).await;
    waiting
}

async fn got(waiting: Waiting) -> Vec<JobId> {
    let leases = timeout(SOON, waiting).await.unwrap().unwrap().unwrap();
    leases.iter().map(|leased| leased.lease.job).collect()
}

async fn state(engine: &Engine, id: JobId) -> State {
    engine.store().job(&JobKey::new(&ns(), id)).await.unwrap().unwrap().state
}

/// Transactions so far. Some are answered before they are counted, but not before the one behind them is.
async fn batches(engine: &Engine) -> u64 {
    engine.run(submit(new(&["nobody has this"]))).await.unwrap();
    engine.counts().batches
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_makes_a_job_ready_hands_it_over_in_the_same_transaction() {
    let clock = Arc::new(Simulated::at(START));
    let settings = Settings { sweep_every: None, ..Settings::default() };
    let engine = Engine::start(Arc::new(Memory::new(clock.clone())), settings).await.unwrap();
    let retry = RetryPolicy { attempts: 3, backoff: Backoff::None, ..RetryPolicy::default() };
    let mut job = new(&[]);
    job.policy.retry = retry;
    let child = NewJob { parents: vec![job.id], ..new(&[]) };

    let waiting = wait(&engine, claim("w", &[], 1)).await;
    let before = batches(&engine).await;
    let first = engine.run(submit(job)).await.unwrap().job;
    let leases = timeout(SOON, waiting).await.unwrap().unwrap().unwrap();
    assert_eq!((leases[0].lease.job, batches(&engine).await - before), (first, 2), "submitted");
    engine.run(submit(child)).await.unwrap();

    let waiting = wait(&engine, claim("w", &[], 1)).await;
    let before = batches(&engine).await;
    let holder = Holder::lease(&ns(), leases[0].lease);
    engine.run(Fail { holder, message: "".into(), retryable: true, result: Default::default() }).await.unwrap();
    let leases = timeout(SOON, waiting).await.unwrap().unwrap().unwrap();
    assert_eq!((leases[0].lease.job, batches(&engine).await - before), (first, 2), "retried");

    let waiting = wait(&engine, claim("w", &[], 1)).await;
    let before = batches(&engine).await;
    engine.run(Complete { holder: Holder::lease(&ns(), leases[0].lease), result: "1".into() }).await.unwrap();
    let leases = timeout(SOON, waiting).await.unwrap().unwrap().unwrap();
    assert_eq!((leases[0].job.key.id != first, batches(&engine).await - before), (true, 2), "its parent completed");

    let waiting = wait(&engine, claim("w", &[], 1)).await;
    clock.set(START + Millis::from_secs(3_600));
    let before = batches(&engine).await;
    engine.tick().await.unwrap();
    assert_eq!((got(waiting).await.len(), batches(&engine).await - before), (1, 2), "its lease ran out");
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_wait_are_served_in_the_order_of_their_line() {
    let engine = engine().await;
    let plain = wait(&engine, claim("plain", &[], 1)).await;
    let both = wait(&engine, claim("both", &["gpu"], 2)).await;
    let late = wait(&engine, claim("late", &["gpu"], 1)).await;
    let last = wait(&engine, claim("last", &[], 1)).await;
    let jobs: Vec<NewJob> = vec![new(&["gpu"]), new(&[]), new(&["gpu"])];
    let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    let before = batches(&engine).await;
    engine.run_many(jobs.into_iter().map(submit).collect()).await.unwrap();
    assert_eq!(batches(&engine).await - before, 2);
    assert_eq!(got(both).await, [ids[0], ids[2]], "one claim has room for both of its tag");
    assert_eq!(got(plain).await, [ids[1]]);
    assert_eq!(engine.parked(), 2, "nobody else was disturbed");
    let next = engine.run(submit(new(&[]))).await.unwrap().job;
    assert_eq!(got(late).await, [next], "it waited longer than the last one");
    last.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_has_gone_takes_nothing() {
    let engine = engine().await;
    let gone = wait(&engine, claim("gone", &[], 1)).await;
    let stays = wait(&engine, claim("stays", &[], 1)).await;
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    let job = engine.run(submit(new(&[]))).await.unwrap().job;
    let leases = timeout(SOON, stays).await.unwrap().unwrap().unwrap();
    assert_eq!((leases[0].lease.job, leases[0].job.live.attempt), (job, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_finds_nothing_goes_on_waiting() {
    let engine = engine().await;
    let register = |tags: &[&str]| RegisterWorker {
        namespace: ns(),
        worker: WorkerId::new("w").unwrap(),
        tags: tags.iter().copied().collect(),
        slots: 1,
        policy: WorkerPolicy::default(),
        owner: None,
        extra: None,
    };
    engine.run(register(&["gpu"])).await.unwrap();
    let waiting = wait(&engine, Claim { offer: Offer::Registered, ..claim("w", &[], 1) }).await;
    engine.run(register(&["cpu"])).await.unwrap();
    let gpu = engine.run(submit(new(&["gpu"]))).await.unwrap().job;
    eventually("it waits again", async || (engine.parked() == 1).then_some(())).await;
    assert_eq!((state(&engine, gpu).await, waiting.is_finished()), (State::Pending, false));
    engine.run(register(&["gpu"])).await.unwrap();
    engine.run(submit(new(&["gpu"]))).await.unwrap();
    assert_eq!(got(waiting).await, [gpu], "what lay there goes first");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_time_is_up_while_a_batch_has_it_still_gets_its_job() {
    let engine = engine().await;
    for round in 0..300_u64 {
        let waiting = tokio::spawn({
            let engine = engine.clone();
            async move { engine.claim(claim("w", &[], 1), Duration::from_micros(1_000)).await.unwrap() }
        });
        while engine.parked() == 0 && !waiting.is_finished() {
            tokio::task::yield_now().await;
        }
        // Around the end of the wait, on either side of it.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_micros(round * 7 % 1_500) {
            tokio::task::yield_now().await;
        }
        let job = engine.run(submit(new(&[]))).await.unwrap().job;
        let leases = waiting.await.unwrap();
        match leases.first() {
            Some(leased) => assert_eq!((leased.lease.job, state(&engine, job).await), (job, State::Claimed)),
            None => assert_eq!(engine.claim(claim("w", &[], 1), SOON).await.unwrap()[0].lease.job, job),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_hears_of_a_batch_that_may_or_may_not_have_been_written() {
    let store = Arc::new(Memory::new(Arc::new(System::default())));
    // Its own look and the submit.
    let faulty = Arc::new(Faulty::new(store, 2, When::After));
    let settings = Settings { sweep_every: None, grace: false, ..Settings::default() };
    let engine = Engine::start(faulty, settings).await.unwrap();
    let waiting = wait(&engine, claim("w", &[], 1)).await;
    assert!(engine.run(submit(new(&[]))).await.is_err());
    let answer = timeout(SOON, waiting).await.unwrap().unwrap();
    assert!(matches!(answer, Err(Error::Store(StoreError::Unavailable(_)))), "{answer:?}");
}

/// The others in the batch wait for them.
#[tokio::test(flavor = "multi_thread")]
async fn so_many_claims_go_along_with_a_batch_and_the_rest_are_woken() {
    let engine = engine().await;
    let mut waiting = Vec::new();
    for at in 0..80 {
        waiting.push(wait(&engine, claim(&format!("w{at}"), &[], 1)).await);
    }
    let before = batches(&engine).await;
    let made = engine.run_many((0..80).map(|_| submit(new(&[]))).collect()).await.unwrap();
    assert!(made.iter().all(Result::is_ok));
    let mut taken = Vec::new();
    for waiting in waiting {
        taken.extend(got(waiting).await);
    }
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), 80, "everybody gets one");
    assert!(batches(&engine).await - before > 2, "80 claims in the transaction of the jobs themselves");
}
