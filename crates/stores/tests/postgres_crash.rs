//! What survives when connections, or the whole server, go away in the middle.

use crate::support::{claim, complete, leases_of, ns, quiet, run, submit};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::task::JoinHandle;
use windlass_core::{JobId, JobKey, Refusal, Reply, State};
use windlass_engine::{
    StoreError,
    store::{JobQuery, Store},
};
use windlass_stores::{
    postgres::{Options, Postgres},
    testing::Cluster,
};

/// Whole cycles, each acknowledged step noted down, until told to stop or until the store is away. `stops`: the database
/// is stopped meanwhile, as by a power cut.
async fn work(store: Arc<Postgres>, at: u128, stop: Arc<AtomicBool>, stops: bool) -> (Vec<JobId>, Vec<JobId>) {
    let (mut submitted, mut completed) = (Vec::new(), Vec::new());
    let worker = format!("w{at}");
    for round in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let id = (at << 64) + round;
        match run(&*store, vec![submit(id).into()]).await {
            Ok(outcome) => match &outcome.replies[0] {
                Ok(Reply::Submitted(windlass_core::reply::Submitted { .. })) => submitted.push(JobId::from_u128(id)),
                other => panic!("a first submit was answered with {other:?}"),
            },
            Err(StoreError::Unavailable(_)) => continue,
            Err(error) => panic!("{error}"),
        }
        let Ok(outcome) = run(&*store, vec![claim(&worker, id, 1).into()]).await else { continue };
        for lease in leases_of(&outcome.replies) {
            let Ok(outcome) = run(&*store, vec![complete(lease, "done").into()]).await else { continue };
            match &outcome.replies[0] {
                Ok(Reply::Ended(windlass_core::reply::Ended { replayed: false, .. })) => completed.push(lease.job),
                // A claim promises nothing: the database may stop before it is on disk, and then the job is free again.
                Err(Refusal::LeaseLost { .. } | Refusal::NotHeld { .. }) if stops => {}
                other => panic!("a first completion was answered with {other:?}"),
            }
        }
    }
    (submitted, completed)
}

async fn check_kept(store: &Postgres, submitted: &[JobId], completed: &[JobId]) {
    for &id in submitted {
        let job = store.job(&JobKey::new(&ns(), id)).await.unwrap();
        assert!(job.is_some(), "{id} was acknowledged and is gone");
    }
    for &id in completed {
        let job = store.job(&JobKey::new(&ns(), id)).await.unwrap().unwrap();
        assert_eq!(job.state, State::Completed, "{id}");
    }
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    let page = store.events_after(0, 1_000_000).await.unwrap();
    let told = |name: &str| page.events.iter().filter(|(_, event)| event.what.name() == name).count();
    let all = store.count(&JobQuery::default(), 1_000_000).await.unwrap();
    assert_eq!(told("submitted"), all, "every job was told of exactly once");
    assert!(told("completed") >= completed.len());
}

/// Ends the work and checks all that was acknowledged of it.
async fn finish(store: &Postgres, tasks: Vec<JoinHandle<(Vec<JobId>, Vec<JobId>)>>, stop: &AtomicBool) {
    stop.store(true, Ordering::Relaxed);
    let (mut submitted, mut completed) = (Vec::new(), Vec::new());
    for task in tasks {
        let (more, done) = task.await.unwrap();
        submitted.extend(more);
        completed.extend(done);
    }
    assert!(submitted.len() > 20 && completed.len() > 20, "{} {}", submitted.len(), completed.len());
    check_kept(store, &submitted, &completed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_an_immediate_stop() {
    let cluster = Cluster::start();
    let url = cluster.create_database("crash");
    let options = Options { patience: Duration::from_secs(20), ..quiet(url) };
    let store = Arc::new(Postgres::connect(options).await.unwrap());
    let stop = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> = (1..=6).map(|at| tokio::spawn(work(store.clone(), at, stop.clone(), true))).collect();
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_millis(700)).await; // Work goes on until it is stopped at any moment.
        tokio::task::block_in_place(|| cluster.stop_immediate());
        tokio::task::block_in_place(|| cluster.start_again());
    }
    tokio::time::sleep(Duration::from_millis(300)).await; // Work goes on.
    finish(&store, tasks, &stop).await;
}

/// Backends are killed at random moments, also between a COMMIT and its answer. Every batch must come out exactly once: a
/// submit that was repeated after all would be answered with "exists", a completion with "replayed".
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_whose_connection_is_lost_comes_out_once() {
    let cluster = Cluster::start();
    let url = cluster.create_database("lost");
    let store = Arc::new(Postgres::connect(quiet(url)).await.unwrap());
    let stop = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> = (1..=6).map(|at| tokio::spawn(work(store.clone(), at, stop.clone(), false))).collect();
    for _ in 0..40 {
        tokio::time::sleep(Duration::from_millis(40)).await; // Work goes on until its backends are killed at any moment.
        let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                    WHERE application_name = 'windlass' AND datname = 'lost' ORDER BY random() LIMIT 2";
        tokio::task::block_in_place(|| cluster.sql("postgres", kill));
    }
    finish(&store, tasks, &stop).await;
    let tried: usize = cluster.log().matches("terminating connection due to administrator command").count();
    assert!(tried > 10, "only {tried} connections were lost");
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_no_transaction_behind() {
    let url = Cluster::shared().fresh_database();
    let store = Postgres::connect(Options { in_flight: 1, ..quiet(url.clone()) }).await.unwrap();
    for n in 1..=50 {
        let batch = store.run(crate::support::batch(vec![submit(n).into()]));
        let _ = tokio::time::timeout(Duration::from_micros(n as u64 * 40), batch).await;
    }
    // With one connection this would wait forever, or fail, if any of them had been given back in a transaction.
    run(&store, vec![submit(1_000).into()]).await.unwrap();
    let database = url.rsplit('/').next().unwrap();
    let idle =
        format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}' AND state = 'idle in transaction'");
    assert_eq!(Cluster::shared().sql("postgres", &idle), "0");
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_database_that_stays_away_is_called_unavailable() {
    let cluster = Cluster::start();
    let url = cluster.create_database("away");
    let options = Options { patience: Duration::from_millis(300), ..quiet(url) };
    let store = Postgres::connect(options).await.unwrap();
    run(&store, vec![submit(1).into()]).await.unwrap();
    cluster.stop_immediate();
    for _ in 0..2 {
        let error = run(&store, vec![submit(2).into()]).await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
        let error = store.job(&JobKey::new(&ns(), JobId::from_u128(1))).await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    }
    cluster.start_again();
    run(&store, vec![submit(3).into()]).await.unwrap();
    assert!(store.job(&JobKey::new(&ns(), JobId::from_u128(1))).await.unwrap().is_some());
}
