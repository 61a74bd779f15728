//! The database's clock is set while servers run: what is a length of time stays one.

use crate::support::{claim, complete, ns, quiet, run, submit};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use windlass_core::{
    LeaseId, Millis, Timestamp,
    commands::{claim::Claim, holder::Holder, renew::Renew},
};
use windlass_engine::{Engine, Settings, store::Store};
use windlass_stores::{postgres::Postgres, testing::Cluster};

const HOUR_MS: i64 = 3_600_000;
/// A machine that stalls must not fail a test.
const SLACK_MS: i64 = 60_000;

/// A database whose sessions see a clock that the test sets: a function of the same name comes first on their path.
struct Database {
    name: String,
    url: String,
}

impl Database {
    fn new() -> Self {
        let url = Cluster::shared().fresh_database();
        let name = url.rsplit('/').next().unwrap().to_owned();
        let text = format!(
            "CREATE SCHEMA jump; CREATE TABLE jump.by AS SELECT 0::bigint AS ms; \
             CREATE FUNCTION jump.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS \
             'SELECT pg_catalog.clock_timestamp() + (SELECT ms FROM jump.by) * interval ''1 ms'''; \
             ALTER DATABASE {name} SET search_path = jump, pg_catalog, public"
        );
        Cluster::shared().sql(&name, &text);
        Self { name, url }
    }

    fn jump(&self, ms: i64) {
        Cluster::shared().sql(&self.name, &format!("UPDATE jump.by SET ms = ms + {ms}"));
    }

    async fn open(&self) -> Arc<Postgres> {
        Arc::new(Postgres::connect(quiet(self.url.clone())).await.unwrap())
    }
}

/// When a batch is decided now.
async fn now(store: &Postgres, id: u128) -> Timestamp {
    run(store, vec![submit(id).into()]).await.unwrap().now
}

/// Whether the time that passed by the clock that decides is the time that passed.
#[track_caller]
fn at_pace(from: (Timestamp, Instant), to: Timestamp) {
    let (passed, real) = ((to - from.0).0, from.1.elapsed().as_millis() as i64);
    assert!((-2_500..=real + real / 50 + 2_500).contains(&passed), "{passed} ms, but {real} ms passed");
}

#[tokio::test(flavor = "multi_thread")]
async fn however_the_databases_clock_is_set_time_goes_on_for_every_server() {
    let database = Database::new();
    let (one, other) = (database.open().await, database.open().await);
    let mut from = (now(&one, 1).await, Instant::now());
    at_pace(from, now(&other, 2).await);
    for (round, ms) in [HOUR_MS, -2 * HOUR_MS, 30_000, -30_000].into_iter().enumerate() {
        database.jump(ms);
        let id = 100 * (round as u128 + 1);
        at_pace(from, now(&one, id).await);
        at_pace(from, now(&other, id + 1).await);
        at_pace(from, other.due(1).await.unwrap().now);
        // One that starts afterwards goes by the same time.
        let late = database.open().await;
        at_pace(from, late.due(1).await.unwrap().now);
        from = (now(&late, id + 2).await, Instant::now());
        let wall = late.due(0).await.unwrap().wall;
        assert_eq!(
            Cluster::shared().sql(&database.name, "SELECT count(*) FROM windlass.meta WHERE name LIKE 'clock%'"),
            "2"
        );
        println!("jumped by {ms} ms: {} ms between the clocks", (wall - from.0).0);
    }
    assert_eq!((one.due(0).await.unwrap().steps, other.due(0).await.unwrap().steps), (0, 0), "nobody had to step");
}

#[tokio::test(flavor = "multi_thread")]
async fn set_back_while_no_server_runs_time_is_not_behind_what_is_stored() {
    let database = Database::new();
    let first = database.open().await;
    let from = (now(&first, 1).await, Instant::now());
    drop(first);
    database.jump(-HOUR_MS);
    let next = database.open().await;
    let begun = now(&next, 2).await;
    assert!(begun >= from.0, "{begun:?} {:?}", from.0);
    at_pace(from, begun);
    tokio::time::sleep(Duration::from_millis(300)).await; // How time goes by is what is tested.
    assert!(now(&next, 3).await > begun, "it does not stand still");
}

fn leased(length: i64) -> Claim {
    Claim { lease: Some(Millis(length)), ..claim("w", 7, 1) }
}

async fn engine(database: &Database) -> Engine {
    let settings = Settings { sweep_every: Some(Duration::from_millis(200)), ..Settings::default() };
    Engine::start(database.open().await, settings).await.unwrap()
}

async fn hold(engine: &Engine, length: i64) -> LeaseId {
    engine.run(submit(1)).await.unwrap();
    engine.run(leased(length)).await.unwrap()[0].lease
}

#[tokio::test(flavor = "multi_thread")]
async fn set_forward_no_lease_runs_out_early() {
    let database = Database::new();
    let engine = engine(&database).await;
    let lease = hold(&engine, SLACK_MS).await;
    database.jump(HOUR_MS);
    engine.tick().await.unwrap();
    engine.run(Renew { holder: Holder::lease(&ns(), lease), length: None }).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await; // Sweeps that see the new time come and go.
    engine.run(complete(lease, "1")).await.unwrap();
    engine.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn set_back_no_lease_lives_longer_than_its_length() {
    let database = Database::new();
    let engine = engine(&database).await;
    let lease = hold(&engine, 1_000).await;
    database.jump(-HOUR_MS);
    tokio::time::sleep(Duration::from_millis(1_500)).await; // Longer than the lease, in the database's own time.
    let late = engine.run(complete(lease, "1")).await.unwrap_err();
    assert!(late.to_string().contains("lease"), "{late}");
    engine.shut_down().await;
}
