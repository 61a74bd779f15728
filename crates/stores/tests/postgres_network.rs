//! A network that is slow, silent or cut: answers may be late or missing, but none is ever wrong.

use crate::proxy::Weather;
use crate::support::{claim, complete, leases_of, ns, quiet, run, submit};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use windlass_core::{JobId, JobKey, Reply, State};
use windlass_engine::{
    store::{JobQuery, Store, StoreError},
    testing::eventually,
};
use windlass_stores::{
    postgres::{Options, Postgres},
    testing::Cluster,
};

struct Acknowledged {
    submitted: Vec<JobId>,
    completed: Vec<JobId>,
}

/// Submits, claims and completes one job after another; notes what was acknowledged and counts it for the test to see.
async fn work(store: Arc<Postgres>, at: u128, stop: Arc<AtomicBool>, count: Arc<AtomicUsize>) -> Acknowledged {
    let mut done = Acknowledged { submitted: Vec::new(), completed: Vec::new() };
    for round in 0.. {
        if stop.load(Ordering::Relaxed) {
            return done;
        }
        let id = (at << 64) + round;
        match run(&*store, vec![submit(id).into()]).await {
            Ok(_) => done.submitted.push(JobId::from_u128(id)),
            Err(StoreError::Unavailable(_)) => continue,
            Err(error) => panic!("{error}"),
        }
        let Ok(outcome) = run(&*store, vec![claim(&format!("w{at}"), id, 1).into()]).await else { continue };
        for lease in leases_of(&outcome.replies) {
            if let Ok(outcome) = run(&*store, vec![complete(lease, "done").into()]).await {
                let first = matches!(
                    &outcome.replies[0],
                    Ok(Reply::Ended(windlass_core::reply::Ended { replayed: false, .. }))
                );
                assert!(first, "a first completion was answered with {:?}", outcome.replies[0]);
                done.completed.push(lease.job);
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    unreachable!("the rounds do not end by themselves")
}

async fn check_kept(store: &Postgres, all: &[Acknowledged]) {
    for done in all {
        for &id in &done.submitted {
            assert!(store.job(&JobKey::new(&ns(), id)).await.unwrap().is_some(), "{id} was acknowledged and is gone");
        }
        for &id in &done.completed {
            let job = store.job(&JobKey::new(&ns(), id)).await.unwrap().unwrap();
            assert_eq!(job.state, State::Completed, "{id}");
        }
    }
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    let page = store.events_after(0, 1_000_000).await.unwrap();
    let told = page.events.iter().filter(|(_, event)| event.what.name() == "submitted").count();
    assert_eq!(told, store.count(&JobQuery::default(), 1_000_000).await.unwrap(), "each job is told of once");
}

async fn store_behind(weather: &Weather, patience: Duration, statement_timeout: Duration) -> Arc<Postgres> {
    let cluster = Cluster::shared();
    let port = crate::proxy::start(cluster.port(), weather.clone()).await;
    let url = cluster.fresh_database().replace(&format!(":{}/", cluster.port()), &format!(":{port}/"));
    Arc::new(Postgres::connect(Options { patience, statement_timeout, ..quiet(url) }).await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_silent_or_cut_network_loses_and_doubles_nothing() {
    let weather = Weather::default();
    let store = store_behind(&weather, Duration::from_secs(2), Duration::from_secs(3)).await;
    let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let tasks: Vec<_> = (1..=4).map(|at| tokio::spawn(work(store.clone(), at, stop.clone(), count.clone()))).collect();
    let pause = |ms| tokio::time::sleep(Duration::from_millis(ms)); // How long the weather lasts.
    for round in 0..3 {
        weather.delay(Duration::from_millis(40));
        pause(400).await;
        weather.delay(Duration::ZERO);
        for _ in 0..5 {
            weather.cut();
            pause(37 + round * 11).await;
        }
        weather.silence(true);
        pause(700).await;
        weather.silence(false);
        weather.cut();
        recovers(&count).await;
    }
    stop.store(true, Ordering::Relaxed);
    let mut all = Vec::new();
    for task in tasks {
        all.push(task.await.unwrap());
    }
    // As many as were waited for; how many more there are depends on the machine.
    assert!(all.iter().map(|done| done.completed.len()).sum::<usize>() >= 30);
    check_kept(&store, &all).await;
}

/// Work goes on by itself once the network does. The limit is what we promise, not what we measure.
async fn recovers(count: &AtomicUsize) {
    let (before, begun) = (count.load(Ordering::Relaxed), Instant::now());
    while count.load(Ordering::Relaxed) < before + 10 {
        assert!(begun.elapsed() < Duration::from_secs(5), "no recovery within 5 s");
        tokio::time::sleep(Duration::from_millis(10)).await; // The time it takes is promised, so it is measured here.
    }
}

/// However long the database was away. The limit is what we promise, not what we measure.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_back_is_found_within_half_a_second() {
    let weather = Weather::default();
    let store = store_behind(&weather, Duration::from_secs(5), Duration::from_secs(30)).await;
    run(&*store, vec![submit(1).into()]).await.unwrap();
    weather.refuse(true);
    weather.cut();
    let waiting: Vec<_> = (2..6)
        .map(|id| {
            let store = store.clone();
            tokio::spawn(async move { run(&*store, vec![submit(id).into()]).await })
        })
        .collect();
    let read = tokio::spawn({
        let store = store.clone();
        async move { store.job(&JobKey::new(&ns(), JobId::from_u128(1))).await }
    });
    eventually("many tries", async || (weather.refused() > 20).then_some(())).await;
    weather.refuse(false);
    let back = Instant::now();
    for waiting in waiting {
        waiting.await.unwrap().expect("the database is back in time");
    }
    assert!(read.await.unwrap().expect("the database is back in time").is_some());
    assert!(back.elapsed() < Duration::from_millis(500), "found after {:?}", back.elapsed());
}

/// As behind a pooler that gives answers to somebody else: the connection is there, and nothing comes on it any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_never_comes_is_given_up_and_what_became_of_the_batch_is_found_out() {
    let weather = Weather::default();
    let store = store_behind(&weather, Duration::from_secs(5), Duration::from_millis(500)).await;
    run(&*store, vec![submit(1).into()]).await.unwrap();
    assert_eq!(store.events_after(0, 10).await.unwrap().events.len(), 1);
    weather.strand();
    // Readers and the one who numbers events have kept their connections, too.
    let (first, second) = (JobKey::new(&ns(), JobId::from_u128(1)), JobKey::new(&ns(), JobId::from_u128(2)));
    let all =
        async { tokio::join!(run(&*store, vec![submit(2).into()]), store.job(&first), store.events_after(0, 10)) };
    let (sent, read, told) =
        tokio::time::timeout(Duration::from_secs(60), all).await.expect("the store waits for ever");
    sent.expect("new connections are sound");
    assert!(read.expect("new connections are sound").is_some());
    assert!(!told.expect("new connections are sound").events.is_empty());
    assert!(store.job(&second).await.unwrap().is_some(), "acknowledged and gone");
    assert_eq!(store.events_after(0, 10).await.unwrap().events.len(), 2);
}

/// It asks for one thing after another, and a large store makes that many: what is limited is each answer, not all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_may_take_longer_than_an_answer() {
    let weather = Weather::default();
    let store = store_behind(&weather, Duration::from_secs(5), Duration::from_millis(100)).await;
    run(&*store, vec![submit(1).into()]).await.unwrap();
    weather.delay(Duration::from_millis(600));
    let begun = Instant::now();
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    // So long is the wait for one: twice what a statement may take, and five seconds.
    assert!(begun.elapsed() > Duration::from_millis(5_200), "it was too quick to tell: {:?}", begun.elapsed());
}
