//! The reference store: plain maps behind one lock, obviously right. Nothing survives the process.

use crate::{
    clock::Clock,
    store::{Batch, Committed, DuePage, EventPage, JobBody, JobQuery, RecordQuery, Store, StoreError, Trim},
};
use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};
use windlass_core::{
    Job, JobKey, Lane, LogAppend, Namespace, Record, RecordKey, StateCounts, Tags, Timestamp,
    commands::due::Due,
    counts::{self, Counted},
    decider, select,
    tables::Tables,
};

pub struct Memory {
    clock: Arc<dyn Clock>,
    state: Mutex<Tables>,
}

impl Memory {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::new(Tables { next_seq: 1, ..Tables::default() }) }
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.state.lock()
    }
}

#[async_trait]
impl Store for Memory {
    fn crowded(&self, max: usize) -> Vec<Namespace> {
        let state = self.lock();
        let mut sets: HashMap<&Namespace, HashSet<&Tags>> = HashMap::new();
        for key in state.pending.values() {
            sets.entry(&key.namespace).or_default().insert(&state.jobs[key].spec.tags);
        }
        let full = sets.into_iter().filter(|(_, sets)| sets.iter().map(|tags| tags.weight()).sum::<usize>() >= max);
        full.map(|(namespace, _)| namespace.clone()).collect()
    }

    async fn run(&self, batch: Batch) -> Result<Committed, StoreError> {
        let mut state = self.lock();
        let now = self.clock.now();
        let decider = batch.decider(now, state.next_seq);
        let mut decision = decider::drive(decider, |keys| Ok::<_, StoreError>(state.load(keys)))?;
        let first_event = state.last_event + 1;
        let logged = decision.logs.iter().map(|append| append.job.clone()).collect();
        state.write(&mut decision);
        Ok(Committed { first_event: Some(first_event), logged, ..Committed::of(&mut decision, now) })
    }

    async fn job(&self, key: &JobKey) -> Result<Option<Job>, StoreError> {
        Ok(self.lock().jobs.get(key).cloned())
    }

    async fn jobs(&self, query: &JobQuery) -> Result<Vec<Job>, StoreError> {
        let state = self.lock();
        let mut found: Vec<Job> = state.jobs.values().filter(|job| query.fits(job)).cloned().collect();
        query.sort(&mut found);
        found.truncate(query.limit);
        Ok(found)
    }

    async fn count(&self, query: &JobQuery, max: usize) -> Result<usize, StoreError> {
        Ok(self.lock().jobs.values().filter(|job| query.fits(job)).take(max).count())
    }

    async fn job_counts(&self, namespace: &Namespace, definition: Option<&str>) -> Result<StateCounts, StoreError> {
        let state = self.lock();
        let of = |job: &&Job| {
            job.key.namespace == *namespace && definition.is_none_or(|name| counts::definition_of(job) == name)
        };
        let mut counts = StateCounts::of_all(state.jobs.values().filter(of));
        if definition.is_none() {
            let jobs = state.jobs.values().filter(of).map(counts::job_bytes);
            let records = state.records.values().filter(|record| record.key.namespace == *namespace);
            counts.add(Counted::Bytes, jobs.chain(records.map(counts::record_bytes)).sum());
        }
        Ok(counts)
    }

    async fn ahead(&self, job: &Job, max: usize) -> Result<usize, StoreError> {
        let state = self.lock();
        let before = state.pending.range(..select::order(job)).map(|(_, key)| &state.jobs[key]);
        Ok(before.filter(|other| other.key.namespace == job.key.namespace && other.lane == job.lane).take(max).count())
    }

    async fn oldest_pending(&self) -> Result<Option<Job>, StoreError> {
        let state = self.lock();
        let oldest = state.pending.values().map(|key| &state.jobs[key]).min_by_key(|job| job.seq);
        Ok(oldest.cloned())
    }

    async fn queue_heads(&self, namespace: &Namespace, limit: usize) -> Result<Vec<Job>, StoreError> {
        let state = self.lock();
        let mut heads: BTreeMap<(Lane, i32), &Job> = BTreeMap::new();
        for job in state.pending.values().map(|key| &state.jobs[key]).filter(|job| job.key.namespace == *namespace) {
            let head = heads.entry((job.lane, job.priority)).or_insert(job);
            if job.seq < head.seq {
                *head = job;
            }
        }
        let mut found: Vec<Job> = heads.into_values().cloned().collect();
        found.sort_by_key(|job| job.seq);
        found.truncate(limit);
        Ok(found)
    }

    async fn namespaces(&self, limit: usize) -> Result<Vec<Namespace>, StoreError> {
        let state = self.lock();
        let mut found: Vec<Namespace> = state.records.keys().map(|key| key.namespace.clone()).collect();
        found.extend(state.jobs.keys().map(|key| key.namespace.clone()));
        found.sort();
        found.dedup();
        found.truncate(limit);
        Ok(found)
    }

    async fn body(&self, key: &JobKey) -> Result<Option<JobBody>, StoreError> {
        let state = self.lock();
        if !state.jobs.contains_key(key) {
            return Ok(None);
        }
        Ok(Some(JobBody {
            payload: state.payloads.get(key).cloned().unwrap_or_default(),
            result: state.results.get(key).cloned(),
            attempts: state.attempts.get(key).cloned().unwrap_or_default(),
            children: state.children.get(key).into_iter().flatten().copied().collect(),
        }))
    }

    async fn record(&self, key: &RecordKey) -> Result<Option<Record>, StoreError> {
        Ok(self.lock().records.get(key).cloned())
    }

    async fn records(&self, query: &RecordQuery) -> Result<Vec<Record>, StoreError> {
        let state = self.lock();
        let fits = |record: &&Record| {
            record.key.namespace == query.namespace
                && record.key.kind == query.kind
                && (query.parent.is_none() || record.parent == query.parent)
                && query.facet.as_ref().is_none_or(|facet| record.facets.contains(facet))
                && query.after.as_ref().is_none_or(|after| record.key.key > *after)
        };
        Ok(state.records.values().filter(fits).take(query.limit).cloned().collect())
    }

    async fn read_log(&self, key: &JobKey, after: u64, bytes_max: usize) -> Result<Vec<LogAppend>, StoreError> {
        let state = self.lock();
        let mut bytes = 0;
        let pieces = state.logs.get(key).into_iter().flatten().filter(|append| append.piece > after);
        let fits = |append: &&LogAppend| {
            bytes += append.data.len();
            bytes == append.data.len() || bytes <= bytes_max
        };
        Ok(pieces.take_while(fits).cloned().collect())
    }

    async fn events_after(&self, after: u64, limit: usize) -> Result<EventPage, StoreError> {
        let state = self.lock();
        let kept = state.events.range(after.saturating_add(1)..).take(limit);
        Ok(EventPage {
            events: kept.map(|(&number, event)| (number, event.clone())).collect(),
            oldest: state.events.keys().next().copied().unwrap_or(state.last_event + 1),
            last: state.last_event,
        })
    }

    async fn due(&self, limit: usize) -> Result<DuePage, StoreError> {
        let state = self.lock();
        let now = self.clock.now();
        let due: Vec<&(Timestamp, Due)> = state.due.iter().take_while(|(at, _)| *at <= now).take(limit).collect();
        let next = state.due.iter().nth(due.len()).map(|(at, _)| *at);
        let due = due.into_iter().map(|(_, due)| due.clone()).collect();
        Ok(DuePage { now, wall: self.clock.wall(), steps: 0, due, next })
    }

    async fn trim(&self, trim: Trim) -> Result<usize, StoreError> {
        let mut state = self.lock();
        let old = state.events.iter().take_while(|(_, event)| event.at < trim.events_before).take(trim.limit);
        let old: Vec<u64> = old.map(|(&number, _)| number).collect();
        for number in &old {
            state.events.remove(number);
        }
        Ok(old.len())
    }

    async fn check(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }
}
