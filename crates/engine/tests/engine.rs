//! The engine around the rules: batching, waiting, sweeping, telling. On the reference store.

use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, timeout};
use windlass_core::{
    Command, JobKey, Leased, Limits, Millis, Namespace, Payload, Refusal, State, Tags, Timestamp, WorkerId,
    commands::{
        all::All,
        append_log::AppendLog,
        claim::Claim,
        complete::Complete,
        holder::Holder,
        renew::Renew,
        submit::{NewJob, Submit},
        workers::RegisterWorker,
    },
    policy::{AliveBy, WorkerPolicy},
    reply::Ended,
    worker::Worker,
};
use windlass_engine::{
    Engine, Error, FeedItem, Settings,
    clock::{Clock, Simulated, System},
    ids,
    memory::Memory,
    store::JobQuery,
};

const SOON: Duration = Duration::from_secs(20);

fn ns() -> Namespace {
    Namespace::default()
}

async fn engine(clock: Arc<dyn Clock>, settings: Settings) -> Engine {
    Engine::start(Arc::new(Memory::new(clock)), settings).await.unwrap()
}

async fn real_time() -> Engine {
    engine(Arc::new(System::default()), Settings::default()).await
}

fn submit(tags: &[&str]) -> Submit {
    let tags = tags.iter().copied().collect();
    Submit { namespace: ns(), job: NewJob { tags, payload: "{}".into(), ..NewJob::new(ids::job_id()) } }
}

fn claim(worker: &str, tags: &[&str], max: usize) -> Claim {
    Claim::new(&ns(), WorkerId::new(worker).unwrap(), tags.iter().copied().collect::<Tags>(), ids::secrets(max))
}

async fn complete(engine: &Engine, leased: &Leased) -> Result<Ended, Error> {
    engine.run(Complete { holder: Holder::lease(&ns(), leased.lease), result: "1".into() }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_claimers_never_share_a_job() {
    let engine = real_time().await;
    engine.run_many((0..1_000).map(|_| submit(&[])).collect()).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..64 {
        let engine = engine.clone();
        tasks.spawn(async move {
            let mut done = Vec::new();
            loop {
                let leases = engine.claim(claim(&format!("w{n}"), &[], 3), Duration::ZERO).await.unwrap();
                if leases.is_empty() {
                    return done;
                }
                for leased in leases {
                    complete(&engine, &leased).await.unwrap();
                    done.push(leased.lease.job);
                }
            }
        });
    }
    let mut all = tasks.join_all().await.concat();
    assert_eq!(all.len(), 1_000);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 1_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_claim_is_woken_by_the_job_it_can_take() {
    let engine = real_time().await;
    let waiting = tokio::spawn({
        let engine = engine.clone();
        async move { engine.claim(claim("w1", &["gpu"], 1), SOON).await.unwrap() }
    });
    while engine.waiting(&ns()) == 0 {
        tokio::task::yield_now().await;
    }
    engine.run(submit(&["tpu"])).await.unwrap();
    let job = engine.run(submit(&["gpu"])).await.unwrap().job;
    let leases = timeout(SOON, waiting).await.unwrap().unwrap();
    assert_eq!(leases[0].lease.job, job);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_not_lost_when_its_claimer_has_gone() {
    let engine = real_time().await;
    for round in 0..200 {
        let gone = tokio::spawn({
            let engine = engine.clone();
            async move { engine.claim(claim("gone", &[], 1), SOON).await }
        });
        while engine.waiting(&ns()) == 0 {
            tokio::task::yield_now().await;
        }
        let stays = tokio::spawn({
            let engine = engine.clone();
            async move { engine.claim(claim("stays", &[], 1), SOON).await.unwrap() }
        });
        engine.run(submit(&[])).await.unwrap();
        // Anywhere between being woken and being answered.
        for _ in 0..round % 7 {
            tokio::task::yield_now().await;
        }
        gone.abort();
        let leases = match gone.await {
            Ok(leases) => {
                stays.abort();
                drop(stays.await);
                leases.unwrap()
            }
            Err(_) => timeout(SOON, stays).await.expect("the job went to nobody").unwrap(),
        };
        complete(&engine, &leases[0]).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_job_does_not_wake_two_thousand() {
    let engine = real_time().await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..2_000 {
        let engine = engine.clone();
        tasks.spawn(async move { engine.claim(claim(&format!("w{n}"), &[], 1), Duration::from_secs(3)).await });
    }
    while engine.waiting(&ns()) < 2_000 {
        tokio::task::yield_now().await;
    }
    engine.run(submit(&[])).await.unwrap();
    let leases = timeout(SOON, tasks.join_next()).await.unwrap().unwrap().unwrap().unwrap();
    assert_eq!(leases.len(), 1);
    // The others still wait: nobody else was woken to look in vain.
    assert!(engine.waiting(&ns()) >= 1_997, "{}", engine.waiting(&ns()));
    tasks.abort_all();
}

#[tokio::test]
async fn the_sweep_expires_a_lease_by_the_clock_alone() {
    let clock = Arc::new(Simulated::at(Timestamp(0)));
    let engine = engine(clock.clone(), Settings { sweep_every: None, ..Settings::default() }).await;
    engine.run(submit(&[])).await.unwrap();
    let leased = engine.claim(claim("w1", &[], 1), Duration::ZERO).await.unwrap().remove(0);
    clock.advance(Millis(29_999));
    engine.tick().await.unwrap();
    assert_eq!(engine.store().job(&leased.job.key).await.unwrap().unwrap().state, State::Claimed);
    clock.advance(Millis(1));
    engine.tick().await.unwrap();
    assert_eq!(engine.store().job(&leased.job.key).await.unwrap().unwrap().state, State::Pending);
    let refused = complete(&engine, &leased).await.unwrap_err();
    assert!(matches!(refused, Error::Refused(Refusal::LeaseLost { state: State::Pending })));
}

#[tokio::test]
async fn a_delayed_job_wakes_its_claimer_when_its_time_has_come() {
    let engine = real_time().await;
    let waiting = tokio::spawn({
        let engine = engine.clone();
        async move { engine.claim(claim("w1", &[], 1), SOON).await.unwrap() }
    });
    let mut job = submit(&[]);
    let at = System::default().now() + Millis(80);
    job.job.run_at = Some(at);
    engine.run(job).await.unwrap();
    let leases = waiting.await.unwrap();
    assert_eq!(leases.len(), 1);
    assert!(leases[0].job.live.claimed_at >= Some(at));
}

#[tokio::test]
async fn events_replay_from_any_number_and_go_on_live() {
    let engine = real_time().await;
    for _ in 0..10 {
        engine.run(submit(&[])).await.unwrap();
    }
    let mut feed = engine.subscribe(Some(4)).await.unwrap();
    let mut live = engine.subscribe(None).await.unwrap();
    for _ in 0..10 {
        engine.run(submit(&[])).await.unwrap();
    }
    for expected in 5..=20 {
        let FeedItem::Event(number, _) = timeout(SOON, feed.next()).await.unwrap().unwrap() else { panic!() };
        assert_eq!(number, expected);
    }
    let FeedItem::Event(number, _) = timeout(SOON, live.next()).await.unwrap().unwrap() else { panic!() };
    assert_eq!(number, 11);
}

#[tokio::test]
async fn a_reader_behind_what_is_kept_is_told_of_the_gap() {
    let engine = real_time().await;
    for _ in 0..10 {
        engine.run(submit(&[])).await.unwrap();
    }
    let trim = windlass_engine::store::Trim { events_before: Timestamp(i64::MAX), limit: 7 };
    assert_eq!(engine.store().trim(trim).await.unwrap(), 7);
    let mut feed = engine.subscribe(Some(2)).await.unwrap();
    assert_eq!(feed.next().await.unwrap(), FeedItem::Gap { requested: 2, oldest: 8 });
    assert!(matches!(feed.next().await.unwrap(), FeedItem::Event(8, _)));
    let mut ahead = engine.subscribe(Some(99)).await.unwrap();
    assert_eq!(ahead.next().await.unwrap(), FeedItem::Gap { requested: 99, oldest: 11 });
}

/// A number that was never given, from another data folder perhaps, must not keep its reader from what happens now.
#[tokio::test]
async fn a_reader_ahead_of_the_latest_is_set_right_also_while_others_read() {
    let engine = real_time().await;
    let mut other = engine.subscribe(None).await.unwrap();
    engine.run(submit(&[])).await.unwrap();
    assert!(matches!(other.next().await.unwrap(), FeedItem::Event(1, _)));
    let mut ahead = engine.subscribe(Some(99)).await.unwrap();
    let told = timeout(Duration::from_secs(5), ahead.next()).await.expect("the reader waits for ever").unwrap();
    assert_eq!(told, FeedItem::Gap { requested: 99, oldest: 2 });
    engine.run(submit(&[])).await.unwrap();
    assert!(matches!(timeout(SOON, ahead.next()).await.unwrap().unwrap(), FeedItem::Event(2, _)));
}

#[tokio::test]
async fn a_flood_of_events_at_a_paused_reader_loses_none() {
    let engine = real_time().await;
    let mut feed = engine.subscribe(None).await.unwrap();
    for _ in 0..100 {
        engine.run_many((0..1_000).map(|_| submit(&[])).collect()).await.unwrap();
    }
    for expected in 1..=100_000 {
        let FeedItem::Event(number, _) = feed.next().await.unwrap() else { panic!() };
        assert_eq!(number, expected);
    }
}

#[tokio::test]
async fn watching_a_job_ends_with_the_job() {
    let engine = real_time().await;
    engine.run(submit(&[])).await.unwrap();
    let leased = engine.claim(claim("w1", &[], 1), Duration::ZERO).await.unwrap().remove(0);
    let key = leased.job.key.clone();
    let watching = tokio::spawn({
        let (engine, key) = (engine.clone(), key.clone());
        async move { engine.watch(&key, SOON).await.unwrap().unwrap() }
    });
    tokio::task::yield_now().await;
    complete(&engine, &leased).await.unwrap();
    assert_eq!(watching.await.unwrap().state, State::Completed);
    let begun = Instant::now();
    assert_eq!(engine.watch(&JobKey::new(&ns(), ids::job_id()), SOON).await.unwrap(), None);
    assert!(begun.elapsed() < SOON);
}

#[tokio::test]
async fn logs_are_followed_and_capped() {
    let limits = Limits { log_bytes_max: 10, ..Limits::default() };
    let engine = engine(Arc::new(System::default()), Settings { limits, ..Settings::default() }).await;
    engine.run(submit(&[])).await.unwrap();
    let leased = engine.claim(claim("w1", &[], 1), Duration::ZERO).await.unwrap().remove(0);
    let following = tokio::spawn({
        let (engine, key) = (engine.clone(), leased.job.key.clone());
        async move { engine.follow_log(&key, 0, 1 << 20, SOON).await.unwrap() }
    });
    tokio::task::yield_now().await;
    let append = |text: &str| AppendLog::new(Holder::lease(&ns(), leased.lease), text);
    engine.run(append("12345678")).await.unwrap();
    assert_eq!(following.await.unwrap()[0].data, Payload::from("12345678"));
    let reply = engine.run(append("90abc")).await.unwrap();
    assert!(reply.dropped_bytes == 8 && !reply.cancelled, "{reply:?}");
    let pieces = engine.store().read_log(&leased.job.key, 1, 1 << 20).await.unwrap();
    assert_eq!(pieces[0].data, Payload::from("90abc"), "the newest part is kept");
}

#[tokio::test]
async fn a_full_queue_says_so_instead_of_growing() {
    let settings = Settings { queue_bytes_max: 1 << 20, ..Settings::default() };
    let engine = engine(Arc::new(System::default()), settings).await;
    let big = |size: usize| {
        let mut job = submit(&[]);
        job.job.payload = Payload::from(vec![b'x'; size]);
        job
    };
    assert!(matches!(engine.run(big(2 << 20)).await, Err(Error::Overloaded)));
    engine.run(big(1 << 10)).await.unwrap();
    engine.shut_down().await;
    assert!(matches!(engine.run(submit(&[])).await, Err(Error::Closed)));
}

#[tokio::test]
async fn leases_get_their_time_back_after_the_server_was_away() {
    let clock = Arc::new(Simulated::at(Timestamp(0)));
    let store = Arc::new(Memory::new(clock.clone()));
    let settings = Settings { sweep_every: None, ..Settings::default() };
    let engine = Engine::start(store.clone(), settings.clone()).await.unwrap();
    engine.run(submit(&[])).await.unwrap();
    let leased = engine.claim(claim("w1", &[], 1), Duration::ZERO).await.unwrap().remove(0);
    engine.shut_down().await;
    clock.advance(Millis::from_secs(600));
    let engine = Engine::start(store, settings).await.unwrap();
    engine.tick().await.unwrap();
    clock.advance(Millis::from_secs(29));
    engine.tick().await.unwrap();
    assert!(!complete(&engine, &leased).await.unwrap().replayed);
}

/// Nothing was due while it was away, so no sweep found it so; whoever wanted to renew did.
#[tokio::test]
async fn leases_get_their_time_back_after_a_renewal_found_the_store_away() {
    use windlass_engine::testing::faults::{Faulty, When};
    let renewed = async |fails: usize| {
        let clock = Arc::new(Simulated::at(Timestamp(1_000_000)));
        let store = Arc::new(Faulty::new(Arc::new(Memory::new(clock.clone())), fails, When::Before));
        let engine = Engine::start(store.clone(), by_hand()).await.unwrap();
        engine.run(submit(&[])).await.unwrap();
        let leased = engine.claim(claim("w1", &[], 1), Duration::ZERO).await.unwrap().remove(0);
        engine.tick().await.unwrap();
        let calls = store.calls();
        clock.advance(Millis::from_secs(20));
        if fails == calls + 1 {
            let renewal = Renew { holder: Holder::lease(&ns(), leased.lease), length: None };
            engine.run(renewal).await.unwrap_err();
        }
        clock.advance(Millis::from_secs(15));
        engine.tick().await.unwrap();
        (calls, complete(&engine, &leased).await.is_ok())
    };
    let (calls, kept) = renewed(usize::MAX).await;
    assert!(!kept, "nobody tried to renew");
    assert_eq!(renewed(calls + 1).await, (calls, true));
}

/// Some hundreds of jobs, all or none.
fn heavy(namespace: &str) -> Command {
    let namespace = Namespace::new(namespace).unwrap();
    let jobs = (0..300).map(|_| Submit { namespace: namespace.clone(), ..submit(&[]) }.into());
    All { commands: jobs.collect() }.into()
}

#[tokio::test]
async fn of_one_namespaces_heavy_requests_few_may_wait_and_the_others_are_told_to_come_back() {
    let engine = real_time().await;
    let mut tasks = tokio::task::JoinSet::new();
    for namespace in ["a"; 20].into_iter().chain(["b"]) {
        let engine = engine.clone();
        tasks.spawn(async move { (namespace, engine.run(heavy(namespace)).await) });
    }
    let answers = timeout(SOON, tasks.join_all()).await.unwrap();
    let refused = answers.iter().filter(|(_, answer)| matches!(answer, Err(Error::Overloaded)));
    assert_eq!(refused.count(), 12);
    assert!(
        answers.iter().any(|(namespace, answer)| *namespace == "b" && answer.is_ok()),
        "others have places of their own"
    );
    let jobs = JobQuery { limit: 10_000, ..JobQuery::default() };
    assert_eq!(
        engine.store().jobs(&jobs).await.unwrap().len(),
        9 * 300,
        "what was accepted was done, and nothing else"
    );
    assert!(engine.run(heavy("a")).await.is_ok(), "and later there are places again");
}

/// It lives by heartbeats, and is removed after a minute without one.
fn register() -> RegisterWorker {
    let minute = Millis::from_secs(60);
    RegisterWorker {
        namespace: ns(),
        worker: WorkerId::trusted("idle"),
        tags: Tags::default(),
        slots: 1,
        owner: None,
        policy: WorkerPolicy {
            alive_by: AliveBy::Heartbeat,
            offline_after: minute,
            delete_after: Some(minute),
            ..WorkerPolicy::default()
        },
        extra: None,
    }
}

async fn is_there(engine: &Engine) -> bool {
    engine.read_record::<Worker>(&ns(), "idle").await.unwrap().is_some()
}

/// Nothing is swept but when a test says so.
fn by_hand() -> Settings {
    Settings { sweep_every: None, ..Settings::default() }
}

#[tokio::test]
async fn an_idle_worker_is_not_removed_for_a_silence_while_no_server_ran() {
    let clock = Arc::new(Simulated::at(Timestamp(1_000_000)));
    let store = Arc::new(Memory::new(clock.clone()));
    let before = Engine::start(store.clone(), by_hand()).await.unwrap();
    before.run(register()).await.unwrap();
    before.shut_down().await;
    clock.advance(Millis::from_secs(600));
    let engine = Engine::start(store, by_hand()).await.unwrap();
    for (wait, expected) in [(0, true), (59_999, true), (1, false)] {
        clock.advance(Millis(wait));
        engine.tick().await.unwrap();
        assert_eq!(is_there(&engine).await, expected, "after {wait} ms more");
    }
}

/// Ten minutes pass between two sweeps; the call to the store with this number fails. Tells how many calls there were before,
/// and whether a worker was still there at the end.
async fn ten_minutes(fails: usize) -> (usize, bool) {
    use windlass_engine::testing::faults::{Faulty, When};
    let clock = Arc::new(Simulated::at(Timestamp(1_000_000)));
    let store = Arc::new(Faulty::new(Arc::new(Memory::new(clock.clone())), fails, When::Before));
    let engine = Engine::start(store.clone(), by_hand()).await.unwrap();
    engine.run(register()).await.unwrap();
    engine.tick().await.unwrap();
    let calls = store.calls();
    clock.advance(Millis::from_secs(600));
    assert_eq!(engine.tick().await.is_err(), fails == calls + 1);
    engine.tick().await.unwrap();
    (calls, is_there(&engine).await)
}

#[tokio::test]
async fn an_idle_worker_is_not_removed_for_a_silence_while_the_store_was_away() {
    let (calls, there) = ten_minutes(usize::MAX).await;
    assert!(!there, "it was silent, and the store was there to say so");
    assert_eq!(ten_minutes(calls + 1).await, (calls, true));
}
