//! Crowds that wait, dawdle, babble or do not listen: what they cost, and that others do not notice. The figures are printed;
//! what is asserted is what must hold on any machine.

use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windlass_e2e::{
    ADMIN, Server,
    crowd::{Cost, answer, crowd, good_clients, many_files, p99, request},
    knob,
};
use windlass_engine::testing::eventually;
use windlass_sdk::api::{JobSettings, job::SubmitJob};

const MIB: u64 = 1 << 10;

async fn start() -> (tempfile::TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), None).await;
    // What every server allocates once is not the crowd's.
    good_clients(&server, 4, 50, Duration::ZERO).await.unwrap();
    (folder, server)
}

/// A figure from the server's own metrics.
async fn figure(server: &Server, name: &str) -> u64 {
    let mut stream = crowd(server, 1, &request(server, "GET", "/metrics", ADMIN, "")).await.remove(0);
    // Behind what the crowd still has to read, in a build that is not optimized.
    let text = answer(&mut stream, Duration::from_secs(30)).await.expect("the figures come");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<f64>().ok());
    line.unwrap_or_else(|| panic!("no {name} in {text}")) as u64
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_waiting_workers_cost_little_and_a_job_wakes_one_of_them() {
    let count = knob("WINDLASS_WAITERS", 2_000).min(many_files() / 2);
    let (_folder, server) = start().await;
    let token = server.worker_token().await;
    let before = Cost::of(server.pid());
    let mut waiting = Vec::new();
    for at in 0..count {
        let body = format!(r#"{{"worker": "w{at}", "tags": ["x"], "wait_ms": 60000}}"#);
        waiting.extend(crowd(&server, 1, &request(&server, "POST", "/api/v1/leases/claim", &token, &body)).await);
    }
    let all = async || (figure(&server, "windlass_claims_waiting").await >= count as u64).then_some(());
    eventually("all wait", all).await;
    tokio::time::sleep(Duration::from_secs(1)).await; // Nothing tells that a server has come to rest.
    let there = Cost::of(server.pid());
    tokio::time::sleep(Duration::from_secs(3)).await; // What it costs to wait so long is what is measured.
    let idle = Cost::of(server.pid()).cpu - there.cpu;
    let commands = figure(&server, "windlass_engine_commands_total").await;
    let each = (there.kib - before.kib) as f64 / count as f64;

    let settings = JobSettings { tags: Some(vec!["x".into()]), ..JobSettings::default() };
    server.admin().submit(&SubmitJob::default().with(settings)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await; // Those that are woken for nothing would come as well.
    let mut woken = 0;
    for stream in &mut waiting {
        if let Some(answer) = answer(stream, Duration::ZERO).await {
            assert!(answer.contains("\"lease\":"), "{answer}");
            woken += 1;
        }
    }
    let asked = figure(&server, "windlass_engine_commands_total").await - commands;
    println!("{count} waiting workers: {each:.1} KiB each, {idle:?} of processor time in 3 s of waiting");
    println!("one job: {woken} woken {asked} commands with the submit");
    assert_eq!(woken, 1);
    assert!(asked <= 4, "{asked} commands for one job");
    assert!(each < 64.0, "{each} KiB for a worker that waits");
    assert!(idle < Duration::from_millis(600), "{idle:?} of processor time for nothing");
}

/// Everything that can dawdle or babble, while good clients work.
#[tokio::test(flavor = "multi_thread")]
async fn slow_heads_half_bodies_idlers_and_garbage_cost_little_and_hurt_nobody() {
    let heads = knob("WINDLASS_SLOW_HEADS", 2_000).min(many_files() / 3);
    let (_folder, server) = start().await;
    let before = Cost::of(server.pid());
    let good = good_clients(&server, 4, 400, Duration::from_millis(10));
    let began = Instant::now();
    let mut slow = crowd(&server, heads, "GET /healthz HTTP/1.1\r\nhost: local").await;
    let with_heads = Cost::of(server.pid());
    let idle = crowd(&server, 1_000, "").await;
    let with_idle = Cost::of(server.pid());
    let half = request(&server, "POST", "/api/v1/jobs", ADMIN, &" ".repeat(1_000));
    let halves = crowd(&server, 200, &half[..half.len() - 500]).await;
    for at in 0..200u64 {
        let junk: String = (0..600).map(|byte| char::from(((at * 31 + byte * 17) % 127) as u8)).collect();
        crowd(&server, 1, &junk).await;
    }
    let with_all = Cost::of(server.pid());
    let times = good.await.unwrap();
    let of = |from: Cost, to: Cost, count: usize| (to.kib.saturating_sub(from.kib)) as f64 / count as f64;
    println!("{heads} slow heads: {:.1} KiB each", of(before, with_heads, heads));
    println!("1000 idle connections: {:.1} KiB each", of(with_heads, with_idle, 1_000));
    println!("{} MiB in all; {} good requests, p99 {:?}", (with_all.kib - before.kib) / MIB, times.len(), p99(&times));
    assert!(with_all.kib - before.kib < 64 * MIB, "{} MiB", (with_all.kib - before.kib) / MIB);
    assert!(p99(&times) < Duration::from_secs(1), "{:?}", p99(&times));
    // None is held for longer than fifteen seconds.
    for stream in &mut slow {
        let left = Duration::from_secs(15).saturating_sub(began.elapsed());
        let ended = tokio::time::timeout(left + Duration::from_secs(2), stream.read(&mut [0; 64])).await;
        assert!(ended.is_ok(), "a slow head is still held after {:?}", began.elapsed());
    }
    println!("the last slow head was let go after {:?}", began.elapsed());
    drop((idle, halves));
}

/// Clients that behaved once and dawdle with their second request.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_head_may_dawdle_no_more_than_the_first() {
    let heads = knob("WINDLASS_SLOW_HEADS", 2_000).min(many_files() / 3);
    let (_folder, server) = start().await;
    let before = Cost::of(server.pid());
    let mut slow = Vec::new();
    for _ in 0..heads {
        let mut stream = crowd(&server, 1, "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.remove(0);
        assert!(answer(&mut stream, Duration::from_secs(10)).await.is_some());
        // One whose place is needed may be gone by now.
        drop(stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: local").await);
        slow.push(stream);
    }
    tokio::time::sleep(Duration::from_millis(500)).await; // Nothing tells that a server has read what it was sent.
    let grown = Cost::of(server.pid()).kib.saturating_sub(before.kib);
    println!("{heads} slow second heads: {} MiB", grown / MIB);
    assert!(grown < 64 * MIB, "{} MiB", grown / MIB);
    let times = good_clients(&server, 2, 50, Duration::ZERO).await.unwrap();
    println!("good requests beside them: p99 {:?}", p99(&times));
}

/// Readers that open a stream of events and never read, while events are made.
#[tokio::test(flavor = "multi_thread")]
async fn forty_stuck_readers_of_events_cost_little() {
    let (_folder, server) = start().await;
    let each = knob("WINDLASS_EVENTS", 1_600) / 4;
    // What the jobs themselves take is not the readers'.
    good_clients(&server, 4, each, Duration::ZERO).await.unwrap();
    let before = Cost::of(server.pid());
    good_clients(&server, 4, each, Duration::ZERO).await.unwrap();
    let alone = Cost::of(server.pid()).kib.saturating_sub(before.kib);
    let before = Cost::of(server.pid());
    let mut stuck = Vec::new();
    for reader in 0..4 {
        let wanted = windlass_sdk::api::token::CreateToken {
            principal: format!("reader-{reader}"),
            role: windlass_sdk::api::token::Role::Viewer,
            namespaces: vec![],
            expires_ms: None,
        };
        let token = server.admin().create_token(&wanted).await.unwrap().token;
        stuck.extend(crowd(&server, 10, &request(&server, "GET", "/api/v1/events?after=0", &token, "")).await);
    }
    let times = good_clients(&server, 4, each, Duration::ZERO).await.unwrap();
    let grown = Cost::of(server.pid()).kib.saturating_sub(before.kib);
    let readers = figure(&server, "windlass_event_readers").await;
    println!(
        "40 stuck readers, {} events: {} MiB more (without them {alone} KiB), p99 {:?}, {readers} still there",
        times.len(),
        grown / MIB,
        p99(&times)
    );
    // What the jobs take is measured only once before, so it is not taken off.
    assert!(grown < 28 * MIB, "{} MiB", grown / MIB);
    drop(stuck);
}
