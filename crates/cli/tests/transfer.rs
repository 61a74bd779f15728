//! Everything in a store can be moved to the other kind and back, and nothing is lost or changed on the way.

use crate::support::{Ran, alone, home, run, windlass};
use std::{collections::BTreeSet, path::Path, sync::Arc};
use windlass_core::{
    principal::{KeptOutside, Token},
    record::Kind,
};
use windlass_engine::{
    Bulk, Store,
    clock::Simulated,
    store::{JobQuery, NamePrefix},
    testing::{
        Fresh, START,
        snapshot::{FullJob, Scope, Snapshot, snapshot},
        walk,
    },
};
use windlass_stores::{
    embedded::{self, Embedded},
    postgres::{self, Postgres},
    testing::Cluster,
};

fn open(folder: &Path) -> Embedded {
    Embedded::open(folder, embedded::Options::new(Arc::new(Simulated::at(START)))).unwrap()
}

/// Where walks begin. The first one from here leaves a bit of everything behind, so no more are needed.
const SEED: u64 = 17;
const TRANSITIONS: usize = 3_000;

/// A data folder with what a short walk left.
async fn walked(folder: &Path) {
    walk_with(folder, walk::asked(SEED, TRANSITIONS).0, TRANSITIONS / 5).await;
}

/// Not every walk leaves a bit of everything behind; the first that does.
async fn walked_until_all_is_there(home: &Path) -> (String, Snapshot) {
    let first = walk::asked(SEED, TRANSITIONS).0;
    for seed in first..first + 40 {
        let name = format!("walk-{seed}");
        walk_with(&home.join(&name), seed, TRANSITIONS).await;
        let found = all(&open(&home.join(&name))).await;
        let any = |what: fn(&FullJob) -> bool| found.jobs.iter().any(what);
        let enough = found.jobs.len() > 20 && found.records.len() > 10 && !found.events.is_empty();
        let ended = any(|job| job.job.state.is_final()) && any(|job| !job.job.state.is_final());
        let told = any(|job| !job.log.is_empty()) && any(|job| job.job.live.said.is_some());
        if enough && ended && told && any(|job| !job.body.attempts.is_empty()) {
            return (name, found);
        }
    }
    panic!("no walk leaves a bit of everything behind")
}

async fn walk_with(folder: &Path, seed: u64, transitions: usize) {
    let clock = Arc::new(Simulated::at(START));
    let store = Embedded::open(folder, embedded::Options::new(clock.clone())).unwrap();
    let fresh = Fresh { store: Arc::new(store), clock, keep: None };
    walk::run(vec![("embedded", fresh)], seed, transitions).await.unwrap_or_else(|why| panic!("{why}"));
}

/// All there is, wherever it is.
async fn all(store: &dyn Bulk) -> Snapshot {
    let (mut namespaces, mut kinds, mut after) = (BTreeSet::new(), BTreeSet::new(), None);
    loop {
        let page = store.all_records(after.as_ref(), 100).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.key.clone());
        for record in &page {
            namespaces.insert(record.key.namespace.clone());
            kinds.insert(record.key.kind.clone());
        }
    }
    let told = store.events_after(u64::MAX - 1, 1).await.unwrap().last;
    let scope = Scope { namespaces: namespaces.into_iter().collect(), kinds: kinds.into_iter().collect(), told };
    snapshot(store, &scope).await.unwrap()
}

#[track_caller]
fn same(left: &Snapshot, right: &Snapshot) {
    assert_eq!(left.first_difference(right), None);
}

/// For how long a token that is kept in a file counts without it is the first server's affair.
fn exported(mut snapshot: Snapshot) -> Snapshot {
    for record in snapshot.records.iter_mut().filter(|record| &*record.key.kind == Token::KIND) {
        let mut token: Token = serde_json::from_str(&record.value).unwrap();
        token.kept = token.kept.map(|kept| KeptOutside { until: None, ..kept });
        record.value = serde_json::to_string(&token).unwrap().into();
    }
    snapshot
}

fn named(snapshot: &Snapshot) -> usize {
    let fits = |job: &&FullJob| job.job.spec.name.as_deref().is_some_and(|name| name.starts_with("nightly"));
    let count = snapshot.jobs.iter().filter(fits).count();
    assert!(count > 0, "no job of the walk has a name");
    count
}

/// Found by name, which takes an index that no row shows.
async fn called_nightly(store: &dyn Bulk) -> usize {
    let name = Some(NamePrefix { prefix: "nightly".into(), before: None });
    store.count(&JobQuery { name, ..JobQuery::default() }, 10_000).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_survives_the_way_to_postgres_and_back() {
    let home = home();
    let last = home.path().join("last");
    let (first, before) = walked_until_all_is_there(home.path()).await;
    let before = exported(before);

    let url = Cluster::shared().fresh_database();
    let ok = |args: &[&str]| -> String { alone(home.path(), args).ok() };
    ok(&["export", "one.jsonl", "--data", &first]);
    ok(&["import", "one.jsonl", "--database", &url]);
    let options = postgres::Options { notify: false, migrate: false, ..postgres::Options::new(&url) };
    let middle = Postgres::connect(options).await.unwrap();
    same(&before, &all(&middle).await);
    assert_eq!(called_nightly(&middle).await, named(&before));
    assert_eq!(middle.check().await.unwrap(), Vec::<String>::new());
    drop(middle);

    ok(&["export", "two.jsonl", "--database", &url]);
    ok(&["import", "two.jsonl", "--data", "last"]);
    let after = open(&last);
    same(&before, &all(&after).await);
    assert_eq!(called_nightly(&after).await, named(&before));
    assert_eq!(after.check().await.unwrap(), Vec::<String>::new());
    let digest = |file: &str| -> String {
        let text = std::fs::read_to_string(home.path().join(file)).unwrap();
        let end: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        end["end"]["sha256"].as_str().unwrap().to_owned()
    };
    assert_eq!(digest("one.jsonl"), digest("two.jsonl"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_moved_store_goes_on_where_the_other_ended() {
    use windlass_core::{
        JobId, Namespace,
        commands::submit::{NewJob, Submit},
    };
    let home = home();
    walked(&home.path().join("a")).await;
    alone(home.path(), &["export", "a.jsonl", "--data", "a"]).ok();
    alone(home.path(), &["import", "a.jsonl", "--data", "b"]).ok();
    let store = Arc::new(open(&home.path().join("b")));
    let last = store.events_after(u64::MAX - 1, 1).await.unwrap().last;
    let places =
        windlass_engine::testing::snapshot::all_jobs(&*store, 100).await.unwrap().iter().map(|job| job.seq).max();
    let engine = windlass_engine::Engine::start(store.clone(), Default::default()).await.unwrap();
    let id = JobId::from_u128(77);
    engine.run(Submit { namespace: Namespace::default(), job: NewJob::new(id) }).await.unwrap();
    let job = store.job(&windlass_core::JobKey::new(&Namespace::default(), id)).await.unwrap().unwrap();
    assert!(Some(job.seq) > places);
    let events = store.events_after(last, 10).await.unwrap().events;
    assert_eq!(events.first().map(|(number, _)| *number), Some(last + 1));
    engine.shut_down().await;
}

#[test]
fn what_cannot_be_imported_is_refused_before_anything_is_written() {
    let home = home();
    drop(open(&home.path().join("a")));
    alone(home.path(), &["export", "a.jsonl", "--data", "a"]).ok();
    let import = |file: &str, folder: &str| -> Ran { alone(home.path(), &["import", file, "--data", folder]) };
    let text = std::fs::read_to_string(home.path().join("a.jsonl")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(home.path().join(name), text).unwrap();
    write("cut.jsonl", text.lines().next().unwrap());
    write("changed.jsonl", &text.replace("\"jobs\":0", "\"jobs\":1"));
    write("newer.jsonl", &text.replace("\"windlass_export\":1", "\"windlass_export\":9"));
    write("other.jsonl", "{\"a\": 1}\n");
    for (file, words) in [
        ("cut.jsonl", ["is incomplete", "without a digest"]),
        ("changed.jsonl", ["is damaged", "digest"]),
        ("newer.jsonl", ["format 9", "reads format 1"]),
        ("other.jsonl", ["was not written by", "windlass export"]),
        ("missing.jsonl", ["missing.jsonl", "cannot be read"]),
    ] {
        let ran = import(file, "b");
        assert_eq!(ran.code, 1, "{file}");
        ran.says(&words);
        assert!(!home.path().join("b").exists(), "{file}");
    }
    import("a.jsonl", "b").ok();
    alone(home.path(), &["export", "a.jsonl", "--data", "a"]).says(&["is there already"]);
    alone(home.path(), &["export", "x.jsonl", "--data", "nowhere"]).says(&["no data in", "--data"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_holds_something_takes_no_import() {
    let home = home();
    walked(&home.path().join("a")).await;
    alone(home.path(), &["export", "a.jsonl", "--data", "a"]).ok();
    let ran = alone(home.path(), &["import", "a.jsonl", "--data", "a"]);
    assert_eq!(ran.code, 1);
    ran.says(&["holds data already"]);
}

/// The mark that an import makes before its first row stands for one that was killed on its way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_an_import_is_neither_served_nor_exported_nor_filled_up() {
    let home = home();
    walked(&home.path().join("a")).await;
    alone(home.path(), &["export", "a.jsonl", "--data", "a"]).ok();
    alone(home.path(), &["import", "a.jsonl", "--data", "b"]).ok();
    let whole = alone(home.path(), &["export", "b.jsonl", "--data", "b"]);
    assert_eq!(whole.code, 0, "an import that ended well leaves no mark: {}", whole.err);
    let record = windlass_core::Record {
        key: windlass_core::RecordKey {
            namespace: windlass_core::Namespace::new("system").unwrap(),
            kind: "import".into(),
            key: "unfinished".into(),
        },
        version: 1,
        parent: None,
        value: "{}".into(),
        facets: Vec::new(),
        due: None,
        decoded: Default::default(),
    };
    let rows = windlass_engine::bulk::Rows { records: vec![record], ..Default::default() };
    open(&home.path().join("b")).insert(rows).await.unwrap();
    for command in [
        &["export", "c.jsonl", "--data", "b"][..],
        &["import", "a.jsonl", "--data", "b"],
        &["serve", "--data", "b", "--listen", "127.0.0.1:0"],
    ] {
        let ran = alone(home.path(), command);
        assert_eq!(ran.code, if command[0] == "serve" { 3 } else { 1 }, "{command:?}");
        ran.says(&["was not completed", "remove b/windlass.*", "import again"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_made_while_the_store_is_in_use() {
    let home = home();
    walked(&home.path().join("a")).await;
    let store = open(&home.path().join("a"));
    let said = alone(home.path(), &["backup", "copy", "--data", "a"]).ok();
    assert!(said.contains("checked the copy"), "{said}");
    same(&all(&store).await, &all(&open(&home.path().join("copy"))).await);
    let again = alone(home.path(), &["backup", "copy", "--data", "a"]);
    assert_eq!(again.code, 1);
    again.says(&["not empty"]);
    // While it is in use, export is told who uses it.
    let export = alone(home.path(), &["export", "x.jsonl", "--data", "a"]);
    assert_eq!(export.code, 1);
    export.says(&["in use by another windlass server"]);
    let doctor = alone(home.path(), &["doctor", "--data", "a"]);
    doctor.says(&["a server uses it", "every page is sound"]);
}

#[test]
fn the_doctor_finds_what_is_wrong() {
    use std::os::unix::fs::PermissionsExt;
    let home = home();
    drop(open(&home.path().join("a")));
    let fine = alone(home.path(), &["doctor", "--data", "a", "--server", "http://127.0.0.1:1"]);
    assert_eq!(fine.code, 0, "{}", fine.out);
    fine.says(&["every row was read", "cannot be reached", "windlass up"]);
    let file = home.path().join("a/windlass.db");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let open_to_all = alone(home.path(), &["doctor", "--data", "a"]);
    assert_eq!(open_to_all.code, 1);
    open_to_all.says(&["can be read or written by others", "chmod 600"]);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..].fill(0xff);
    std::fs::write(&file, bytes).unwrap();
    let damaged = alone(home.path(), &["doctor", "--data", "a", "-o", "json"]);
    assert_eq!(damaged.code, 1, "{}", damaged.out);
    let url = Cluster::shared().fresh_database();
    let database = alone(home.path(), &["doctor", "--database", &url]);
    assert_eq!(database.code, 0, "{}", database.out);
    database.says(&["fsync = on", "there is none yet", "windlass migrate"]);
}

#[test]
fn migrate_says_what_it_did() {
    let home = home();
    let url = Cluster::shared().fresh_database();
    alone(home.path(), &["migrate", "--database", &url]).says(&["created the schema", "version"]);
    alone(home.path(), &["migrate", "--database", &url]).says(&["nothing to do"]);
    drop(open(&home.path().join("a")));
    let mut command = windlass(home.path());
    command.args(["migrate"]).env("WINDLASS_DATA", "a");
    run(command, "").says(&["nothing to do"]);
    let missing = alone(home.path(), &["migrate"]);
    assert_eq!(missing.code, 1);
    missing.says(&["no data in"]);
    let unreachable = alone(home.path(), &["migrate", "--database", "postgres://x:secret@127.0.0.1:1/db"]);
    assert_eq!(unreachable.code, 1);
    unreachable.says(&["cannot be reached"]);
    assert!(!unreachable.err.contains("secret"), "{}", unreachable.err);
}
