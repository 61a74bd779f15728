//! Two classes of acknowledgement: what is promised is on disk first, claims and the like are not waited for.

use crate::support::{claim, complete, lease_of, leases_of, ns, quiet, run, submit};
use std::time::Duration;
use windlass_core::{Command, JobId, JobKey, Refusal, Reply, State};
use windlass_engine::store::Store;
use windlass_stores::{postgres::Postgres, testing::Cluster};

/// Syncs of the log since the cluster began. A session reports its own when a transaction ends, but at most once a second;
/// hence a pause and one more transaction.
async fn syncs(cluster: &Cluster, store: &Postgres, id: u128) -> i64 {
    tokio::time::sleep(Duration::from_millis(1_200)).await; // A session reports at most once a second.
    run(store, vec![submit(id).into()]).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await; // It reports a moment after it has committed.
    cluster.sql("postgres", "SELECT wal_sync FROM pg_stat_wal").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_completion_waits_for_the_disk_and_a_claim_does_not() {
    const JOBS: u128 = 300;
    let cluster = Cluster::start();
    let store = Postgres::connect(quiet(cluster.create_database("promises"))).await.unwrap();
    let all: Vec<Command> = (1..=JOBS).map(|id| submit(id).into()).collect();
    run(&store, all).await.unwrap();
    let before = syncs(&cluster, &store, 1_000).await;
    let mut leases = Vec::new();
    for secret in 1..=JOBS {
        leases.extend(leases_of(&run(&store, vec![claim("w", secret, 1).into()]).await.unwrap().replies));
    }
    let claimed = syncs(&cluster, &store, 1_001).await - before;
    assert_eq!(leases.len() as u128, JOBS);
    for lease in leases {
        run(&store, vec![complete(lease, "done").into()]).await.unwrap();
    }
    let completed = syncs(&cluster, &store, 1_002).await - before - claimed;
    assert!(claimed < JOBS as i64 / 2, "{claimed} syncs for {JOBS} claims");
    assert!(completed >= JOBS as i64, "{completed} syncs for {JOBS} completions");
}

/// Whether a claim got to the disk in time is up to the database. Either it did, or the job is free again and whoever held it
/// is refused; what was promised is there in any case.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_the_database_lost_is_handed_out_again() {
    let cluster = Cluster::start();
    let store = Postgres::connect(quiet(cluster.create_database("lost"))).await.unwrap();
    for id in 1..=5 {
        run(&store, vec![submit(id).into()]).await.unwrap();
        let first = lease_of(&run(&store, vec![claim("w1", id, 1).into()]).await.unwrap().replies);
        tokio::task::block_in_place(|| {
            cluster.stop_immediate();
            cluster.start_again();
        });
        let key = JobKey::new(&ns(), JobId::from_u128(id));
        let found = store.job(&key).await.unwrap().expect("a submit is a promise");
        let answer = run(&store, vec![complete(first, "first").into()]).await.unwrap();
        match (found.state, &answer.replies[0]) {
            (State::Claimed, Ok(Reply::Ended(windlass_core::reply::Ended { replayed: false, .. }))) => {}
            (State::Pending, Err(Refusal::NotHeld { .. })) => {
                let second = lease_of(&run(&store, vec![claim("w2", id + 100, 1).into()]).await.unwrap().replies);
                let answer = run(&store, vec![complete(second, "second").into()]).await.unwrap();
                assert!(
                    matches!(answer.replies[0], Ok(Reply::Ended(windlass_core::reply::Ended { replayed: false, .. }))),
                    "{answer:?}"
                );
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(store.job(&key).await.unwrap().unwrap().state, State::Completed);
    }
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}
