//! How a server ends and how it begins: asked under load, asked twice, and with a hundred thousand jobs behind it.

use nix::sys::signal::Signal;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use windlass_e2e::{
    ADMIN, Server, Worker,
    crowd::{answer, crowd, request},
    knob, submit_until,
};
use windlass_sdk::api::job::{SubmitJob, SubmitMany};

#[tokio::test(flavor = "multi_thread")]
async fn asked_to_stop_under_load_it_answers_those_who_wait_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), None).await;
    let token = server.worker_token().await;
    let workers: Vec<Worker> =
        (0..2).map(|at| Worker::start(&server.url, &token, &format!("w{at}"), 4, &["--lease-ms", "5000"])).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let load = tokio::spawn(submit_until(vec![server.admin()], "stop", stop.clone(), Duration::from_millis(5)));
    for round in 0..knob("WINDLASS_STOPS_UNDER_LOAD", 2) {
        tokio::time::sleep(Duration::from_millis(1_000)).await; // The load gets going.
        let claim = |at| format!(r#"{{"worker": "x{round}-{at}", "tags": [], "wait_ms": 60000}}"#);
        let mut waiting = Vec::new();
        for at in 0..50 {
            let ask = request(&server, "POST", "/api/v1/leases/claim?namespace=quiet", &token, &claim(at));
            waiting.extend(crowd(&server, 1, &ask).await);
        }
        tokio::time::sleep(Duration::from_millis(300)).await; // Mostly all wait by now; their answers are the same either way.
        let asked = Instant::now();
        server.signal(Signal::SIGTERM);
        for stream in &mut waiting {
            let told = answer(stream, Duration::from_secs(5)).await.expect("those who wait are answered");
            assert!(told.starts_with("HTTP/1.1 200") && told.contains(r#""leases":[]"#), "{told}");
        }
        let told = asked.elapsed();
        let status = server.wait().unwrap();
        println!("50 long polls answered within {told:?}; ended with {status} after {:?}", asked.elapsed());
        assert!(told < Duration::from_secs(3), "{told:?}");
        assert!(status.success() && asked.elapsed() < Duration::from_secs(10), "{status} {:?}", asked.elapsed());
        server.restart().await;
    }
    stop.store(true, Ordering::Relaxed);
    let history = load.await.unwrap();
    assert!(history.acknowledged.len() > 50, "{} jobs are no load", history.acknowledged.len());
    history.check(&server.admin(), Duration::from_secs(60)).await;
    println!("{} jobs acknowledged, each completed once", history.acknowledged.len());
    for worker in workers {
        assert!(worker.drain().success(), "a drained worker ends well");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn asked_twice_it_stops_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), None).await;
    let ask = request(&server, "POST", "/api/v1/jobs", ADMIN, &" ".repeat(1_000));
    let _half = crowd(&server, 1, &ask[..ask.len() - 500]).await;
    tokio::time::sleep(Duration::from_millis(300)).await; // Nothing tells that a server has read half a request.
    server.signal(Signal::SIGTERM);
    tokio::time::sleep(Duration::from_millis(500)).await; // Two signals of one moment are one.
    let asked = Instant::now();
    server.signal(Signal::SIGTERM);
    let status = server.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn it_begins_to_serve_soon_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), None).await;
    server.kill();
    let empty = server.restart().await;
    let jobs = knob("WINDLASS_START_JOBS", 5_000);
    for _ in 0..jobs / 1_000 {
        let many = SubmitMany { jobs: vec![SubmitJob::default(); 1_000], atomic: true };
        server.admin().submit_many(&many).await.unwrap();
    }
    server.kill();
    let full = server.restart().await;
    println!("serves {empty:?} after its start when empty, {full:?} with {jobs} jobs after a crash");
    assert!(full < Duration::from_secs(5), "{full:?}");
}
