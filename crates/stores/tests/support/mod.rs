//! Runs the same commands on the reference store and on PostgreSQL, and compares everything that can be seen.
#![allow(dead_code)]

pub mod walk;

use std::sync::Arc;
use uuid::Uuid;
use windlass_core::{
    Command, JobId, LeaseId, Limits, Namespace, Refusal, Reply, Tags, Timestamp, WorkerId,
    commands::{
        claim::Claim,
        complete::Complete,
        holder::Holder,
        submit::{NewJob, Submit},
    },
    decider::Item,
};
use windlass_engine::{
    clock::Simulated,
    memory::Memory,
    store::{Batch, JobQuery, Outcome, RecordQuery, Store, StoreError},
};
use windlass_stores::{
    postgres::{Options, Postgres},
    testing::Cluster,
};

pub const START: Timestamp = Timestamp(1_700_000_000_000);

pub fn ns() -> Namespace {
    Namespace::default()
}

pub fn submit(id: u128) -> Submit {
    Submit {
        namespace: ns(),
        job: NewJob { payload: format!("payload {id}").as_str().into(), ..NewJob::new(JobId::from_u128(id)) },
    }
}

pub fn claim(worker: &str, secret: u128, count: u128) -> Claim {
    let secrets = (0..count).map(|at| Uuid::from_u128(secret * 1_000 + at)).collect();
    Claim::new(&ns(), WorkerId::new(worker).unwrap(), Tags::default(), secrets)
}

pub fn complete(lease: LeaseId, result: &str) -> Complete {
    Complete { holder: Holder::lease(&ns(), lease), result: result.into() }
}

pub fn leases_of(replies: &[Result<Reply, Refusal>]) -> Vec<LeaseId> {
    let leases = replies.iter().filter_map(|reply| match reply {
        Ok(Reply::Leases(leases)) => Some(leases.iter().map(|leased| leased.lease)),
        _ => None,
    });
    leases.flatten().collect()
}

pub fn lease_of(replies: &[Result<Reply, Refusal>]) -> LeaseId {
    leases_of(replies)[0]
}

pub fn batch(commands: Vec<Command>) -> Batch {
    let items = commands.into_iter().enumerate().map(|(at, command)| Item { command, seed: at as u64 + 1 }).collect();
    Batch { items, limits: Limits::default() }
}

pub async fn run(store: &dyn Store, commands: Vec<Command>) -> Result<Outcome, StoreError> {
    store.run(batch(commands)).await
}

pub fn quiet(url: String) -> Options {
    Options { notify: false, ..Options::new(url) }
}

pub struct Pair {
    pub clock: Arc<Simulated>,
    pub memory: Memory,
    pub postgres: Postgres,
    pub url: String,
}

/// How far the event feed was compared.
#[derive(Default)]
pub struct Story {
    pub events: u64,
}

impl Pair {
    pub async fn new() -> Self {
        let url = Cluster::shared().fresh_database();
        let clock = Arc::new(Simulated::at(START));
        let options = Options { clock: Some(clock.clone()), ..quiet(url.clone()) };
        let postgres = Postgres::connect(options).await.unwrap();
        Self { memory: Memory::new(clock.clone()), postgres, clock, url }
    }

    /// Replies must be equal, but for the places in the queue, which stores hand out as they like.
    pub async fn run(&self, commands: Vec<Command>) -> Vec<Result<Reply, Refusal>> {
        let expected = run(&self.memory, commands.clone()).await.unwrap();
        let found = run(&self.postgres, commands.clone()).await.unwrap();
        let plain = |replies: &[Result<Reply, Refusal>]| replies.iter().map(without_places).collect::<Vec<_>>();
        assert_eq!(plain(&found.replies), plain(&expected.replies), "{commands:?}");
        assert_eq!(found.events, expected.events, "{commands:?}");
        assert_eq!(found.wakes, expected.wakes, "{commands:?}");
        assert_eq!(found.logged, expected.logged, "{commands:?}");
        assert_eq!(found.next_due, expected.next_due, "{commands:?}");
        assert_eq!(found.now, expected.now);
        found.replies
    }

    /// Does what is due until nothing is, on both stores alike.
    pub async fn sweep(&self) {
        loop {
            let expected = self.memory.due(100).await.unwrap();
            let found = self.postgres.due(100).await.unwrap();
            assert_eq!((&found.due, found.next, found.now), (&expected.due, expected.next, expected.now));
            if expected.due.is_empty() {
                return;
            }
            self.run(expected.due.into_iter().map(Command::Due).collect()).await;
        }
    }

    /// Everything a reader can see.
    pub async fn compare(&self, story: &mut Story) {
        let query = JobQuery { limit: 10_000, ..JobQuery::default() };
        let mut expected = self.memory.jobs(&query).await.unwrap();
        let mut found = self.postgres.jobs(&query).await.unwrap();
        assert_eq!(place_order(&found), place_order(&expected));
        for job in &expected {
            assert_eq!(self.postgres.body(&job.key).await.unwrap(), self.memory.body(&job.key).await.unwrap());
            let log = self.postgres.read_log(&job.key, 0, 1 << 20).await.unwrap();
            assert_eq!(log, self.memory.read_log(&job.key, 0, 1 << 20).await.unwrap());
            let mut single = self.postgres.job(&job.key).await.unwrap().unwrap();
            single.seq = job.seq;
            assert_eq!(single, *job);
        }
        found.iter_mut().chain(&mut expected).for_each(|job| job.seq = 0);
        assert_eq!(found, expected);
        for kind in ["worker", "run", "concurrency", "unique", "claim_request", "thing"] {
            let query = RecordQuery {
                namespace: ns(),
                kind: kind.into(),
                parent: None,
                facet: None,
                after: None,
                limit: 10_000,
            };
            assert_eq!(self.postgres.records(&query).await.unwrap(), self.memory.records(&query).await.unwrap());
        }
        let expected = self.memory.events_after(story.events, 10_000).await.unwrap();
        let found = self.postgres.events_after(story.events, 10_000).await.unwrap();
        assert_eq!(found.events, expected.events);
        assert_eq!((found.oldest, found.last), (expected.oldest, expected.last));
        story.events = found.last;
        assert_eq!(self.postgres.check().await.unwrap(), Vec::<String>::new());
    }
}

fn place_order(jobs: &[windlass_core::Job]) -> Vec<JobId> {
    let mut jobs: Vec<&windlass_core::Job> = jobs.iter().collect();
    jobs.sort_by_key(|job| job.seq);
    jobs.iter().map(|job| job.key.id).collect()
}

fn without_places(reply: &Result<Reply, Refusal>) -> Result<Reply, Refusal> {
    let mut reply = reply.clone();
    match &mut reply {
        Ok(Reply::Leases(leases)) => leases.iter_mut().for_each(|leased| leased.job.seq = 0),
        Ok(Reply::Ended { job, .. } | Reply::Job(job)) => job.seq = 0,
        _ => {}
    }
    reply
}
