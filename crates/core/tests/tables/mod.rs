//! Plain tables around the decider: the smallest thing that can load what a decision asks for and keep what it comes to.
//!
//! Every write is held against what must never happen, so each test that uses these tables tests those rules too.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use windlass_core::{
    Attempt, Command, Context, Decision, Event, Head, Job, JobKey, Keys, Limits, LogAppend, Namespace, Payload, Record,
    RecordKey, Refusal, Reply, Rows, RunId, State, Timestamp, Wake, WorkerKey,
    commands::due::Due,
    decider::{Item, drive},
    select,
};

#[derive(Default)]
pub struct Tables {
    pub jobs: BTreeMap<JobKey, Job>,
    pub payloads: HashMap<JobKey, Payload>,
    pub results: HashMap<JobKey, Payload>,
    pub attempts: HashMap<JobKey, Vec<Attempt>>,
    pub children: HashMap<JobKey, BTreeSet<JobKey>>,
    pub records: BTreeMap<RecordKey, Record>,
    pub logs: Vec<LogAppend>,
    pub events: Vec<Event>,
    pub wakes: Vec<Wake>,
    pub notices: Vec<WorkerKey>,
    pub limits: Limits,
    /// How often a decision asked for more rows, summed over all batches.
    pub loads: usize,
    /// How many job rows were handed over, summed over all batches.
    pub loaded_jobs: usize,
    pending: BTreeMap<(i32, i64), JobKey>,
    by_run: HashMap<(Namespace, RunId), BTreeSet<JobKey>>,
    due: BTreeSet<(Timestamp, Due)>,
    next_seq: i64,
    seed: u64,
}

impl Tables {
    /// Decides and writes one batch.
    pub fn run(&mut self, now: Timestamp, commands: Vec<Command>) -> Vec<Result<Reply, Refusal>> {
        let items: Vec<Item> = commands.into_iter().map(|command| self.item(command)).collect();
        let context = Context { now, first_seq: self.next_seq, limits: self.limits };
        let (mut loads, mut loaded) = (0, 0);
        let decision = drive(&items, context, |keys| {
            loads += 1;
            let rows = self.load(keys);
            loaded += rows.jobs.len();
            Ok::<_, std::convert::Infallible>(rows)
        });
        let Ok(decision) = decision;
        (self.loads, self.loaded_jobs) = (self.loads + loads, self.loaded_jobs + loaded);
        self.write(decision)
    }

    /// What an index says is due by `now`.
    pub fn due(&self, now: Timestamp) -> Vec<Due> {
        self.due.iter().take_while(|(at, _)| *at <= now).map(|(_, due)| due.clone()).collect()
    }

    fn item(&mut self, command: Command) -> Item {
        self.seed += 1;
        Item { command, seed: self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) }
    }

    fn load(&self, keys: &Keys) -> Rows {
        let mut rows = Rows::default();
        let mut wanted: BTreeSet<&JobKey> = keys.jobs.iter().chain(&keys.new_jobs).collect();
        for key in &keys.payloads {
            rows.payloads.extend(self.payloads.get(key).map(|payload| (key.clone(), payload.clone())));
        }
        for parent in &keys.children {
            let children = self.children.get(parent).into_iter().flatten();
            rows.children.insert(parent.clone(), children.clone().cloned().collect());
            wanted.extend(children);
        }
        let owned = |found: Vec<&JobKey>| -> Vec<JobKey> { found.into_iter().cloned().collect() };
        for at in &keys.held {
            let held = self.jobs.values().filter(|job| job.key.namespace == at.namespace);
            let held: Vec<&JobKey> = held.filter(|job| job.holder() == Some(&at.worker)).map(|job| &job.key).collect();
            wanted.extend(held.iter().copied());
            rows.held.insert(at.clone(), owned(held));
        }
        for at in &keys.run_jobs {
            let of_run = self.by_run.get(at).into_iter().flatten();
            let open: Vec<&JobKey> =
                of_run.filter(|key| self.jobs.get(key).is_some_and(|job| !job.state.is_final())).collect();
            wanted.extend(open.iter().copied());
            rows.run_jobs.insert(at.clone(), owned(open));
        }
        for (at, &count) in &keys.key_queue {
            let waits = |job: &&Job| job.key.namespace == at.0 && job.waits_for_key() == Some(&at.1);
            let mut waiting: Vec<&Job> = self.jobs.values().filter(waits).collect();
            waiting.sort_by_key(|job| select::order(job));
            let first: Vec<&JobKey> = waiting.into_iter().take(count).map(|job| &job.key).collect();
            wanted.extend(first.iter().copied());
            rows.key_queue.insert(at.clone(), owned(first));
        }
        for (query, &count) in &keys.heads {
            let fitting = self.pending.values().map(|key| &self.jobs[key]).filter(|job| select::fits(job, query));
            let head = |job: &Job| Head { job: job.clone(), payload: self.payloads[&job.key].clone() };
            rows.heads.insert(query.clone(), fitting.take(count).map(head).collect());
        }
        rows.records = keys.records.keys().filter_map(|key| self.records.get(key).cloned()).collect();
        for at in &keys.siblings {
            let under = |record: &&Record| {
                (&record.key.namespace, &record.key.kind, record.parent.as_ref()) == (&at.0, &at.1, Some(&at.2))
            };
            let found = self.records.values().filter(under).map(|record| record.key.clone());
            rows.siblings.insert(at.clone(), found.collect());
        }
        rows.jobs = wanted.into_iter().filter_map(|key| self.jobs.get(key)).cloned().collect();
        rows
    }

    fn write(&mut self, decision: Decision) -> Vec<Result<Reply, Refusal>> {
        for change in decision.jobs {
            let key = change.key().clone();
            assert_eq!(self.jobs.get(&key), change.old.as_ref(), "the change starts from the row as it is");
            if let (Some(old), Some(new)) = (&change.old, &change.new) {
                check_change(old, new);
            }
            self.replace(&key, change.new);
        }
        self.payloads.extend(decision.payloads);
        self.results.extend(decision.results);
        for (key, attempt) in decision.attempts {
            self.attempts.entry(key).or_default().push(attempt);
        }
        for (parent, child) in decision.edges {
            self.children.entry(parent).or_default().insert(child);
        }
        for change in decision.records {
            let old = self.records.remove(&change.key);
            assert_eq!(old.as_ref().map(|old| old.version), change.old_version, "{:?}", change.key);
            let named = Due::Record(change.key.clone());
            if let Some(at) = old.and_then(|old| old.due) {
                self.due.remove(&(at, named.clone()));
            }
            if let Some(record) = change.new {
                self.due.extend(record.due.map(|at| (at, named)));
                self.records.insert(change.key, record);
            }
        }
        self.logs.extend(decision.logs);
        for gone in decision.log_drops {
            self.logs.retain(|append| append.job != gone.job || append.piece < gone.first || append.piece > gone.last);
        }
        self.events.extend(decision.events);
        self.wakes.extend(decision.wakes);
        self.notices.extend(decision.notices);
        decision.replies
    }

    fn replace(&mut self, key: &JobKey, new: Option<Job>) {
        if let Some(old) = self.jobs.remove(key) {
            self.pending.remove(&select::order(&old));
            if let Some(at) = old.due {
                self.due.remove(&(at, Due::Job(key.clone())));
            }
        }
        let Some(job) = new else {
            self.payloads.remove(key);
            self.children.remove(key);
            return;
        };
        self.next_seq = self.next_seq.max(job.seq + 1);
        if job.state == State::Pending {
            assert_eq!(self.pending.insert(select::order(&job), key.clone()), None, "one job a place");
        }
        if let Some(run) = job.run() {
            self.by_run.entry((key.namespace.clone(), run)).or_default().insert(key.clone());
        }
        self.due.extend(job.due.map(|at| (at, Due::Job(key.clone()))));
        self.jobs.insert(key.clone(), job);
    }

    /// What holds for all rows together, whatever happened before. Linear in the rows, so not for every write.
    pub fn check(&self) {
        let mut used: BTreeMap<(&Namespace, &str), u32> = BTreeMap::new();
        let mut open: HashMap<(&Namespace, RunId), u32> = HashMap::new();
        for job in self.jobs.values() {
            check_row(job, self.limits);
            if let Some(key) = job.spec.concurrency.as_ref().filter(|_| job.live.slot) {
                *used.entry((&job.key.namespace, &key.key)).or_default() += 1;
            }
            if let Some(run) = job.run().filter(|_| !job.state.is_final()) {
                *open.entry((&job.key.namespace, run)).or_default() += 1;
            }
            let bound = job.state.is_held() && job.lives_with_worker();
            let worker = job.holder().map(|worker| self.record(&job.key.namespace, "worker", worker.as_str()));
            assert!(!bound || worker.is_some_and(|worker| worker.is_some()), "{job:?} hangs on nobody");
        }
        for record in self.records.values() {
            let number = |field: &str| -> u32 {
                let value: serde_json::Value = serde_json::from_str(&record.value).unwrap();
                value[field].as_u64().unwrap_or(0) as u32
            };
            match &*record.key.kind {
                "concurrency" => {
                    let counted = used.remove(&(&record.key.namespace, &*record.key.key));
                    assert_eq!(counted, Some(number("used")), "{:?}", record.key);
                }
                "run" => {
                    let run: RunId = record.key.key.parse().unwrap();
                    let counted = open.remove(&(&record.key.namespace, run)).unwrap_or(0);
                    assert_eq!(counted, number("open"), "{:?}", record.key);
                    let ended = number("completed") + number("failed") + number("cancelled") + number("skipped");
                    assert_eq!(counted + ended, number("total"), "{:?}", record.key);
                }
                _ => {}
            }
        }
        assert!(used.is_empty() && open.is_empty(), "counted by nobody: {used:?} {open:?}");
    }

    pub fn record(&self, namespace: &Namespace, kind: &str, key: &str) -> Option<&Record> {
        self.records.get(&RecordKey { namespace: namespace.clone(), kind: kind.into(), key: key.into() })
    }
}

/// What no change may do to a row.
fn check_change(old: &Job, new: &Job) {
    assert_eq!(old.spec, new.spec, "what was submitted never changes");
    assert!(old.live.attempt <= new.live.attempt, "attempts only grow: {old:?} {new:?}");
    assert!(old.live.spent <= new.live.spent && old.live.losses <= new.live.losses, "{old:?} {new:?}");
    let written = |job: &Job| (job.live.log.pieces, job.live.log.bytes + job.live.log.dropped_bytes);
    assert!(written(old).0 <= written(new).0 && written(old).1 <= written(new).1, "{old:?} {new:?}");
    if old.state.is_final() {
        let mut settled = new.clone();
        settled.live.unsettled = old.live.unsettled;
        if !new.live.slot {
            (settled.live.slot, settled.live.slot_until) = (old.live.slot, old.live.slot_until);
        }
        settled.due = old.due;
        assert_eq!(*old, settled, "a final job never changes");
    }
    let secret = |job: &Job| job.live.lease.as_ref().map(|lease| lease.secret);
    let fresh_lease = new.state.is_held() && (secret(old) != secret(new) || !old.state.is_held());
    assert!(!fresh_lease || new.live.attempt > old.live.attempt, "each lease has an attempt of its own");
}

/// What every row must be like, by itself.
fn check_row(job: &Job, limits: Limits) {
    let live = &job.live;
    // What a run may still ask for is kept for longer.
    let kept = job.state.is_final() && job.spec.node.is_some();
    assert!(kept || job.due <= job.due_exactly(limits.retention), "due is a lower bound: {job:?}");
    assert_eq!(job.due.is_none(), job.due_exactly(limits.retention).is_none(), "{job:?}");
    assert!(live.spent <= job.spec.policy.retry.attempts, "the budget is exact: {job:?}");
    assert_eq!(job.state.is_final(), live.finished_at.is_some(), "{job:?}");
    match job.state {
        State::Blocked => assert!(live.waiting > 0 || job.waits_for_key().is_some(), "waits for nothing: {job:?}"),
        State::Scheduled => assert!(live.run_at.is_some() && job.due.is_some(), "{job:?}"),
        State::Pending => assert!(live.pending_since.is_some() && live.waiting == 0, "{job:?}"),
        State::Claimed | State::Running => {
            let lease = live.lease.as_ref().expect("a held job has a lease");
            assert!(lease.until.is_some() || job.lives_with_worker(), "no timer and no owner: {job:?}");
        }
        State::Completed => assert_eq!(live.outcome, None, "{job:?}"),
        State::Failed | State::Cancelled | State::Skipped => assert!(live.outcome.is_some(), "no reason: {job:?}"),
    }
    let needs_place = matches!(job.state, State::Pending | State::Claimed | State::Running);
    let keeps_place = job.state == State::Cancelled && live.slot_until.is_some();
    assert_eq!(live.slot, keeps_place || needs_place && job.spec.concurrency.is_some(), "{job:?}");
}
