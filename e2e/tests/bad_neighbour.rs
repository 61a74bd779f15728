//! One tenant does everything at once that could hurt a server, beside another that runs two hundred jobs a second.
//!
//! What holds on any machine is asserted: nobody's job is lost, memory stays within a bound, and a server killed in the middle
//! comes back and stays up. How long the other one waits is printed; `WINDLASS_NEIGHBOUR_RATIO=3` asserts it as well, for a
//! release build (`WINDLASS_PROGRAMS`) on a quiet machine. Cycles in which the machine itself was slow count for neither side.

mod attacks;

use attacks::{BLOWS, Blow, COUNT};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use windlass_e2e::{
    ADMIN, Plain, Server,
    crowd::{Cost, p99},
    knob,
    pace::Pace,
};
use windlass_engine::aside::yield_to_all;
use windlass_sdk::api::token::{CreateToken, Role};

/// Memory the attack may add.
const MEMORY_KIB: u64 = 768 << 10;
const CYCLE: Duration = Duration::from_millis(20);
const GOOD_CLIENTS: usize = 4;
/// Half-sent bodies come as fast as a gigabit a second allows for all of them together: what a loopback can take beyond that
/// is this machine's own work, not the server's.
const PIECE: usize = 64 << 10;
const PIECE_EVERY: Duration = Duration::from_millis(30);
const ANSWER: Duration = Duration::from_secs(30);

/// Where somebody calls, and with which right.
#[derive(Clone)]
struct Caller {
    address: String,
    token: String,
    namespace: &'static str,
}

impl Caller {
    async fn new(server: &Server, namespace: &'static str, role: Role) -> Self {
        Self::with(server, namespace, role, &[namespace]).await
    }

    /// With rights in further namespaces.
    async fn with(server: &Server, namespace: &'static str, role: Role, all: &[&str]) -> Self {
        let principal = format!("{namespace}-{}", role.name());
        let namespaces = all.iter().map(ToString::to_string).collect();
        let wanted = CreateToken { principal, role, namespaces, expires_ms: None };
        let token = server.admin().create_token(&wanted).await.unwrap().token;
        Self { address: server.address().to_owned(), token, namespace }
    }

    fn path(&self, path: &str) -> String {
        format!("/api/v1/{path}{}namespace={}", if path.contains('?') { '&' } else { '?' }, self.namespace)
    }

    /// One call of a client that is used to being refused and hung up on.
    fn call(&self, line: &mut Option<Plain>, method: &str, path: &str, body: &str) -> Option<(u16, Value)> {
        self.send(line, method, &self.path(path), body)
    }

    /// The same outside the native API.
    fn send(&self, line: &mut Option<Plain>, method: &str, path: &str, body: &str) -> Option<(u16, Value)> {
        let mut open = line.take().or_else(|| Plain::try_connect(&self.address, &self.token, ANSWER).ok())?;
        let answer = open.try_call(method, path, body).ok()?;
        *line = Some(open);
        Some(answer)
    }
}

/// Cycles of the good one.
struct Cycles {
    times: Vec<Duration>,
    /// Of a hundred, those in which the machine was slow, which are not among the times.
    left_out: usize,
}

/// Two hundred jobs a second, each submitted, claimed and completed; gives the time of each whole cycle.
fn good(submitter: &Caller, worker: &Caller, length: Duration) -> Cycles {
    let pace = Pace::start();
    let clients = (0..GOOD_CLIENTS).map(|n| {
        let (submitter, worker) = (submitter.clone(), worker.clone());
        thread::spawn(move || good_client(&submitter, &worker, n, length))
    });
    let clients: Vec<JoinHandle<Vec<(Instant, Duration)>>> = clients.collect();
    let all: Vec<(Instant, Duration)> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    let slow = pace.stop();
    let counted = all.iter().filter(|(from, took)| !slow.touches(*from, *took));
    let mut times: Vec<Duration> = counted.map(|(_, took)| *took).collect();
    times.sort_unstable();
    Cycles { left_out: 100 - 100 * times.len() / all.len().max(1), times }
}

fn good_client(submitter: &Caller, worker: &Caller, n: usize, length: Duration) -> Vec<(Instant, Duration)> {
    let mut submits = Plain::connect(&submitter.address, &submitter.token);
    let mut works = Plain::connect(&worker.address, &worker.token);
    let tag = format!("good-{n}");
    let (job, claim) = (json!({"tags": [tag]}), json!({"worker": tag, "tags": [tag]}));
    let (begun, mut times) = (Instant::now(), Vec::new());
    while begun.elapsed() < length {
        let from = Instant::now();
        let (status, made) = submits.call("POST", &submitter.path("jobs"), &job);
        assert_eq!(status, 201, "{made}");
        let (_, claimed) = works.call("POST", &worker.path("leases/claim"), &claim);
        assert_eq!(claimed["leases"][0]["job"], made["id"], "{claimed}");
        let done = json!({"lease": claimed["leases"][0]["lease"], "result": 1});
        let (status, done) = works.call("POST", &worker.path("leases/complete"), &done);
        assert_eq!(status, 200, "{done}");
        times.push((from, from.elapsed()));
        thread::sleep(CYCLE.saturating_sub(from.elapsed())); // The pace of a client: its waits are measured.
    }
    times
}

/// Everything bad, until it is told to stop.
struct Attack {
    over: Arc<AtomicBool>,
    answers: Arc<[AtomicUsize; COUNT]>,
    threads: Vec<JoinHandle<()>>,
}

impl Attack {
    fn start(place: &Caller) -> Self {
        let (over, answers) = (Arc::new(AtomicBool::new(false)), Arc::<[AtomicUsize; COUNT]>::default());
        let chosen = std::env::var("WINDLASS_ATTACKS").unwrap_or_default();
        let chosen: Vec<&str> = chosen.split(',').filter(|name| !name.is_empty()).collect();
        let mut threads = Vec::new();
        for (at, (name, count, blow)) in BLOWS.into_iter().enumerate() {
            for n in (0..count).filter(|_| chosen.is_empty() || chosen.contains(&name)) {
                let (place, over, answers) = (place.clone(), over.clone(), answers.clone());
                threads.push(thread::spawn(move || {
                    // What the attacker spends on itself is not what the server is to be blamed for.
                    yield_to_all();
                    strike(&place, &over, &answers[at], blow, n * 1_000_000);
                }));
            }
        }
        Self { over, answers, threads }
    }

    fn stop(self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
        let counted = BLOWS.iter().zip(self.answers.iter());
        let counted: Vec<String> =
            counted.map(|((name, ..), count)| format!("{name} {}", count.load(Ordering::Relaxed))).collect();
        println!("answered: {}", counted.join(", "));
    }
}

fn strike(place: &Caller, over: &AtomicBool, answers: &AtomicUsize, blow: Blow, from: usize) {
    let (mut line, mut at) = (None, from);
    while !over.load(Ordering::Relaxed) {
        match blow(place, &mut line, at) {
            Some(_) => _ = answers.fetch_add(1, Ordering::Relaxed),
            None => thread::sleep(Duration::from_millis(20)), // A client that is refused comes back in a moment.
        }
        at += 1;
    }
}

/// The most memory a process has while this lives, in KiB.
struct Watch {
    over: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Watch {
    fn start(pid: u32) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        let thread = thread::spawn(move || {
            let mut most = 0;
            while !seen.load(Ordering::Relaxed) {
                most = most.max(Cost::of(pid).kib);
                thread::sleep(Duration::from_millis(50)); // Between two samples.
            }
            most
        });
        Self { over, thread }
    }

    fn stop(self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

const LEASE: Duration = Duration::from_secs(5);
const RENEW_EVERY: Duration = Duration::from_millis(1_500);

/// A job of the good one that lasts, under a lease that it renews in time; each renewal must be taken.
struct Holder {
    over: Arc<AtomicBool>,
    thread: JoinHandle<(Plain, Value)>,
    worker: Caller,
}

impl Holder {
    fn start(submitter: &Caller, worker: &Caller) -> Self {
        let mut line = Plain::connect(&submitter.address, &submitter.token);
        let (status, made) = line.call("POST", &submitter.path("jobs"), &json!({"tags": ["long"]}));
        assert_eq!(status, 201, "{made}");
        let mut line = Plain::connect(&worker.address, &worker.token);
        let claim = json!({"worker": "long", "tags": ["long"], "lease_ms": LEASE.as_millis() as u64});
        let (_, claimed) = line.call("POST", &worker.path("leases/claim"), &claim);
        let lease = json!({"lease": claimed["leases"][0]["lease"]});
        Self::hold(line, lease, worker.clone())
    }

    fn hold(mut line: Plain, lease: Value, worker: Caller) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (seen, place) = (over.clone(), worker.clone());
        let thread = thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                let (status, renewed) = line.call("POST", &place.path("leases/renew"), &lease);
                assert_eq!(status, 200, "a lease renewed in time is lost: {renewed}");
                thread::sleep(RENEW_EVERY); // The pace of a worker.
            }
            (line, lease)
        });
        Self { over, thread, worker }
    }

    /// While the server is away nothing can be renewed.
    fn pause(self) -> (Value, Caller) {
        self.over.store(true, Ordering::Relaxed);
        (self.thread.join().unwrap().1, self.worker)
    }

    fn resume((lease, worker): (Value, Caller)) -> Self {
        Self::hold(Plain::connect(&worker.address, &worker.token), lease, worker)
    }

    fn complete(self) {
        self.over.store(true, Ordering::Relaxed);
        let (mut line, lease) = self.thread.join().unwrap();
        let (status, done) = line.call("POST", &self.worker.path("leases/complete"), &lease);
        assert_eq!(status, 200, "{done}");
    }
}

/// How long the good one's cycles took in one life of a server.
struct Round {
    alone: Cycles,
    beside: Cycles,
    after: Cycles,
    /// Memory that the attack added, in KiB.
    grown: u64,
    /// From the start after the kill until it was ready.
    back: Duration,
}

async fn round(length: Duration) -> Round {
    let folder = tempfile::tempdir().unwrap();
    let quota = ["--stored-bytes-of-namespaces", "bad=256MiB,neops=256MiB"];
    let mut server = Server::start_with(folder.path(), None, &quota).await;
    let submitter = Caller::new(&server, "good", Role::Editor).await;
    let worker = Caller::new(&server, "good", Role::Worker).await;
    let bad = Caller::with(&server, "bad", Role::Editor, &["bad", "neops"]).await;
    let block_worker = server.worker_token().await;
    attacks::register(&mut Plain::connect(server.address(), &block_worker));
    attacks::publish(&mut Plain::connect(server.address(), ADMIN));
    let holder = Holder::start(&submitter, &worker);

    good(&submitter, &worker, Duration::from_secs(1));
    let alone = good(&submitter, &worker, length);
    let before = Cost::of(server.pid()).kib;
    let (attack, watch) = (Attack::start(&bad), Watch::start(server.pid()));
    thread::sleep(Duration::from_millis(500)); // The attack gets going before anything is measured.
    let beside = good(&submitter, &worker, length);
    let grown = watch.stop().saturating_sub(before);
    let held = holder.pause();
    server.kill();
    attack.stop();
    let back = server.restart().await;
    let holder = Holder::resume(held);
    let after = good(&submitter, &worker, length);
    holder.complete();
    Round { alone, beside, after, grown, back }
}

impl Cycles {
    fn told(&self) -> String {
        let middle = self.times.get(self.times.len() / 2).copied().unwrap_or_default();
        format!("p50 {middle:.1?} p99 {:.1?} ({} % left out)", p99(&self.times), self.left_out)
    }
}

/// All cycles of all rounds together.
fn pooled(rounds: &[Round], part: fn(&Round) -> &Cycles) -> Vec<Duration> {
    let mut times: Vec<Duration> = rounds.iter().flat_map(|round| &part(round).times).copied().collect();
    times.sort_unstable();
    times
}

/// One round says little about a ratio of two p99 on a machine that stalls now and then; `WINDLASS_NEIGHBOUR_ROUNDS` measures more
/// of them, each with a server of its own, and puts their cycles together.
#[tokio::test(flavor = "multi_thread")]
async fn a_bad_neighbour_stops_nobody_and_cannot_come_back_after_a_restart() {
    let length = Duration::from_secs(knob("WINDLASS_NEIGHBOUR_SECONDS", 4) as u64);
    let mut rounds = Vec::new();
    for _ in 0..knob("WINDLASS_NEIGHBOUR_ROUNDS", 1) {
        let round = round(length).await;
        let Round { alone, beside, after, grown, back } = &round;
        println!(
            "alone {}, beside {}: {:.1} times; {} MiB more; after kill -9 ready in {back:.1?}, {}",
            alone.told(),
            beside.told(),
            p99(&beside.times).as_secs_f64() / p99(&alone.times).as_secs_f64(),
            grown >> 10,
            after.told()
        );
        assert!(*grown < MEMORY_KIB, "{} MiB more", grown >> 10);
        rounds.push(round);
    }
    let (alone, beside) = (pooled(&rounds, |round| &round.alone), pooled(&rounds, |round| &round.beside));
    let ratio = p99(&beside).as_secs_f64() / p99(&alone).as_secs_f64();
    println!("all: alone p99 {:?}, beside p99 {:?}: {ratio:.1} times", p99(&alone), p99(&beside));
    let bound = knob("WINDLASS_NEIGHBOUR_RATIO", 0);
    assert!(bound == 0 || ratio <= bound as f64, "{ratio:.1} times as long as alone");
}
