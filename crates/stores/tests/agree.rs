//! Three stores that cannot disagree: the same stories and the same random walks on memory, embedded and PostgreSQL, every
//! reply and the whole state compared.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU32, Ordering},
};
use windlass_engine::{
    clock::Simulated,
    memory::Memory,
    testing::{Fresh, START, conformance, walk},
};
use windlass_stores::{
    embedded::{self, Embedded},
    postgres::{self, Postgres},
    testing::Cluster,
};

fn clock() -> Arc<Simulated> {
    Arc::new(Simulated::at(START))
}

async fn memory() -> Fresh {
    let clock = clock();
    Fresh { store: Arc::new(Memory::new(clock.clone())), clock, keep: None }
}

async fn on_disk() -> Fresh {
    let (clock, folder) = (clock(), tempfile::tempdir().expect("a folder"));
    let store = Embedded::open(folder.path(), embedded::Options::new(clock.clone())).expect("opens");
    Fresh { store: Arc::new(store), clock, keep: Some(Box::new(folder)) }
}

/// A schema each: it takes less than a database each, and they are strangers as well.
async fn in_postgres() -> Fresh {
    static DATABASE: OnceLock<String> = OnceLock::new();
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let clock = clock();
    let url = DATABASE.get_or_init(|| Cluster::shared().fresh_database()).clone();
    let options = postgres::Options {
        schema: format!("store_{}", NEXT.fetch_add(1, Ordering::Relaxed)),
        clock: Some(clock.clone()),
        notify: false,
        // Marks move all the time, so that every rule meets them.
        mark_every: 3,
        ..postgres::Options::new(url)
    };
    let store = Postgres::connect(options).await.expect("connects");
    Fresh { store: Arc::new(store), clock, keep: None }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_store_passes_the_suite() {
    conformance::run_all(on_disk).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_passes_the_suite() {
    conformance::run_all(in_postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_stores_walk_in_step() {
    let (seed, transitions) = walk::asked(7, 6_000);
    let stores = vec![("memory", memory().await), ("embedded", on_disk().await), ("postgres", in_postgres().await)];
    let tally = walk::run(stores, seed, transitions).await.unwrap_or_else(|why| panic!("{why}"));
    println!("{} transitions in {} batches, no difference", tally.transitions, tally.batches);
    assert!(tally.transitions >= transitions);
}
