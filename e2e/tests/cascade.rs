//! What one namespace's long chain of jobs, and a server that stands still, cost the others.

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{JoinHandle, sleep},
    time::{Duration, Instant},
};
use uuid::Uuid;
use windlass_e2e::{ADMIN, Plain, Server, knob};

const LEASE_MS: u64 = 5_000;

fn pause(ms: u64) {
    sleep(Duration::from_millis(ms)); // Leases of a real server, and its standing still, take real time.
}

/// A job of another namespace under a lease of 5 s.
fn hold(server: &Server, token: &str) -> Value {
    Plain::connect(server.address(), ADMIN).call("POST", "/api/v1/jobs?namespace=other", &json!({}));
    let mut other = Plain::connect(server.address(), token);
    let claim = json!({"worker": "w", "lease_ms": LEASE_MS});
    let (status, claimed) = other.call("POST", "/api/v1/leases/claim?namespace=other", &claim);
    assert_eq!(status, 200, "{claimed}");
    claimed["leases"][0]["lease"].clone()
}

/// Renews every 1.5 s until told to stop, also while the server is away. Gives how often it was renewed.
fn renew(server: &Server, token: &str, lease: &Value, stop: &Arc<AtomicBool>) -> JoinHandle<usize> {
    let (address, token, stop) = (server.address().to_owned(), token.to_owned(), stop.clone());
    let body = json!({"lease": lease}).to_string();
    std::thread::spawn(move || {
        let mut renewed = 0;
        while !stop.load(Ordering::Relaxed) {
            let patience = Duration::from_secs(60);
            let answer = Plain::try_connect(&address, &token, patience)
                .and_then(|mut plain| plain.try_call("POST", "/api/v1/leases/renew?namespace=other", &body));
            match answer {
                Ok((status, told)) => assert_eq!(status, 200, "after {renewed} renewals: {told}"),
                // The server was killed: this is tried again.
                Err(_) => {
                    pause(50);
                    continue;
                }
            }
            renewed += 1;
            pause(1_500);
        }
        renewed
    })
}

fn chain(server: &Server, length: usize) -> Vec<String> {
    let ids: Vec<String> =
        (0..length).map(|at| Uuid::from_u128((7 << 76) | (2 << 62) | at as u128).to_string()).collect();
    let mut plain = Plain::connect(server.address(), ADMIN);
    let jobs: Vec<Value> = (0..length)
        .map(|at| match at {
            0 => json!({"id": ids[0]}),
            _ => json!({"id": ids[at], "after": [ids[at - 1]]}),
        })
        .collect();
    for some in jobs.chunks(1_000) {
        let (status, told) = plain.call("POST", "/api/v1/jobs/batch?namespace=chain", &json!({"jobs": some}));
        assert_eq!(status, 200, "{told}");
    }
    ids
}

fn state(plain: &mut Plain, id: &str) -> String {
    plain.call("GET", &format!("/api/v1/jobs/{id}?namespace=chain"), &Value::Null).1["state"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_chain_ends_in_spite_of_a_crash_and_costs_no_other_namespace_its_lease() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), None).await;
    let ids = chain(&server, knob("WINDLASS_CHAIN", 4_000));
    let token = server.worker_token().await;
    let (lease, stop) = (hold(&server, &token), Arc::new(AtomicBool::new(false)));
    let renewing = renew(&server, &token, &lease, &stop);
    let mut plain = Plain::connect(server.address(), ADMIN);
    let begun = Instant::now();
    let (status, told) = plain.call("POST", &format!("/api/v1/jobs/{}/cancel?namespace=chain", ids[0]), &json!({}));
    assert_eq!(status, 200, "{told}");
    assert!(begun.elapsed() < Duration::from_secs(2), "the cancel is answered after {:?}", begun.elapsed());
    // In between others write.
    let mut longest = Duration::ZERO;
    while state(&mut plain, &ids[200]) != "skipped" {
        let asked = Instant::now();
        plain.call("POST", "/api/v1/jobs?namespace=third", &json!({"tags": ["nobody"]}));
        longest = longest.max(asked.elapsed());
    }
    server.kill();
    assert!(longest < Duration::from_secs(2), "a write of another namespace took {longest:?}");
    server.restart().await;
    let mut plain = Plain::connect(server.address(), ADMIN);
    let last = ids.last().unwrap();
    println!("the last one is {} after the crash", state(&mut plain, last));
    while state(&mut plain, last) != "skipped" {
        assert!(begun.elapsed() < Duration::from_secs(120), "it never ends");
        pause(50);
    }
    println!("{} jobs ended after {:?}; the longest write of another took {longest:?}", ids.len(), begun.elapsed());
    stop.store(true, Ordering::Relaxed);
    assert!(renewing.join().unwrap() > 0);
    let complete = json!({"lease": lease});
    let mut plain = Plain::connect(server.address(), &token);
    let (status, told) = plain.call("POST", "/api/v1/leases/complete?namespace=other", &complete);
    assert_eq!(status, 200, "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stood_still_takes_no_lease_away() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), None).await;
    let token = server.worker_token().await;
    let (lease, stop) = (hold(&server, &token), Arc::new(AtomicBool::new(false)));
    let renewing = renew(&server, &token, &lease, &stop);
    for _ in 0..2 {
        pause(2_500);
        server.signal(Signal::SIGSTOP);
        pause(LEASE_MS + 2_000);
        server.signal(Signal::SIGCONT);
    }
    pause(1_000);
    stop.store(true, Ordering::Relaxed);
    assert!(renewing.join().unwrap() >= 4);
    let mut plain = Plain::connect(server.address(), &token);
    let (status, told) = plain.call("POST", "/api/v1/leases/complete?namespace=other", &json!({"lease": lease}));
    assert_eq!(status, 200, "{told}");
    // One that nobody renews ends all the same.
    let lease = hold(&server, &token);
    pause(LEASE_MS + 1_000);
    let (status, told) = plain.call("POST", "/api/v1/leases/renew?namespace=other", &json!({"lease": lease}));
    assert_eq!(status, 409, "{told}");
}
