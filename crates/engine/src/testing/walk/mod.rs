//! Seeded random walks. The same batches run on every store at the same simulated time; every reply is compared, all
//! that is stored is compared now and then, and after every batch the rows must make sense.
//!
//! `WINDLASS_SEED` repeats a walk that failed, `WINDLASS_TRANSITIONS` makes it longer.

pub(crate) mod dice;
mod draw;
mod invariants;
mod ledger;
mod reports;
mod rights;
mod staged;
mod world;

pub(crate) use dice::Dice;

use super::{
    START, TestResult,
    bench::{Bench, Fresh},
    snapshot::{self, Scope, snapshot},
};
use crate::{clock::Clock, store::Committed};
use ledger::Ledger;
use std::collections::BTreeMap;
use windlass_core::{
    Command, Job, Refusal, Reply, Timestamp,
    decider::Item,
    reply::{Ended, Seen},
};

const SNAPSHOT_EVERY: usize = 50;
/// How many rounds of sweeping may follow from one another before something is wrong.
const SWEEPS_MAX: usize = 50;

/// How often each command was accepted and refused.
#[derive(Debug, Default)]
pub struct Tally {
    pub accepted: BTreeMap<&'static str, usize>,
    pub refused: BTreeMap<(&'static str, &'static str), usize>,
    pub transitions: usize,
    pub batches: usize,
    /// The most jobs that were there at once.
    pub jobs_max: usize,
}

/// Transitions after which every command was accepted at least once.
const LONG: usize = 10_000;

impl Tally {
    fn count(&mut self, command: &Command, reply: &Result<Reply, Refusal>) {
        self.transitions += 1;
        match reply {
            Ok(_) => self.accept(command),
            Err(refusal) => *self.refused.entry((command.name(), refusal.code())).or_default() += 1,
        }
    }

    /// What was part of it was accepted with it.
    fn accept(&mut self, command: &Command) {
        *self.accepted.entry(command.name()).or_default() += 1;
        if let Command::All(all) = command {
            all.commands.iter().for_each(|part| self.accept(part));
        }
    }

    /// A walk that never saw a command succeed has not tested it. A short one is there for something else.
    fn check_all_seen(&self) -> TestResult<()> {
        if self.transitions < LONG {
            return Ok(());
        }
        let unseen: Vec<&&str> = Command::NAMES.iter().filter(|name| !self.accepted.contains_key(**name)).collect();
        if unseen.is_empty() { Ok(()) } else { Err(format!("never accepted: {unseen:?}")) }
    }
}

struct Contender {
    name: String,
    bench: Bench,
}

/// The seed and the number of transitions the environment asks for, else these.
pub fn asked(seed: u64, transitions: usize) -> (u64, usize) {
    let read = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let asked = read("WINDLASS_TRANSITIONS").map_or(transitions, |asked| asked as usize);
    (read("WINDLASS_SEED").unwrap_or(seed), asked)
}

/// Walks all stores side by side. The first one is also checked against the invariants after every batch.
pub async fn run(stores: Vec<(&str, Fresh)>, seed: u64, transitions: usize) -> TestResult<Tally> {
    let mut walk = Walk::new(stores, seed);
    let result = walk.walk(transitions).await;
    result.map_err(|why| {
        let Tally { transitions, batches, .. } = &walk.tally;
        let batch: String = walk.latest.iter().map(|item| format!("\n  {:?}", item.command)).collect();
        let since = walk.world.now - START;
        format!("WINDLASS_SEED={seed}: after {transitions} transitions, in batch {batches} at {since:?}:{batch}\n{why}")
    })?;
    Ok(walk.tally)
}

struct Walk {
    contenders: Vec<Contender>,
    world: world::World,
    ledger: Ledger,
    scope: Scope,
    /// Only what the invariants look at.
    counted: Scope,
    tally: Tally,
    latest: Vec<Item>,
}

impl Walk {
    fn new(stores: Vec<(&str, Fresh)>, seed: u64) -> Self {
        let contender = |(name, fresh): (&str, Fresh)| {
            let mut bench = Bench::new(fresh);
            bench.limits = world::limits();
            Contender { name: name.into(), bench }
        };
        let world = world::World::new(seed, START);
        // Turns of all namespaces lie in one.
        let namespaces = [&world.namespaces[..], &[windlass_core::stage::system_namespace()]].concat();
        let scope = Scope::new(&namespaces, &[world::RECORD_KIND]);
        let kinds =
            ["concurrency", "definition", "kept_place", "link", "run", "tied", "turn", "unique", "waiting", "worker"]
                .map(Into::into)
                .to_vec();
        let counted = Scope { kinds, ..scope.clone() };
        let contenders = stores.into_iter().map(contender).collect();
        Self {
            contenders,
            world,
            ledger: Default::default(),
            scope,
            counted,
            tally: Tally::default(),
            latest: Vec::new(),
        }
    }

    async fn walk(&mut self, transitions: usize) -> TestResult<()> {
        let mut compared = 0;
        while self.tally.transitions < transitions {
            self.pass_time().await?;
            if self.world.dice.percent(25) {
                self.sweep().await?;
            } else {
                let items = self.draw_batch();
                self.batch(items).await?;
            }
            if self.tally.batches >= compared + SNAPSHOT_EVERY {
                compared = self.tally.batches;
                self.compare_all().await?;
            }
        }
        self.sweep().await?;
        self.compare_all().await?;
        for contender in &self.contenders {
            let damage = contender.bench.store.check().await.map_err(|error| error.to_string())?;
            if !damage.is_empty() {
                return Err(format!("{} found damage: {damage:?}", contender.name));
            }
        }
        let Ledger { repeated, contradicted, .. } = self.ledger;
        if self.tally.transitions >= LONG && (repeated == 0 || contradicted == 0) {
            return Err(format!("{repeated} reports were repeated, {contradicted} contradicted what was accepted"));
        }
        self.tally.check_all_seen()
    }

    /// Stands still, creeps, jumps, or goes to just before, at or after the moment something is due.
    async fn pass_time(&mut self) -> TestResult<()> {
        let step = match self.world.dice.below(100) {
            0..35 => 0,
            35..70 => self.world.dice.between(0, 3_000),
            70..90 => self.until_due().await?,
            90..98 => self.world.dice.between(5_000, 90_000),
            _ => self.world.dice.between(3_600_000, 36 * 3_600_000),
        };
        let now = Timestamp(self.world.now.0 + step.max(0));
        self.world.now = now;
        self.contenders.iter().for_each(|contender| contender.bench.clock.set(now));
        Ok(())
    }

    async fn until_due(&mut self) -> TestResult<i64> {
        let page = self.contenders[0].bench.store.due(1).await.map_err(|error| error.to_string())?;
        let away = page.next.map_or(0, |next| (next - self.world.now).0);
        Ok(away + self.world.dice.between(-1, 1))
    }

    fn draw_batch(&mut self) -> Vec<Item> {
        let size = match self.world.dice.below(100) {
            0..60 => 1,
            60..85 => 2 + self.world.dice.below(4),
            _ => 6 + self.world.dice.below(15),
        };
        let draw = |_| {
            let command = draw::command(&mut self.world);
            self.world.item(command)
        };
        (0..size).map(draw).collect()
    }

    /// What the engine's sweep does, on all stores at once: they must find the same rows due.
    async fn sweep(&mut self) -> TestResult<()> {
        for _ in 0..SWEEPS_MAX {
            let mut pages = Vec::new();
            for contender in &self.contenders {
                let mut page = contender.bench.store.due(100_000).await.map_err(|error| error.to_string())?;
                page.due.sort();
                pages.push((contender.name.clone(), page));
            }
            let (_, first) = &pages[0];
            for (name, page) in &pages[1..] {
                if (page.now, &page.due, page.next) != (first.now, &first.due, first.next) {
                    return Err(format!("what is due differs:\n{first:?}\n{name}: {page:?}"));
                }
            }
            if first.due.is_empty() {
                return Ok(());
            }
            let due: Vec<Command> = first.due.iter().cloned().map(Command::Due).collect();
            let items = due.into_iter().map(|command| self.world.item(command)).collect();
            self.batch(items).await?;
        }
        Err("the sweep never comes to an end".into())
    }

    async fn batch(&mut self, items: Vec<Item>) -> TestResult<()> {
        self.latest = items.clone();
        self.tally.batches += 1;
        let mut results = Vec::new();
        for contender in &mut self.contenders {
            let committed = contender.bench.run_items(items.clone()).await;
            let committed = committed.map_err(|why| format!("{}: {why}", contender.name))?;
            results.push((contender.name.clone(), committed));
        }
        let (first_name, first) = &results[0];
        for (name, committed) in &results[1..] {
            compare(first, committed).map_err(|why| format!("{first_name} and {name} differ: {why}"))?;
        }
        for (item, reply) in items.iter().zip(&first.replies) {
            self.tally.count(&item.command, reply);
            self.world.learn_dead(&item.command, reply);
            if let Ok(reply) = reply {
                self.world.learn(&item.command, reply);
            }
        }
        let first = results.swap_remove(0).1;
        self.check(&items, &first).await
    }

    async fn check(&mut self, items: &[Item], committed: &Committed) -> TestResult<()> {
        let bench = &self.contenders[0].bench;
        let (now, limits) = (bench.clock.now(), bench.limits);
        if committed.now != now {
            return Err(format!("decided at {:?}, not at {now:?}", committed.now));
        }
        let jobs = snapshot::all_jobs(&*bench.store, 10_000).await.map_err(|error| error.to_string())?;
        let records = snapshot::all_records(&*bench.store, &self.counted).await.map_err(|error| error.to_string())?;
        self.world.crowd = jobs.iter().filter(|job| !job.state.is_final()).count();
        self.tally.jobs_max = self.tally.jobs_max.max(jobs.len());
        let commands: Vec<&Command> = items.iter().map(|item| &item.command).collect();
        self.ledger.check_writes(&commands, &committed.replies, now)?;
        self.ledger.follow(&committed.events)?;
        self.ledger.compare(&jobs, limits.retention, now)?;
        self.world.jobs.extend(unknown_to(&self.world.jobs, &jobs));
        invariants::Rows::new(&jobs, &records, limits, &self.ledger).check()
    }

    async fn compare_all(&mut self) -> TestResult<()> {
        self.scope.told = self.contenders[0].bench.told();
        let first = snapshot(&*self.contenders[0].bench.store, &self.scope).await?;
        for contender in &self.contenders[1..] {
            let other = snapshot(&*contender.bench.store, &self.scope).await?;
            if let Some(difference) = first.first_difference(&other) {
                return Err(format!(
                    "{} and {} hold different things: {difference}",
                    self.contenders[0].name, contender.name
                ));
            }
        }
        self.trim().await
    }

    /// Forgets old events, so that a long walk does not compare all of its past each time.
    async fn trim(&mut self) -> TestResult<()> {
        let trim = crate::store::Trim { events_before: Timestamp(self.world.now.0 - 60_000), limit: 100_000 };
        for contender in &self.contenders {
            contender.bench.store.trim(trim).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// Retries and firings drew these ids by themselves.
fn unknown_to(known: &[windlass_core::JobKey], jobs: &[Job]) -> Vec<windlass_core::JobKey> {
    let drawn = |job: &&Job| {
        job.spec.retry_of.is_some() || job.spec.owner.as_deref().is_some_and(|o| o.starts_with("schedule "))
    };
    let new = jobs.iter().filter(drawn).filter(|job| !known.contains(&job.key));
    new.map(|job| job.key.clone()).collect()
}

fn compare(left: &Committed, right: &Committed) -> TestResult<()> {
    let plain = |committed: &Committed| -> Vec<Result<Reply, Refusal>> {
        committed.replies.iter().cloned().map(|reply| reply.map(without_seq)).collect()
    };
    for (at, (left, right)) in plain(left).iter().zip(&plain(right)).enumerate() {
        if left != right {
            return Err(format!("reply {at}:\n{left:#?}\n{right:#?}"));
        }
    }
    let rest = |committed: &Committed| {
        format!("{:?}", (&committed.events, &committed.wakes, committed.next_due, committed.now))
    };
    if left.events != right.events || left.wakes != right.wakes || rest(left) != rest(right) {
        return Err(format!("events, wakes or due time:\n{}\n{}", rest(left), rest(right)));
    }
    Ok(())
}

/// Stores draw places in the queue differently; that their order is the same is seen by who claims what.
fn without_seq(mut reply: Reply) -> Reply {
    match &mut reply {
        Reply::Job(job) | Reply::Ended(Ended { job, .. }) | Reply::Seen(Seen { job, .. }) => job.seq = 0,
        Reply::Leases(leases) => leases.iter_mut().for_each(|leased| leased.job.seq = 0),
        Reply::All(replies) => {
            *replies = std::mem::take(replies).into_iter().map(without_seq).collect();
        }
        _ => {}
    }
    reply
}
