//! The desk's two ends: laying down the rows that were loaded, and handing over what the batch came to.

use super::{Desk, JobSlot, Queue, RecordSlot};
use crate::model::{
    change::{Decision, JobChange, RecordChange, Wake},
    counts,
    event::About,
    job::{Job, State},
    keys::{Access, Keys, RecordKey, Rows, WorkerKey},
    name::{Lane, Tags},
    record::{Kind, Record},
    stage::{self, Turn},
    time::Timestamp,
};

impl Desk {
    pub(crate) fn take_wanted(&mut self) -> Keys {
        std::mem::take(&mut self.wanted)
    }

    /// Lays down what was found for `asked`. Rows this batch already knows are left as they are.
    pub(crate) fn absorb(&mut self, asked: &Keys, rows: Rows) {
        self.make_room(asked, &rows);
        for job in rows.jobs {
            self.know_job(job);
        }
        for (query, heads) in rows.heads {
            let mut queue = Queue { asked: asked.heads.get(&query).copied().unwrap_or(0), ..Queue::default() };
            for head in heads {
                queue.jobs.push(head.job.key.clone());
                self.payloads.entry(head.job.key.clone()).or_insert(head.payload);
                self.know_job(head.job);
            }
            self.heads.insert(query, queue);
        }
        for (at, jobs) in rows.key_queue {
            let asked = asked.key_queue.get(&at).copied().unwrap_or(0);
            self.key_queues.insert(at, Queue { asked, jobs, next: 0 });
        }
        for (at, jobs) in rows.lane_fronts {
            let asked = asked.lane_fronts.get(&at).copied().unwrap_or(0);
            self.lane_fronts.insert(at, Queue { asked, jobs, next: 0 });
        }
        self.payloads.extend(rows.payloads);
        self.know_children(asked, rows.children);
        self.held.extend(rows.held);
        self.run_jobs.extend(rows.run_jobs);
        self.siblings.extend(rows.siblings);
        // First as if none were there: a row that was only looked at may be gone by the time it is locked.
        for (key, access) in &asked.records {
            self.know_record(key.clone(), None, *access);
        }
        for record in rows.records {
            let asked = asked.records.get(&record.key).copied().unwrap_or_default();
            let access = if rows.exclusive { Access::Write } else { asked };
            self.know_record(record.key.clone(), Some(record), access);
        }
        self.note_absent(asked);
    }

    /// All at once: slots are large, and a table that grows moves all of them each time.
    fn make_room(&mut self, asked: &Keys, rows: &Rows) {
        let heads: usize = rows.heads.values().map(Vec::len).sum();
        self.jobs.reserve((asked.jobs.len() + asked.new_jobs.len()).max(rows.jobs.len()) + heads);
        self.payloads.reserve(heads + asked.payloads.len());
        self.records.reserve(asked.records.len().max(rows.records.len()));
    }

    fn know_job(&mut self, job: Job) {
        self.jobs.entry(job.key.clone()).or_insert(JobSlot { current: Some(job), original: None });
    }

    fn know_record(&mut self, key: RecordKey, record: Option<Record>, access: Access) {
        match self.records.get_mut(&key) {
            // A row that was only looked at may have moved on by the time it was locked.
            Some(slot) if slot.original.is_none() => {
                slot.current = record;
                slot.access = slot.access.max(access);
            }
            Some(slot) => slot.access = slot.access.max(access),
            None => {
                self.records.insert(key, RecordSlot { current: record, original: None, access });
            }
        }
    }

    fn note_absent(&mut self, asked: &Keys) {
        for key in asked.jobs.iter().chain(&asked.new_jobs) {
            self.jobs.entry(key.clone()).or_insert(JobSlot { current: None, original: None });
        }
        for key in &asked.payloads {
            self.payloads.entry(key.clone()).or_default();
        }
        for key in &asked.held {
            self.held.entry(key.clone()).or_default();
        }
        for key in &asked.run_jobs {
            self.run_jobs.entry(key.clone()).or_default();
        }
        for key in &asked.siblings {
            self.siblings.entry(key.clone()).or_default();
        }
        for (at, asked) in &asked.key_queue {
            let queue = self.key_queues.entry(at.clone()).or_default();
            queue.asked = *asked;
        }
        for (at, asked) in &asked.lane_fronts {
            let queue = self.lane_fronts.entry(at.clone()).or_default();
            queue.asked = *asked;
        }
        for (query, asked) in &asked.heads {
            let queue = self.heads.entry(query.clone()).or_default();
            queue.asked = *asked;
        }
    }

    /// Charges jobs with what this batch brought them.
    fn count_bodies(&mut self, out: &Decision) {
        let payloads = out.payloads.iter().map(|(key, payload)| (key, payload.len() as u64));
        let results = out.results.iter().map(|(key, result)| (key, result.len() as u64));
        let attempts = out.attempts.iter().map(|(key, attempt)| (key, counts::attempt_bytes(attempt)));
        for (key, bytes) in payloads.chain(results).chain(attempts) {
            if let Some(job) = self.jobs.get_mut(key).and_then(|slot| slot.current.as_mut()) {
                job.live.bytes.body += bytes;
            }
        }
    }

    pub(crate) fn finish(mut self) -> Decision {
        let mut out = std::mem::take(&mut self.out);
        let mut planners = false;
        self.count_bodies(&out);
        // Changes are large, and a list that grows moves all of them each time.
        out.jobs.reserve_exact(self.changed_jobs.len());
        out.records.reserve_exact(self.changed_records.len());
        for key in std::mem::take(&mut self.changed_jobs) {
            let mut slot = self.jobs.remove(&key).expect("changed jobs are on the desk");
            if let Some(job) = slot.current.as_ref().filter(|job| job.state == State::Pending && !slot.was_pending()) {
                let (namespace, tags) = (key.namespace.clone(), job.spec.tags.clone());
                out.wakes.push(Wake { namespace, lane: job.lane, tags });
            }
            let old = slot.original.expect("a changed job has an original");
            if let (Some(old), Some(new)) = (&old, &slot.current) {
                out.notices.extend(concerned(old, new));
            }
            out.next_due = earliest(out.next_due, slot.current.as_ref().and_then(|job| job.due));
            if let Some(new) = &mut slot.current {
                count_job(old.as_ref(), new);
            }
            if old.is_some() || slot.current.is_some() {
                out.jobs.push(JobChange { old, new: slot.current });
            }
        }
        for key in std::mem::take(&mut self.changed_records) {
            let slot = self.records.remove(&key).expect("changed records are on the desk");
            let old = slot.original.expect("a changed record has an original");
            out.next_due = earliest(out.next_due, slot.current.as_ref().and_then(|record| record.due));
            planners |= *key.kind == *Turn::KIND && slot.current.is_some();
            if old.is_some() || slot.current.is_some() {
                let (old_version, old_bytes) = (old.map(|old| old.version), old.map_or(0, |old| old.bytes));
                out.records.push(RecordChange { key, old_version, old_bytes, new: slot.current });
            }
        }
        out.notices.extend(out.events.iter().filter_map(|event| {
            let About::WorkerOrder(worker) = event.what.about() else { return None };
            Some(WorkerKey { namespace: event.namespace.clone(), worker: worker.clone() })
        }));
        if planners {
            let (namespace, tags) = (stage::system_namespace(), Tags::default());
            out.wakes.push(Wake { lane: Lane::of(&namespace, &tags), namespace, tags });
        }
        out
    }
}

/// A new job is charged with its row. A log that grows is charged in steps, and when the job moves on, which is written anyway.
fn count_job(old: Option<&Job>, new: &mut Job) {
    if old.is_none() {
        new.live.bytes.body += counts::new_job_bytes(&new.spec);
    }
    let log = new.live.log.stored();
    if old.is_none_or(|old| old.state != new.state) || log.abs_diff(new.live.bytes.log) >= counts::LOG_STEP {
        new.live.bytes.log = log;
    }
}

/// The holder of a job that somebody else wants to end, or has taken away. Who reports knows already.
fn concerned(old: &Job, new: &Job) -> Option<WorkerKey> {
    let asked = new.live.cancel.is_some() && old.live.cancel.is_none();
    let taken = !new.state.is_held() && new.live.report.is_none();
    let worker = old.holder().filter(|_| old.state.is_held() && (asked || taken))?;
    Some(WorkerKey { namespace: old.key.namespace.clone(), worker: worker.clone() })
}

fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    a.into_iter().chain(b).min()
}
