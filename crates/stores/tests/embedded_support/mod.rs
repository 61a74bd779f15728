//! What the tests of the embedded store share: a data folder, a clock, and short ways to run commands.
#![allow(dead_code)]

use std::{path::Path, sync::Arc};
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
    StoreError,
    clock::Simulated,
    store::{Batch, Committed, Store},
};
use windlass_stores::embedded::{Embedded, Options};

pub fn clock() -> Arc<Simulated> {
    Arc::new(Simulated::at(Timestamp(1_000_000)))
}

pub fn open(folder: &Path, clock: &Arc<Simulated>) -> Embedded {
    Embedded::open(folder, Options::new(clock.clone())).unwrap()
}

pub fn batch(commands: Vec<Command>) -> Batch {
    let items =
        commands.into_iter().enumerate().map(|(at, command)| Item { command, seed: 7 + at as u64, by: None }).collect();
    Batch::new(items, Limits::default())
}

pub async fn try_run(store: &dyn Store, commands: Vec<Command>) -> Result<Committed, StoreError> {
    store.run(batch(commands)).await
}

pub async fn run(store: &dyn Store, commands: Vec<Command>) -> Vec<Result<Reply, Refusal>> {
    try_run(store, commands).await.unwrap().replies
}

pub fn submit(id: u128, payload: &str) -> Command {
    let job = NewJob { payload: payload.into(), ..NewJob::new(JobId::from_u128(id)) };
    Submit { namespace: Namespace::default(), job }.into()
}

pub fn claim(count: u128) -> Command {
    let secrets = (0..count).map(Uuid::from_u128).collect();
    Claim::new(&Namespace::default(), WorkerId::new("w1").unwrap(), Tags::default(), secrets).into()
}

pub fn complete(lease: LeaseId, result: &str) -> Command {
    Complete { holder: Holder::lease(&Namespace::default(), lease), result: result.into() }.into()
}

pub fn leases(replies: &[Result<Reply, Refusal>]) -> Vec<LeaseId> {
    let found = replies.iter().filter_map(|reply| match reply {
        Ok(Reply::Leases(leases)) => Some(leases.iter().map(|leased| leased.lease)),
        _ => None,
    });
    found.flatten().collect()
}
