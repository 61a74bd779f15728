//! The reference store: plain maps behind one lock, obviously right. Nothing survives the process.

use crate::{
    clock::Clock,
    store::{Batch, DuePage, EventPage, JobBody, JobQuery, Outcome, RecordQuery, Store, StoreError, Trim},
};
use async_trait::async_trait;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use windlass_core::{
    Attempt, Context, Decision, Event, Head, HeadQuery, Job, JobChange, JobId, JobKey, Keys, LogAppend, Namespace,
    Payload, Record, RecordKey, Rows, State, Tags, Timestamp, commands::due::Due, decider, select,
};

pub struct Memory {
    clock: Arc<dyn Clock>,
    state: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    jobs: BTreeMap<JobKey, Job>,
    payloads: HashMap<JobKey, Payload>,
    results: HashMap<JobKey, Payload>,
    attempts: HashMap<JobKey, Vec<Attempt>>,
    children: HashMap<JobKey, BTreeSet<JobId>>,
    records: BTreeMap<RecordKey, Record>,
    logs: HashMap<JobKey, Vec<LogAppend>>,
    events: BTreeMap<u64, Event>,
    last_event: u64,
    next_seq: i64,
    /// All pending jobs in claim order: what makes this store usable for more than a handful of jobs.
    pending: BTreeMap<(i32, i64), JobKey>,
    due: BTreeSet<(Timestamp, Due)>,
}

impl Memory {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::new(Tables { next_seq: 1, ..Tables::default() }) }
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Tables {
    fn load(&self, keys: &Keys) -> Rows {
        let mut rows = Rows::default();
        let mut wanted: BTreeSet<JobKey> = keys.jobs.union(&keys.new_jobs).cloned().collect();
        for key in &keys.payloads {
            rows.payloads.extend(self.payloads.get(key).map(|payload| (key.clone(), payload.clone())));
        }
        for parent in &keys.children {
            let children = self.children.get(parent).into_iter().flatten();
            let children: Vec<JobKey> = children.map(|&id| JobKey::new(&parent.namespace, id)).collect();
            wanted.extend(children.iter().cloned());
            rows.children.insert(parent.clone(), children);
        }
        for at in &keys.held {
            let held = |job: &&Job| job.key.namespace == at.namespace && job.holder() == Some(&at.worker);
            let found: Vec<JobKey> = self.jobs.values().filter(held).map(|job| job.key.clone()).collect();
            wanted.extend(found.iter().cloned());
            rows.held.insert(at.clone(), found);
        }
        for at in &keys.run_jobs {
            let open = |job: &&Job| job.key.namespace == at.0 && job.run() == Some(at.1) && !job.state.is_final();
            let found: Vec<JobKey> = self.jobs.values().filter(open).map(|job| job.key.clone()).collect();
            wanted.extend(found.iter().cloned());
            rows.run_jobs.insert(at.clone(), found);
        }
        for (at, &count) in &keys.key_queue {
            let waits = |job: &&Job| job.key.namespace == at.0 && job.waits_for_key() == Some(&at.1);
            let mut found: Vec<&Job> = self.jobs.values().filter(waits).collect();
            found.sort_by_key(|job| select::order(job));
            let found: Vec<JobKey> = found.into_iter().take(count).map(|job| job.key.clone()).collect();
            wanted.extend(found.iter().cloned());
            rows.key_queue.insert(at.clone(), found);
        }
        for (query, &count) in &keys.heads {
            rows.heads.insert(query.clone(), self.heads(query, count));
        }
        for key in keys.records.keys() {
            rows.records.extend(self.records.get(key).cloned());
        }
        for at in &keys.siblings {
            let under = |record: &&Record| {
                record.key.namespace == at.0 && record.key.kind == at.1 && record.parent.as_ref() == Some(&at.2)
            };
            let found = self.records.values().filter(under).map(|record| record.key.clone()).collect();
            rows.siblings.insert(at.clone(), found);
        }
        rows.jobs = wanted.iter().filter_map(|key| self.jobs.get(key)).cloned().collect();
        rows
    }

    fn heads(&self, query: &HeadQuery, count: usize) -> Vec<Head> {
        let jobs = self.pending.values().map(|key| &self.jobs[key]).filter(|job| select::fits(job, query));
        let head =
            |job: &Job| Head { job: job.clone(), payload: self.payloads.get(&job.key).cloned().unwrap_or_default() };
        jobs.take(count).map(head).collect()
    }

    fn write(&mut self, decision: &mut Decision) {
        for change in decision.jobs.drain(..) {
            self.write_job(change);
        }
        self.payloads.extend(decision.payloads.drain(..));
        self.results.extend(decision.results.drain(..));
        for (key, attempt) in decision.attempts.drain(..) {
            self.attempts.entry(key).or_default().push(attempt);
        }
        for (parent, child) in decision.edges.drain(..) {
            self.children.entry(parent).or_default().insert(child.id);
        }
        for change in decision.records.drain(..) {
            let old = self.records.remove(&change.key);
            assert_eq!(old.as_ref().map(|old| old.version), change.old_version, "{:?}", change.key);
            if let Some(due) = old.and_then(|old| old.due) {
                self.due.remove(&(due, Due::Record(change.key.clone())));
            }
            if let Some(record) = change.new {
                self.due.extend(record.due.map(|due| (due, Due::Record(change.key.clone()))));
                self.records.insert(change.key, record);
            }
        }
        for append in decision.logs.drain(..) {
            self.logs.entry(append.job.clone()).or_default().push(append);
        }
        for gone in decision.log_drops.drain(..) {
            let pieces = self.logs.entry(gone.job).or_default();
            pieces.retain(|append| append.piece < gone.first || append.piece > gone.last);
        }
        for event in &decision.events {
            self.last_event += 1;
            self.events.insert(self.last_event, event.clone());
        }
    }

    fn write_job(&mut self, change: JobChange) {
        let key = change.key().clone();
        assert_eq!(self.jobs.contains_key(&key), change.old.is_some(), "{key:?}");
        if let Some(old) = self.jobs.remove(&key) {
            if old.state == State::Pending {
                self.pending.remove(&select::order(&old));
            }
            if let Some(due) = old.due {
                self.due.remove(&(due, Due::Job(key.clone())));
            }
        }
        let Some(job) = change.new else {
            self.payloads.remove(&key);
            self.results.remove(&key);
            self.attempts.remove(&key);
            self.children.remove(&key);
            self.logs.remove(&key);
            return;
        };
        self.next_seq = self.next_seq.max(job.seq + 1);
        if job.state == State::Pending {
            self.pending.insert(select::order(&job), key.clone());
        }
        self.due.extend(job.due.map(|due| (due, Due::Job(key.clone()))));
        self.jobs.insert(key, job);
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

    async fn run(&self, batch: Batch) -> Result<Outcome, StoreError> {
        let mut state = self.lock();
        let now = self.clock.now();
        let context = Context { now, first_seq: state.next_seq, limits: batch.limits };
        let mut decision = decider::drive(&batch.items, context, |keys| Ok::<_, StoreError>(state.load(keys)))?;
        let first_event = state.last_event + 1;
        let logged = decision.logs.iter().map(|append| append.job.clone()).collect();
        state.write(&mut decision);
        Ok(Outcome {
            replies: decision.replies,
            events: decision.events,
            first_event: Some(first_event),
            wakes: decision.wakes,
            notices: decision.notices,
            logged,
            next_due: decision.next_due,
            now,
            commit_time: Duration::ZERO,
        })
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

    async fn namespaces(&self, limit: usize) -> Result<Vec<Namespace>, StoreError> {
        let state = self.lock();
        let mut found: Vec<Namespace> = state.records.keys().map(|key| key.namespace.clone()).collect();
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
