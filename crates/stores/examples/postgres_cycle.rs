//! Measures the PostgreSQL store: so many callers, each with one command at a time, gathered into batches the way the engine
//! does it. Prints cycles a second and the write-ahead log each cycle costs.
//!
//! Rates on a busy machine mean little by themselves, so that the plain way, one job a transaction with SKIP LOCKED by
//! `pgbench`, is measured in the same rounds on the same server.
//!
//! `cargo run --release -p windlass-stores --features testing --example postgres_cycle -- [callers] [seconds] [rounds]`
//! Environment: `IN_FLIGHT`, `BATCH_MAX`, `SETTINGS` (of the server, separated by `;`), `SERVER_LOG` (where to put its log).

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::{Semaphore, mpsc, oneshot};
use uuid::Uuid;
use windlass_core::{
    Command, JobId, LeaseId, Limits, Namespace, Refusal, Reply, Tags, WorkerId,
    commands::{
        claim::Claim,
        complete::Complete,
        holder::Holder,
        submit::{NewJob, Submit},
    },
    decider::Item,
};
use windlass_engine::store::{Batch, Store};
use windlass_stores::{
    postgres::{Options, Postgres},
    testing::Cluster,
};

type Answer = Result<Reply, Refusal>;

/// Gathers what is waiting into batches, as many on their way as the store finds useful.
#[derive(Clone)]
struct Funnel(mpsc::Sender<(Command, oneshot::Sender<Answer>)>);

#[derive(Default)]
struct Counts {
    batches: AtomicU64,
    commands: AtomicU64,
}

impl Funnel {
    fn start(store: Arc<dyn Store>, counts: Arc<Counts>, batch_max: usize) -> Self {
        let (sender, mut receiver) = mpsc::channel::<(Command, oneshot::Sender<Answer>)>(10_000);
        tokio::spawn(async move {
            let permits = Arc::new(Semaphore::new(store.in_flight()));
            loop {
                let permit = permits.clone().acquire_owned().await.unwrap();
                let mut waiting = Vec::new();
                if receiver.recv_many(&mut waiting, batch_max).await == 0 {
                    return;
                }
                let (store, counts) = (store.clone(), counts.clone());
                tokio::spawn(async move {
                    let (commands, answers): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
                    counts.batches.fetch_add(1, Ordering::Relaxed);
                    counts.commands.fetch_add(commands.len() as u64, Ordering::Relaxed);
                    let items = commands.into_iter().map(|command| Item { command, seed: 1 }).collect();
                    let outcome = store.run(Batch { items, limits: Limits::default() }).await.unwrap();
                    drop(permit);
                    for (answer, reply) in answers.into_iter().zip(outcome.replies) {
                        let _ = answer.send(reply);
                    }
                });
            }
        });
        Self(sender)
    }

    async fn run(&self, command: impl Into<Command>) -> Answer {
        let (sender, receiver) = oneshot::channel();
        self.0.send((command.into(), sender)).await.unwrap();
        receiver.await.unwrap()
    }
}

fn submit(payload: &str) -> Submit {
    let job = NewJob { payload: payload.into(), ..NewJob::new(JobId(Uuid::now_v7())) };
    Submit { namespace: Namespace::default(), job }
}

async fn claim_one(funnel: &Funnel, worker: &WorkerId) -> Option<LeaseId> {
    let claim = Claim::new(&Namespace::default(), worker.clone(), Tags::default(), vec![Uuid::new_v4()]);
    match funnel.run(claim).await.unwrap() {
        Reply::Leases(leases) => leases.first().map(|leased| leased.lease),
        other => panic!("{other:?}"),
    }
}

async fn complete(funnel: &Funnel, lease: LeaseId) {
    let complete = Complete { holder: Holder::lease(&Namespace::default(), lease), result: "{\"ok\":true}".into() };
    funnel.run(complete).await.unwrap();
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Submit,
    Drain,
    Whole,
}

/// Cycles done by all callers until time is up or, when draining, nothing is left.
async fn measure(funnel: &Funnel, callers: usize, length: Duration, phase: Phase) -> (u64, Duration) {
    let payload = "x".repeat(100);
    let begun = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|at| {
            let (funnel, payload) = (funnel.clone(), payload.clone());
            tokio::spawn(async move {
                let worker = WorkerId::new(&format!("worker-{at}")).unwrap();
                let mut cycles = 0;
                while begun.elapsed() < length {
                    if phase != Phase::Drain {
                        funnel.run(submit(&payload)).await.unwrap();
                    }
                    if phase != Phase::Submit {
                        let Some(lease) = claim_one(&funnel, &worker).await else { break };
                        complete(&funnel, lease).await;
                    }
                    cycles += 1;
                }
                cycles
            })
        })
        .collect();
    let mut cycles = 0;
    for task in tasks {
        cycles += task.await.unwrap();
    }
    (cycles, begun.elapsed())
}

/// The plain way: claim one, complete one, a transaction each, 16 clients.
struct Baseline<'a> {
    cluster: &'a Cluster,
    script: std::path::PathBuf,
}

impl<'a> Baseline<'a> {
    fn new(cluster: &'a Cluster) -> Self {
        cluster.create_database("plain");
        cluster.sql(
            "plain",
            "CREATE TABLE plain_jobs (id bigserial PRIMARY KEY, state smallint NOT NULL DEFAULT 0, payload text, worker text, \
             until timestamptz); CREATE INDEX ON plain_jobs (id) WHERE state = 0",
        );
        let script = std::env::temp_dir().join(format!("plain-claim-{}.sql", std::process::id()));
        let text = "UPDATE plain_jobs SET state = 1, worker = 'w', until = now() + interval '30 s' WHERE id = \
                    (SELECT id FROM plain_jobs WHERE state = 0 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) \
                    RETURNING id \\gset\nUPDATE plain_jobs SET state = 2 WHERE id = :id;\n";
        std::fs::write(&script, text).unwrap();
        Self { cluster, script }
    }

    fn fill(&self, seconds: u64) {
        self.cluster.sql("plain", "TRUNCATE plain_jobs");
        let fill = format!(
            "INSERT INTO plain_jobs (payload) SELECT repeat('x', 100) FROM generate_series(1, {})",
            seconds * 20_000
        );
        self.cluster.sql("plain", &fill);
        self.cluster.sql("plain", "VACUUM ANALYZE plain_jobs");
    }

    fn rate(&self, seconds: u64) -> f64 {
        let output = std::process::Command::new(self.cluster.bin("pgbench"))
            .args(["-n", "-M", "prepared", "-c", "16", "-j", "1", "-T", &seconds.to_string(), "-f"])
            .arg(&self.script)
            .arg(self.cluster.url("plain"))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find(|line| line.starts_with("tps = ")).unwrap_or_default();
        line.split(' ').nth(2).and_then(|rate| rate.parse().ok()).unwrap_or_default()
    }
}

impl Drop for Baseline<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.script);
    }
}

/// Processor time of this process.
fn own_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<u64> =
        stat.rsplit_once(") ").map_or("", |halves| halves.1).split(' ').map(|f| f.parse().unwrap_or(0)).collect();
    Duration::from_millis((fields[11] + fields[12]) * 10)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| args.get(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (callers, seconds) = (number(0, 64) as usize, number(1, 10));
    let cluster = Cluster::start();
    let url = cluster.create_database("bench");
    if let Ok(settings) = std::env::var("SETTINGS") {
        settings.split(';').for_each(|setting| drop(cluster.sql("postgres", &format!("ALTER SYSTEM SET {setting}"))));
        cluster.sql("postgres", "SELECT pg_reload_conf()");
    }
    let mut options = Options { notify: false, ..Options::new(&url) };
    let setting =
        |name: &str, default: usize| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    options.in_flight = setting("IN_FLIGHT", options.in_flight);
    let store: Arc<dyn Store> = Arc::new(Postgres::connect(options).await.unwrap());
    let counts = Arc::new(Counts::default());
    let funnel = Funnel::start(store.clone(), counts.clone(), setting("BATCH_MAX", 256));
    let length = Duration::from_secs(seconds);
    let wal = || cluster.sql("bench", "SELECT pg_current_wal_insert_lsn() - '0/0'").parse::<f64>().unwrap();
    let report = |name: &str, cycles: u64, took: Duration, bytes: f64, cpu: (Duration, Duration)| {
        let (batches, commands) =
            (counts.batches.swap(0, Ordering::Relaxed), counts.commands.swap(0, Ordering::Relaxed));
        println!(
            "{name:<28} {:>8.0} /s   {:>6.0} bytes of log each   {:>5.1} commands a batch   {:>4.0} + {:>3.0} us server + client",
            cycles as f64 / took.as_secs_f64(),
            bytes / cycles.max(1) as f64,
            commands as f64 / batches.max(1) as f64,
            cpu.0.as_micros() as f64 / cycles.max(1) as f64,
            cpu.1.as_micros() as f64 / cycles.max(1) as f64,
        );
    };
    // Warm up, so that pages touched for the first time after a checkpoint do not count.
    measure(&funnel, callers, Duration::from_secs(2), Phase::Whole).await;
    counts.batches.store(0, Ordering::Relaxed);
    counts.commands.store(0, Ordering::Relaxed);
    let baseline = Baseline::new(&cluster);
    for _ in 0..number(2, 1) {
        baseline.fill(seconds);
        let cpu = cluster.cpu_time();
        let single = baseline.rate(seconds);
        let each = (cluster.cpu_time() - cpu).as_micros() as f64 / (single * seconds as f64);
        println!("{:<28} {single:>8.0} /s   {each:>4.0} us server", "pgbench, one at a time");
        for (name, phase) in
            [("submit, claim, complete", Phase::Whole), ("submit", Phase::Submit), ("claim, complete", Phase::Drain)]
        {
            let (before, cpu, own) = (wal(), cluster.cpu_time(), own_cpu());
            let (cycles, took) = measure(&funnel, callers, length, phase).await;
            let used = (cluster.cpu_time() - cpu, own_cpu() - own);
            report(name, cycles, took, wal() - before, used);
            if phase == Phase::Drain {
                println!("{:<28} {:>8.1} x", "against pgbench", cycles as f64 / took.as_secs_f64() / single);
            }
        }
    }
    if let Ok(file) = std::env::var("SERVER_LOG") {
        std::fs::write(file, cluster.log()).unwrap();
    }
    println!("damage found: {:?}", store.check().await.unwrap());
}
