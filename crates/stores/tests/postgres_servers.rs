//! Several servers on one database.

use crate::support::{claim, complete, leases_of, ns, quiet, run, submit};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};
use windlass_core::{JobId, LeaseId, Tags, WorkerId, commands::claim::Claim};
use windlass_engine::store::{Bell, JobQuery, Store};
use windlass_stores::{
    postgres::{Options, Postgres},
    testing::Cluster,
};

async fn open(url: &str) -> Arc<Postgres> {
    Arc::new(Postgres::connect(quiet(url.to_owned())).await.unwrap())
}

/// Claims and completes until nothing is there; every lease that was granted.
async fn drain(store: Arc<Postgres>, worker: String, seed: u128, taken: Arc<Mutex<Vec<LeaseId>>>) {
    for round in 0.. {
        let outcome = run(&*store, vec![claim(&worker, seed + round, 3).into()]).await.unwrap();
        let leases = leases_of(&outcome.replies);
        if leases.is_empty() {
            return;
        }
        taken.lock().unwrap().extend(&leases);
        let reports = leases.iter().map(|&lease| complete(lease, "done").into()).collect();
        let outcome = run(&*store, reports).await.unwrap();
        assert!(outcome.replies.iter().all(Result::is_ok), "{:?}", outcome.replies);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_job_is_leased_twice() {
    let url = Cluster::shared().fresh_database();
    let stores = [open(&url).await, open(&url).await];
    run(&*stores[0], (1..=400).map(|n| submit(n).into()).collect()).await.unwrap();
    let taken = Arc::new(Mutex::new(Vec::new()));
    let drains: Vec<_> = (0..8)
        .map(|at| {
            let store = stores[at % 2].clone();
            tokio::spawn(drain(store, format!("w{at}"), (at as u128 + 1) << 40, taken.clone()))
        })
        .collect();
    for drain in drains {
        drain.await.unwrap();
    }
    let leases = taken.lock().unwrap().clone();
    let jobs: HashSet<JobId> = leases.iter().map(|lease| lease.job).collect();
    assert_eq!((leases.len(), jobs.len()), (400, 400), "every job once, and none left behind");
    assert_eq!(stores[1].check().await.unwrap(), Vec::<String>::new());
    let page = stores[1].events_after(0, 10_000).await.unwrap();
    let numbers: Vec<u64> = page.events.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=page.last).collect::<Vec<_>>());
    let mut open = HashSet::new();
    for (_, event) in &page.events {
        match (event.what.name(), event.what.job()) {
            ("submitted", Some(job)) => assert!(open.insert(job)),
            ("completed", Some(job)) => assert!(open.remove(&job), "completed before it was submitted"),
            _ => {}
        }
    }
    assert!(open.is_empty());
}

#[tokio::test]
async fn a_lane_made_by_another_server_is_found() {
    let url = Cluster::shared().fresh_database();
    let (one, other) = (open(&url).await, open(&url).await);
    let tags: Tags = ["gpu", "linux"].into_iter().collect();
    let mut job = submit(1);
    job.job.tags = tags.clone();
    run(&*one, vec![job.into()]).await.unwrap();
    let claim = Claim::new(&ns(), WorkerId::new("w1").unwrap(), tags, vec![uuid::Uuid::new_v4()]);
    let outcome = run(&*other, vec![claim.into()]).await.unwrap();
    assert_eq!(leases_of(&outcome.replies).len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_submits_with_one_key_one_makes_the_job() {
    let url = Cluster::shared().fresh_database();
    let stores = [open(&url).await, open(&url).await];
    let tasks: Vec<_> = (0..20u128)
        .map(|at| {
            let store = stores[at as usize % 2].clone();
            tokio::spawn(async move {
                let mut job = submit(100 + at);
                job.job.unique = Some(windlass_core::job::UniqueKey {
                    key: "only one".into(),
                    body_hash: "same".into(),
                    until: windlass_core::job::UniqueUntil::Final,
                });
                run(&*store, vec![job.into(), submit(1_000 + at).into()]).await.unwrap().replies.remove(0).unwrap()
            })
        })
        .collect();
    let mut jobs = HashSet::new();
    for task in tasks {
        match task.await.unwrap() {
            windlass_core::Reply::Submitted(windlass_core::reply::Submitted { job, .. }) => jobs.insert(job),
            other => panic!("{other:?}"),
        };
    }
    assert_eq!(jobs.len(), 1);
    assert_eq!(stores[0].count(&JobQuery::default(), 100).await.unwrap(), 21);
}

#[tokio::test]
async fn the_doorbell_tells_other_servers_and_only_them() {
    let url = Cluster::shared().fresh_database();
    let one = Postgres::connect(Options::new(&url)).await.unwrap();
    let other = Postgres::connect(Options::new(&url)).await.unwrap();
    let (mut own, mut heard) = (one.bells().unwrap(), other.bells().unwrap());
    assert!(one.bells().is_none(), "the bells are given once");
    for bells in [&mut own, &mut heard] {
        assert!(matches!(bells.recv().await, Some(Bell::Something)), "listening begins with a look");
    }
    run(&one, vec![submit(1).into()]).await.unwrap();
    let bell = tokio::time::timeout(Duration::from_secs(5), heard.recv()).await.unwrap().unwrap();
    assert!(matches!(bell, Bell::Something), "a lane it does not know: {bell:?}");
    run(&other, vec![claim("w1", 1, 1).into(), claim("w1", 2, 1).into()]).await.unwrap();
    run(&one, vec![submit(2).into()]).await.unwrap();
    let bell = tokio::time::timeout(Duration::from_secs(5), heard.recv()).await.unwrap().unwrap();
    assert!(matches!(&bell, Bell::Wakes(wakes) if wakes.len() == 1 && wakes[0].namespace == ns()), "{bell:?}");
    assert!(own.try_recv().is_err(), "its own words are no news");
}

#[tokio::test]
async fn without_notifications_there_are_no_bells_but_all_works() {
    let url = Cluster::shared().fresh_database();
    let store = open(&url).await;
    assert!(store.bells().is_none());
    run(&*store, vec![submit(1).into()]).await.unwrap();
    assert_eq!(leases_of(&run(&*store, vec![claim("w", 1, 1).into()]).await.unwrap().replies).len(), 1);
    assert_eq!(
        Cluster::shared().sql(url.rsplit('/').next().unwrap(), "SELECT count(*) FROM pg_listening_channels()"),
        "0"
    );
}
