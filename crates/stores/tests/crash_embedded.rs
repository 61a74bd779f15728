//! Promise: what the embedded store acknowledged survives `kill -9` at any moment, and nothing completes twice.
//!
//! The engine runs under load in a child process, which is this very test program called again. It writes each
//! acknowledgement to a pipe. The parent kills it at a random moment, opens the data again in a new child, and so on; in
//! the end the whole record is checked against what the store holds.

use crate::load::{Ack, Recorder, knob};
use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};
use windlass_engine::{Engine, Settings, ids};
use windlass_stores::embedded::{Embedded, Options};

const CHILD: &str = "WINDLASS_CRASH_CHILD";

async fn open(folder: &Path) -> (Arc<Embedded>, Engine) {
    let store = Arc::new(Embedded::open(folder, Options::default()).expect("opens after a crash"));
    let engine = Engine::start(store.clone(), Settings::default()).await.expect("starts");
    (store, engine)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "no test: what another test starts and kills"]
async fn child() {
    let folder = std::env::var(CHILD).expect("started by its test");
    let (_store, engine) = open(folder.as_ref()).await;
    let record: Recorder = Arc::new(|ack| {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{ack}").and_then(|()| out.flush()).expect("the parent listens");
    });
    crate::load::start(&engine, 16, record).join_all().await;
}

/// Runs a child for a while and kills it. Gives what it acknowledged.
fn run_and_kill(folder: &Path, alive: Duration) -> Vec<Ack> {
    let mut child = Command::new(std::env::current_exe().expect("a test has a program"))
        .args(["crash_embedded::child", "--exact", "--ignored", "--nocapture"])
        .env(CHILD, folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let reader = std::thread::spawn(move || lines.map_while(Result::ok).filter_map(|line| line.parse().ok()).collect());
    std::thread::sleep(alive); // It is killed at any moment.
    child.kill().expect("SIGKILL");
    child.wait().expect("ends");
    reader.join().expect("reads to the end")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_to_kill_9() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut acks = Vec::new();
    let kills = knob("WINDLASS_KILLS", 15);
    for _ in 0..kills {
        acks.extend(run_and_kill(folder.path(), Duration::from_millis(60 + ids::seed() % 500)));
    }
    let (store, engine) = open(folder.path()).await;
    let completed = crate::load::check_and_drain(&*store, &engine, &mut acks).await;
    println!("{kills} kills, {} acknowledgements, {completed} completions", acks.len());
    assert!(completed > kills, "the load did nothing worth killing");
}
