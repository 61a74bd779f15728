//! What was done in each minute, by namespace and by definition. Counted from what batches came to, a few additions a job, and
//! held until somebody writes it down.

use crate::tally::{Counted, LONG, counted};
use foldhash::HashMap;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::{collections::hash_map::Entry, sync::Arc};
use windlass_core::{Event, Job, JobId, Namespace, Refusal, Reply, State, Timestamp, reply::Ended};

pub const MINUTE_MS: i64 = 60_000;
/// Minutes that are held. Where nobody takes them, further ones are not counted.
const HELD_MAX: usize = 20_000;
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
type Held = HashMap<(Whose, Minute), Figures>;

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
type ByWorker = HashMap<(Namespace, Hour, Arc<str>), Reports>;

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
            if let Some(figures) = of(&mut held, &run[0].namespace, None, run[0].at.0 / MINUTE_MS) {
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
        let held = std::mem::take(&mut *self.workers.lock());
        held.into_iter().map(|((namespace, hour, worker), reports)| (namespace, hour, worker, reports)).collect()
    }

    /// What is held of a namespace's workers.
    pub fn workers(&self, namespace: &Namespace) -> Vec<(Hour, Arc<str>, Reports)> {
        let held = self.workers.lock();
        let of = held.iter().filter(|((of, _, _), _)| of == namespace);
        of.map(|((_, hour, worker), reports)| (*hour, worker.clone(), *reports)).collect()
    }

    /// All that is held, and holds it no more.
    pub fn take(&self) -> Vec<(Whose, Minute, Figures)> {
        let held = std::mem::take(&mut *self.held.lock());
        held.into_iter().map(|((whose, minute), figures)| (whose, minute, figures)).collect()
    }

    /// What is held of a namespace's definitions.
    pub fn definitions(&self, namespace: &Namespace) -> Vec<(Arc<str>, Figures)> {
        let held = self.held.lock();
        let of = held.iter().filter(|((whose, _), _)| whose.namespace == *namespace);
        of.filter_map(|((whose, _), figures)| Some((whose.definition.clone()?, figures.clone()))).collect()
    }

    /// What is held of somebody.
    pub fn look(&self, whose: &Whose) -> Vec<(Minute, Figures)> {
        let held = self.held.lock();
        held.iter().filter(|((of, _), _)| of == whose).map(|((_, at), figures)| (*at, figures.clone())).collect()
    }
}

fn of<'a>(
    held: &'a mut Held,
    namespace: &Namespace,
    definition: Option<&Arc<str>>,
    minute: Minute,
) -> Option<&'a mut Figures> {
    let key = (Whose { namespace: namespace.clone(), definition: definition.cloned() }, minute);
    let full = held.len() >= HELD_MAX;
    match held.entry(key) {
        Entry::Vacant(_) if full => None,
        entry => Some(entry.or_default()),
    }
}

fn count_reply(held: &mut Held, reply: &Reply) {
    match reply {
        Reply::Leases(leases) => {
            for job in leases.iter().map(|leased| &leased.job) {
                let Some((at, ms)) = between(job.live.pending_since, job.live.claimed_at) else { continue };
                if let Some(figures) = of(held, &job.key.namespace, None, at) {
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
    if let Some(figures) = of(held, &job.key.namespace, None, at) {
        figures.run.observe(ms);
    }
    let Some(definition) = &job.spec.definition else { return };
    let Some(figures) = of(held, &job.key.namespace, Some(&definition.name), at) else { return };
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
    let key = (job.key.namespace.clone(), hour, Arc::from(lease.worker.as_str()));
    if held.len() < HELD_MAX || held.contains_key(&key) {
        held.entry(key).or_default().add(reports);
    }
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
        assert_eq!(history.take().len(), 3);
        assert!(history.look(&whose).is_empty());
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
