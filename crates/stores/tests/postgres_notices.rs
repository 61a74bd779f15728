//! A worker that listens at one server hears what was decided at another.

use crate::support::{claim, complete, ns, submit};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use windlass_core::{
    JobId, JobKey, WorkerId, WorkerKey,
    commands::{cancel::Cancel, workers::DrainWorker},
};
use windlass_engine::testing::eventually;
use windlass_engine::{Engine, Error, Settings};
use windlass_stores::{
    postgres::{Options, Postgres},
    testing::Cluster,
};

async fn server(url: &str) -> Engine {
    let store = Postgres::connect(Options::new(url)).await.unwrap();
    Engine::start(Arc::new(store), Settings::shared()).await.unwrap()
}

fn worker() -> WorkerId {
    WorkerId::new("w").unwrap()
}

fn drain(draining: bool) -> DrainWorker {
    DrainWorker { namespace: ns(), worker: worker(), draining, principal: None }
}

/// Until a call that would wait for minutes is answered with news. Whoever listens anew may be told once to look.
async fn hears(engine: &Engine, seen: &mut Option<String>) {
    let key = WorkerKey { namespace: ns(), worker: worker() };
    loop {
        let asked = engine.notice(&key, seen.as_deref(), Duration::from_secs(300));
        let (news, next) = tokio::time::timeout(Duration::from_secs(60), asked).await.expect("it is heard");
        *seen = Some(next);
        if news {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_at_one_server_is_heard_by_a_worker_at_another() {
    let url = Cluster::shared().fresh_database();
    let (here, there) = (server(&url).await, server(&url).await);
    here.run(submit(1)).await.unwrap();
    let lease = here.run(claim("w", 1, 1)).await.unwrap()[0].lease;
    let mut seen = None;
    hears(&here, &mut seen).await;
    let cancel = Cancel { namespace: ns(), job: JobId::from_u128(1), by: "ann".into(), mode: None, message: "".into() };
    assert_eq!(lease.job, cancel.job);
    let ((), cancelled) = tokio::join!(hears(&here, &mut seen), there.run(cancel));
    cancelled.unwrap();
    // A claim that waits here ends when its worker is drained there.
    let waits = here.claim(claim("w", 2, 1), Duration::from_secs(300));
    let drained = async {
        eventually("the claim waits", async || (here.waiting(&ns()) > 0).then_some(())).await;
        there.run(drain(true)).await
    };
    let both = async { tokio::join!(waits, drained) };
    let (claimed, drained) = tokio::time::timeout(Duration::from_secs(60), both).await.expect("the claim ends");
    drained.unwrap();
    assert!(matches!(claimed, Err(Error::Refused(_))), "{claimed:?}");
    here.shut_down().await;
    there.shut_down().await;
}

/// Both servers look by themselves once an hour, so that only the bell can be what wakes those who wait.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_job_at_one_server_is_told_at_once_to_those_who_wait_for_it_at_another() {
    let url = Cluster::shared().fresh_database();
    let hour = Some(Duration::from_secs(3_600));
    let seldom = async || {
        let store = Postgres::connect(Options::new(&url)).await.unwrap();
        let settings = Settings { sweep_every: hour, poll_every: hour, ..Settings::shared() };
        Engine::start(Arc::new(store), settings).await.unwrap()
    };
    let (here, there) = (seldom().await, seldom().await);
    // Those who listen are heard once each of them hears the other.
    let mut seen = None;
    hears(&here, &mut seen).await;
    let mut times = Vec::new();
    for number in 1..=20 {
        here.run(submit(number)).await.unwrap();
        let key = JobKey::new(&ns(), JobId::from_u128(number));
        let lease = there.run(claim("w", number, 1)).await.unwrap()[0].lease;
        let ends = async {
            eventually("it waits", async || (here.watched() > 0).then_some(())).await;
            let begun = Instant::now();
            there.run(complete(lease, "done")).await.unwrap();
            begun
        };
        let waits = async {
            let ended = here.watch(&key, Duration::from_secs(600)).await.unwrap().unwrap();
            assert!(ended.state.is_final());
            Instant::now()
        };
        let both = async { tokio::join!(ends, waits) };
        let (begun, told) = tokio::time::timeout(Duration::from_secs(60), both).await.expect("it is told");
        times.push(told - begun);
    }
    times.sort();
    println!("told within {:?} to {:?}", times[0], times[19]);
    here.shut_down().await;
    there.shut_down().await;
}
