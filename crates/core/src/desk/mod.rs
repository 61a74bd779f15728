//! The desk a batch is decided on: the rows that were loaded, with everything decided so far laid over them.
//!
//! Commands ask it for rows as if they were all there. Where one is missing the desk notes it and stops the command,
//! which is run again from its start once the row is there; that is why commands read in a straight line. What a
//! stopped or refused command had already changed is taken back, so a refusal of one never touches its neighbours.

use crate::model::{
    change::{Decision, LogAppend, LogDrop},
    event::{Event, What},
    id::RunId,
    job::{Attempt, Job, State},
    keys::{Access, ChildrenFrom, HeadQuery, JobKey, Keys, RecordKey, WorkerKey},
    limits::Limits,
    name::{Lane, Namespace, Tags},
    payload::Payload,
    record::Record,
    refusal::Refusal,
    select,
    stall::Stalls,
    time::Timestamp,
};
use foldhash::{HashMap, HashMapExt};
use std::sync::Arc;

mod children;
mod load;
mod new_jobs;
mod records;
mod slots;

use children::ChildrenPage;
use slots::{Fresh, JobSlot, KeyAt, LoadedRecord, Queue, RecordSlot};

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

enum Undo {
    JobFirst(JobKey),
    JobAgain(JobKey, Box<Option<Job>>),
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
    log_drops: usize,
    events: usize,
    passed_on: usize,
    changed_jobs: usize,
    changed_records: usize,
}

pub struct Desk {
    now: Timestamp,
    limits: Limits,
    stalls: Stalls,
    next_seq: i64,
    seed: u64,
    draws: u64,
    lane: Option<(Namespace, Tags, Lane)>,
    wanted: Keys,
    jobs: HashMap<JobKey, JobSlot>,
    payloads: HashMap<JobKey, Payload>,
    children: HashMap<ChildrenFrom, ChildrenPage>,
    new_children: HashMap<JobKey, Vec<JobKey>>,
    held: HashMap<WorkerKey, Vec<JobKey>>,
    run_jobs: HashMap<(Namespace, RunId), Vec<JobKey>>,
    key_queues: HashMap<KeyAt, Queue>,
    heads: HashMap<HeadQuery, Queue>,
    lane_fronts: HashMap<(Namespace, Lane), Queue>,
    records: HashMap<RecordKey, RecordSlot>,
    siblings: HashMap<(Namespace, Arc<str>, Arc<str>), Vec<RecordKey>>,
    fresh: Fresh,
    /// Dependents outside runs that this batch has told of an end.
    passed_on: usize,
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
            stalls: Stalls::default(),
            next_seq: first_seq,
            seed: 0,
            draws: 0,
            lane: None,
            wanted: Keys::default(),
            jobs: HashMap::new(),
            payloads: HashMap::new(),
            children: HashMap::new(),
            new_children: HashMap::new(),
            held: HashMap::new(),
            run_jobs: HashMap::new(),
            key_queues: HashMap::new(),
            heads: HashMap::new(),
            lane_fronts: HashMap::new(),
            records: HashMap::new(),
            siblings: HashMap::new(),
            fresh: Fresh::default(),
            passed_on: 0,
            changed_jobs: Vec::new(),
            changed_records: Vec::new(),
            out: Decision::default(),
            undo: Vec::new(),
            mark: Mark::default(),
        }
    }

    /// What these make longer is longer for all that asks.
    pub fn after(mut self, stalls: Stalls) -> Self {
        self.stalls = stalls;
        self
    }

    pub fn now(&self) -> Timestamp {
        self.now
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    pub(crate) fn stalls(&self) -> Stalls {
        self.stalls
    }

    // ---- reading -------------------------------------------------------------------------------------------

    pub(crate) fn job(&mut self, key: &JobKey) -> Result<Option<Job>, Stop> {
        match self.jobs.get(key) {
            Some(slot) => Ok(slot.current.clone().map(|job| self.with_its_lease(job))),
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

    /// Runs `each` for all items even where some stop for missing rows, so that the rows of all of them come with one
    /// load. What ran is then taken back with the rest of the command.
    pub(crate) fn for_all<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(&mut Desk, T) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let mut stuck = false;
        for item in items {
            match each(self, item) {
                Err(Stop::Need) => stuck = true,
                other => other?,
            }
        }
        if stuck { Err(Stop::Need) } else { Ok(()) }
    }

    fn current_jobs(&self, mut keys: Vec<JobKey>, fits: impl Fn(&Job) -> bool) -> Vec<Job> {
        keys.sort();
        keys.dedup();
        let current = keys.iter().filter_map(|key| self.jobs.get(key)?.current.as_ref());
        current.filter(|job| fits(job)).cloned().map(|job| self.with_its_lease(job)).collect()
    }

    /// A held job whose lease is as long as it is after all stalls. Written with whatever else is written to the job.
    fn with_its_lease(&self, mut job: Job) -> Job {
        if self.stalls.is_empty() || !job.state.is_held() {
            return job;
        }
        let (stalls, now) = (self.stalls, self.now);
        if let Some(lease) = &mut job.live.lease {
            lease.until = stalls.extend(lease, now).or(lease.until);
        }
        job
    }

    /// The first job that waits for a concurrency key, or none.
    pub(crate) fn next_in_key_queue(&mut self, namespace: &Namespace, key: &Arc<str>) -> Result<Option<Job>, Stop> {
        let at = (namespace.clone(), key.clone());
        let Some(queue) = self.key_queues.get_mut(&at) else {
            self.wanted.key_queue.insert(at, 1);
            return Err(Stop::Need);
        };
        // Rows this batch changed are found in `fresh` if they still wait.
        while queue.next < queue.jobs.len() && self.jobs[&queue.jobs[queue.next]].original.is_some() {
            queue.next += 1;
        }
        if queue.next == queue.jobs.len() && queue.jobs.len() == queue.asked {
            // Doubling keeps the number of round trips small when one batch frees the same key many times.
            let more = queue.asked * 2;
            self.wanted.key_queue.insert(at, more);
            return Err(Stop::Need);
        }
        let stored = queue.jobs.get(queue.next).and_then(|key| self.jobs[key].current.as_ref());
        let fresh = self.fresh.waiting.get(&at).and_then(|queue| queue.values().next());
        let fresh = fresh.and_then(|key| self.jobs[key].current.as_ref());
        Ok(stored.into_iter().chain(fresh).min_by_key(|job| select::order(job)).cloned())
    }

    /// Up to `max` jobs this offer may claim now, in claim order.
    pub(crate) fn select(&mut self, query: &HeadQuery, max: usize) -> Result<Vec<Job>, Stop> {
        let Some(queue) = self.heads.get_mut(query) else {
            // Claims behind this one that offer the same add what they want.
            *self.wanted.heads.entry(query.clone()).or_default() += max;
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
            *self.wanted.heads.entry(query.clone()).or_insert(queue.asked) += max - stored.len();
            return Err(Stop::Need);
        }
        let fits = |job: &&Job| job.key.namespace == query.namespace && job.spec.tags.subset_of(&query.offered);
        let fresh = self.fresh.pending.values().filter_map(|key| self.jobs[key].current.as_ref()).filter(fits);
        let chosen = select::merge(stored.into_iter(), fresh.clone(), max);
        if chosen.iter().any(|job| !self.payloads.contains_key(&job.key)) {
            // Each claim behind this one asks for the next ones in line, so that all payloads come together.
            let lacking =
                |job: &&Job| !self.payloads.contains_key(&job.key) && !self.wanted.payloads.contains(&job.key);
            let next: Vec<JobKey> = fresh.filter(lacking).take(max).map(|job| job.key.clone()).collect();
            self.wanted.payloads.extend(next);
            return Err(Stop::Need);
        }
        Ok(chosen)
    }

    /// Jobs that can be claimed since this batch, in claim order.
    pub(crate) fn made_ready(&self) -> impl Iterator<Item = &Job> {
        let slots = self.fresh.pending.values().map(|key| &self.jobs[key]);
        slots.filter(|slot| !slot.was_pending()).filter_map(|slot| slot.current.as_ref())
    }

    /// Whether a job is pending in this lane, after all that was decided so far. Nothing is locked: what must not change
    /// meanwhile has to be locked before.
    pub(crate) fn lane_waits(&mut self, namespace: &Namespace, lane: Lane) -> Result<bool, Stop> {
        let at = (namespace.clone(), lane);
        let mut fresh = self.fresh.pending.values().filter_map(|key| self.jobs[key].current.as_ref());
        if fresh.any(|job| job.lane == lane && job.key.namespace == *namespace) {
            return Ok(true);
        }
        let Some(front) = self.lane_fronts.get(&at) else {
            self.wanted.lane_fronts.insert(at, 1);
            return Err(Stop::Need);
        };
        let waits = |slot: &JobSlot| slot.current.as_ref().is_some_and(|job| job.state == State::Pending);
        // Rows this batch changed are in `fresh` if they still wait.
        let untouched = |slot: &JobSlot| slot.original.is_none() && waits(slot);
        if front.jobs.iter().any(|key| self.jobs.get(key).is_none_or(untouched)) {
            return Ok(true);
        }
        if front.jobs.len() == front.asked {
            let more = front.asked * 2;
            self.wanted.lane_fronts.insert(at, more);
            return Err(Stop::Need);
        }
        Ok(false)
    }

    pub(crate) fn record(&mut self, key: &RecordKey, lock: bool) -> Result<Option<Record>, Stop> {
        self.access(key, if lock { Access::Write } else { Access::Look })
    }

    pub(crate) fn access(&mut self, key: &RecordKey, access: Access) -> Result<Option<Record>, Stop> {
        match self.records.get(key) {
            Some(slot) if slot.access >= access => Ok(slot.current.clone()),
            _ => {
                self.wanted.want_access(key.clone(), access);
                Err(Stop::Need)
            }
        }
    }

    /// Notes a record that will be written, if it is not there yet. True: it is missing.
    pub(crate) fn lacks_record(&mut self, key: RecordKey) -> bool {
        self.access(&key, Access::Write).is_err()
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

    /// For what cannot be done now: nothing but the due time changes, and it may be too late.
    pub(crate) fn put_off_job(&mut self, job: Job, due: Timestamp) {
        self.set_job(job.key.clone(), Some(Job { due: Some(due), ..job }));
    }

    pub(crate) fn remove_job(&mut self, key: &JobKey) {
        self.set_job(key.clone(), None);
    }

    fn set_job(&mut self, key: JobKey, job: Option<Job>) {
        let slot = self.jobs.entry(key.clone()).or_insert(JobSlot { current: None, original: None });
        self.fresh.remove(slot);
        let before = std::mem::replace(&mut slot.current, job);
        if slot.original.is_none() {
            slot.original = Some(before);
            self.changed_jobs.push(key.clone());
            self.undo.push(Undo::JobFirst(key));
        } else {
            self.undo.push(Undo::JobAgain(key, Box::new(before)));
        }
        self.fresh.insert(slot);
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

    pub(crate) fn drop_log(&mut self, drop: LogDrop) {
        self.out.log_drops.push(drop);
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
            slot.original = Some(before.as_ref().map(LoadedRecord::of));
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
            log_drops: self.out.log_drops.len(),
            events: self.out.events.len(),
            passed_on: self.passed_on,
            changed_jobs: self.changed_jobs.len(),
            changed_records: self.changed_records.len(),
        };
    }

    /// Takes back everything since [`Desk::begin`].
    pub(crate) fn roll_back(&mut self) {
        while let Some(step) = self.undo.pop() {
            match step {
                Undo::JobFirst(key) => self.restore_job(key, None),
                Undo::JobAgain(key, before) => self.restore_job(key, Some(*before)),
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
        self.passed_on = self.mark.passed_on;
        self.out.results.truncate(self.mark.results);
        self.out.attempts.truncate(self.mark.attempts);
        self.out.edges.truncate(self.mark.edges);
        self.out.logs.truncate(self.mark.logs);
        self.out.log_drops.truncate(self.mark.log_drops);
        self.out.events.truncate(self.mark.events);
        self.changed_jobs.truncate(self.mark.changed_jobs);
        self.changed_records.truncate(self.mark.changed_records);
        // Jobs taken by what was rolled back can be had again.
        self.heads.values_mut().chain(self.key_queues.values_mut()).for_each(|queue| queue.next = 0);
    }

    /// `before`: none when the change to undo was the first one, so the row as loaded comes back.
    fn restore_job(&mut self, key: JobKey, before: Option<Option<Job>>) {
        let slot = self.jobs.get_mut(&key).expect("undo follows a write");
        self.fresh.remove(slot);
        slot.current = match before {
            Some(before) => before,
            None => slot.original.take().expect("a changed job has an original"),
        };
        self.fresh.insert(slot);
    }
}

fn same_lease(old: &Job, new: &Job) -> bool {
    let secret = |job: &Job| job.live.lease.as_ref().filter(|_| job.state.is_held()).map(|lease| lease.secret);
    secret(old).is_some() && secret(old) == secret(new)
}
