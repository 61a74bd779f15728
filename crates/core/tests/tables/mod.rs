//! The plain tables, held against what must never happen: each test that uses them tests those rules too.

use std::{
    collections::{BTreeMap, HashMap},
    ops::{Deref, DerefMut},
};
use windlass_core::{
    Command, Context, Decider, Job, Limits, Namespace, Record, RecordKey, Refusal, Reply, RunId, State, Timestamp,
    Wake, WorkerKey,
    commands::due::Due,
    decider::{Item, drive},
    stall::Stalls,
    tables,
};

#[derive(Default)]
pub struct Tables {
    rows: tables::Tables,
    pub wakes: Vec<Wake>,
    pub notices: Vec<WorkerKey>,
    pub limits: Limits,
    /// When the server did not respond.
    pub stalls: Stalls,
    /// How often a decision asked for more rows, summed over all batches.
    pub loads: usize,
    /// How many job rows were handed over, summed over all batches.
    pub loaded_jobs: usize,
    seed: u64,
}

impl Deref for Tables {
    type Target = tables::Tables;
    fn deref(&self) -> &tables::Tables {
        &self.rows
    }
}

impl DerefMut for Tables {
    fn deref_mut(&mut self) -> &mut tables::Tables {
        &mut self.rows
    }
}

impl Tables {
    /// Decides and writes one batch.
    pub fn run(&mut self, now: Timestamp, commands: Vec<Command>) -> Vec<Result<Reply, Refusal>> {
        let items = commands.into_iter().map(|command| self.item(command)).collect();
        self.run_items(now, items)
    }

    pub fn run_items(&mut self, now: Timestamp, items: Vec<Item>) -> Vec<Result<Reply, Refusal>> {
        let context = Context { now, first_seq: self.next_seq, limits: self.limits, stalls: self.stalls };
        let (mut loads, mut loaded) = (0, 0);
        let decision = drive(Decider::new(&items, context), |keys| {
            loads += 1;
            let rows = self.load(keys);
            loaded += rows.jobs.len();
            Ok::<_, std::convert::Infallible>(rows)
        });
        let Ok(mut decision) = decision;
        (self.loads, self.loaded_jobs) = (self.loads + loads, self.loaded_jobs + loaded);
        for change in &decision.jobs {
            assert_eq!(self.jobs.get(change.key()), change.old.as_ref(), "the change starts from the row as it is");
            if let (Some(old), Some(new)) = (&change.old, &change.new) {
                check_change(old, new);
            }
        }
        self.write(&mut decision);
        self.wakes.extend(decision.wakes);
        self.notices.extend(decision.notices);
        decision.replies
    }

    /// What an index says is due by `now`.
    pub fn due(&self, now: Timestamp) -> Vec<Due> {
        self.rows.due.iter().take_while(|(at, _)| *at <= now).map(|(_, due)| due.clone()).collect()
    }

    fn item(&mut self, command: Command) -> Item {
        self.seed += 1;
        Item { command, seed: self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), by: None }
    }

    /// What holds for all rows together, whatever happened before. Linear in the rows, so not for every write.
    pub fn check(&self) {
        let mut used: BTreeMap<(&Namespace, &str), u32> = BTreeMap::new();
        let mut open: HashMap<(&Namespace, RunId), u32> = HashMap::new();
        for job in self.jobs.values() {
            check_row(job, self.limits);
            if let Some(key) = job.spec.concurrency.as_ref().filter(|_| job.live.has_place) {
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
        let mut expected = new.clone();
        (expected.live.must_pass_on, expected.live.passed_on) = (old.live.must_pass_on, old.live.passed_on);
        expected.live.retried_by = old.live.retried_by;
        if !new.live.has_place {
            (expected.live.has_place, expected.live.place_until) = (old.live.has_place, old.live.place_until);
        }
        expected.due = old.due;
        // Lines that name the job may come after its end.
        expected.live.log = old.live.log.clone();
        assert_eq!(*old, expected, "a final job never changes");
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
    let keeps_place = job.state == State::Cancelled && live.place_until.is_some();
    assert_eq!(live.has_place, keeps_place || needs_place && job.spec.concurrency.is_some(), "{job:?}");
}
