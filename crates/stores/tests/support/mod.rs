//! Short words for the commands the PostgreSQL tests are made of.
#![allow(dead_code)]

use uuid::Uuid;
use windlass_core::{
    Command, JobId, LeaseId, Limits, Namespace, Refusal, Reply, Tags, WorkerId,
    commands::{
        claim::Claim,
        complete::Complete,
        holder::Holder,
        submit::{NewJob, Submit},
    },
    decider::Item,
};
use windlass_engine::store::{Batch, Committed, Store, StoreError};
use windlass_stores::postgres::Options;

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
    let items =
        commands.into_iter().enumerate().map(|(at, command)| Item { command, seed: at as u64 + 1, by: None }).collect();
    Batch::new(items, Limits::default())
}

pub async fn run(store: &dyn Store, commands: Vec<Command>) -> Result<Committed, StoreError> {
    store.run(batch(commands)).await
}

pub fn quiet(url: String) -> Options {
    Options { notify: false, ..Options::new(url) }
}
