//! What the tests of the rules are written in: short sentences about jobs by number and workers by name.

use crate::tables::Tables;
use std::sync::Arc;
use uuid::Uuid;
use windlass_core::{
    Command, Job, JobId, JobKey, LeaseId, Leased, Millis, Namespace, Reason, Refusal, Reply, RunId, State, Tags,
    Timestamp, What, WorkerId,
    commands::{
        cancel::Cancel,
        claim::Claim,
        complete::Complete,
        fail::Fail,
        holder::{Address, Holder},
        release::Release,
        renew::Renew,
        start::Start,
        submit::{NewJob, Submit},
        submit_run::{RunNode, SubmitRun},
        workers::{Heartbeat, RegisterWorker, UnregisterWorker},
    },
    credential::Credential,
    decider::Item,
    job::ConcurrencyKey,
    policy::{Backoff, LeaseEnd, RetryPolicy, Unregister, WorkerPolicy},
    record::Kind,
    worker::Worker,
};

pub type Answer = Result<Reply, Refusal>;

pub struct Story {
    pub tables: Tables,
    pub now: Timestamp,
    secrets: u128,
}

pub fn ns() -> Namespace {
    Namespace::default()
}

pub fn id(number: u128) -> JobId {
    JobId::from_u128(number)
}

pub fn worker(name: &str) -> WorkerId {
    WorkerId::new(name).unwrap()
}

pub fn tags(list: &[&str]) -> Tags {
    list.iter().copied().collect()
}

/// A job with one attempt, so that a failure ends it.
pub fn once(number: u128) -> NewJob {
    let mut job = NewJob::new(id(number));
    job.policy.retry.attempts = 1;
    job.payload = "{}".into();
    job
}

/// A job that is tried so often.
pub fn tries(number: u128, attempts: u32) -> NewJob {
    let mut job = once(number);
    job.policy.retry = RetryPolicy { attempts, losses_max: 100, ..RetryPolicy::default() };
    job
}

pub fn keyed(number: u128, limit: u32) -> NewJob {
    NewJob { concurrency: Some(ConcurrencyKey { key: "k".into(), limit }), ..once(number) }
}

pub fn after(number: u128, parents: &[u128]) -> NewJob {
    NewJob { parents: parents.iter().map(|&parent| id(parent)).collect(), ..once(number) }
}

/// A job whose lease lives and dies with its worker.
pub fn bound(number: u128) -> NewJob {
    let mut job = once(number);
    job.policy.lease.ends = LeaseEnd::WithWorker;
    job
}

pub fn backoff(number: u128, millis: i64) -> NewJob {
    let mut job = tries(number, 3);
    job.policy.retry.backoff = Backoff::Fixed(Millis(millis));
    job
}

/// `"b: a"` is node `b` that needs node `a`. Nodes are numbered from 1 as they are listed.
pub fn graph(run: u128, lines: &[&str], mut shape: impl FnMut(&str, &mut NewJob)) -> SubmitRun {
    let node = |(at, line): (usize, &&str)| {
        let (name, needs) = line.split_once(':').unwrap_or((line, ""));
        let mut job = once(at as u128 + 1);
        shape(name, &mut job);
        RunNode { name: name.into(), needs: needs.split_whitespace().map(Into::into).collect(), job }
    };
    let nodes = lines.iter().enumerate().map(node).collect();
    SubmitRun::new(ns(), RunId::from_u128(run), nodes)
}

impl Story {
    pub fn new() -> Self {
        Self { tables: Tables::default(), now: Timestamp(1_000_000), secrets: 0 }
    }

    pub fn namespace(&self) -> Namespace {
        ns()
    }

    pub fn batch(&mut self, commands: Vec<Command>) -> Vec<Answer> {
        let answers = self.tables.run(self.now, commands);
        self.tables.check();
        answers
    }

    /// Each with what its sender was admitted with.
    pub fn batch_by(&mut self, commands: Vec<(Option<Arc<Credential>>, Command)>) -> Vec<Answer> {
        let items = commands.into_iter().map(|(by, command)| Item { command, seed: 1, by }).collect();
        self.tables.run_items(self.now, items)
    }

    pub fn run_by(&mut self, by: &Arc<Credential>, command: impl Into<Command>) -> Answer {
        self.batch_by(vec![(Some(by.clone()), command.into())]).remove(0)
    }

    pub fn run(&mut self, command: impl Into<Command>) -> Answer {
        self.batch(vec![command.into()]).remove(0)
    }

    pub fn submit(&mut self, job: NewJob) -> State {
        match self.run(Submit { namespace: ns(), job }) {
            Ok(Reply::Submitted(submitted)) => submitted.state,
            other => panic!("{other:?}"),
        }
    }

    pub fn wait(&mut self, millis: i64) {
        self.now = self.now + Millis(millis);
    }

    /// Does what is due until nothing is.
    pub fn sweep(&mut self) {
        for _ in 0..100 {
            let due = self.tables.due(self.now);
            if due.is_empty() {
                return;
            }
            for answer in self.batch(due.into_iter().map(Command::from).collect()) {
                assert_eq!(answer, Ok(Reply::Done));
            }
        }
        panic!("the sweep never comes to an end: {:?}", self.tables.due(self.now));
    }

    pub fn claim_command(&mut self, name: &str, max: usize) -> Claim {
        let secrets = (0..max).map(|_| {
            self.secrets += 1;
            Uuid::from_u128(self.secrets)
        });
        Claim::new(&ns(), worker(name), Tags::default(), secrets.collect())
    }

    /// Up to `max` jobs, by number.
    pub fn claims(&mut self, name: &str, max: usize) -> Vec<LeaseId> {
        let claim = self.claim_command(name, max);
        leases(&self.run(claim)).iter().map(|leased| leased.lease).collect()
    }

    /// The one job there must be.
    pub fn claim(&mut self, name: &str) -> LeaseId {
        self.claims(name, 1)[0]
    }

    pub fn submit_and_claim(&mut self, job: NewJob) -> LeaseId {
        let id = job.id;
        self.submit(job);
        let lease = self.claim("w");
        assert_eq!(lease.job, id);
        lease
    }

    pub fn register(&mut self, name: &str, policy: WorkerPolicy) -> Answer {
        self.run(registration(name, policy))
    }

    pub fn ping(&mut self, name: &str) -> Answer {
        self.run(Heartbeat { namespace: ns(), worker: worker(name), principal: None })
    }

    pub fn unregister(&mut self, name: &str, how: Unregister) -> Answer {
        self.run(UnregisterWorker {
            namespace: ns(),
            worker: worker(name),
            how: Some(how),
            only_offline: false,
            principal: None,
        })
    }

    pub fn complete(&mut self, lease: LeaseId) -> Answer {
        self.run(Complete { holder: Holder::lease(&ns(), lease), result: "1".into() })
    }

    pub fn fail(&mut self, lease: LeaseId) -> Answer {
        self.run(failure(lease))
    }

    pub fn start(&mut self, lease: LeaseId) -> Answer {
        self.run(Start { holder: Holder::lease(&ns(), lease) })
    }

    pub fn renew(&mut self, lease: LeaseId) -> Answer {
        self.run(Renew { holder: Holder::lease(&ns(), lease), length: None })
    }

    pub fn release(&mut self, lease: LeaseId) -> Answer {
        self.run(Release { holder: Holder::lease(&ns(), lease) })
    }

    pub fn cancel(&mut self, number: u128) -> Answer {
        self.run(Cancel { namespace: ns(), job: id(number), by: "ann".into(), mode: None, message: "".into() })
    }

    pub fn job(&self, number: u128) -> &Job {
        self.tables.jobs.get(&JobKey::new(&ns(), id(number))).expect("there is such a job")
    }

    pub fn state(&self, number: u128) -> State {
        self.job(number).state
    }

    /// Of jobs 1, 2, …
    pub fn states(&self, count: u128) -> Vec<&'static str> {
        (1..=count).map(|number| self.state(number).name()).collect()
    }

    pub fn reason(&self, number: u128) -> Option<Reason> {
        self.job(number).live.outcome.as_ref().map(|outcome| outcome.reason)
    }

    pub fn typed<T: Kind>(&self, key: &str) -> Option<T> {
        let record = self.tables.record(&ns(), T::KIND, key)?;
        Some(serde_json::from_str(&record.value).expect("it was written by the rules"))
    }

    pub fn worker(&self, name: &str) -> Option<Worker> {
        self.typed(name)
    }

    /// Names of all events so far, of one job where asked.
    pub fn events(&self, job: Option<u128>) -> Vec<&'static str> {
        let about = |what: &What| job.is_none() || what.job() == job.map(id);
        self.tables
            .events
            .values()
            .map(|event| &event.what)
            .filter(|what| about(what))
            .map(|what| what.name())
            .collect()
    }
}

pub fn registration(name: &str, policy: WorkerPolicy) -> RegisterWorker {
    RegisterWorker {
        namespace: ns(),
        worker: worker(name),
        tags: Tags::default(),
        slots: 1,
        owner: None,
        policy,
        extra: None,
    }
}

pub fn failure(lease: LeaseId) -> Fail {
    Fail { holder: Holder::lease(&ns(), lease), message: "broken".into(), retryable: true, result: Default::default() }
}

pub fn leases(answer: &Answer) -> &[Leased] {
    match answer {
        Ok(Reply::Leases(leases)) => leases,
        other => panic!("{other:?}"),
    }
}

pub fn code(answer: &Answer) -> &'static str {
    answer.as_ref().err().map_or("ok", Refusal::code)
}

pub fn by(address: Address) -> Holder {
    Holder { namespace: ns(), address, principal: None }
}
