//! One job, or one kind of job, with far too much of everything: it is bounded, and the others do not notice. The figures are
//! printed; what is asserted is what must hold on any machine.

use std::{
    path::Path,
    time::{Duration, Instant},
};
use windlass_e2e::{
    Server,
    crowd::{good_clients, p99},
    knob,
};
use windlass_sdk::{
    Client,
    api::{
        JobSettings,
        job::{SubmitJob, SubmitMany},
        lease::{AppendLog, Claim, Leased},
    },
};

const PIECE: usize = 200_000;
const CAP: usize = 16 << 20;

fn bytes_in(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap());
    files.map(|file| if file.path().is_dir() { bytes_in(&file.path()) } else { file.metadata().unwrap().len() }).sum()
}

fn tagged(tag: &str) -> SubmitJob {
    SubmitJob::default().with(JobSettings { tags: Some(vec![tag.into()]), ..JobSettings::default() })
}

async fn claim(worker: &Client, tag: &str) -> Leased {
    // Nobody renews it, however slow the machine.
    let (tags, wait_ms, lease_ms) = (Some(vec![tag.into()]), Some(10_000), Some(600_000));
    let claim = Claim { worker: tag.into(), tags, wait_ms, lease_ms, ..Claim::default() };
    worker.claim(&claim).await.unwrap().leases.pop().expect("there is a job")
}

/// A worker that never stops talking.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_log_lines_keeps_its_beginning_and_its_end_and_hurts_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), None).await;
    let worker = server.client(&server.worker_token().await);
    let job = server.admin().submit(&tagged("talker")).await.unwrap();
    let lease = claim(&worker, "talker").await.lease;
    let alone = good_clients(&server, 4, 200, Duration::from_millis(2)).await.unwrap();
    let before = bytes_in(folder.path());

    let good = good_clients(&server, 4, 200, Duration::from_millis(2));
    let piece = AppendLog { lease, data: format!("{}\n", "x".repeat(99)).repeat(PIECE / 100), ..AppendLog::default() };
    let pieces = (knob("WINDLASS_FLOOD_MB", 64) << 20) / PIECE;
    let mut told = 0;
    for _ in 0..pieces {
        told = worker.append_log(&piece).await.unwrap().dropped_bytes;
    }
    let beside = good.await.unwrap();
    let kept = pieces * PIECE - told as usize;
    assert!(kept <= CAP && kept > CAP - CAP / 10, "the worker is told what is dropped: {told}, so {kept} are there");
    let log = server.admin().log(job.id, 0, Duration::ZERO).await.unwrap();
    assert_eq!(log.dropped_bytes, told, "and so is who reads the log");
    let grown = (bytes_in(folder.path()) - before) as usize;
    println!(
        "{} MiB of log: {} MiB on disk; others' p99 {:?}, before {:?}",
        (pieces * PIECE) >> 20,
        grown >> 20,
        p99(&beside),
        p99(&alone)
    );
    // Once in the database and once in its write-ahead file, and what the others wrote.
    assert!(grown < 3 * CAP, "{grown} bytes");
}

/// One kind of job with a hundred thousand waiting, and another with one.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_queue_does_not_hold_up_a_short_one() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), None).await;
    let worker = server.client(&server.worker_token().await);
    let many = SubmitMany { jobs: vec![tagged("crowded"); 1_000], atomic: false };
    for _ in 0..knob("WINDLASS_CROWD", 20_000) / 1_000 {
        server.admin().submit_many(&many).await.unwrap();
    }
    let mut waits = Vec::new();
    for _ in 0..20 {
        let job = server.admin().submit(&tagged("quiet")).await.unwrap();
        let began = Instant::now();
        let leased = claim(&worker, "quiet").await;
        waits.push(began.elapsed());
        assert_eq!(leased.job, job.id);
    }
    waits.sort_unstable();
    println!("claims of the short queue: median {:?}, longest {:?}", waits[10], waits[19]);
    assert!(waits[10] < Duration::from_millis(100), "{waits:?}");
}
