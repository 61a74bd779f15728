//! What transactions wait for under load. A notification inside a write transaction makes every commit wait for one lock;
//! ours are sent after the commit, from a connection of their own.

use crate::support::{claim, complete, ns, submit};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use windlass_core::{
    WorkerId,
    commands::workers::{Heartbeat, RegisterWorker},
    policy::WorkerPolicy,
};
use windlass_engine::{Engine, Settings};
use windlass_stores::{
    postgres::{Options, Postgres},
    testing::Cluster,
};

const SAMPLES: usize = 150;
const ROUNDS: usize = 200;

async fn server(url: &str) -> Engine {
    let store = Postgres::connect(Options::new(url)).await.unwrap();
    Engine::start(Arc::new(store), Settings::shared()).await.unwrap()
}

/// Jobs and heartbeats, as fast as they go.
async fn load(engine: Engine, at: u128, stop: Arc<AtomicBool>, rounds: Arc<AtomicUsize>) {
    let worker = WorkerId::new(&format!("w{at}")).unwrap();
    let register = RegisterWorker {
        namespace: ns(),
        worker: worker.clone(),
        tags: Default::default(),
        slots: 1,
        owner: None,
        policy: WorkerPolicy::default(),
        extra: None,
    };
    engine.run(register).await.unwrap();
    for round in 1u128.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let id = (at << 64) + round;
        engine.run(submit(id)).await.unwrap();
        engine.run(Heartbeat { namespace: ns(), worker: worker.clone(), principal: None }).await.unwrap();
        for leased in engine.run(claim(worker.as_str(), id, 1)).await.unwrap() {
            engine.run(complete(leased.lease, "done")).await.unwrap();
        }
        rounds.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_transaction_waits_for_a_notification() {
    let cluster = Cluster::start();
    let url = cluster.create_database("waits");
    let servers = [server(&url).await, server(&url).await];
    let stop = Arc::new(AtomicBool::new(false));
    let rounds = Arc::new(AtomicUsize::new(0));
    let task = |at: usize| tokio::spawn(load(servers[at % 2].clone(), at as u128 + 1, stop.clone(), rounds.clone()));
    let tasks: Vec<_> = (0..16).map(task).collect();
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let mut waits: BTreeMap<String, usize> = BTreeMap::new();
    // The connections that only ring wait for each other, which holds nobody up: their statement is the notification itself.
    // One inside a transaction would make its COMMIT wait.
    let look = "SELECT wait_event_type || ' ' || wait_event FROM pg_stat_activity \
                WHERE application_name = 'windlass' AND state = 'active' AND wait_event IS NOT NULL \
                AND query <> 'SELECT pg_notify($1, $2)'";
    let mut samples = 0;
    while samples < SAMPLES || rounds.load(Ordering::Relaxed) < ROUNDS {
        samples += 1;
        for row in client.query(look, &[]).await.unwrap() {
            *waits.entry(row.get(0)).or_default() += 1;
        }
        tokio::time::sleep(Duration::from_millis(10)).await; // Between two samples of what others do meanwhile.
    }
    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    // The lock that NOTIFY takes at commit shows as a lock on an object; the queue's own ones have names.
    let on_notification = |wait: &&String| wait.contains("Notify") || wait.as_str() == "Lock object";
    let bad: Vec<_> = waits.keys().filter(on_notification).collect();
    assert!(bad.is_empty(), "transactions waited for notifications: {waits:?}");
    for server in servers {
        server.shut_down().await;
    }
}
