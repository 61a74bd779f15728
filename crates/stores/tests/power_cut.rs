//! Promise: what the embedded store acknowledged after a sync survives a power cut at any moment, no event that was shown is
//! taken back, and nothing completes twice.
//!
//! The engine runs under load in a child process, which is this very test program called again with a disk of our own
//! (`power_cut/disk.c`) that keeps a copy of each file as it was at its last sync. The parent kills the child at a random
//! moment and makes of each file what a power cut could leave: what was synced, and of each later block either the old or the
//! new content. Claims are no promises: they may be lost.

use crate::load::{Ack, Recorder, knob};
use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};
use windlass_core::Event;
use windlass_engine::{Engine, Error, FeedItem, Settings, Store, StoreError, ids};
use windlass_stores::embedded::{Embedded, Options};

const FOLDER: &str = "WINDLASS_POWER_CUT_FOLDER";
const BLOCK: usize = 4_096;

async fn open(folder: &Path) -> (Arc<Embedded>, Engine) {
    // The log starts over every few moments, so that cuts fall into checkpoints too.
    let options = Options { checkpoint_pages: 64, ..Options::default() };
    let store = Arc::new(Embedded::open(folder, options).expect("opens after a power cut"));
    let engine = Engine::start(store.clone(), Settings::default()).await.expect("starts");
    (store, engine)
}

fn say(line: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("the parent listens");
}

fn shown(number: u64, event: &Event) -> String {
    let job = event.what.job().map(|job| job.to_string()).unwrap_or_default();
    format!("event {number} {} {job} .", event.what.name())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "no test: what another test starts and kills"]
async fn child() {
    let folder = std::env::var(FOLDER).expect("started by its test");
    let (_store, engine) = open(folder.as_ref()).await;
    let record: Recorder = Arc::new(say);
    let mut events = engine.subscribe(None).await.expect("reads");
    tokio::spawn(async move {
        while let Ok(item) = events.next().await {
            if let FeedItem::Event(number, event) = item {
                say(shown(number, &event));
            }
        }
    });
    // Now alone, now many: a lone caller's batches are written and synced elsewhere than those of a crowd.
    let callers = [1, 2, 16][ids::seed() as usize % 3];
    crate::load::start(&engine, callers, record).join_all().await;
}

fn build_disk(at: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/power_cut/disk.c");
    let library = at.join("disk.so");
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-O2", "-o"]).arg(&library).arg(source).arg("-ldl").status();
    assert!(built.expect("a C compiler, as SQLite needs one").success());
    library
}

fn spawn(test: &str, folder: &Path, disk: &Path, more: &[(&str, &str)]) -> Child {
    Command::new(std::env::current_exe().expect("a test has a program"))
        .args([&format!("power_cut::{test}"), "--exact", "--ignored", "--nocapture"])
        .env(FOLDER, folder.join("data"))
        .env("LASTING", folder.join("lasting"))
        .env("LD_PRELOAD", disk)
        .envs(more.iter().copied())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts")
}

/// A database that is whole and synced, and a disk that knows it.
fn prepare(folder: &Path) -> PathBuf {
    drop(Embedded::open(&folder.join("data"), Options::default()).expect("a new one"));
    fs::create_dir(folder.join("lasting")).expect("a folder");
    fs::copy(folder.join("data/windlass.db"), folder.join("lasting/windlass.db")).expect("closed");
    build_disk(folder)
}

/// Runs a child for a while and kills it. Gives what it said.
fn run_and_kill(folder: &Path, disk: &Path, alive: Duration) -> Vec<String> {
    let mut child = spawn("child", folder, disk, &[]);
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let reader = std::thread::spawn(move || lines.map_while(Result::ok).collect());
    std::thread::sleep(alive); // The power goes at any moment.
    child.kill().expect("SIGKILL");
    child.wait().expect("ends");
    reader.join().expect("reads to the end")
}

/// Leaves of a file what was synced, and of each block written later either the old or the new content.
fn cut_power(folder: &Path, name: &str) {
    let (path, lasting) = (folder.join("data").join(name), folder.join("lasting").join(name));
    let (written, mut left) = (fs::read(&path).unwrap_or_default(), fs::read(&lasting).unwrap_or_default());
    if ids::seed().is_multiple_of(2) {
        left.resize(left.len().max(written.len()), 0);
    }
    for (old, new) in left.chunks_mut(BLOCK).zip(written.chunks(BLOCK)) {
        if old.len() == new.len() && ids::seed().is_multiple_of(2) {
            old.copy_from_slice(new);
        }
    }
    fs::write(&path, &left).expect("writable");
    fs::write(&lasting, &left).expect("writable");
}

/// Everything in the feed as a child would have shown it.
async fn all_events(store: &dyn Store) -> BTreeMap<u64, String> {
    let mut all = BTreeMap::new();
    loop {
        let after = all.keys().last().copied().unwrap_or(0);
        let page = store.events_after(after, 1_000).await.expect("readable");
        if page.events.is_empty() {
            return all;
        }
        all.extend(page.events.into_iter().map(|(number, event)| (number, shown(number, &event))));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_promised_is_lost_to_a_power_cut() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = prepare(folder.path());
    let cuts = knob("WINDLASS_POWER_CUTS", 15);
    let mut said = Vec::new();
    for _ in 0..cuts {
        said.extend(run_and_kill(folder.path(), &disk, Duration::from_millis(60 + ids::seed() % 500)));
        ["windlass.db", "windlass.db-wal"].into_iter().for_each(|name| cut_power(folder.path(), name));
        drop(fs::remove_file(folder.path().join("data/windlass.db-shm")));
    }
    let (store, engine) = open(&folder.path().join("data")).await;
    let kept = all_events(&*store).await;
    let events: Vec<&String> = said.iter().filter(|line| line.starts_with("event ") && line.ends_with(" .")).collect();
    for line in &events {
        let number: u64 = line.split(' ').nth(1).and_then(|number| number.parse().ok()).expect("a number");
        assert_eq!(kept.get(&number), Some(*line), "an event that was shown is not there");
    }
    let promises = said.iter().filter_map(|line| line.parse().ok()).filter(|ack| !matches!(ack, Ack::Claimed(..)));
    let mut acks: Vec<Ack> = promises.collect();
    let completed = crate::load::check_and_drain(&*store, &engine, &mut acks).await;
    println!("{cuts} cuts, {} promises, {completed} completions, {} events shown", acks.len(), events.len());
    assert!(completed > cuts && events.len() > cuts, "the load did nothing worth cutting");
}

/// Runs on a disk whose syncs fail after a while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "no test: what another test starts, on a disk of its own"]
async fn child_on_a_dying_disk() {
    let folder = std::env::var(FOLDER).expect("started by its test");
    let (_store, engine) = open(folder.as_ref()).await;
    let mut error = None;
    for _ in 0..10_000 {
        let job = windlass_core::commands::submit::NewJob::new(ids::job_id());
        let id = job.id;
        match engine.run(windlass_core::commands::submit::Submit { namespace: crate::load::ns(), job }).await {
            Ok(_) => say(Ack::Submitted(id)),
            Err(failed) => {
                error = Some(failed);
                break;
            }
        }
    }
    let is_damage =
        |error: &Error| matches!(error, Error::Store(StoreError::Corrupt(why)) if why.contains("look at the disk"));
    assert!(error.as_ref().is_some_and(is_damage), "{error:?}");
    // It is not tried again as if nothing had been, and the server hears of it.
    let again = engine.store().sync();
    assert!(matches!(again, Err(StoreError::Corrupt(_))), "{again:?}");
    let stopped = tokio::time::timeout(Duration::from_secs(5), engine.stopped()).await.expect("is told");
    assert!(matches!(stopped, StoreError::Corrupt(_)));
    say("stopped");
}

#[tokio::test]
async fn after_a_failed_sync_nothing_more_is_acknowledged() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = prepare(folder.path());
    let child = spawn("child_on_a_dying_disk", folder.path(), &disk, &[("FAIL_SYNC_AFTER", "200")]);
    let output = child.wait_with_output().expect("ends");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("stopped"), "{said}");
    let acks: Vec<Ack> = said.lines().filter_map(|line| line.parse().ok()).collect();
    assert!(acks.len() > 20, "{said}");
    // Not a block of what was never synced is there.
    for name in ["windlass.db", "windlass.db-wal"] {
        fs::copy(folder.path().join("lasting").join(name), folder.path().join("data").join(name)).expect("synced once");
    }
    drop(fs::remove_file(folder.path().join("data/windlass.db-shm")));
    let (store, _engine) = open(&folder.path().join("data")).await;
    crate::load::check(&*store, &acks).await;
}
