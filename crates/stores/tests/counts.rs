//! How many jobs there are in each state: kept with every change, by every server, through every restart and upgrade. That the
//! numbers are right after any commands at all is part of what the random walks compare.

use crate::{embedded_support as local, support};
use std::{path::Path, sync::Arc};
use windlass_core::{
    Command, JobId, Namespace, State, StateCounts, Timestamp,
    commands::{
        definitions::PutDefinition,
        due::Due,
        submit::{NewJob, Submit},
    },
    counts,
    job::DefinitionRef,
};
use windlass_engine::{
    Bulk,
    bulk::Rows,
    store::{JobQuery, Store, Trim},
};
use windlass_stores::{
    embedded::Embedded,
    postgres::{OpenError, Options, Postgres},
    testing::Cluster,
};

const DEFINITIONS: [Option<&str>; 3] = [None, Some("build"), Some("say \"it\"\\")];

fn submit(id: u128) -> Command {
    let name = DEFINITIONS[id as usize % DEFINITIONS.len()];
    let definition = name.map(|name| DefinitionRef { name: name.into(), version: 1 });
    Submit { namespace: ns(), job: NewJob { definition, ..NewJob::new(JobId::from_u128(id)) } }.into()
}

fn ns() -> Namespace {
    Namespace::default()
}

async fn define(store: &dyn Store) {
    for name in DEFINITIONS.into_iter().flatten() {
        let put = PutDefinition { namespace: ns(), name: name.into(), body: "{}".into() };
        assert!(local::run(store, vec![put.into()]).await[0].is_ok());
    }
}

/// More than are counted in one slice.
async fn submit_4200(store: &dyn Store) {
    for batch in 0..6 {
        local::run(store, (1..=700).map(|at| submit(batch * 700 + at)).collect()).await;
    }
}

/// What the store says, after it was compared with its jobs.
async fn counts(store: &dyn Store) -> Vec<StateCounts> {
    let jobs = store.jobs(&JobQuery { limit: 1_000_000, ..JobQuery::default() }).await.unwrap();
    let mut told = Vec::new();
    for definition in DEFINITIONS {
        let of = |job: &&windlass_core::Job| definition.is_none_or(|name| counts::definition_of(job) == name);
        let found = store.job_counts(&ns(), definition).await.unwrap();
        let found = found.without_bytes();
        assert_eq!(found, StateCounts::of_all(jobs.iter().filter(of)), "{definition:?}");
        told.push(found);
    }
    told
}

async fn sound(store: &dyn Store) {
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

fn sql(folder: &Path, sql: &str) {
    rusqlite::Connection::open(folder.join("windlass.db")).unwrap().execute_batch(sql).unwrap();
}

#[tokio::test]
async fn counts_survive_restarts_whether_or_not_they_were_added_up() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), local::clock());
    let mut store = local::open(folder.path(), &clock);
    define(&store).await;
    for id in 1..=1_100 {
        local::run(&store, vec![submit(id)]).await;
        // In the middle of adding up, right after it, and just before the next time.
        if [3, 999, 1_000, 1_001, 1_002, 1_100].contains(&id) {
            drop(store);
            store = local::open(folder.path(), &clock);
            assert_eq!(counts(&store).await[0].of(State::Pending), id as u64);
        }
    }
    let leases = local::leases(&local::run(&store, vec![local::claim(2)]).await);
    local::run(&store, vec![local::complete(leases[0], "")]).await;
    let before = counts(&store).await;
    // With the events goes what they counted.
    store.trim(Trim { events_before: Timestamp(i64::MAX), limit: usize::MAX }).await.unwrap();
    drop(store);
    let store = local::open(folder.path(), &clock);
    assert_eq!(counts(&store).await, before);
    sound(&store).await;
}

/// So many that they are added up in the middle of it, because of their number and not of the batches'.
#[tokio::test]
async fn jobs_of_hundreds_of_definitions_are_counted_through_a_restart() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), local::clock());
    let store = local::open(folder.path(), &clock);
    let names: Vec<Arc<str>> = (0..450).map(|at| format!("d{at}").into()).collect();
    for (at, name) in names.iter().enumerate() {
        let put = PutDefinition { namespace: ns(), name: name.clone(), body: "{}".into() };
        let definition = Some(DefinitionRef { name: name.clone(), version: 1 });
        let job = NewJob { definition, ..NewJob::new(JobId::from_u128(at as u128 + 1)) };
        local::run(&store, vec![put.into(), Submit { namespace: ns(), job }.into()]).await;
    }
    drop(store);
    let store = local::open(folder.path(), &clock);
    for name in &names {
        assert_eq!(store.job_counts(&ns(), Some(name)).await.unwrap().of(State::Pending), 1, "{name}");
    }
    assert_eq!(store.job_counts(&ns(), None).await.unwrap().of(State::Pending), 450);
    sound(&store).await;
}

/// As the version before left it.
const WITHOUT_COUNTS: &str =
    "DROP TABLE job_counts; DROP TABLE job_counts_begun; DROP TABLE job_bytes_begun; ALTER TABLE events DROP COLUMN counts;
    ALTER TABLE events DROP COLUMN counts_sum; DELETE FROM meta WHERE name = 'counted_event'; PRAGMA user_version = 3";
/// The first slice is written, and then somebody pulls the plug.
const KILLED: &str = "DELETE FROM job_counts WHERE state < 100; INSERT INTO job_counts_begun VALUES ('', x'');
    CREATE TRIGGER plug BEFORE UPDATE ON job_counts_begun WHEN OLD.namespace <> '' BEGIN SELECT RAISE(ABORT, 'killed'); END";

#[tokio::test]
async fn jobs_of_a_folder_from_before_there_were_counts_are_counted_once() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), local::clock());
    let store = local::open(folder.path(), &clock);
    define(&store).await;
    submit_4200(&store).await;
    local::run(&store, vec![local::claim(5)]).await;
    let before = counts(&store).await;
    assert_eq!(before[0].of(State::Claimed), 5);
    drop(store);
    sql(folder.path(), WITHOUT_COUNTS);
    let store = local::open(folder.path(), &clock);
    assert_eq!(counts(&store).await, before);
    local::run(&store, vec![submit(5_000)]).await;
    drop(store);
    let store = local::open(folder.path(), &clock);
    assert_eq!(counts(&store).await[0].of(State::Pending), before[0].of(State::Pending) + 1);
    sound(&store).await;
}

#[tokio::test]
async fn whoever_is_killed_while_counting_goes_on_where_he_was() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), local::clock());
    let store = local::open(folder.path(), &clock);
    define(&store).await;
    submit_4200(&store).await;
    let before = counts(&store).await;
    store.trim(Trim { events_before: Timestamp(i64::MAX), limit: usize::MAX }).await.unwrap();
    drop(store);
    sql(folder.path(), KILLED);
    let options = windlass_stores::embedded::Options::new(clock.clone());
    assert!(Embedded::open(folder.path(), options).is_err());
    sql(folder.path(), "DROP TRIGGER plug");
    let begun: i64 = rusqlite::Connection::open(folder.path().join("windlass.db"))
        .unwrap()
        .query_row("SELECT count FROM job_counts WHERE definition = ''", [], |row| row.get(0))
        .unwrap();
    assert!(0 < begun && begun < 4_200, "{begun} were counted before the kill");
    let store = local::open(folder.path(), &clock);
    assert_eq!(counts(&store).await, before);
    sound(&store).await;
}

#[tokio::test]
async fn a_wrong_count_is_found() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), local::clock());
    let store = local::open(folder.path(), &clock);
    local::run(&store, vec![submit(3)]).await;
    sql(folder.path(), "UPDATE events SET counts = NULL");
    let found = store.check().await.unwrap();
    assert!(found.iter().any(|one| one.contains("number of jobs")), "{found:?}");
}

fn large(id: u128) -> Command {
    let payload = "x".repeat(100_000).as_str().into();
    Submit { namespace: ns(), job: NewJob { payload, ..NewJob::new(JobId::from_u128(id)) } }.into()
}

/// What a namespace keeps grows with payloads and results, and events leave when they are old.
async fn bytes_are_counted(store: &dyn Store) {
    let kept = async || store.stored_bytes(&ns()).await.unwrap();
    let begun = kept().await;
    local::run(store, (1..=3).map(large).collect()).await;
    let submitted = kept().await - begun;
    assert!((300_000..310_000).contains(&submitted), "{submitted}");
    let leases = local::leases(&local::run(store, vec![local::claim(1)]).await);
    let before = kept().await;
    local::run(store, vec![local::complete(leases[0], &"y".repeat(50_000))]).await;
    let reported = kept().await - before;
    assert!((50_000..51_000).contains(&reported), "{reported}");
    let before = kept().await;
    store.trim(Trim { events_before: Timestamp(i64::MAX), limit: 100_000 }).await.unwrap();
    let events = before - kept().await;
    assert!((5 * 128..20 * 128).contains(&events), "{events}");
    sound(store).await;
}

#[tokio::test]
async fn a_namespace_is_charged_with_what_it_keeps() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), local::clock());
    let store = local::open(folder.path(), &clock);
    bytes_are_counted(&store).await;
    let kept = store.stored_bytes(&ns()).await.unwrap();
    drop(store);
    let store = local::open(folder.path(), &clock);
    assert_eq!(store.stored_bytes(&ns()).await.unwrap(), kept, "after a restart");
    clock.advance(windlass_core::Millis::from_secs(8 * 86_400));
    let done = store.jobs(&JobQuery { states: vec![State::Completed], limit: 9, ..JobQuery::default() }).await.unwrap();
    local::run(&store, vec![Command::Due(Due::Job(done[0].key.clone()))]).await;
    let gone = kept - store.stored_bytes(&ns()).await.unwrap();
    assert!((150_000..155_000).contains(&gone), "with the job goes all that it kept: {gone}");
    sound(&store).await;
    let database = Postgres::connect(support::quiet(Cluster::shared().fresh_database())).await.unwrap();
    bytes_are_counted(&database).await;
}

/// As the version before left it.
const WITHOUT_BYTES: &str = "
DROP TABLE windlass.job_bytes_begun;
ALTER TABLE windlass.events DROP CONSTRAINT events_version;
DELETE FROM windlass.job_counts WHERE state >= 100;
UPDATE windlass.jobs SET live = regexp_replace(live, ',?\"bytes\":\\{[^}]*\\}', '');
UPDATE windlass.jobs_done SET live = regexp_replace(live, ',?\"bytes\":\\{[^}]*\\}', '');
UPDATE windlass.meta SET value = 6 WHERE name IN ('schema_version', 'min_reader');";

#[tokio::test]
async fn the_bytes_of_an_older_database_are_counted_once() {
    let url = Cluster::shared().fresh_database();
    let name = url.rsplit('/').next().unwrap().to_owned();
    let store = Postgres::connect(support::quiet(url.clone())).await.unwrap();
    define(&store).await;
    bytes_are_counted(&store).await;
    let before = store.stored_bytes(&ns()).await.unwrap();
    drop(store);
    Cluster::shared().sql(&name, WITHOUT_BYTES);
    let store = Postgres::connect(support::quiet(url.clone())).await.unwrap();
    let after = store.stored_bytes(&ns()).await.unwrap();
    assert!(before.abs_diff(after) < 2_000, "{before} and {after}");
    let old = "INSERT INTO windlass.events (at, count, batch, body, counts, version) VALUES (1, 0, gen_random_uuid(), '', '', 6)";
    let refused = "DO $$ BEGIN {old}; RAISE 'it was accepted'; EXCEPTION WHEN check_violation THEN NULL; END $$";
    Cluster::shared().sql(&name, &refused.replace("{old}", old));
    let leases = local::leases(&local::run(&store, vec![local::claim(1)]).await);
    local::run(&store, vec![local::complete(leases[0], "")]).await;
    assert!(store.stored_bytes(&ns()).await.unwrap() >= after);
    sound(&store).await;
}

async fn moved(from: &dyn Store, to: &dyn Bulk) {
    let mut rows = Rows { last_event: 7, ..Rows::default() };
    for job in from.jobs(&JobQuery { limit: 1_000, ..JobQuery::default() }).await.unwrap() {
        let body = from.body(&job.key).await.unwrap().unwrap();
        rows.jobs.push((job, body));
    }
    to.insert(rows).await.unwrap();
    assert_eq!(counts(to).await, counts(from).await);
    sound(to).await;
}

#[tokio::test]
async fn imported_jobs_are_counted() {
    let (folder, other, clock) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), local::clock());
    let store = local::open(folder.path(), &clock);
    define(&store).await;
    local::run(&store, (1..=10).map(submit).collect()).await;
    moved(&store, &local::open(other.path(), &clock)).await;
    let database = Postgres::connect(support::quiet(Cluster::shared().fresh_database())).await.unwrap();
    moved(&store, &database).await;
}

/// Submits, claims and completes from a number on.
async fn work(store: Arc<Postgres>, from: u128) {
    for id in from..from + 40 {
        store.run(support::batch(vec![submit(id)])).await.unwrap();
        let claim = support::claim(&format!("worker {from}"), id, 1);
        let claimed = store.run(support::batch(vec![claim.into()])).await.unwrap();
        for lease in support::leases_of(&claimed.replies).into_iter().filter(|_| id % 2 == 0) {
            store.run(support::batch(vec![support::complete(lease, "").into()])).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_servers_count_together() {
    let url = Cluster::shared().fresh_database();
    let mut stores = Vec::new();
    for _ in 0..2 {
        stores.push(Arc::new(Postgres::connect(support::quiet(url.clone())).await.unwrap()));
    }
    define(&*stores[0]).await;
    let busy: Vec<_> = (0..6).map(|at| tokio::spawn(work(stores[at % 2].clone(), 1_000 * (at as u128 + 1)))).collect();
    // Read, and thereby added up, while the others are at it: no job is ever missing or there twice.
    while busy.iter().any(|task| !task.is_finished()) {
        let found = stores[0].job_counts(&ns(), None).await.unwrap();
        assert!(State::ALL.iter().map(|state| found.of(*state)).sum::<u64>() <= 240);
    }
    for task in busy {
        task.await.unwrap();
    }
    for store in &stores {
        let told = counts(&**store).await;
        assert_eq!(State::ALL.iter().map(|state| told[0].of(*state)).sum::<u64>(), 240);
        assert!(told[0].of(State::Completed) > 0);
        sound(&**store).await;
    }
}

/// As the version before left it, with jobs in both tables.
const OLD_DATABASE: &str = "
DROP TABLE windlass.job_counts, windlass.job_counts_begun;
ALTER TABLE windlass.events DROP COLUMN counts, DROP COLUMN version;
UPDATE windlass.meta SET value = 4 WHERE name IN ('schema_version', 'min_reader');
INSERT INTO windlass.jobs_done (namespace, id, spec, seq, priority, state, live)
SELECT CASE WHEN n % 3 = 0 THEN 'other' ELSE 'default' END, md5('done' || n)::uuid,
       CASE WHEN n % 2 = 0 THEN '{\"definition\":{\"name\":\"build\",\"version\":1}}' ELSE '{}' END, n, 100, 5, '{}'
FROM generate_series(1, 12000) n;";

async fn old_database() -> (String, String) {
    let url = Cluster::shared().fresh_database();
    let database = url.rsplit('/').next().unwrap().to_owned();
    let store = Postgres::connect(support::quiet(url.clone())).await.unwrap();
    define(&store).await;
    store.run(support::batch((1..=9).map(submit).collect())).await.unwrap();
    drop(store);
    Cluster::shared().sql(&database, OLD_DATABASE);
    (url, database)
}

#[tokio::test]
async fn jobs_of_a_database_from_before_there_were_counts_are_counted_once() {
    let (url, database) = old_database().await;
    // An older server that still runs does not count, so nothing it writes is accepted.
    let old = "INSERT INTO windlass.events (at, count, batch, body) VALUES (1, 0, gen_random_uuid(), '')";
    Cluster::shared().sql(&database, old);
    let opened = [0; 3].map(|_| tokio::spawn(Postgres::connect(support::quiet(url.clone()))));
    for store in opened {
        let store = store.await.unwrap().unwrap();
        let told = store.job_counts(&ns(), None).await.unwrap();
        assert_eq!((told.of(State::Completed), told.of(State::Pending)), (8_000, 9));
        let of_build = store.job_counts(&ns(), Some("build")).await.unwrap();
        assert_eq!((of_build.of(State::Completed), of_build.of(State::Pending)), (4_000, 3));
    }
    let refused = "DO $$ BEGIN {old}; RAISE 'it was accepted'; EXCEPTION WHEN not_null_violation THEN NULL; END $$";
    Cluster::shared().sql(&database, &refused.replace("{old}", old));
}

#[tokio::test]
async fn a_database_is_not_used_while_its_jobs_are_only_counted_by_half() {
    let (url, database) = old_database().await;
    drop(Postgres::connect(support::quiet(url.clone())).await.unwrap());
    let plug = "
    TRUNCATE windlass.job_counts; UPDATE windlass.job_counts_begun SET namespace = '', id = '00000000-0000-0000-0000-000000000000', done = false;
    CREATE FUNCTION plug() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'killed'; END $$;
    CREATE TRIGGER plug BEFORE UPDATE ON windlass.job_counts_begun FOR EACH ROW
    WHEN (OLD.part = 'jobs_done' AND OLD.namespace <> '') EXECUTE FUNCTION plug();";
    Cluster::shared().sql(&database, plug);
    assert!(matches!(Postgres::connect(support::quiet(url.clone())).await, Err(OpenError::Migration { .. })));
    let only_looks = Postgres::connect(Options { migrate: false, ..support::quiet(url.clone()) }).await;
    assert!(matches!(only_looks, Err(OpenError::OldSchema { .. })));
    Cluster::shared().sql(&database, "DROP TRIGGER plug ON windlass.job_counts_begun");
    let half = Cluster::shared().sql(&database, "SELECT sum(count) FROM windlass.job_counts WHERE definition = ''");
    assert!((1..12_009).contains(&half.parse::<i64>().unwrap()), "{half} were counted before the kill");
    let store = Postgres::connect(support::quiet(url)).await.unwrap();
    let told = store.job_counts(&ns(), None).await.unwrap();
    assert_eq!((told.of(State::Completed), told.of(State::Pending)), (8_000, 9));
}
