//! What must hold of the rows themselves: nobody is forgotten, and everything that is counted adds up.

use super::ledger::Ledger;
use serde_json::from_str;
use std::collections::{HashMap, HashSet};
use windlass_core::{
    Job, JobId, JobKey, Limits, Namespace, Record, RecordKey, RunId, State,
    concurrency::{KeptPlace, KeyUse},
    definition::DefinitionHead,
    link::{Link, tags_of},
    record::Kind,
    run::Run,
    stage::{self, Hold, Turn, Waiting},
    unique::Taken,
    worker::Worker,
};

/// Keys that always come with the same limit, so that waiting for one means that it is full.
const UNIFORM: [&str; 2] = ["one", "two"];

pub(super) struct Rows<'a> {
    jobs: HashMap<&'a JobKey, &'a Job>,
    records: HashMap<&'a RecordKey, &'a Record>,
    limits: Limits,
    ledger: &'a Ledger,
}

impl<'a> Rows<'a> {
    pub fn new(jobs: &'a [Job], records: &'a [Record], limits: Limits, ledger: &'a Ledger) -> Self {
        Self {
            jobs: jobs.iter().map(|job| (&job.key, job)).collect(),
            records: records.iter().map(|record| (&record.key, record)).collect(),
            limits,
            ledger,
        }
    }

    pub fn check(&self) -> Result<(), String> {
        for job in self.jobs.values() {
            self.has_a_way_on(job).map_err(|why| format!("{why}: {job:?}"))?;
            self.adds_up(job).map_err(|why| format!("{why}: {job:?}"))?;
        }
        self.concurrency()?;
        for record in self.records.values() {
            self.record(record).map_err(|why| format!("{why}: {record:?}"))?;
        }
        Ok(())
    }

    fn read<T: Kind>(&self, namespace: &Namespace, key: &str) -> Option<T> {
        let key = RecordKey { namespace: namespace.clone(), kind: T::KIND.into(), key: key.into() };
        self.records.get(&key).and_then(|record| from_str(&record.value).ok())
    }

    /// Every job that has not ended has an owner, a timer, an open parent or a full key.
    fn has_a_way_on(&self, job: &Job) -> Result<(), String> {
        let exact = job.due_exactly(self.limits.retention);
        let timed = match (job.due, exact) {
            // What a run may still ask for is kept for longer.
            (Some(_), Some(_)) if job.state.is_final() && job.spec.node.is_some() => true,
            (Some(due), Some(exact)) => due <= exact,
            (None, Some(_)) => false,
            (_, None) => true,
        };
        if !timed {
            return Err(format!("the sweep would look at {:?}, too late for {exact:?}", job.due));
        }
        match job.state {
            State::Blocked if job.live.waiting > 0 => self.waits_for_parents(job),
            State::Blocked => self.waits_for_key(job),
            State::Scheduled if job.live.run_at.is_none() => Err("it waits for no time".into()),
            State::Claimed | State::Running if exact.is_none() => self.lives_with_worker(job),
            _ => Ok(()),
        }
    }

    fn waits_for_parents(&self, job: &Job) -> Result<(), String> {
        let parents = job.spec.parents.iter().map(|id| self.latest(JobKey::new(&job.key.namespace, *id)));
        let parents: HashSet<JobKey> = parents.collect();
        // The end of a parent may not have been passed on to all that wait for it yet; the sweep does.
        let unheard = |parent: &Job| {
            let next = parent.live.passed_on.is_none_or(|passed| passed.next <= job.key.id);
            parent.live.must_pass_on && next && parent.due.is_some()
        };
        let is_open =
            |key: &&JobKey| self.jobs.get(key).is_some_and(|parent| !parent.state.is_final() || unheard(parent));
        let open = parents.iter().filter(is_open).count() + self.held(job)?;
        if open == job.live.waiting as usize { Ok(()) } else { Err(format!("{open} of its parents are open")) }
    }

    /// What holds a job back counts as a parent, and somebody knows of it.
    fn held(&self, job: &Job) -> Result<usize, String> {
        let Some(hold) = job.live.hold else { return Ok(0) };
        let member = |other: &&&Job| other.spec.stage.of == Some(job.key.id) && !other.state.is_final();
        let members = self.jobs.values().filter(member).count();
        let run = job.run().ok_or("it is held outside a run")?;
        let node = job.spec.node.as_ref().ok_or("it is held outside a run")?;
        let told = match hold {
            _ if job.live.waiting > 1 => true,
            Hold::Plan | Hold::Members => {
                let key = stage::turn_key(&job.key.namespace, run, Some(job.key.id));
                self.read::<Turn>(&stage::system_namespace(), &key).is_some()
            }
            Hold::Event => {
                let waits = self.read::<Waiting>(&job.key.namespace, &stage::place(run, &node.name)).is_some();
                waits || job.live.hold_until.is_some()
            }
        };
        if told { Ok(1 + members) } else { Err("nobody will ever decide it".into()) }
    }

    /// The job, or the last of those it was retried as.
    fn latest(&self, mut key: JobKey) -> JobKey {
        while let Some(&retry) = self.ledger.retries.get(&key) {
            key.id = retry;
        }
        key
    }

    fn waits_for_key(&self, job: &Job) -> Result<(), String> {
        let Some(concurrency) = &job.spec.concurrency else { return Err("it is blocked by nothing".into()) };
        let used = self.read::<KeyUse>(&job.key.namespace, &concurrency.key).map_or(0, |key| key.used);
        let full = if UNIFORM.contains(&&*concurrency.key) { concurrency.limit } else { 1 };
        if used >= full { Ok(()) } else { Err(format!("its key has room: {used} of {}", concurrency.limit)) }
    }

    fn lives_with_worker(&self, job: &Job) -> Result<(), String> {
        let worker = job.holder().ok_or("nobody holds it")?;
        let key =
            RecordKey { namespace: job.key.namespace.clone(), kind: "worker".into(), key: worker.as_str().into() };
        let record = self.records.get(&key).ok_or("its lease ends with a worker that is gone")?;
        record.due.map(|_| ()).ok_or_else(|| "its lease ends with a worker that never will".to_string())
    }

    fn adds_up(&self, job: &Job) -> Result<(), String> {
        let live = &job.live;
        let wrong = |why: &str| Err(why.to_string());
        let may_hold = job.state == State::Pending || job.state.is_held();
        let kept = job.state == State::Cancelled && live.place_until.is_some();
        if live.has_place && !may_hold && !kept {
            return wrong("it counts under its key without being pending or held, or taken from its holder");
        }
        if live.place_until.is_some() && !(kept && live.has_place) {
            return wrong("it keeps a place that it does not have");
        }
        if kept && self.read::<KeptPlace>(&job.key.namespace, &job.key.id.to_string()).is_none() {
            return wrong("it keeps a place that nobody finds when its worker goes");
        }
        if may_hold && job.spec.concurrency.is_some() && !live.has_place {
            return wrong("it does not count under its key");
        }
        if job.state.is_held() && live.lease.is_none() {
            return wrong("it is held without a lease");
        }
        if live.cancel.is_some() && !job.state.is_held() && job.state != State::Cancelled {
            return wrong("its cancellation came to nothing");
        }
        if job.state.is_final() != live.finished_at.is_some() {
            return wrong("final and finished are not the same");
        }
        if job.state.is_final() && job.state != State::Completed && live.outcome.is_none() {
            return wrong("it ended without a reason");
        }
        if live.spent > job.spec.policy.retry.attempts {
            return wrong("it had more attempts than its budget");
        }
        if job.state == State::Pending && live.pending_since.is_none() {
            return wrong("it is pending since never");
        }
        Ok(())
    }

    /// `used` is the number of jobs with a place, and no more than the most generous of them allows.
    fn concurrency(&self) -> Result<(), String> {
        let mut used: HashMap<(&Namespace, &str), (u32, u32)> = HashMap::new();
        for job in self.jobs.values().filter(|job| job.live.has_place) {
            let Some(concurrency) = &job.spec.concurrency else { return Err(format!("a place under no key: {job:?}")) };
            let (count, most) = used.entry((&job.key.namespace, &concurrency.key)).or_default();
            (*count, *most) = (*count + 1, (*most).max(concurrency.limit));
        }
        for ((namespace, key), (count, most)) in &used {
            let told = self.read::<KeyUse>(namespace, key).map_or(0, |key| key.used);
            if told != *count || count > most {
                return Err(format!("{count} jobs have a place under {key}, {told} are counted, {most} allowed"));
            }
        }
        for record in self.records.values().filter(|record| &*record.key.kind == "concurrency") {
            if !used.contains_key(&(&record.key.namespace, &*record.key.key)) {
                return Err(format!("nobody has a place under {record:?}"));
            }
        }
        Ok(())
    }

    fn record(&self, record: &Record) -> Result<(), String> {
        let odd = |error: serde_json::Error| error.to_string();
        match &*record.key.kind {
            "run" => self.run(record, &from_str(&record.value).map_err(odd)?),
            "kept_place" => {
                let id: JobId = record.key.key.parse().map_err(|_| "no job id")?;
                let job = self.jobs.get(&JobKey::new(&record.key.namespace, id)).ok_or("its job is gone")?;
                if job.live.place_until.is_some() { Ok(()) } else { Err("its job has no place any more".into()) }
            }
            "unique" => self.unique(record, &from_str(&record.value).map_err(odd)?),
            "worker" => {
                let worker: Worker = from_str(&record.value).map_err(odd)?;
                let exact = worker.due();
                let timed = exact.is_none_or(|exact| record.due.is_some_and(|due| due <= exact));
                if timed { Ok(()) } else { Err(format!("the sweep would be too late for {exact:?}")) }
            }
            "link" => {
                let link: Link = from_str(&record.value).map_err(odd)?;
                self.has_worker(record, link.worker.as_str())
            }
            "tied" => self.has_worker(record, record.parent.as_deref().unwrap_or_default()),
            stage::OF_RUN => {
                let run = self.read::<Run>(&record.key.namespace, record.parent.as_deref().unwrap_or_default());
                run.map(drop).ok_or_else(|| "its run is gone".to_string())
            }
            "definition" => self.definition(record, &from_str(&record.value).map_err(odd)?),
            _ => Ok(()),
        }
    }

    fn has_worker(&self, record: &Record, worker: &str) -> Result<(), String> {
        let found = self.read::<Worker>(&record.key.namespace, worker);
        found.map(drop).ok_or_else(|| "its worker is gone".to_string())
    }

    /// Links are counted, and what retires is in force only while it is linked or a job waits for it.
    fn definition(&self, record: &Record, head: &DefinitionHead) -> Result<(), String> {
        let (namespace, name) = (&record.key.namespace, &*record.key.key);
        let of_it = |key: &&&RecordKey| {
            *key.kind == *Link::KIND && key.namespace == *namespace && key.key.rsplit('\n').next() == Some(name)
        };
        let links = self.records.keys().filter(of_it).count();
        if links != head.links as usize {
            return Err(format!("it has {links} links"));
        }
        let waits =
            |job: &Job| job.key.namespace == *namespace && job.spec.tags == tags_of(name) && !job.state.is_final();
        let left = head.retires && links == 0 && head.deleted_at.is_none();
        if left && !self.jobs.values().any(|job| waits(job)) { Err("it has not retired".into()) } else { Ok(()) }
    }

    fn run(&self, record: &Record, run: &Run) -> Result<(), String> {
        let id: RunId = record.key.key.parse().map_err(|_| "no run id")?;
        let jobs = self.ledger.runs.get(&(record.key.namespace.clone(), id)).ok_or("a run without jobs")?;
        // What was replaced is counted as its copy.
        let counts = |key: &JobKey| !self.ledger.retries.contains_key(key);
        let jobs: Vec<Option<State>> = jobs.iter().filter(|(key, _)| counts(key)).map(|(_, ended)| *ended).collect();
        let count = |state: Option<State>| jobs.iter().filter(|ended| **ended == state).count() as u32;
        let counted = [
            (run.open, None),
            (run.completed, Some(State::Completed)),
            (run.failed, Some(State::Failed)),
            (run.cancelled, Some(State::Cancelled)),
            (run.skipped, Some(State::Skipped)),
        ];
        for (told, state) in counted {
            if told != count(state) {
                return Err(format!("{} of its jobs are {state:?}, {told} are counted", count(state)));
            }
        }
        if run.total as usize != jobs.len() || (run.open > 0 && run.finished_at.is_some()) {
            return Err(format!("it has {} jobs", jobs.len()));
        }
        Ok(())
    }

    /// A key kept until its job is final belongs to a job that is not.
    fn unique(&self, record: &Record, taken: &Taken) -> Result<(), String> {
        if taken.until.is_some() {
            return Ok(());
        }
        let job = self.jobs.get(&JobKey::new(&record.key.namespace, taken.job));
        let open = job.is_some_and(|job| !job.state.is_final());
        if open { Ok(()) } else { Err("it is kept by a job that has ended".into()) }
    }
}
