//! Short ways to say what the tests of a store say often. A store that does not answer fails the test.

use super::super::{Bench, START};
use uuid::Uuid;
use windlass_core::{
    Command, JobId, JobKey, LeaseId, Leased, Namespace, Reply, Tags, WorkerId,
    commands::{
        claim::Claim,
        complete::Complete,
        holder::Holder,
        submit::{NewJob, Submit},
    },
};

pub(super) fn ns(name: &str) -> Namespace {
    Namespace::new(name).expect("tests use plain names")
}

pub(super) fn default() -> Namespace {
    Namespace::default()
}

/// An id in the shape of a time-ordered one.
pub(super) fn id(number: u64) -> JobId {
    JobId::from_u128(((START.0 as u128) << 80) | (0x7 << 76) | (0b10 << 62) | u128::from(number))
}

pub(super) fn key(number: u64) -> JobKey {
    JobKey::new(&default(), id(number))
}

pub(super) fn job(number: u64) -> NewJob {
    NewJob::new(id(number))
}

pub(super) fn submit(job: NewJob) -> Command {
    Submit { namespace: default(), job }.into()
}

pub(super) fn tags(list: &[&str]) -> Tags {
    list.iter().copied().collect()
}

/// `first_secret` must be used by nobody else.
pub(super) fn claim(worker: &str, offered: Tags, max: usize, first_secret: u128) -> Claim {
    let secrets = (0..max as u128).map(|at| Uuid::from_u128(first_secret + at)).collect();
    Claim::new(&default(), WorkerId::trusted(worker), offered, secrets)
}

pub(super) fn complete(lease: LeaseId, result: &str) -> Command {
    Complete { holder: Holder::lease(&default(), lease), result: result.into() }.into()
}

/// Runs commands that must all be accepted.
pub(super) async fn accept(bench: &mut Bench, commands: Vec<Command>) -> Vec<Reply> {
    let outcome = bench.run(commands).await.unwrap_or_else(|why| panic!("{why}"));
    let accepted = |(at, reply): (usize, Result<Reply, _>)| match reply {
        Ok(reply) => reply,
        Err(refusal) => panic!("command {at} was refused: {refusal:?}"),
    };
    outcome.replies.into_iter().enumerate().map(accepted).collect()
}

pub(super) async fn leases(bench: &mut Bench, claim: Claim) -> Vec<Leased> {
    match accept(bench, vec![claim.into()]).await.remove(0) {
        Reply::Leases(leases) => leases,
        other => panic!("a claim was answered with {other:?}"),
    }
}

pub(super) async fn tick(bench: &mut Bench) -> usize {
    bench.tick().await.unwrap_or_else(|why| panic!("{why}"))
}
