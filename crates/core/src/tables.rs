//! Plain tables: the smallest thing that can load what a decision asks for and keep what it comes to. The reference store
//! is these behind a lock, and the tests of the rules run on them.

use crate::{
    change::{Decision, JobChange, LogAppend},
    commands::due::Due,
    event::Event,
    id::{JobId, RunId},
    job::{Attempt, Job, State},
    keys::{Head, HeadQuery, JobKey, Keys, RecordKey, Rows},
    name::Namespace,
    payload::Payload,
    record::Record,
    select,
    time::Timestamp,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

#[derive(Default)]
pub struct Tables {
    pub jobs: BTreeMap<JobKey, Job>,
    pub payloads: HashMap<JobKey, Payload>,
    pub results: HashMap<JobKey, Payload>,
    pub attempts: HashMap<JobKey, Vec<Attempt>>,
    pub children: HashMap<JobKey, BTreeSet<JobId>>,
    pub records: BTreeMap<RecordKey, Record>,
    pub logs: HashMap<JobKey, Vec<LogAppend>>,
    pub events: BTreeMap<u64, Event>,
    pub last_event: u64,
    pub next_seq: i64,
    /// All pending jobs in claim order: what makes these tables usable for more than a handful of jobs.
    pub pending: BTreeMap<(i32, i64), JobKey>,
    pub due: BTreeSet<(Timestamp, Due)>,
    pub by_run: HashMap<(Namespace, RunId), BTreeSet<JobKey>>,
}

impl Tables {
    /// What a decision asks for.
    pub fn load(&self, keys: &Keys) -> Rows {
        let mut rows = Rows::default();
        let mut wanted: BTreeSet<JobKey> = keys.jobs.union(&keys.new_jobs).cloned().collect();
        for key in &keys.payloads {
            rows.payloads.extend(self.payloads.get(key).map(|payload| (key.clone(), payload.clone())));
        }
        for (at, &count) in &keys.children {
            let children = self.children.get(&at.parent).into_iter().flat_map(|ids| ids.range(at.first..));
            let children = children.take(count).map(|&id| JobKey::new(&at.parent.namespace, id));
            let children: Vec<JobKey> = children.collect();
            wanted.extend(children.iter().cloned());
            rows.children.insert(at.clone(), children);
        }
        for at in &keys.held {
            let held = |job: &&Job| job.key.namespace == at.namespace && job.holder() == Some(&at.worker);
            let found: Vec<JobKey> = self.jobs.values().filter(held).map(|job| job.key.clone()).collect();
            wanted.extend(found.iter().cloned());
            rows.held.insert(at.clone(), found);
        }
        for at in &keys.run_jobs {
            let of_run = self.by_run.get(at).into_iter().flatten();
            let open = |key: &&JobKey| self.jobs.get(key).is_some_and(|job| !job.state.is_final());
            let found: Vec<JobKey> = of_run.filter(open).cloned().collect();
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
        for (at, &count) in &keys.lane_fronts {
            let jobs = self.pending.values().map(|key| &self.jobs[key]);
            let of_lane = jobs.filter(|job| job.key.namespace == at.0 && job.lane == at.1);
            rows.lane_fronts.insert(at.clone(), of_lane.take(count).map(|job| job.key.clone()).collect());
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

    /// What it came to. Replies, events and who is to be woken stay in it.
    pub fn write(&mut self, decision: &mut Decision) {
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
        let old = self.jobs.remove(&key);
        assert_eq!(old.is_some(), change.old.is_some(), "{key:?}");
        if let Some(old) = old {
            if old.state == State::Pending {
                self.pending.remove(&select::order(&old));
            }
            if let Some(run) = old.run().filter(|_| change.new.is_none()) {
                self.by_run.entry((key.namespace.clone(), run)).or_default().remove(&key);
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
            assert_eq!(self.pending.insert(select::order(&job), key.clone()), None, "one job a place");
        }
        if let Some(run) = job.run() {
            self.by_run.entry((key.namespace.clone(), run)).or_default().insert(key.clone());
        }
        self.due.extend(job.due.map(|due| (due, Due::Job(key.clone()))));
        self.jobs.insert(key, job);
    }
}
