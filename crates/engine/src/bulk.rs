//! Everything at once: the seam for moving all data from one store to another.
//!
//! Reading out goes through the ordinary reads, and one more that lists records of every namespace and kind. Writing in takes
//! rows as they are: no rule is asked, because they were decided where they come from. Only for a store that nobody else uses.

use crate::store::{JobBody, Store, StoreError};
use async_trait::async_trait;
use windlass_core::{Decision, Event, Job, JobChange, JobKey, LogAppend, Record, RecordChange, RecordKey, State, Wake};

/// Rows to write as they are, all of them or none.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    pub jobs: Vec<(Job, JobBody)>,
    pub logs: Vec<LogAppend>,
    pub records: Vec<Record>,
    /// Records of the first version that go again, without an event: what was never part of the data.
    pub gone: Vec<RecordKey>,
    /// With their numbers: growing by one, and going on where the ones before ended. The first ones of a store may begin
    /// anywhere, since older ones may have been thrown away.
    pub events: Vec<(u64, Event)>,
    /// No number up to this one is given again, whether or not its event is still kept.
    pub last_event: u64,
}

#[async_trait]
pub trait Bulk: Store {
    /// Records of every namespace and kind, by key; only those after `after`.
    async fn all_records(&self, after: Option<&RecordKey>, limit: usize) -> Result<Vec<Record>, StoreError>;
    /// Whether there is nothing in it, and never was.
    async fn is_empty(&self) -> Result<bool, StoreError> {
        let jobs = self.count(&Default::default(), 1).await?;
        let events = self.events_after(0, 1).await?;
        Ok(jobs == 0 && events.last == 0 && self.all_records(None, 1).await?.is_empty())
    }
    async fn insert(&self, rows: Rows) -> Result<(), StoreError>;
}

impl Rows {
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
            && self.logs.is_empty()
            && self.records.is_empty()
            && self.gone.is_empty()
            && self.events.is_empty()
    }

    /// Jobs with all that belongs to them and records, as if they had just been decided.
    pub fn take_decision(&mut self) -> Decision {
        let mut decision = Decision { logs: std::mem::take(&mut self.logs), ..Decision::default() };
        for (job, body) in self.jobs.drain(..) {
            let key = job.key.clone();
            if job.state == State::Pending {
                let (namespace, tags) = (key.namespace.clone(), job.spec.tags.clone());
                decision.wakes.push(Wake { namespace, lane: job.lane, tags });
            }
            decision.payloads.push((key.clone(), body.payload));
            decision.results.extend(body.result.map(|result| (key.clone(), result)));
            decision.attempts.extend(body.attempts.into_iter().map(|attempt| (key.clone(), attempt)));
            let edges = body.children.into_iter().map(|child| (key.clone(), JobKey::new(&key.namespace, child)));
            decision.edges.extend(edges);
            decision.jobs.push(JobChange { old: None, new: Some(job) });
        }
        let new = |record: Record| RecordChange {
            key: record.key.clone(),
            old_version: None,
            old_bytes: 0,
            new: Some(record),
        };
        // They are small, and are there for the time of the move alone.
        let gone = |key: RecordKey| RecordChange { key, old_version: Some(1), old_bytes: 256, new: None };
        decision.records = self.records.drain(..).map(new).chain(self.gone.drain(..).map(gone)).collect();
        decision
    }
}

/// Events that may share a row: told at the same time, one after the other.
pub fn batches_of(events: &[(u64, Event)]) -> impl Iterator<Item = (u64, Vec<Event>)> {
    let together = |a: &(u64, Event), b: &(u64, Event)| a.1.at == b.1.at && a.0 + 1 == b.0;
    events.chunk_by(together).map(|run| (run[0].0, run.iter().map(|(_, event)| event.clone()).collect()))
}
