//! Promise: what was acknowledged on PostgreSQL survives the database being stopped at once, and nothing completes twice;
//! the engine finds its way back by itself. And: two servers on one database never lease the same job.

use crate::load::{Ack, Recorder, knob, ns};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};
use windlass_core::{
    Command, Tags, WorkerId,
    commands::{
        claim::Claim,
        complete::Complete,
        holder::Holder,
        submit::{NewJob, Submit},
    },
};
use windlass_engine::testing::eventually;
use windlass_engine::{Engine, Settings, ids};
use windlass_stores::{
    postgres::{Options, Postgres},
    testing::Cluster,
};

async fn open(url: &str) -> (Arc<Postgres>, Engine) {
    let store = Arc::new(Postgres::connect(Options::new(url)).await.expect("connects"));
    let engine = Engine::start(store.clone(), Settings::shared()).await.expect("starts");
    (store, engine)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_postgres_stops_at_once() {
    let cluster = Cluster::start();
    let url = cluster.fresh_database();
    let (store, engine) = open(&url).await;
    let acks = Arc::new(Mutex::new(Vec::new()));
    let record: Recorder = {
        let acks = acks.clone();
        Arc::new(move |ack| acks.lock().expect("no panic").push(ack))
    };
    let load = crate::load::start(&engine, 16, record.clone());
    let stops = knob("WINDLASS_STOPS", 4);
    for _ in 0..stops {
        tokio::time::sleep(Duration::from_millis(300 + ids::seed() % 900)).await; // It is stopped at any moment.
        let before = acks.lock().expect("no panic").len();
        tokio::task::block_in_place(|| {
            cluster.stop_immediate();
            cluster.start_again();
        });
        // Work goes on by itself, without anybody restarting us.
        let back = async || (acks.lock().expect("no panic").len() >= before + 50).then_some(());
        eventually("the engine comes back", back).await;
    }
    drop(load);
    crate::load::drain(&engine, &record).await;
    let mut acks = acks.lock().expect("no panic").clone();
    // A claim promises nothing: if the database stops before it is on disk, the job is handed out again.
    acks.retain(|ack| !matches!(ack, Ack::Claimed(..)));
    crate::load::check(&*store, &acks).await;
    let completed = acks.iter().filter(|ack| matches!(ack, Ack::Completed(..))).count();
    println!("{stops} stops, {} acknowledgements, {completed} completions", acks.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_never_lease_the_same_job() {
    let cluster = Cluster::start();
    let url = cluster.fresh_database();
    let jobs = 4_000;
    let (_, first) = open(&url).await;
    let (_, second) = open(&url).await;
    for _ in 0..jobs / 500 {
        let submit = |_| Command::from(Submit { namespace: ns(), job: NewJob::new(ids::job_id()) });
        first.run_many((0..500).map(submit).collect()).await.expect("submits");
    }
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..32 {
        let engine = if number % 2 == 0 { first.clone() } else { second.clone() };
        tasks.spawn(async move {
            let worker = WorkerId::new(&format!("w{number}")).expect("a fine name");
            let mut done = Vec::new();
            loop {
                let claim = Claim::new(&ns(), worker.clone(), Tags::default(), ids::secrets(3));
                let leases = engine.claim(claim, Duration::ZERO).await.expect("claims");
                if leases.is_empty() {
                    return done;
                }
                for leased in leases {
                    let holder = Holder::lease(&ns(), leased.lease);
                    engine.run(Complete { holder, result: "1".into() }).await.expect("completes");
                    done.push(leased.lease.job);
                }
            }
        });
    }
    let done = tasks.join_all().await.concat();
    assert_eq!(done.len(), jobs, "an empty answer while there was work, or a job leased twice");
    assert_eq!(done.iter().collect::<HashSet<_>>().len(), jobs);
}
