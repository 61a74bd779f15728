//! The shortest story there is, on the reference store.

use std::sync::Arc;
use uuid::Uuid;
use windlass_core::{
    Command, JobId, LeaseId, Limits, Namespace, Refusal, Reply, State, Tags, Timestamp, WorkerId,
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
    store::{Batch, Store},
};

async fn run(store: &Memory, commands: Vec<Command>) -> Vec<Result<Reply, Refusal>> {
    let items =
        commands.into_iter().enumerate().map(|(at, command)| Item { command, seed: at as u64, by: None }).collect();
    store.run(Batch::new(items, Limits::default())).await.unwrap().replies
}

fn lease_of(replies: &[Result<Reply, Refusal>]) -> LeaseId {
    replies
        .iter()
        .find_map(|reply| match reply {
            Ok(Reply::Leases(leases)) => leases.first().map(|leased| leased.lease),
            _ => None,
        })
        .unwrap()
}

#[tokio::test]
async fn a_job_is_submitted_claimed_and_completed_once() {
    let store = Memory::new(Arc::new(Simulated::at(Timestamp(1_000))));
    let ns = Namespace::default();
    let worker = WorkerId::new("w1").unwrap();
    let submit = |n| Submit { namespace: ns.clone(), job: NewJob::new(JobId::from_u128(n)) };
    let claim = |n| Claim::new(&ns, worker.clone(), Tags::default(), vec![Uuid::from_u128(n)]);
    // Submit and claim in one batch: the claim comes last and sees the job.
    let replies = run(&store, vec![claim(7).into(), submit(1).into()]).await;
    let lease = lease_of(&replies);
    assert_eq!(lease.job, JobId::from_u128(1));
    let complete = || Complete { holder: Holder::lease(&ns, lease), result: "42".into() };
    let replies = run(&store, vec![complete().into(), complete().into()]).await;
    assert!(
        matches!(&replies[0], Ok(Reply::Ended(windlass_core::reply::Ended { job, replayed: false })) if job.state == State::Completed)
    );
    assert!(matches!(&replies[1], Ok(Reply::Ended(windlass_core::reply::Ended { replayed: true, .. }))));
    let events = store.events_after(0, 100).await.unwrap().events;
    let names: Vec<&str> = events.iter().map(|(_, event)| event.what.name()).collect();
    assert_eq!(names, ["submitted", "worker_registered", "claimed", "completed"]);
}
