//! Claims while somebody's old snapshot keeps everything that was claimed since.

use crate::support::{claim, complete, leases_of, ns, quiet, run, submit};
use std::sync::Arc;
use windlass_core::{
    JobId, LeaseId,
    commands::{holder::Holder, release::Release, submit::Submit},
};
use windlass_engine::store::Store;
use windlass_stores::{
    postgres::{Options, Postgres, statement_texts, writer_settings},
    testing::{Cluster, wait_until},
};

async fn open(url: &str, mark_every: usize) -> Arc<Postgres> {
    Arc::new(Postgres::connect(Options { mark_every, ..quiet(url.to_owned()) }).await.unwrap())
}

fn urgent(id: u128, priority: i32) -> Submit {
    let mut submit = submit(id);
    submit.job.priority = priority;
    submit
}

async fn take(store: &Postgres, secret: u128, count: u128) -> Vec<LeaseId> {
    leases_of(&run(store, vec![claim("w", secret, count).into()]).await.unwrap().replies)
}

/// Submits, claims and completes so many jobs, a hundred at a time.
async fn go_through(store: &Postgres, first: u128, count: u128) {
    for at in (first..first + count).step_by(100) {
        run(store, (at..at + 100).map(|id| submit(id).into()).collect()).await.unwrap();
        let leases = take(store, at, 100).await;
        assert_eq!(leases.len(), 100);
        run(store, leases.iter().map(|&lease| complete(lease, "done").into()).collect()).await.unwrap();
    }
}

/// Pages a claim looks at.
fn pages_of_a_claim(cluster: &Cluster, database: &str) -> u64 {
    let (_, text) = statement_texts().into_iter().find(|(name, _)| *name == "heads_one").unwrap();
    let lane = cluster.sql(database, "SELECT lane FROM windlass.lanes");
    let plan = cluster.sql(
        database,
        &format!(
            "{} PREPARE s AS {text}; BEGIN; EXPLAIN (ANALYZE, BUFFERS) EXECUTE s('default', '{lane}', 10); ROLLBACK",
            writer_settings()
        ),
    );
    let hits = plan.lines().find_map(|line| line.trim().strip_prefix("Buffers: shared hit="));
    hits.and_then(|text| text.split(' ').next()?.parse().ok()).unwrap_or_else(|| panic!("{plan}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_snapshot_does_not_make_claims_dearer() {
    let cluster = Cluster::shared();
    let mut pages = Vec::new();
    for mark_every in [usize::MAX, 100] {
        let url = cluster.fresh_database();
        let database = url.rsplit('/').next().unwrap();
        let store = open(&url, mark_every).await;
        go_through(&store, 1, 100).await;
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client
            .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM windlass.jobs")
            .await
            .unwrap();
        go_through(&store, 1_001, 3_000).await;
        if mark_every < usize::MAX {
            let raised = "SELECT count(*) FROM windlass.lane_marks WHERE next_seq IS NULL AND priority > -2147483648";
            wait_until("the last mark", || cluster.sql(database, raised) == "1");
        }
        pages.push(pages_of_a_claim(cluster, database));
        assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    }
    // Without marks every job claimed since the snapshot is visited again; else the test shows nothing.
    assert!(pages[0] > 50, "{pages:?}");
    assert!(pages[1] < 25, "{pages:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_queued_below_a_mark_is_claimed_in_its_turn() {
    let cluster = Cluster::shared();
    let url = cluster.fresh_database();
    let database = url.rsplit('/').next().unwrap();
    let store = open(&url, 50).await;
    run(&*store, (1..=200).map(|id| urgent(id, 100).into()).collect()).await.unwrap();
    let mut held = take(&store, 1, 120).await;
    let raised = "SELECT count(*) FROM windlass.lane_marks WHERE priority = 100";
    wait_until("a mark", || cluster.sql(database, raised) == "1");
    // Given back, an old job is first in line again; a more urgent one comes before it.
    let oldest = held.remove(0);
    run(&*store, vec![Release { holder: Holder::lease(&ns(), oldest) }.into(), urgent(999, 1).into()]).await.unwrap();
    let next: Vec<JobId> = take(&store, 2, 3).await.iter().map(|lease| lease.job).collect();
    assert_eq!(next, [999, 1, 121].map(JobId::from_u128));
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

/// Two servers move marks all the time while jobs of all priorities come and go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_job_is_left_below_a_mark() {
    let url = Cluster::shared().fresh_database();
    let stores = [open(&url, 1).await, open(&url, 1).await];
    let work = |at: usize| {
        let store = stores[at % 2].clone();
        tokio::spawn(async move {
            let mut done = 0;
            for round in 0..60u128 {
                let id = ((at as u128 + 1) << 32) + round * 10;
                run(&*store, (0..4).map(|n| urgent(id + n, ((round + n) % 5) as i32).into()).collect()).await.unwrap();
                let leases = take(&store, id, 5).await;
                let (back, ready) = leases.split_at(usize::from(leases.len() > 4));
                run(
                    &*store,
                    back.iter().map(|&lease| Release { holder: Holder::lease(&ns(), lease) }.into()).collect(),
                )
                .await
                .unwrap();
                run(&*store, ready.iter().map(|&lease| complete(lease, "done").into()).collect()).await.unwrap();
                done += ready.len();
            }
            done
        })
    };
    let tasks: Vec<_> = (0..6).map(work).collect();
    let mut done = 0;
    for task in tasks {
        done += task.await.unwrap();
    }
    for round in 0.. {
        let leases = take(&stores[round % 2], 1 << 80 | round as u128, 50).await;
        done += leases.len();
        if leases.is_empty() {
            break;
        }
        run(&*stores[0], leases.iter().map(|&lease| complete(lease, "done").into()).collect()).await.unwrap();
    }
    assert_eq!(done, 6 * 60 * 4);
    assert_eq!(stores[0].check().await.unwrap(), Vec::<String>::new());
}
