//! What people look at costs the same however many jobs wait.

use crate::support::{claim, ns, quiet, run, submit};
use windlass_core::{JobId, JobKey, State};
use windlass_engine::store::{JobQuery, Store};
use windlass_stores::{
    postgres::Postgres,
    testing::{Cluster, wait_until},
};

const JOBS: u128 = 4_000;

/// Rows and entries of the indexes of waiting jobs that were read in this database. Connections count what they did when they end.
fn read(cluster: &Cluster, database: &str) -> u64 {
    let sum = "SELECT sum(i.idx_tup_read) + max(t.seq_tup_read) FROM pg_stat_user_indexes i \
               JOIN pg_stat_user_tables t USING (relid) WHERE t.relname = 'jobs'";
    cluster.sql(database, sum).parse().unwrap()
}

fn leave(store: Postgres, cluster: &Cluster, database: &str) {
    drop(store);
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    wait_until("all connections are gone", || cluster.sql(database, others) == "0");
}

async fn look(store: &Postgres) {
    let of = |states: &[State]| JobQuery { states: states.to_vec(), limit: 100, ..JobQuery::default() };
    assert_eq!(store.jobs(&of(&[State::Claimed, State::Running])).await.unwrap().len(), 3);
    assert_eq!(store.count(&of(&[State::Claimed]), 1_000).await.unwrap(), 3);
    for none in [State::Blocked, State::Scheduled, State::Running] {
        assert_eq!(store.count(&of(&[none]), 1_000).await.unwrap(), 0);
    }
    assert_eq!(store.jobs(&of(&[State::Pending, State::Blocked, State::Claimed])).await.unwrap().len(), 100);
    let first = store.job(&JobKey::new(&ns(), JobId::from_u128(4))).await.unwrap().unwrap();
    assert_eq!(store.ahead(&first, 1_000).await.unwrap(), 0);
    let later = store.job(&JobKey::new(&ns(), JobId::from_u128(14))).await.unwrap().unwrap();
    assert_eq!(store.ahead(&later, 1_000).await.unwrap(), 10);
    assert_eq!(store.ahead(&later, 5).await.unwrap(), 5);
    assert_eq!(store.oldest_pending().await.unwrap().unwrap().key.id, first.key.id);
    assert_eq!(store.queue_heads(&ns(), 10).await.unwrap().len(), 1);
}

/// A database with `JOBS` jobs, of which so many are held: its address and its name.
async fn filled(held: u128) -> (String, String) {
    let cluster = Cluster::shared();
    let url = cluster.fresh_database();
    let database = url.rsplit('/').next().unwrap().to_owned();
    let store = Postgres::connect(quiet(url.clone())).await.unwrap();
    for from in (1..=JOBS).step_by(500) {
        run(&store, (from..from + 500).map(|id| submit(id).into()).collect()).await.unwrap();
    }
    for from in (0..held).step_by(500) {
        run(&store, vec![claim("w", from + 1, (held - from).min(500)).into()]).await.unwrap();
    }
    leave(store, cluster, &database);
    cluster.sql(&database, "VACUUM ANALYZE windlass.jobs");
    (url, database)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn looking_costs_the_same_however_many_jobs_wait() {
    let (url, database) = filled(3).await;
    let store = Postgres::connect(quiet(url)).await.unwrap();
    let before = read(Cluster::shared(), &database);
    look(&store).await;
    leave(store, Cluster::shared(), &database);
    let looked = read(Cluster::shared(), &database) - before;
    assert!(looked > 100, "the connections have not told what they read");
    assert!(looked < 1_000, "{looked} were read");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_held_jobs_costs_the_same_however_many_are_held() {
    let (url, database) = filled(JOBS).await;
    let store = Postgres::connect(quiet(url)).await.unwrap();
    let before = read(Cluster::shared(), &database);
    let query = JobQuery { states: vec![State::Claimed, State::Running], limit: 20, ..JobQuery::default() };
    assert_eq!(store.jobs(&query).await.unwrap().len(), 20);
    leave(store, Cluster::shared(), &database);
    let looked = read(Cluster::shared(), &database) - before;
    assert!((20..500).contains(&looked), "{looked} were read");
}
