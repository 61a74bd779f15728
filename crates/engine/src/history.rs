//! What was done in each minute, by namespace and by definition. Counted from what batches came to, a few additions a job, and
//! held until somebody writes it down.

use crate::tally::{Counted, LONG, counted};
use foldhash::HashMap;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};
use windlass_core::{Event, Job, JobId, Namespace, Refusal, Reply, State, Timestamp, reply::Ended};

pub const MINUTE_MS: i64 = 60_000;
/// Rows that are held of the definitions of one namespace, or of its workers. If none is free, further ones are not
/// counted: what one namespace does takes no room from another.
const OF_ONE_MAX: usize = 2_000;
/// The same of all namespaces together.
const HELD_MAX: usize = 40_000;
/// Minutes that are held of one namespace, and namespaces that are held.
const MINUTES_MAX: usize = 60;
const NAMESPACES_MAX: usize = 20_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
/// Jobs of a definition that are remembered as the last ones.
pub const RECENT_MAX: usize = 20;
const BUCKETS: usize = LONG.len() + 1;

/// Whose figures they are.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Whose {
    pub namespace: Namespace,
    /// Absent: all jobs of the namespace. Of a definition only what ended by a report is counted.
    pub definition: Option<Arc<str>>,
}

/// How long things took: how many fell below each of [`LONG`] and above the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spread {
    /// Empty, or one more than there are bounds.
    pub counts: Vec<u64>,
    pub total_ms: u64,
    /// The longest. Zero in what was written down before it was kept.
    pub max_ms: u64,
}

impl Spread {
    /// Nothing took longer. No single one took longer than all together.
    fn longest_ms(&self) -> u64 {
        if self.max_ms > 0 { self.max_ms } else { self.total_ms }
    }

    fn observe(&mut self, ms: u64) {
        self.counts.resize(BUCKETS, 0);
        let seconds = ms as f64 / 1e3;
        self.counts[LONG.partition_point(|bound| *bound < seconds)] += 1;
        self.total_ms += ms;
        self.max_ms = self.max_ms.max(ms);
    }

    fn add(&mut self, other: &Self) {
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        self.counts.iter_mut().zip(&other.counts).for_each(|(own, more)| *own += more);
        self.max_ms = self.longest_ms().max(other.longest_ms());
        self.total_ms += other.total_ms;
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// About how long this part of them took at most: the bound they lie below, and between bounds in proportion. Never longer
    /// than the longest.
    pub fn quantile_ms(&self, part: f64) -> Option<u64> {
        let wanted = (self.count() as f64 * part).max(1.0);
        let (mut below, mut from) = (0.0_f64, 0.0_f64);
        let longest = self.longest_ms() as f64 / 1e3;
        for (count, bound) in self.counts.iter().zip(LONG) {
            let bound = bound.min(longest);
            let here = *count as f64;
            if here > 0.0 && below + here >= wanted {
                return Some(((from + (bound - from) * (wanted - below) / here) * 1e3).round() as u64);
            }
            (below, from) = (below + here, bound);
        }
        (self.count() > 0).then_some((from * 1e3) as u64)
    }
}

/// What was done in some time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    pub submitted: u64,
    pub claimed: u64,
    pub requeued: u64,
    pub completed: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub skipped: u64,
    /// From when a job could be claimed to when it was.
    pub wait: Spread,
    /// From a job's claim to the report that ended it.
    pub run: Spread,
    /// Of a definition: the jobs that ended last, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recent: Vec<JobId>,
}

impl Figures {
    pub fn add(&mut self, other: &Self) {
        self.submitted += other.submitted;
        self.claimed += other.claimed;
        self.requeued += other.requeued;
        self.completed += other.completed;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
        self.skipped += other.skipped;
        self.wait.add(&other.wait);
        self.run.add(&other.run);
        other.recent.iter().for_each(|job| self.remember(*job));
    }

    fn remember(&mut self, job: JobId) {
        self.recent.push(job);
        self.recent.drain(..self.recent.len().saturating_sub(RECENT_MAX));
    }

    fn count(&mut self, what: Counted) {
        let counter = match what {
            Counted::Submitted => &mut self.submitted,
            Counted::Claimed => &mut self.claimed,
            Counted::Requeued => &mut self.requeued,
            Counted::Completed => &mut self.completed,
            Counted::Failed => &mut self.failed,
            Counted::Cancelled => &mut self.cancelled,
            Counted::Skipped => &mut self.skipped,
        };
        *counter += 1;
    }
}

/// A minute, counted from 1970.
pub type Minute = i64;
type ByMinute = BTreeMap<Minute, Figures>;

/// What is held, and how many rows of definitions that is.
#[derive(Default)]
struct Held {
    namespaces: HashMap<Namespace, OfNamespace>,
    of_definitions: usize,
}

#[derive(Default)]
struct OfNamespace {
    own: ByMinute,
    definitions: HashMap<Arc<str>, ByMinute>,
    /// Rows of its definitions.
    of_definitions: usize,
}

/// How a worker's attempts ended, by its own reports: also those after which the job is tried again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reports {
    pub completed: u64,
    pub failed: u64,
}

impl Reports {
    pub fn add(&mut self, other: Self) {
        self.completed += other.completed;
        self.failed += other.failed;
    }
}

/// An hour, counted from 1970.
pub type Hour = i64;

#[derive(Default)]
struct ByWorker {
    namespaces: HashMap<Namespace, HashMap<(Hour, Arc<str>), Reports>>,
    rows: usize,
}

#[derive(Default)]
pub struct History {
    held: Mutex<Held>,
    workers: Mutex<ByWorker>,
}

impl History {
    pub(crate) fn count(&self, events: &[Event], replies: &[Result<Reply, Refusal>]) {
        let mut held = self.held.lock();
        // Events of one batch are mostly of one namespace and one minute.
        let alike = |a: &Event, b: &Event| a.namespace == b.namespace && a.at.0 / MINUTE_MS == b.at.0 / MINUTE_MS;
        for run in events.chunk_by(alike) {
            let mut happened = run.iter().filter_map(|event| counted(&event.what)).peekable();
            if happened.peek().is_none() {
                continue;
            }
            if let Some(figures) = held.of(&run[0].namespace, None, run[0].at.0 / MINUTE_MS) {
                happened.for_each(|what| figures.count(what));
            }
        }
        replies.iter().flatten().for_each(|reply| count_reply(&mut held, reply));
        drop(held);
        if let Some(event) = events.last() {
            let mut workers = self.workers.lock();
            let hour = event.at.0 / HOUR_MS;
            replies.iter().flatten().for_each(|reply| count_report(&mut workers, hour, reply));
        }
    }

    /// All reports that are held, and holds them no more.
    pub fn take_workers(&self) -> Vec<(Namespace, Hour, Arc<str>, Reports)> {
        let held = std::mem::take(&mut *self.workers.lock()).namespaces;
        let of_one = |(namespace, workers): (Namespace, HashMap<(Hour, Arc<str>), Reports>)| {
            workers.into_iter().map(move |((hour, worker), reports)| (namespace.clone(), hour, worker, reports))
        };
        held.into_iter().flat_map(of_one).collect()
    }

    /// What is held of a namespace's workers.
    pub fn workers(&self, namespace: &Namespace) -> Vec<(Hour, Arc<str>, Reports)> {
        let held = self.workers.lock();
        let of = held.namespaces.get(namespace).into_iter().flatten();
        of.map(|((hour, worker), reports)| (*hour, worker.clone(), *reports)).collect()
    }

    /// Whose figures are held: first all namespaces, then their definitions.
    pub fn whose(&self) -> Vec<Whose> {
        let held = self.held.lock();
        let namespaces = || held.namespaces.iter();
        let own = namespaces().filter(|(_, of)| !of.own.is_empty());
        let own = own.map(|(namespace, _)| Whose { namespace: namespace.clone(), definition: None });
        let definitions =
            namespaces().flat_map(|(namespace, of)| of.definitions.keys().map(move |name| (namespace, name)));
        let definitions =
            definitions.map(|(namespace, name)| Whose { namespace: namespace.clone(), definition: Some(name.clone()) });
        own.chain(definitions).collect()
    }

    /// Takes out what is held of one definition or worker.
    pub fn take(&self, whose: &Whose) -> Vec<(Minute, Figures)> {
        self.held.lock().take(whose).into_iter().collect()
    }

    /// What is held of a namespace's definitions.
    pub fn definitions(&self, namespace: &Namespace) -> Vec<(Arc<str>, Figures)> {
        let held = self.held.lock();
        let of = held.namespaces.get(namespace).into_iter().flat_map(|of| &of.definitions);
        of.flat_map(|(name, rows)| rows.values().map(move |figures| (name.clone(), figures.clone()))).collect()
    }

    /// What is held of one definition or worker.
    pub fn look(&self, whose: &Whose) -> Vec<(Minute, Figures)> {
        let held = self.held.lock();
        let rows = held.namespaces.get(&whose.namespace).and_then(|of| match &whose.definition {
            None => Some(&of.own),
            Some(name) => of.definitions.get(name),
        });
        rows.into_iter().flatten().map(|(at, figures)| (*at, figures.clone())).collect()
    }
}

impl Held {
    /// None: there is no room for one more.
    fn of(&mut self, namespace: &Namespace, definition: Option<&Arc<str>>, minute: Minute) -> Option<&mut Figures> {
        if self.namespaces.len() >= NAMESPACES_MAX && !self.namespaces.contains_key(namespace) {
            return None;
        }
        let of = self.namespaces.entry(namespace.clone()).or_default();
        let Some(name) = definition else {
            let full = of.own.len() >= MINUTES_MAX && !of.own.contains_key(&minute);
            return (!full).then(|| of.own.entry(minute).or_default());
        };
        if of.definitions.get(name).is_none_or(|rows| !rows.contains_key(&minute)) {
            if of.of_definitions >= OF_ONE_MAX || self.of_definitions >= HELD_MAX {
                return None;
            }
            of.of_definitions += 1;
            self.of_definitions += 1;
        }
        Some(of.definitions.entry(name.clone()).or_default().entry(minute).or_default())
    }

    fn take(&mut self, whose: &Whose) -> ByMinute {
        let Some(of) = self.namespaces.get_mut(&whose.namespace) else { return ByMinute::default() };
        let rows = match &whose.definition {
            None => std::mem::take(&mut of.own),
            Some(name) => {
                let rows = of.definitions.remove(name).unwrap_or_default();
                of.of_definitions -= rows.len();
                self.of_definitions -= rows.len();
                rows
            }
        };
        if of.own.is_empty() && of.definitions.is_empty() {
            self.namespaces.remove(&whose.namespace);
        }
        rows
    }
}

fn count_reply(held: &mut Held, reply: &Reply) {
    match reply {
        Reply::Leases(leases) => {
            for job in leases.iter().map(|leased| &leased.job) {
                let Some((at, ms)) = between(job.live.pending_since, job.live.claimed_at) else { continue };
                if let Some(figures) = held.of(&job.key.namespace, None, at) {
                    figures.wait.observe(ms);
                }
            }
        }
        Reply::Ended(Ended { job, replayed: false }) => count_end(held, job),
        Reply::All(replies) => replies.iter().for_each(|reply| count_reply(held, reply)),
        _ => {}
    }
}

fn count_end(held: &mut Held, job: &Job) {
    let Some((at, ms)) = between(job.live.claimed_at, job.live.finished_at) else { return };
    if let Some(figures) = held.of(&job.key.namespace, None, at) {
        figures.run.observe(ms);
    }
    let Some(definition) = &job.spec.definition else { return };
    let Some(figures) = held.of(&job.key.namespace, Some(&definition.name), at) else { return };
    figures.run.observe(ms);
    match job.state {
        State::Completed => figures.completed += 1,
        State::Failed => figures.failed += 1,
        _ => {}
    }
    figures.remember(job.key.id);
}

fn count_report(held: &mut ByWorker, hour: Hour, reply: &Reply) {
    let job = match reply {
        Reply::Ended(Ended { job, replayed: false }) => job,
        Reply::All(replies) => return replies.iter().for_each(|reply| count_report(held, hour, reply)),
        _ => return,
    };
    let Some(lease) = &job.live.lease else { return };
    let reports = match job.state {
        State::Completed => Reports { completed: 1, failed: 0 },
        State::Cancelled => return,
        _ => Reports { completed: 0, failed: 1 },
    };
    let (namespace, key) = (&job.key.namespace, (hour, Arc::from(lease.worker.as_str())));
    let of = held.namespaces.get(namespace);
    if of.is_none_or(|of| !of.contains_key(&key)) {
        if held.rows >= HELD_MAX || of.is_some_and(|of| of.len() >= OF_ONE_MAX) {
            return;
        }
        held.rows += 1;
    }
    held.namespaces.entry(namespace.clone()).or_default().entry(key).or_default().add(reports);
}

/// The minute something ended in, and how long it took.
fn between(from: Option<Timestamp>, to: Option<Timestamp>) -> Option<(Minute, u64)> {
    let (from, to) = (from?, to?);
    Some((to.0 / MINUTE_MS, (to.0 - from.0).max(0) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::{JobId, What};

    fn event(namespace: &str, at: i64, what: What) -> Event {
        Event { namespace: Namespace::new(namespace).unwrap(), at: Timestamp(at), what }
    }

    #[test]
    fn each_minute_of_each_namespace_is_counted_on_its_own_until_it_is_taken() {
        let (history, job) = (History::default(), JobId::from_u128(1));
        let (submitted, completed) = (What::Submitted { job }, What::Completed { job });
        history.count(
            &[event("a", 1, submitted.clone()), event("a", 2, completed), event("b", 3, submitted.clone())],
            &[],
        );
        history.count(&[event("a", MINUTE_MS + 1, submitted.clone()), event("a", 59_999, submitted)], &[]);
        let whose = Whose { namespace: Namespace::new("a").unwrap(), definition: None };
        let mut of_a = history.look(&whose);
        of_a.sort_by_key(|(at, _)| *at);
        let told: Vec<_> = of_a.iter().map(|(at, figures)| (*at, figures.submitted, figures.completed)).collect();
        assert_eq!(told, [(0, 2, 1), (1, 1, 0)]);
        assert_eq!(history.whose().len(), 2);
        assert_eq!(history.take(&whose).len(), 2);
        assert!(history.look(&whose).is_empty() && history.take(&whose).is_empty());
        let left: Vec<String> = history.whose().into_iter().map(|whose| whose.namespace.to_string()).collect();
        assert_eq!(left, ["b"]);
    }

    fn ended(namespace: &str, definition: &str, worker: &str) -> Result<Reply, Refusal> {
        let key = windlass_core::JobKey::new(&Namespace::new(namespace).unwrap(), JobId::from_u128(1));
        let definition = windlass_core::job::DefinitionRef { name: definition.into(), version: 1 };
        let spec = windlass_core::Spec { definition: Some(definition), ..Default::default() };
        let mut live = windlass_core::job::Live {
            claimed_at: Some(Timestamp(1)),
            finished_at: Some(Timestamp(2)),
            ..Default::default()
        };
        live.lease = Some(windlass_core::Lease {
            secret: Default::default(),
            worker: windlass_core::WorkerId::new(worker).unwrap(),
            principal: None,
            length: windlass_core::Millis(1),
            until: None,
            deadline: None,
        });
        let lane = windlass_core::Lane(0);
        let (state, spec) = (State::Completed, Arc::new(spec));
        let job = Job { key, lane, priority: 1, seq: 1, state, due: None, spec, live };
        Ok(Reply::Ended(Ended { job: Box::new(job), replayed: false }))
    }

    #[test]
    fn however_much_one_namespace_does_another_is_counted_in_full() {
        let (history, here) = (History::default(), Namespace::new("little").unwrap());
        for number in 0..30_000 {
            let name = format!("d{number}");
            history.count(
                &[event("much", 1, What::Completed { job: JobId::from_u128(1) })],
                &[ended("much", &name, &name)],
            );
        }
        for _ in 0..50 {
            let completed = event("little", 1, What::Completed { job: JobId::from_u128(1) });
            history.count(&[completed], &[ended("little", "d", "w")]);
        }
        let own = history.look(&Whose { namespace: here.clone(), definition: None });
        assert_eq!((own[0].1.completed, own[0].1.run.count()), (50, 50));
        let definitions = history.definitions(&here);
        assert_eq!((&*definitions[0].0, definitions[0].1.completed), ("d", 50));
        assert_eq!(history.workers(&here), [(0, "w".into(), Reports { completed: 50, failed: 0 })]);
        let much = Namespace::new("much").unwrap();
        assert_eq!(history.definitions(&much).len(), OF_ONE_MAX, "and what is held has a bound");
        assert_eq!(history.workers(&much).len(), OF_ONE_MAX);
        for whose in history.whose() {
            assert!(!history.take(&whose).is_empty());
        }
        assert!(history.held.lock().namespaces.is_empty() && history.held.lock().of_definitions == 0);
    }

    #[test]
    fn no_quantile_is_longer_than_what_took_longest() {
        let mut spread = Spread::default();
        [61_000, 62_000, 63_000].into_iter().for_each(|ms| spread.observe(ms));
        let told = [0.5, 0.95].map(|part| spread.quantile_ms(part).unwrap());
        assert!(60_000 < told[0] && told[0] < told[1] && told[1] <= 63_000, "{told:?}");
        // What was written down before the longest was kept: not longer than all of them together.
        let old = Spread { max_ms: 0, ..spread.clone() };
        assert!(old.quantile_ms(0.95).unwrap() <= 186_000);
        let mut sum = Spread::default();
        sum.add(&spread);
        assert_eq!(sum, spread);
    }

    #[test]
    fn quantiles_lie_between_the_bounds_their_values_lie_between() {
        let mut spread = Spread::default();
        assert_eq!(spread.quantile_ms(0.5), None);
        (0..90).for_each(|_| spread.observe(3));
        (0..10).for_each(|_| spread.observe(2_000));
        assert!(spread.quantile_ms(0.5).unwrap() <= 10);
        assert!((1_000..=5_000).contains(&spread.quantile_ms(0.95).unwrap()));
        let mut slow = Spread::default();
        slow.observe(90_000_000);
        assert_eq!(slow.quantile_ms(0.5), Some(43_200_000), "at least so long");
    }
}
