//! The claim query over more lanes than one statement merges, against the reference store.

use crate::support::{ns, quiet, run, submit};
use std::sync::Arc;
use windlass_core::{Command, Millis, Tags, Timestamp, WorkerId, commands::claim::Claim};
use windlass_engine::{clock::Simulated, memory::Memory, store::Store};
use windlass_stores::{
    postgres::{Options, Postgres},
    testing::Cluster,
};

#[tokio::test]
async fn very_many_lanes_are_served_in_order() {
    let clock = Arc::new(Simulated::at(Timestamp(1_700_000_000_000)));
    let memory = Memory::new(clock.clone());
    let options = Options { clock: Some(clock), ..quiet(Cluster::shared().fresh_database()) };
    let postgres = Postgres::connect(options).await.unwrap();
    let tags: Vec<Tags> = (0..1_500).map(|n| [format!("host-{n}").as_str()].into_iter().collect()).collect();
    let submits = tags.iter().enumerate().map(|(n, tags)| {
        let mut submit = submit(n as u128 + 1);
        (submit.job.tags, submit.job.priority) = (tags.clone(), (n % 7) as i32);
        submit.into()
    });
    let submits: Vec<Command> = submits.collect();
    run(&memory, submits.clone()).await.unwrap();
    run(&postgres, submits).await.unwrap();
    let offered: Tags =
        (0..1_500).map(|n| format!("host-{n}")).collect::<Vec<_>>().iter().map(String::as_str).collect();
    let claim = |n: u128| {
        let secrets = (0..10).map(|at| uuid::Uuid::from_u128(n * 100 + at)).collect();
        let mut claim = Claim::new(&ns(), WorkerId::new("w1").unwrap(), offered.clone(), secrets);
        claim.lease = Some(Millis(600_000));
        claim
    };
    let limits = windlass_core::Limits { worker_tags_max: 2_000, ..Default::default() };
    for n in 0..151 {
        let mut batch = crate::support::batch(vec![claim(n).into()]);
        batch.limits = limits;
        let expected = memory.run(batch.clone()).await.unwrap();
        let found = postgres.run(batch).await.unwrap();
        let jobs = |committed: &windlass_engine::store::Committed| {
            crate::support::leases_of(&committed.replies).iter().map(|lease| lease.job).collect::<Vec<_>>()
        };
        assert_eq!(jobs(&found), jobs(&expected));
        assert_eq!(jobs(&found).len(), if n < 150 { 10 } else { 0 });
    }
}
