//! What was done since the start, counted from what batches came to: a few additions a job, and nothing to look up.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use windlass_core::{Event, Reply, What, reply::Ended};

/// How often something took how long.
pub struct Histogram {
    /// Upper bounds in seconds, growing.
    pub bounds: &'static [f64],
    /// One more than bounds: the last is for what exceeds all of them.
    counts: Box<[AtomicU64]>,
    micros: AtomicU64,
}

/// A histogram as it stood.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// How many were at most this long, for each bound.
    pub at_most: Vec<(f64, u64)>,
    pub count: u64,
    pub seconds: f64,
}

impl Histogram {
    pub fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(), micros: AtomicU64::new(0) }
    }

    pub fn observe(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        self.counts[self.bounds.partition_point(|bound| *bound < seconds)].fetch_add(1, Relaxed);
        self.micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    pub fn observed(&self) -> Observed {
        let mut count = 0;
        let mut at_most = Vec::with_capacity(self.bounds.len());
        for (at, here) in self.counts.iter().enumerate() {
            count += here.load(Relaxed);
            at_most.extend(self.bounds.get(at).map(|bound| (*bound, count)));
        }
        Observed { at_most, count, seconds: self.micros.load(Relaxed) as f64 / 1e6 }
    }
}

/// For what takes a disk or a network.
pub const SHORT: &[f64] =
    &[0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];
/// For what takes a worker.
pub const LONG: &[f64] = &[0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1_800.0, 7_200.0, 43_200.0];

/// Counts of this server alone.
pub struct Tally {
    pub submitted: AtomicU64,
    pub claimed: AtomicU64,
    pub requeued: AtomicU64,
    pub completed: AtomicU64,
    pub failed: AtomicU64,
    pub cancelled: AtomicU64,
    pub skipped: AtomicU64,
    /// From when a job could be claimed to when it was.
    pub wait: Histogram,
    /// From a job's claim to the report that ended it.
    pub run: Histogram,
    /// From a report to its answer.
    pub report: Histogram,
    /// Of transactions, without the sync where that is apart.
    pub commit: Histogram,
    /// Of waits for the disk, where the store does that apart from its writes.
    pub sync: Histogram,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            submitted: AtomicU64::new(0),
            claimed: AtomicU64::new(0),
            requeued: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            wait: Histogram::new(LONG),
            run: Histogram::new(LONG),
            report: Histogram::new(SHORT),
            commit: Histogram::new(SHORT),
            sync: Histogram::new(SHORT),
        }
    }
}

impl Tally {
    pub(crate) fn count(&self, events: &[Event], replies: &[Result<Reply, windlass_core::Refusal>]) {
        events.iter().for_each(|event| self.event(&event.what));
        replies.iter().flatten().for_each(|reply| self.reply(reply));
    }

    fn event(&self, what: &What) {
        let counter = match counted(what) {
            Some(Counted::Submitted) => &self.submitted,
            Some(Counted::Claimed) => &self.claimed,
            Some(Counted::Requeued) => &self.requeued,
            Some(Counted::Completed) => &self.completed,
            Some(Counted::Failed) => &self.failed,
            Some(Counted::Cancelled) => &self.cancelled,
            Some(Counted::Skipped) => &self.skipped,
            None => return,
        };
        counter.fetch_add(1, Relaxed);
    }

    fn reply(&self, reply: &Reply) {
        match reply {
            Reply::Leases(leases) => {
                for live in leases.iter().map(|leased| &leased.job.live) {
                    between(&self.wait, live.pending_since, live.claimed_at);
                }
            }
            Reply::Ended(Ended { job, replayed: false }) => {
                between(&self.run, job.live.claimed_at, job.live.finished_at)
            }
            Reply::All(replies) => replies.iter().for_each(|reply| self.reply(reply)),
            _ => {}
        }
    }
}

/// What is counted of what happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    Submitted,
    Claimed,
    Requeued,
    Completed,
    Failed,
    Cancelled,
    Skipped,
}

pub(crate) fn counted(what: &What) -> Option<Counted> {
    match what {
        What::Submitted { .. } => Some(Counted::Submitted),
        What::Claimed { .. } => Some(Counted::Claimed),
        What::Requeued { .. } => Some(Counted::Requeued),
        What::Completed { .. } => Some(Counted::Completed),
        What::Failed { .. } => Some(Counted::Failed),
        What::Cancelled { .. } => Some(Counted::Cancelled),
        What::Skipped { .. } => Some(Counted::Skipped),
        What::Ready { .. }
        | What::Started { .. }
        | What::Progress { .. }
        | What::Released { .. }
        | What::CancelRequested { .. }
        | What::WorkerRegistered { .. }
        | What::WorkerOnline { .. }
        | What::WorkerUnreachable { .. }
        | What::WorkerOffline { .. }
        | What::WorkerDraining { .. }
        | What::WorkerUndrained { .. }
        | What::WorkerDeleted { .. }
        | What::RunStarted { .. }
        | What::RunGrew { .. }
        | What::RunFinished { .. }
        | What::DefinitionPut { .. }
        | What::DefinitionDeleted { .. }
        | What::Linked { .. }
        | What::Unlinked { .. }
        | What::RecordPut { .. }
        | What::RecordDeleted { .. }
        | What::Told { .. }
        | What::Audit { .. } => None,
    }
}

fn between(histogram: &Histogram, from: Option<windlass_core::Timestamp>, to: Option<windlass_core::Timestamp>) {
    if let (Some(from), Some(to)) = (from, to) {
        histogram.observe(Duration::from_millis((to.0 - from.0).max(0) as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_each_once_and_says_how_many_were_at_most_as_long() {
        let histogram = Histogram::new(&[0.1, 1.0]);
        for millis in [50, 100, 101, 1_000, 5_000] {
            histogram.observe(Duration::from_millis(millis));
        }
        let Observed { at_most, count, seconds } = histogram.observed();
        assert_eq!((at_most, count), (vec![(0.1, 2), (1.0, 4)], 5));
        assert!((seconds - 6.251).abs() < 1e-6, "{seconds}");
    }
}
