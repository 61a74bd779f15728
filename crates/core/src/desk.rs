//! The desk a batch is decided on: the rows that were loaded, with everything decided so far laid over them.
//!
//! Commands ask it for rows as if they were all there. Where one is missing the desk notes it and stops the command,
//! which is run again from its start once the row is there; that is why commands read in a straight line. What a
//! stopped or refused command had already changed is taken back, so a refusal of one never touches its neighbours.

use crate::{
    change::{Decision, JobChange, LogAppend, RecordChange, Wake},
    event::{Event, What},
    id::{JobId, RunId},
    job::{Attempt, Job, State},
    keys::{HeadQuery, JobKey, Keys, RecordKey, Rows, WorkerKey},
    limits::Limits,
    name::Namespace,
    payload::Payload,
    policy::mix,
    record::Record,
    refusal::Refusal,
    select,
    time::Timestamp,
};
use foldhash::{HashMap, HashMapExt};
use std::{collections::BTreeMap, sync::Arc};
use uuid::Uuid;

/// Why a command stopped before it answered.
#[derive(Debug)]
pub enum Stop {
    /// Rows are missing; the desk has noted which.
    Need,
    Refused(Refusal),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Stop::Refused(refusal)
    }
}

struct JobSlot {
    current: Option<Job>,
    /// The row as loaded, once it was changed.
    original: Option<Option<Job>>,
}

struct RecordSlot {
    current: Option<Record>,
    /// The version as loaded, once it was changed.
    original: Option<Option<u64>>,
    locked: bool,
}

#[derive(Default)]
struct Queue {
    /// How many were asked for; fewer found means there are no more.
    asked: usize,
    jobs: Vec<JobKey>,
    /// Everything before this is taken.
    next: usize,
}

enum Undo {
    JobFirst(JobKey),
    JobAgain(JobKey, Option<Job>),
    RecordFirst(RecordKey, Option<Record>),
    RecordAgain(RecordKey, Option<Record>),
    Child(JobKey),
}

/// Where the append-only parts stood when a command began.
#[derive(Default)]
struct Mark {
    next_seq: i64,
    payloads: usize,
    results: usize,
    attempts: usize,
    edges: usize,
    logs: usize,
    events: usize,
    changed_jobs: usize,
    changed_records: usize,
}

pub struct Desk {
    now: Timestamp,
    limits: Limits,
    next_seq: i64,
    seed: u64,
    draws: u64,
    wanted: Keys,
    jobs: HashMap<JobKey, JobSlot>,
    payloads: HashMap<JobKey, Payload>,
    children: HashMap<JobKey, Vec<JobKey>>,
    new_children: HashMap<JobKey, Vec<JobKey>>,
    held: HashMap<WorkerKey, Vec<JobKey>>,
    run_jobs: HashMap<(Namespace, RunId), Vec<JobKey>>,
    key_queues: HashMap<(Namespace, Arc<str>), Queue>,
    heads: HashMap<HeadQuery, Queue>,
    records: HashMap<RecordKey, RecordSlot>,
    siblings: HashMap<(Namespace, Arc<str>, Arc<str>), Vec<RecordKey>>,
    /// Jobs changed by this batch that are pending now, in claim order.
    fresh: BTreeMap<(i32, i64), JobKey>,
    changed_jobs: Vec<JobKey>,
    changed_records: Vec<RecordKey>,
    out: Decision,
    undo: Vec<Undo>,
    mark: Mark,
}

impl Desk {
    pub fn new(now: Timestamp, first_seq: i64, limits: Limits) -> Self {
        Self {
            now,
            limits,
            next_seq: first_seq,
            seed: 0,
            draws: 0,
            wanted: Keys::default(),
            jobs: HashMap::new(),
            payloads: HashMap::new(),
            children: HashMap::new(),
            new_children: HashMap::new(),
            held: HashMap::new(),
            run_jobs: HashMap::new(),
            key_queues: HashMap::new(),
            heads: HashMap::new(),
            records: HashMap::new(),
            siblings: HashMap::new(),
            fresh: BTreeMap::new(),
            changed_jobs: Vec::new(),
            changed_records: Vec::new(),
            out: Decision::default(),
            undo: Vec::new(),
            mark: Mark::default(),
        }
    }

    pub fn now(&self) -> Timestamp {
        self.now
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The next place in the queue.
    pub(crate) fn next_seq(&mut self) -> i64 {
        self.next_seq += 1;
        self.next_seq - 1
    }

    /// A number that is random to others but the same whenever this batch is decided again.
    pub(crate) fn draw(&mut self) -> u64 {
        self.draws += 1;
        mix(self.seed ^ self.draws.rotate_left(32))
    }

    pub(crate) fn draw_job_id(&mut self) -> JobId {
        let random = (u128::from(self.draw()) << 64) | u128::from(self.draw());
        let millis = (self.now.0.max(0) as u128 & 0xffff_ffff_ffff) << 80;
        let bits =
            millis | (0x7 << 76) | ((random >> 52) & 0xfff) << 64 | (0b10 << 62) | (random & 0x3fff_ffff_ffff_ffff);
        JobId(Uuid::from_u128(bits))
    }

    // ---- reading -------------------------------------------------------------------------------------------

    pub(crate) fn job(&mut self, key: &JobKey) -> Result<Option<Job>, Stop> {
        match self.jobs.get(key) {
            Some(slot) => Ok(slot.current.clone()),
            None => {
                self.wanted.jobs.insert(key.clone());
                Err(Stop::Need)
            }
        }
    }

    /// Asks for many rows at once, so that they come in one round trip.
    pub(crate) fn want_jobs<'a>(&mut self, keys: impl IntoIterator<Item = &'a JobKey>) -> Result<(), Stop> {
        let mut missing = false;
        for key in keys {
            if !self.jobs.contains_key(key) {
                self.wanted.jobs.insert(key.clone());
                missing = true;
            }
        }
        if missing { Err(Stop::Need) } else { Ok(()) }
    }

    pub(crate) fn payload(&mut self, key: &JobKey) -> Result<Payload, Stop> {
        match self.payloads.get(key) {
            Some(payload) => Ok(payload.clone()),
            None => {
                self.wanted.payloads.insert(key.clone());
                Err(Stop::Need)
            }
        }
    }

    pub(crate) fn children(&mut self, parent: &JobKey) -> Result<Vec<JobKey>, Stop> {
        let Some(stored) = self.children.get(parent) else {
            self.wanted.children.insert(parent.clone());
            return Err(Stop::Need);
        };
        let mut all = stored.clone();
        all.extend(self.new_children.get(parent).into_iter().flatten().cloned());
        Ok(all)
    }

    /// Jobs this worker holds, after all that was decided so far.
    pub(crate) fn held(&mut self, worker: &WorkerKey) -> Result<Vec<Job>, Stop> {
        let Some(stored) = self.held.get(worker) else {
            self.wanted.held.insert(worker.clone());
            return Err(Stop::Need);
        };
        let keys = stored.iter().chain(&self.changed_jobs).cloned().collect();
        Ok(self.current_jobs(keys, |job| job.key.namespace == worker.namespace && job.holder() == Some(&worker.worker)))
    }

    /// Unfinished jobs of a run, after all that was decided so far.
    pub(crate) fn open_jobs(&mut self, namespace: &Namespace, run: RunId) -> Result<Vec<Job>, Stop> {
        let Some(stored) = self.run_jobs.get(&(namespace.clone(), run)) else {
            self.wanted.run_jobs.insert((namespace.clone(), run));
            return Err(Stop::Need);
        };
        let keys = stored.iter().chain(&self.changed_jobs).cloned().collect();
        Ok(self.current_jobs(keys, |job| {
            job.key.namespace == *namespace && job.run() == Some(run) && !job.state.is_final()
        }))
    }

    fn current_jobs(&self, mut keys: Vec<JobKey>, fits: impl Fn(&Job) -> bool) -> Vec<Job> {
        keys.sort();
        keys.dedup();
        let current = keys.iter().filter_map(|key| self.jobs.get(key)?.current.as_ref());
        current.filter(|job| fits(job)).cloned().collect()
    }

    /// The first job that waits for a concurrency key, or none.
    pub(crate) fn next_in_key_queue(&mut self, namespace: &Namespace, key: &Arc<str>) -> Result<Option<Job>, Stop> {
        let at = (namespace.clone(), key.clone());
        let waits = |job: &Job| job.waits_for_key() == Some(key) && job.key.namespace == *namespace;
        let Some(queue) = self.key_queues.get(&at) else {
            self.wanted.key_queue.insert(at, 1);
            return Err(Stop::Need);
        };
        let stored = queue.jobs.iter().filter_map(|key| self.jobs[key].current.as_ref()).find(|job| waits(job));
        if stored.is_none() && queue.jobs.len() == queue.asked {
            // Doubling keeps the number of round trips small when one batch frees the same key many times.
            let more = queue.asked * 2;
            self.wanted.key_queue.insert(at, more);
            return Err(Stop::Need);
        }
        let changed = self.changed_jobs.iter().filter_map(|key| self.jobs[key].current.as_ref());
        let first = stored.into_iter().chain(changed.filter(|job| waits(job))).min_by_key(|job| select::order(job));
        Ok(first.cloned())
    }

    /// Up to `max` jobs this offer may claim now, in claim order.
    pub(crate) fn select(&mut self, query: &HeadQuery, max: usize) -> Result<Vec<Job>, Stop> {
        let Some(queue) = self.heads.get_mut(query) else {
            let wanted = self.wanted.heads.entry(query.clone()).or_default();
            *wanted = (*wanted).max(max);
            return Err(Stop::Need);
        };
        // Rows this batch changed are found in `fresh` if they still count.
        let untouched = |slot: &JobSlot| slot.original.is_none();
        while queue.next < queue.jobs.len() && !untouched(&self.jobs[&queue.jobs[queue.next]]) {
            queue.next += 1;
        }
        let stored = queue.jobs[queue.next..].iter().map(|key| &self.jobs[key]).filter(|slot| untouched(slot));
        let stored: Vec<&Job> = stored.filter_map(|slot| slot.current.as_ref()).take(max).collect();
        if stored.len() < max && queue.jobs.len() == queue.asked {
            let missing = max - stored.len();
            let total = queue.asked + missing.max(queue.asked / 2);
            self.wanted.heads.insert(query.clone(), total);
            return Err(Stop::Need);
        }
        let fresh = self.fresh.values().filter_map(|key| self.jobs[key].current.as_ref());
        let fresh = fresh.filter(|job| job.key.namespace == query.namespace && job.spec.tags.subset_of(&query.offered));
        Ok(select::merge(stored.into_iter(), fresh, max))
    }

    pub(crate) fn record(&mut self, key: &RecordKey, lock: bool) -> Result<Option<Record>, Stop> {
        match self.records.get(key) {
            Some(slot) if slot.locked || !lock => Ok(slot.current.clone()),
            _ => {
                self.wanted.want_record(key.clone(), lock);
                Err(Stop::Need)
            }
        }
    }

    /// Keys of the records of `kind` under `parent`.
    pub fn siblings(&mut self, namespace: &Namespace, kind: &str, parent: &str) -> Result<Vec<RecordKey>, Stop> {
        let at = (namespace.clone(), Arc::from(kind), Arc::from(parent));
        let Some(stored) = self.siblings.get(&at) else {
            self.wanted.siblings.insert(at);
            return Err(Stop::Need);
        };
        let mut keys: Vec<RecordKey> = stored.iter().chain(&self.changed_records).cloned().collect();
        keys.sort();
        keys.dedup();
        keys.retain(|key| {
            let current = self.records.get(key).map(|slot| slot.current.as_ref());
            match current {
                Some(record) => record.is_some_and(|record| {
                    record.key.namespace == at.0 && record.key.kind == at.1 && record.parent.as_ref() == Some(&at.2)
                }),
                None => true,
            }
        });
        Ok(keys)
    }

    // ---- writing -------------------------------------------------------------------------------------------

    /// Lays a job down. Its due time is kept while it is early enough, so that renewals touch no index.
    pub(crate) fn put_job(&mut self, mut job: Job) {
        let exact = job.due_exactly(self.limits.retention);
        job.due = match self.jobs.get(&job.key).and_then(|slot| slot.current.as_ref()) {
            Some(old) if old.due <= exact && old.due > Some(self.now) && same_lease(old, &job) => old.due,
            _ => exact,
        };
        self.set_job(job.key.clone(), Some(job));
    }

    pub(crate) fn remove_job(&mut self, key: &JobKey) {
        self.set_job(key.clone(), None);
    }

    fn set_job(&mut self, key: JobKey, job: Option<Job>) {
        let slot = self.jobs.entry(key.clone()).or_insert(JobSlot { current: None, original: None });
        unqueue(&mut self.fresh, slot);
        let before = std::mem::replace(&mut slot.current, job);
        if slot.original.is_none() {
            slot.original = Some(before);
            self.changed_jobs.push(key.clone());
            self.undo.push(Undo::JobFirst(key.clone()));
        } else {
            self.undo.push(Undo::JobAgain(key.clone(), before));
        }
        enqueue(&mut self.fresh, key, slot);
    }

    pub(crate) fn put_payload(&mut self, key: &JobKey, payload: Payload) {
        self.payloads.insert(key.clone(), payload.clone());
        self.out.payloads.push((key.clone(), payload));
    }

    pub(crate) fn put_result(&mut self, key: &JobKey, result: Payload) {
        self.out.results.push((key.clone(), result));
    }

    pub(crate) fn put_attempt(&mut self, key: &JobKey, attempt: Attempt) {
        self.out.attempts.push((key.clone(), attempt));
    }

    pub(crate) fn put_edge(&mut self, parent: &JobKey, child: &JobKey) {
        self.out.edges.push((parent.clone(), child.clone()));
        self.new_children.entry(parent.clone()).or_default().push(child.clone());
        self.undo.push(Undo::Child(parent.clone()));
    }

    pub(crate) fn put_log(&mut self, append: LogAppend) {
        self.out.logs.push(append);
    }

    pub(crate) fn put_record(&mut self, record: Record) {
        self.set_record(record.key.clone(), Some(record));
    }

    pub(crate) fn delete_record(&mut self, key: &RecordKey) -> Result<(), Stop> {
        if self.record(key, true)?.is_some() {
            self.set_record(key.clone(), None);
        }
        Ok(())
    }

    fn set_record(&mut self, key: RecordKey, record: Option<Record>) {
        let slot = self.records.get_mut(&key).expect("records are locked before they are written");
        let before = std::mem::replace(&mut slot.current, record);
        if slot.original.is_none() {
            slot.original = Some(before.as_ref().map(|record| record.version));
            self.changed_records.push(key.clone());
            self.undo.push(Undo::RecordFirst(key, before));
        } else {
            self.undo.push(Undo::RecordAgain(key, before));
        }
    }

    pub(crate) fn tell(&mut self, namespace: &Namespace, what: What) {
        self.out.events.push(Event { namespace: namespace.clone(), at: self.now, what });
    }

    // ---- one command at a time -----------------------------------------------------------------------------

    pub(crate) fn begin(&mut self, seed: u64) {
        self.seed = seed;
        self.draws = 0;
        self.undo.clear();
        self.mark = Mark {
            next_seq: self.next_seq,
            payloads: self.out.payloads.len(),
            results: self.out.results.len(),
            attempts: self.out.attempts.len(),
            edges: self.out.edges.len(),
            logs: self.out.logs.len(),
            events: self.out.events.len(),
            changed_jobs: self.changed_jobs.len(),
            changed_records: self.changed_records.len(),
        };
    }

    /// Takes back everything since [`Desk::begin`].
    pub(crate) fn roll_back(&mut self) {
        while let Some(step) = self.undo.pop() {
            match step {
                Undo::JobFirst(key) => self.restore_job(key, None),
                Undo::JobAgain(key, before) => self.restore_job(key, Some(before)),
                Undo::RecordFirst(key, before) => {
                    let slot = self.records.get_mut(&key).expect("undo follows a write");
                    (slot.current, slot.original) = (before, None);
                }
                Undo::RecordAgain(key, before) => {
                    self.records.get_mut(&key).expect("undo follows a write").current = before;
                }
                Undo::Child(parent) => {
                    self.new_children.get_mut(&parent).expect("undo follows a write").pop();
                }
            }
        }
        for (key, _) in self.out.payloads.drain(self.mark.payloads..) {
            self.payloads.remove(&key);
        }
        self.next_seq = self.mark.next_seq;
        self.out.results.truncate(self.mark.results);
        self.out.attempts.truncate(self.mark.attempts);
        self.out.edges.truncate(self.mark.edges);
        self.out.logs.truncate(self.mark.logs);
        self.out.events.truncate(self.mark.events);
        self.changed_jobs.truncate(self.mark.changed_jobs);
        self.changed_records.truncate(self.mark.changed_records);
        // Jobs taken by what was rolled back can be claimed again.
        self.heads.values_mut().for_each(|queue| queue.next = 0);
    }

    /// `before`: none when the change to undo was the first one, so the row as loaded comes back.
    fn restore_job(&mut self, key: JobKey, before: Option<Option<Job>>) {
        let slot = self.jobs.get_mut(&key).expect("undo follows a write");
        unqueue(&mut self.fresh, slot);
        slot.current = match before {
            Some(before) => before,
            None => slot.original.take().expect("a changed job has an original"),
        };
        enqueue(&mut self.fresh, key, slot);
    }

    // ---- loading and finishing -----------------------------------------------------------------------------

    pub(crate) fn take_wanted(&mut self) -> Keys {
        std::mem::take(&mut self.wanted)
    }

    /// Lays down what was found for `asked`. Rows this batch already knows are left as they are.
    pub(crate) fn absorb(&mut self, asked: &Keys, rows: Rows) {
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
        self.payloads.extend(rows.payloads);
        self.children.extend(rows.children);
        self.held.extend(rows.held);
        self.run_jobs.extend(rows.run_jobs);
        self.siblings.extend(rows.siblings);
        for record in rows.records {
            let locked = asked.records.get(&record.key).copied().unwrap_or(false);
            self.know_record(record.key.clone(), Some(record), locked);
        }
        self.note_absent(asked);
    }

    fn know_job(&mut self, job: Job) {
        self.jobs.entry(job.key.clone()).or_insert(JobSlot { current: Some(job), original: None });
    }

    fn know_record(&mut self, key: RecordKey, record: Option<Record>, locked: bool) {
        match self.records.get_mut(&key) {
            // A row that was only looked at may have moved on by the time it was locked.
            Some(slot) if slot.original.is_none() => {
                slot.current = record;
                slot.locked |= locked;
            }
            Some(slot) => slot.locked |= locked,
            None => {
                self.records.insert(key, RecordSlot { current: record, original: None, locked });
            }
        }
    }

    fn note_absent(&mut self, asked: &Keys) {
        for key in &asked.jobs {
            self.jobs.entry(key.clone()).or_insert(JobSlot { current: None, original: None });
        }
        for key in &asked.payloads {
            self.payloads.entry(key.clone()).or_default();
        }
        for key in &asked.children {
            self.children.entry(key.clone()).or_default();
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
        for (query, asked) in &asked.heads {
            let queue = self.heads.entry(query.clone()).or_default();
            queue.asked = *asked;
        }
        for (key, lock) in &asked.records {
            match self.records.get_mut(key) {
                Some(slot) => slot.locked |= lock,
                None => self.know_record(key.clone(), None, *lock),
            }
        }
    }

    pub(crate) fn finish(mut self) -> Decision {
        let mut out = std::mem::take(&mut self.out);
        for key in std::mem::take(&mut self.changed_jobs) {
            let slot = self.jobs.remove(&key).expect("changed jobs are on the desk");
            let old = slot.original.expect("a changed job has an original");
            if let Some(job) = slot.current.as_ref().filter(|job| job.state == State::Pending) {
                let was_pending = old.as_ref().is_some_and(|old| old.state == State::Pending);
                if !was_pending {
                    out.wakes.push(Wake {
                        namespace: key.namespace.clone(),
                        lane: job.lane,
                        tags: job.spec.tags.clone(),
                    });
                }
            }
            out.next_due = earliest(out.next_due, slot.current.as_ref().and_then(|job| job.due));
            if old.is_some() || slot.current.is_some() {
                out.jobs.push(JobChange { old, new: slot.current });
            }
        }
        for key in std::mem::take(&mut self.changed_records) {
            let slot = self.records.remove(&key).expect("changed records are on the desk");
            let old_version = slot.original.expect("a changed record has an original");
            out.next_due = earliest(out.next_due, slot.current.as_ref().and_then(|record| record.due));
            if old_version.is_some() || slot.current.is_some() {
                out.records.push(RecordChange { key, old_version, new: slot.current });
            }
        }
        out
    }
}

fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    a.into_iter().chain(b).min()
}

fn same_lease(old: &Job, new: &Job) -> bool {
    let secret = |job: &Job| job.live.lease.as_ref().filter(|_| job.state.is_held()).map(|lease| lease.secret);
    secret(old).is_some() && secret(old) == secret(new)
}

fn pending_place(slot: &JobSlot) -> Option<(i32, i64)> {
    let job = slot.current.as_ref().filter(|_| slot.original.is_some())?;
    (job.state == State::Pending).then_some((job.priority, job.seq))
}

fn unqueue(fresh: &mut BTreeMap<(i32, i64), JobKey>, slot: &JobSlot) {
    if let Some(place) = pending_place(slot) {
        fresh.remove(&place);
    }
}

fn enqueue(fresh: &mut BTreeMap<(i32, i64), JobKey>, key: JobKey, slot: &JobSlot) {
    if let Some(place) = pending_place(slot) {
        fresh.insert(place, key);
    }
}
