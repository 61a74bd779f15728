//! How many jobs a second the embedded store takes from submit through claim to completion, without HTTP.
//!
//! `cargo run --release -p windlass-stores --example embedded_cycle -- [jobs] [per batch] [full|off] [folder]`
//!
//! Each batch submits, claims and completes so many jobs, as the engine's batcher would hand them over when so many
//! clients call at once. Claims find jobs of earlier batches, because so many wait at the start, and completions are of
//! the claims of the batch before.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use uuid::Uuid;
use windlass_core::{
    Command, JobId, LeaseId, Limits, Namespace, Reply, Tags, WorkerId,
    commands::{
        claim::Claim,
        complete::Complete,
        holder::Holder,
        submit::{NewJob, Submit},
    },
    decider::Item,
};
use windlass_engine::{
    clock::{Clock, System},
    store::{Batch, Store},
};
use windlass_stores::embedded::{Embedded, Options, Sync};

struct Load {
    namespace: Namespace,
    clock: Arc<System>,
    drawn: u128,
    leases: Vec<LeaseId>,
}

impl Load {
    /// Time-ordered, as the engine draws them.
    fn id(&mut self) -> u128 {
        self.drawn += 1;
        let mixed = (self.drawn as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((self.clock.now().0 as u128) << 80) | (0x7 << 76) | (self.drawn & 0xfff) << 64 | u128::from(mixed)
    }

    fn submits(&mut self, count: usize) -> Vec<Command> {
        let submit = |_| {
            let job = NewJob { payload: PAYLOAD.into(), ..NewJob::new(JobId::from_u128(self.id())) };
            Submit { namespace: self.namespace.clone(), job }.into()
        };
        (0..count).map(submit).collect()
    }

    fn batch(&mut self, count: usize) -> Batch {
        let mut commands = self.submits(count);
        for lease in std::mem::take(&mut self.leases) {
            let holder = Holder::lease(&self.namespace, lease);
            commands.push(Complete { holder, result: RESULT.into() }.into());
        }
        for at in 0..count {
            let worker = WorkerId::trusted(&format!("worker-{}", at % 16));
            let secrets = vec![Uuid::from_u128(self.id())];
            commands.push(Claim::new(&self.namespace, worker, Tags::default(), secrets).into());
        }
        batch(commands)
    }
}

fn batch(commands: Vec<Command>) -> Batch {
    let items = commands.into_iter().map(|command| Item { command, seed: 1 }).collect();
    Batch { items, limits: Limits::default() }
}

const PAYLOAD: &str = r#"{"command":"convert","input":"s3://bucket/part-000123.step","format":"stl","quality":"high"}"#;
const RESULT: &str = r#"{"output":"s3://bucket/part-000123.stl","bytes":123456}"#;

/// Jobs that wait at the start, and all the time.
const WAITING: usize = 1_000;

fn bytes_to_disk() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|count| count.parse().ok()).unwrap_or(0)
}

fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let number = |at: usize, default: usize| args.get(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (jobs, per_batch) = (number(1, 100_000), number(2, 20));
    let sync = if args.get(3).is_some_and(|text| text == "off") { Sync::Off } else { Sync::Full };
    let made = args.get(4).map_or_else(tempfile::tempdir, tempfile::tempdir_in);
    let folder = made.expect("a folder can be made");
    let clock = Arc::new(System::default());
    let options = Options { sync, ..Options::new(clock.clone()) };
    let store = Embedded::open(folder.path(), options).expect("the store opens");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime can be made");
    let mut load = Load { namespace: Namespace::default(), clock, drawn: 0, leases: Vec::new() };
    let waiting = batch(load.submits(WAITING));
    runtime.block_on(store.run(waiting)).expect("the batch commits");
    let (start, cpu, bytes) = (Instant::now(), cpu_time(), bytes_to_disk());
    let (mut done, mut commits, mut slowest) = (0, Duration::ZERO, Duration::ZERO);
    while done < jobs {
        let batch = load.batch(per_batch);
        let began = Instant::now();
        let outcome = runtime.block_on(store.run(batch)).expect("the batch commits");
        slowest = slowest.max(began.elapsed());
        commits += outcome.commit_time;
        for reply in outcome.replies {
            match reply.expect("nothing is refused") {
                Reply::Leases(leases) => load.leases.extend(leases.iter().map(|leased| leased.lease)),
                Reply::Ended { .. } => done += 1,
                _ => {}
            }
        }
    }
    let (took, cpu, stats) = (start.elapsed(), cpu_time() - cpu, store.stats());
    let each = |total: f64| total / done as f64;
    println!("{done} jobs, {per_batch} of each per batch: {:.0} jobs/s", done as f64 / took.as_secs_f64());
    println!("  {:.1} us a job, {:.1} us of it CPU", each(took.as_micros() as f64), each(cpu.as_micros() as f64));
    println!("  commits took {:.1} us a job, the slowest batch {slowest:?}", each(commits.as_micros() as f64));
    println!("  {:.3} syncs, {:.0} bytes of log a job", each(stats.syncs as f64), each(stats.wal_bytes as f64));
    println!("  {:.0} bytes written to disk a job; {stats:?}", each((bytes_to_disk() - bytes) as f64));
}
