//! The embedded store across restarts, in bad company and on a bad disk.

use crate::embedded_support::*;
use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::Arc,
    time::Duration,
};
use windlass_core::{
    Command, Facet, JobId, JobKey, LeaseId, Millis, Namespace, Payload, RecordKey, Refusal, Reply, State, Tags,
    Timestamp, WorkerId,
    commands::{
        cancel::Cancel,
        claim::Claim,
        records::{Expect, PutRecord},
        submit::{NewJob, Submit},
        workers::Heartbeat,
    },
};
use windlass_engine::{
    Engine, FeedItem, Settings, StoreError, ids,
    store::{JobQuery, RecordQuery, Store, Trim},
};
use windlass_stores::embedded::{Embedded, OpenError, Options, SCHEMA_VERSION};

fn key(id: u128) -> JobKey {
    JobKey::new(&Namespace::default(), JobId::from_u128(id))
}

fn refused(folder: &Path) -> OpenError {
    match Embedded::open(folder, Options::new(clock())) {
        Ok(_) => panic!("the store opened"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_restart() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let store = open(folder.path(), &clock);
    run(&store, (1..=3).map(|id| submit(id, "in")).collect()).await;
    let lease = leases(&run(&store, vec![claim(1)]).await)[0];
    run(&store, vec![complete(lease, "out")]).await;
    drop(store);
    let store = open(folder.path(), &clock);
    let job = store.job(&key(1)).await.unwrap().unwrap();
    assert_eq!(job.state, State::Completed);
    let body = store.body(&key(1)).await.unwrap().unwrap();
    assert_eq!((body.payload.as_bytes(), body.result.unwrap().as_bytes()), (&b"in"[..], &b"out"[..]));
    // The queue goes on where it stopped, a repeated report is still recognised, and another one is refused.
    let replies = run(&store, vec![complete(lease, "out"), complete(lease, "other"), submit(4, ""), claim(9)]).await;
    assert!(matches!(&replies[0], Ok(Reply::Ended(windlass_core::reply::Ended { replayed: true, .. }))));
    assert_eq!(replies[1], Err(Refusal::LeaseLost { state: State::Completed }));
    let order: Vec<JobId> = leases(&replies).iter().map(|lease| lease.job).collect();
    assert_eq!(order, [2, 3, 4].map(JobId::from_u128));
}

#[tokio::test]
async fn a_store_that_was_not_closed_loses_nothing() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let store = open(folder.path(), &clock);
    run(&store, (1..=50).map(|id| submit(id, "in")).collect()).await;
    // As a crash leaves it: database and log as they are, and no note of a clean stop.
    let copy = tempfile::tempdir().unwrap();
    for name in ["windlass.db", "windlass.db-wal"] {
        fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
    }
    let recovered = open(copy.path(), &clock);
    assert_eq!(recovered.count(&JobQuery::default(), 100).await.unwrap(), 50);
    assert_eq!(recovered.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn numbers_and_time_never_go_back() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let store = open(folder.path(), &clock);
    run(&store, (1..=10).map(|id| submit(id, "")).collect()).await;
    clock.advance(Millis(500));
    // No events, so that only the marks know of it.
    run(&store, vec![claim(1)]).await;
    clock.advance(Millis(500));
    let worker = windlass_core::WorkerId::new("w1").unwrap();
    run(&store, vec![Heartbeat { namespace: Namespace::default(), worker, principal: None }.into()]).await;
    let last = store.events_after(0, 100).await.unwrap().last;
    let trim = Trim { events_before: Timestamp(i64::MAX), limit: 5 };
    assert_eq!(store.trim(trim).await.unwrap(), 5);
    let page = store.events_after(0, 1).await.unwrap();
    assert_eq!((page.events[0].0, page.oldest, page.last), (6, 6, last));
    store.trim(Trim { limit: 1_000, ..trim }).await.unwrap();
    drop(store);
    clock.set(Timestamp(5));
    let store = open(folder.path(), &clock);
    let page = store.events_after(0, 100).await.unwrap();
    assert_eq!((page.events.len(), page.oldest, page.last), (0, last + 1, last));
    let outcome = try_run(&store, vec![submit(11, "")]).await.unwrap();
    assert_eq!(outcome.now, Timestamp(1_001_000));
    assert_eq!(outcome.first_event, Some(last + 1));
    assert_eq!(store.job(&key(11)).await.unwrap().unwrap().seq, 11);
}

#[tokio::test]
async fn an_idle_server_writes_nothing() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let store = open(folder.path(), &clock);
    run(&store, vec![submit(1, ""), claim(1)]).await;
    let before = store.stats();
    let nobody = LeaseId::new(JobId::from_u128(99), Default::default());
    run(&store, vec![claim(3), complete(nobody, "")]).await;
    run(&store, vec![claim(3)]).await;
    store.trim(Trim { events_before: Timestamp(0), limit: 10 }).await.unwrap();
    let after = store.stats();
    assert_eq!((after.commits, after.wal_bytes, after.syncs), (before.commits, before.wal_bytes, before.syncs));
    assert_eq!(after.batches, before.batches + 2);
}

#[tokio::test]
async fn a_full_log_is_moved_beside_the_writer_and_starts_over() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let options = Options { checkpoint_pages: 256, ..Options::new(clock.clone()) };
    let store = Embedded::open(folder.path(), options).unwrap();
    let (payload, mut id) = ("x".repeat(20_000), 0);
    // How many pages one move takes along depends on when it begins; that none is left out shows in their sum.
    while store.stats().pages_beside < 3 * 256 {
        id += 1;
        run(&store, vec![submit(id, &payload)]).await;
        assert!(id < 2_000, "the log is not moved: {:?}", store.stats());
    }
    let stats = store.stats();
    let log = std::fs::metadata(folder.path().join("windlass.db-wal")).unwrap().len();
    assert!(log < stats.wal_bytes, "the log never started over: {log} bytes, {stats:?}");
    drop(store);
    let store = open(folder.path(), &clock);
    assert!(store.job(&key(id)).await.unwrap().is_some());
}

/// As when a server stops: what it was about to read is given up, and the read goes on by itself.
#[tokio::test]
async fn a_store_is_closed_cleanly_although_a_read_is_still_at_work() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path(), &clock());
        let key = key(1);
        tokio::select! {
            biased;
            // On a machine that stops for a moment it may be read already; the next round tries again.
            _ = store.job(&key) => {}
            () = std::future::ready(()) => {}
        }
        drop(store);
        assert!(folder.path().join("windlass.clean").exists());
    }
}

/// Nobody is shown what a power cut could take back.
#[tokio::test]
async fn reads_wait_for_the_sync_of_promises_and_events_for_the_sync_of_everything() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let store = open(folder.path(), &clock);
    run(&store, vec![submit(1, "")]).await;
    assert!(store.unsynced(), "nothing is synced before somebody waits for it");
    assert!(store.job(&key(1)).await.unwrap().is_some());
    assert!(!store.unsynced(), "a submit was shown before it was safe");
    run(&store, vec![claim(1)]).await;
    assert_eq!(store.job(&key(1)).await.unwrap().unwrap().state, State::Claimed);
    assert!(store.unsynced(), "a claim is no promise, and a read does not wait for it");
    assert!(!store.events_after(0, 10).await.unwrap().events.is_empty());
    assert!(!store.unsynced(), "an event was shown before it was safe");
}

/// A permanent reader of one namespace must not make the claims of all others wait for the disk.
#[tokio::test]
async fn batches_without_events_of_a_followed_namespace_are_not_synced_for_its_reader() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(folder.path(), &clock()));
    let engine = Engine::start(store.clone(), Settings::default()).await.unwrap();
    let ours = Namespace::new("ours").unwrap();
    let mut follower = engine.follow(ours.clone(), None).await.unwrap();
    let claims = async |namespace: &Namespace| {
        engine.run(Submit { namespace: namespace.clone(), job: NewJob::new(ids::job_id()) }).await.unwrap();
        let worker = WorkerId::new("w1").unwrap();
        let claim = Claim::new(namespace, worker, Tags::default(), vec![ids::secret()]);
        assert_eq!(engine.claim(claim, Duration::ZERO).await.unwrap().len(), 1);
    };
    claims(&Namespace::default()).await;
    assert!(store.unsynced(), "the claim of another namespace was synced");
    claims(&ours).await;
    for expected in ["submitted", "worker_registered", "claimed"] {
        let FeedItem::Event(_, event) = follower.next().await.unwrap() else { panic!("a gap") };
        assert_eq!((event.what.name(), &event.namespace), (expected, &ours));
    }
    assert!(!store.unsynced(), "a claim was told before it was safe");
    let mut all = engine.subscribe(Some(0)).await.unwrap();
    let mut told = Vec::new();
    while told.len() < 4 {
        let FeedItem::Event(number, _) = all.next().await.unwrap() else { panic!("a gap") };
        told.push(number);
    }
    assert_eq!(told, [1, 2, 3, 4], "who follows everything also gets what was not told at once");
    engine.shut_down().await;
}

#[test]
fn a_second_server_is_told_who_has_the_folder() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let first = open(folder.path(), &clock);
    let error = refused(folder.path());
    assert!(matches!(&error, OpenError::Locked { holder: Some(pid), .. } if *pid == std::process::id().to_string()));
    let text = error.to_string();
    assert!(text.contains(folder.path().to_str().unwrap()) && text.contains("stop that one"), "{text}");
    drop(first);
    open(folder.path(), &clock);
}

#[test]
fn the_folder_and_its_files_are_private() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("deep/data");
    let _store = open(&folder, &clock());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for name in ["windlass.db", "windlass.lock"] {
        assert_eq!(mode(&folder.join(name)), 0o600, "{name}");
    }
}

/// The header's fields that SQLite calls user version and application id.
fn patch_header(folder: &Path, at: u64, value: u32) {
    let mut file = OpenOptions::new().write(true).open(folder.join("windlass.db")).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(&value.to_be_bytes()).unwrap();
}

fn sql(folder: &Path, sql: &str) {
    rusqlite::Connection::open(folder.join("windlass.db")).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn a_newer_file_is_refused_unless_it_says_that_older_programs_may_use_it() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path(), &clock()));
    let newer = SCHEMA_VERSION + 1;
    sql(
        folder.path(),
        &format!("PRAGMA user_version = {newer}; UPDATE meta SET value = {newer} WHERE name = 'min_reader'"),
    );
    let error = refused(folder.path());
    assert!(matches!(error, OpenError::Newer { version, ours, .. } if version == newer && ours == SCHEMA_VERSION));
    for part in ["windlass.db", &newer.to_string(), &SCHEMA_VERSION.to_string(), "use the newer windlass"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    sql(folder.path(), "UPDATE meta SET value = 1 WHERE name = 'min_reader'");
    open(folder.path(), &clock());
}

/// It would take a revoked admin token for valid: the row is there, and what says so is new.
#[test]
fn a_file_that_this_program_used_is_refused_by_programs_that_would_misread_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path(), &clock()));
    // As the version before left it.
    sql(folder.path(), "PRAGMA user_version = 2; UPDATE meta SET value = 1 WHERE name = 'min_reader'");
    sql(
        folder.path(),
        "DROP TABLE job_counts; DROP TABLE job_counts_begun; DROP TABLE job_bytes_begun; ALTER TABLE events DROP COLUMN counts",
    );
    sql(folder.path(), "ALTER TABLE events DROP COLUMN counts_sum");
    drop(open(folder.path(), &clock()));
    let file = rusqlite::Connection::open(folder.path().join("windlass.db")).unwrap();
    let min_reader = "SELECT value FROM meta WHERE name = 'min_reader'";
    let min_reader: i64 = file.query_row(min_reader, [], |row| row.get(0)).unwrap();
    assert!(min_reader > 2, "programs of version 2 may use it");
}

#[test]
fn a_file_of_another_program_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path(), &clock()));
    patch_header(folder.path(), 68, 42);
    assert!(matches!(refused(folder.path()), OpenError::Foreign { .. }));
}

#[test]
fn what_is_not_a_whole_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("windlass.db");
    drop(open(folder.path(), &clock()));
    let whole = fs::read(&file).unwrap();
    for (what, bytes) in [
        ("empty", Vec::new()),
        ("short", whole[..50].to_vec()),
        ("cut", whole[..whole.len() - 4_096].to_vec()),
        ("text", b"hello ".repeat(5_000)),
        ("zeros", vec![0; whole.len()]),
    ] {
        fs::write(&file, bytes).unwrap();
        let error = refused(folder.path());
        assert!(matches!(&error, OpenError::Corrupt { .. }), "{what}: {error}");
        assert!(error.to_string().contains("windlass.db"), "{what}: {error}");
    }
    fs::remove_file(&file).unwrap();
    assert!(matches!(refused(folder.path()), OpenError::Corrupt { .. }));
    fs::write(&file, whole).unwrap();
    open(folder.path(), &clock());
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o500)).unwrap();
    // Permissions do not stop root; the kernel's own file system does.
    let ignored = File::create(folder.path().join("probe")).is_ok();
    let path = if ignored { Path::new("/sys/kernel") } else { folder.path() };
    let error = refused(path);
    assert!(matches!(&error, OpenError::ReadOnly { .. }), "{error}");
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
}

#[tokio::test]
async fn a_full_store_refuses_and_goes_on_once_there_is_room() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let options = Options { pages_max: 60, ..Options::new(clock.clone()) };
    let store = Embedded::open(folder.path(), options).unwrap();
    let big = "x".repeat(20_000);
    let (mut id, mut error) = (0, None);
    while error.is_none() && id < 100 {
        id += 1;
        error = try_run(&store, vec![submit(id, &big)]).await.err();
    }
    assert!(matches!(error, Some(StoreError::Full(_))), "{error:?}");
    // Nothing of the refused batch is there; all before it is, and what needs no room still works.
    assert_eq!(store.job(&key(id)).await.unwrap(), None);
    assert_eq!(store.count(&JobQuery::default(), 1_000).await.unwrap() as u128, id - 1);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    store.set_pages_max(10_000).unwrap();
    run(&store, vec![submit(id, &big), claim(1)]).await;
    assert_eq!(store.job(&key(id)).await.unwrap().unwrap().state, State::Pending);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

const CHILD: &str = "WINDLASS_TEST_FOLDER";

/// Runs in a process that may not write files beyond a size: the writes fail as on a broken disk.
#[tokio::test]
#[ignore = "no test: what another test starts, in a process of its own"]
async fn child_with_a_failing_disk() {
    let folder = std::env::var(CHILD).unwrap();
    let store = open(Path::new(&folder), &clock());
    let big = "x".repeat(50_000);
    let (mut id, mut error) = (0, None);
    while error.is_none() && id < 1_000 {
        id += 1;
        error = try_run(&store, vec![submit(id, &big)]).await.err();
    }
    assert!(matches!(&error, Some(StoreError::Corrupt(why)) if why.contains("stop the server")), "{error:?}");
    let error = try_run(&store, vec![submit(1_001, "")]).await.unwrap_err();
    assert!(matches!(&error, StoreError::Corrupt(why) if why.contains("nothing more is written")), "{error}");
    // What was acknowledged can still be read.
    assert_eq!(store.count(&JobQuery::default(), 1_000).await.unwrap() as u128, id - 1);
    fs::write(Path::new(&folder).join("acknowledged"), (id - 1).to_string()).unwrap();
}

#[tokio::test]
async fn after_a_failed_write_nothing_more_is_acknowledged_and_nothing_acknowledged_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path(), &clock()));
    let test = std::env::current_exe().unwrap();
    let script =
        "trap '' XFSZ; ulimit -f 4000; exec \"$0\" --exact embedded::child_with_a_failing_disk --ignored --nocapture";
    let child = std::process::Command::new("sh").args(["-c", script]).arg(test).env(CHILD, folder.path()).output();
    let child = child.unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    let count: usize = fs::read_to_string(folder.path().join("acknowledged")).unwrap().parse().unwrap();
    assert!(count > 0);
    let store = open(folder.path(), &clock());
    assert_eq!(store.count(&JobQuery::default(), 1_000).await.unwrap(), count);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

/// Everything there is to read, one answer after the other.
async fn everything(store: &Embedded) -> Vec<Result<String, String>> {
    let mut answers = Vec::new();
    let mut note = |answer: Result<String, StoreError>| answers.push(answer.map_err(|error| error.to_string()));
    for id in 1..=60 {
        note(store.job(&key(id)).await.map(|job| format!("{job:?}")));
        let bytes = |part: Payload| part.as_bytes().to_vec();
        let body =
            store.body(&key(id)).await.map(|body| body.map(|body| (bytes(body.payload), body.result.map(bytes))));
        note(body.map(|body| format!("{body:?}")));
    }
    let query = JobQuery { limit: 100, ..JobQuery::default() };
    note(store.jobs(&query).await.map(|jobs| format!("{jobs:?}")));
    let facet = JobQuery { facet: Some(Facet::new("room", "a")), ..query };
    note(store.jobs(&facet).await.map(|jobs| format!("{jobs:?}")));
    let (namespace, kind) = (Namespace::default(), "item".into());
    let query = RecordQuery { namespace, kind, parent: None, facet: None, after: None, limit: 100 };
    note(store.records(&query).await.map(|records| format!("{records:?}")));
    note(store.events_after(0, 1_000).await.map(|page| format!("{page:?}")));
    note(store.due(100).await.map(|page| format!("{page:?}")));
    answers
}

async fn fill(store: &Embedded) {
    for id in 1..=60 {
        let facets = vec![Facet::new("room", ["a", "b"][id as usize % 2])];
        let payload = format!("payload {id} {}", "y".repeat(200)).as_str().into();
        let job = NewJob { facets, payload, ..NewJob::new(JobId::from_u128(id)) };
        let key = RecordKey { namespace: Namespace::default(), kind: "item".into(), key: format!("i{id}").into() };
        let (value, facets) = (format!("{{\"v\":{id}}}").into(), Vec::new());
        let put = PutRecord { key, expect: Expect::Nothing, parent: None, value, facets, expires_at: None };
        let commands: Vec<Command> = vec![Submit { namespace: Namespace::default(), job }.into(), put.into()];
        run(store, commands).await;
    }
    let leases = leases(&run(store, vec![claim(20)]).await);
    run(store, leases.into_iter().take(10).map(|lease| complete(lease, "done")).collect()).await;
}

#[tokio::test]
async fn a_flipped_bit_is_never_a_wrong_answer() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let store = open(folder.path(), &clock);
    fill(&store).await;
    let expected = everything(&store).await;
    drop(store);
    let (file, clean) = (folder.path().join("windlass.db"), folder.path().join("windlass.clean"));
    let mut whole = Vec::new();
    File::open(&file).unwrap().read_to_end(&mut whole).unwrap();
    let mut noticed = 0;
    let (mut draw, rounds) = (0x1234_5678_u64, 300);
    for _ in 0..rounds {
        draw = draw.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let bit = (draw >> 20) as usize % (whole.len() * 8);
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        fs::write(&file, damaged).unwrap();
        let _ = fs::remove_file(&clean);
        let Ok(store) = Embedded::open(folder.path(), Options::new(clock.clone())) else {
            noticed += 1;
            continue;
        };
        let answers = everything(&store).await;
        let wrong = answers.iter().zip(&expected).filter(|(found, expected)| found.is_ok() && found != expected);
        let wrong: Vec<_> = wrong.collect();
        assert!(wrong.is_empty(), "bit {bit}: {wrong:?}");
        noticed += u32::from(answers.iter().any(Result::is_err));
    }
    // Most of a page is empty, where a flipped bit changes nothing; but not all of it.
    assert!(noticed > rounds / 20, "only {noticed} of {rounds} were noticed");
}

/// Jobs that nobody offers the tags for, each in a lane of its own, and all of them cancelled.
async fn come_and_go(store: &Embedded, first: u128, count: u128) {
    let ids = || (first..first + count).map(JobId::from_u128);
    let submits = ids().map(|id| {
        let tags = (0..8).map(|n| format!("{}-{n}-{}", id.0.as_u128(), "x".repeat(100))).collect::<Vec<_>>();
        let mut job = NewJob::new(id);
        job.tags = tags.iter().map(String::as_str).collect();
        Submit { namespace: Namespace::default(), job }.into()
    });
    for submits in submits.collect::<Vec<Command>>().chunks(500) {
        assert!(run(store, submits.to_vec()).await.iter().all(Result::is_ok));
    }
    let cancel =
        |job| Cancel { namespace: Namespace::default(), job, by: "them".into(), mode: None, message: "".into() }.into();
    let cancels = ids().map(cancel).collect::<Vec<Command>>();
    for cancels in cancels.chunks(500) {
        assert!(run(store, cancels.to_vec()).await.iter().all(Result::is_ok));
    }
}

#[tokio::test]
async fn lanes_that_are_gone_leave_nothing_behind_although_nobody_looked_into_them() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let store = open(folder.path(), &clock);
    run(&store, vec![submit(1, "")]).await;
    let before = store.stats().lane_entries;
    for round in 0..3 {
        come_and_go(&store, 1_000 + round * 10_000, 2_000).await;
        assert!(store.stats().lanes <= 300, "some may wait to be looked into: {:?}", store.stats());
    }
    store.trim(Trim { events_before: Timestamp(0), limit: 10 }).await.unwrap();
    assert_eq!((store.stats().lanes, store.stats().lane_entries), (1, before));
    // The job that is still there is found, as is a lane that comes back.
    come_and_go(&store, 1_000_000, 10).await;
    assert_eq!(leases(&run(&store, vec![claim(9)]).await).len(), 1);
    // After a start nobody has counted how many jobs a lane holds.
    run(&store, (2..=3).map(|id| submit(id, "")).collect()).await;
    drop(store);
    let store = open(folder.path(), &clock);
    for _ in 0..2 {
        assert_eq!(leases(&run(&store, vec![claim(1)]).await).len(), 1);
        store.trim(Trim { events_before: Timestamp(0), limit: 10 }).await.unwrap();
    }
    assert_eq!(store.stats().lane_entries, 0);
}
