//! How many there may be of what a namespace can have any number of, each of which costs all namespaces something: workers,
//! definitions, schedules, and sets of tags that jobs wait with.
//!
//! They are counted where they are kept, and seldom: after so many new ones, and again once there are too many. So a few more
//! than allowed may slip through; what is allowed leaves room for that.

use crate::{
    error::Error,
    store::{RecordQuery, Store},
};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};
use windlass_core::{
    Command, Event, Limits, Namespace, Refusal, What, WorkerId,
    commands::{claim::Claim, claim::Unknown},
    definition::DefinitionHead,
    record::{self, Kind},
    schedule::Schedule,
    worker::Worker,
};

/// New jobs between two looks at how many sets of tags there are.
const JOBS: u64 = 256;
/// What was counted so lately is not counted again.
const COUNTED_FOR: Duration = Duration::from_millis(500);
const PAGE: usize = 1_000;
/// Namespaces whose workers or definitions are counted.
const NAMESPACES_MAX: usize = 10_000;

#[derive(Default)]
pub struct Crowd {
    jobs: AtomicU64,
    /// Namespaces with too many sets of tags, and whether there are any.
    lanes: Mutex<(Option<Instant>, Vec<Namespace>)>,
    full_of_lanes: AtomicBool,
    workers: Counts,
    definitions: Counts,
}

/// How many rows of one kind each namespace has.
#[derive(Default)]
struct Counts {
    known: Mutex<HashMap<Namespace, Known>>,
    /// Somebody's have to be counted, or are too many.
    doubts: AtomicBool,
}

#[derive(Clone, Copy, Default)]
struct Known {
    /// As many at most; after being counted.
    count: usize,
    counted: Option<Instant>,
}

impl Known {
    fn is_doubtful(&self, max: usize) -> bool {
        self.counted.is_none() || self.count >= max
    }

    fn is_stale(&self, max: usize) -> bool {
        self.counted.is_none_or(|at| self.count >= max && at.elapsed() > COUNTED_FOR)
    }
}

/// Who asks for jobs with tags. Those of runs under way and of schedules were asked for before.
fn submits(command: &Command) -> Option<&Namespace> {
    match command {
        Command::Submit(submit) => (!submit.job.tags.is_empty()).then_some(&submit.namespace),
        Command::SubmitRun(run) => run.nodes.iter().any(|node| !node.job.tags.is_empty()).then_some(&run.namespace),
        Command::All(all) => all.commands.iter().find_map(submits),
        Command::Audited(audited) => submits(&audited.command),
        _ => None,
    }
}

fn registers(command: &Command) -> Option<(&Namespace, &WorkerId)> {
    match command {
        Command::RegisterWorker(register) => Some((&register.namespace, &register.worker)),
        Command::All(all) => all.commands.iter().find_map(registers),
        Command::Audited(audited) => registers(&audited.command),
        _ => None,
    }
}

fn defines(command: &Command) -> Option<(&Namespace, &str)> {
    match command {
        Command::PutDefinition(put) => Some((&put.namespace, &put.name)),
        Command::Link(link) => Some((&link.namespace, &link.definition)),
        Command::All(all) => all.commands.iter().find_map(defines),
        Command::Audited(audited) => defines(&audited.command),
        _ => None,
    }
}

fn schedules(command: &Command) -> Option<(&Namespace, &str)> {
    match command {
        Command::PutSchedule(put) => Some((&put.namespace, &put.schedule.name)),
        Command::All(all) => all.commands.iter().find_map(schedules),
        Command::Audited(audited) => schedules(&audited.command),
        _ => None,
    }
}

async fn admit_schedule(store: &dyn Store, limits: &Limits, namespace: &Namespace, name: &str) -> Result<(), Error> {
    let max = limits.schedules_max;
    let is_known = is_there::<Schedule>(store, namespace, name).await?;
    if is_known || count(store, namespace, Schedule::KIND).await? < max {
        return Ok(());
    }
    Err(too_many("schedules", "schedules_per_namespace_max", namespace, max))
}

fn too_many(what: &'static str, setting: &'static str, namespace: &Namespace, max: usize) -> Error {
    Refusal::TooMany { what, namespace: namespace.to_string(), max, setting }.into()
}

async fn is_there<T: Kind>(store: &dyn Store, namespace: &Namespace, name: &str) -> Result<bool, Error> {
    Ok(store.record(&record::key_of::<T>(namespace, name)).await?.is_some())
}

async fn count(store: &dyn Store, namespace: &Namespace, kind: &str) -> Result<usize, Error> {
    let (namespace, kind) = (namespace.clone(), kind.into());
    let query = RecordQuery { namespace, kind, parent: None, facet: None, after: None, limit: PAGE };
    Ok(store.count_records(&query).await?)
}

impl Crowd {
    /// Refuses what would make a crowd larger.
    pub async fn admit(&self, store: &dyn Store, limits: &Limits, commands: &[Command]) -> Result<(), Error> {
        if let Some(namespace) = commands.iter().find_map(submits) {
            let jobs: usize = commands.iter().map(Command::jobs).sum();
            self.admit_jobs(store, namespace, jobs as u64, limits.lanes_max)?;
        }
        // Boxed: these are rare, and every call would carry what they need.
        if let Some((namespace, worker)) = commands.iter().find_map(registers) {
            Box::pin(self.admit_worker(store, limits, namespace, worker)).await?;
        }
        if let Some((namespace, name)) = commands.iter().find_map(defines)
            && self.definitions.doubts.load(Relaxed)
        {
            Box::pin(self.admit_definition(store, limits, namespace, name)).await?;
        }
        match commands.iter().find_map(schedules) {
            Some((namespace, name)) => Box::pin(admit_schedule(store, limits, namespace, name)).await,
            None => Ok(()),
        }
    }

    /// A claim makes its worker known.
    pub async fn admit_claim(&self, store: &dyn Store, limits: &Limits, claim: &Claim) -> Result<(), Error> {
        match claim.unknown {
            Unknown::Create(_) if self.workers.doubts.load(Relaxed) => {
                Box::pin(self.admit_worker(store, limits, &claim.namespace, &claim.worker)).await
            }
            Unknown::Create(_) | Unknown::Refuse => Ok(()),
        }
    }

    async fn admit_worker(
        &self,
        store: &dyn Store,
        limits: &Limits,
        namespace: &Namespace,
        worker: &WorkerId,
    ) -> Result<(), Error> {
        let max = limits.workers_max;
        match self.workers.has_room::<Worker>(store, namespace, worker.as_str(), max).await? {
            true => Ok(()),
            false => Err(too_many("workers", "workers_per_namespace_max", namespace, max)),
        }
    }

    async fn admit_definition(
        &self,
        store: &dyn Store,
        limits: &Limits,
        namespace: &Namespace,
        name: &str,
    ) -> Result<(), Error> {
        let max = limits.definitions_max;
        match self.definitions.has_room::<DefinitionHead>(store, namespace, name, max).await? {
            true => Ok(()),
            false => Err(too_many("definitions", "definitions_per_namespace_max", namespace, max)),
        }
    }

    fn admit_jobs(&self, store: &dyn Store, namespace: &Namespace, jobs: u64, max: usize) -> Result<(), Error> {
        let before = self.jobs.fetch_add(jobs, Relaxed);
        let is_time = before / JOBS != (before + jobs) / JOBS;
        if !is_time && !self.full_of_lanes.load(Relaxed) {
            return Ok(());
        }
        let (looked, crowded) = &mut *self.lanes.lock();
        if is_time || looked.is_none_or(|at| at.elapsed() > COUNTED_FOR) {
            *crowded = store.crowded(max);
            *looked = Some(Instant::now());
            self.full_of_lanes.store(!crowded.is_empty(), Relaxed);
        }
        if !crowded.contains(namespace) {
            return Ok(());
        }
        Err(too_many("sets of tags that jobs wait with", "tag_sets_per_namespace_max", namespace, max))
    }

    /// What batches came to.
    pub fn hear(&self, events: &[Event], limits: &Limits) {
        for event in events {
            if let What::WorkerRegistered { .. } = event.what {
                self.workers.one_more(&event.namespace, limits.workers_max);
            } else if let What::DefinitionPut { version: 1, .. } = event.what {
                self.definitions.one_more(&event.namespace, limits.definitions_max);
            }
        }
    }
}

impl Counts {
    /// Whether there is room for one more, or it is there already.
    async fn has_room<T: Kind>(
        &self,
        store: &dyn Store,
        namespace: &Namespace,
        name: &str,
        max: usize,
    ) -> Result<bool, Error> {
        let Some(known) = self.doubtful(namespace, max) else { return Ok(true) };
        let count = if known.is_stale(max) { count(store, namespace, T::KIND).await? } else { known.count };
        if known.is_stale(max) {
            self.counted(namespace, count, max);
        }
        Ok(count < max || is_there::<T>(store, namespace, name).await?)
    }

    fn one_more(&self, namespace: &Namespace, max: usize) {
        let mut all = self.known.lock();
        if all.len() >= NAMESPACES_MAX && !all.contains_key(namespace) {
            all.clear();
        }
        let known = all.entry(namespace.clone()).or_default();
        known.count += 1;
        if known.is_doubtful(max) {
            self.doubts.store(true, Relaxed);
        }
    }

    fn doubtful(&self, namespace: &Namespace, max: usize) -> Option<Known> {
        if !self.doubts.load(Relaxed) {
            return None;
        }
        self.known.lock().get(namespace).copied().filter(|known| known.is_doubtful(max))
    }

    fn counted(&self, namespace: &Namespace, count: usize, max: usize) {
        let mut all = self.known.lock();
        all.insert(namespace.clone(), Known { count, counted: Some(Instant::now()) });
        self.doubts.store(all.values().any(|known| known.is_doubtful(max)), Relaxed);
    }
}
