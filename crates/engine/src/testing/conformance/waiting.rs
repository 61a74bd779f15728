//! Claims that wait: the batch that makes their jobs ready serves them.

use super::{
    super::{Bench, Fresh, standing::Standing},
    build::{accept, claim, default, job, key, leases, submit, tags},
};
use crate::store::{Batch, Committed};
use windlass_core::{Command, Limits, RecordKey, Reply, State, Tags, What, commands::claim::Claim, decider::Item};

async fn run(bench: &Bench, command: Command, waiting: Vec<Claim>) -> Committed {
    let claims = waiting.into_iter().map(|claim| (claim, 7)).collect();
    let batch = Batch::new(vec![Item { command, seed: 7, by: None }], Limits::default());
    let batch = Batch { waiting: Some(Standing::new(claims)), ..batch };
    bench.store.run(batch).await.unwrap_or_else(|error| panic!("{error}"))
}

fn numbers(committed: &Committed) -> Vec<Vec<u128>> {
    let of = |reply: &Reply| match reply {
        Reply::Leases(leases) => leases.iter().map(|leased| leased.lease.job.0.as_u128() & 0xff).collect(),
        other => panic!("a claim was answered with {other:?}"),
    };
    committed.replies[1..].iter().map(|reply| of(reply.as_ref().expect("no claim is refused"))).collect()
}

/// What was made by the batch, and what lay there before it, in claim order; nobody is woken for what is taken.
pub async fn takes_what_the_batch_made(fresh: Fresh) {
    let mut bench = Bench::new(fresh);
    accept(&mut bench, vec![submit(job(1))]).await;
    let new = windlass_core::commands::submit::NewJob { tags: tags(&["a"]), payload: "new".into(), ..job(2) };
    let waiting = vec![claim("w1", Tags::default(), 1, 100), claim("w2", tags(&["a"]), 2, 200)];
    let committed = run(&bench, submit(new), waiting).await;
    assert_eq!(numbers(&committed), [vec![1], vec![2]]);
    assert!(committed.wakes.is_empty(), "{:?}", committed.wakes);
    let claimed = |what: &What| matches!(what, What::Claimed { .. });
    assert_eq!(committed.events.iter().filter(|event| claimed(&event.what)).count(), 2);
    for (number, worker) in [(1, "w1"), (2, "w2")] {
        let row = bench.store.job(&key(number)).await.expect("the store answers").expect("it is there");
        assert_eq!((row.state, row.holder().map(|worker| worker.as_str())), (State::Claimed, Some(worker)));
    }
    let Ok(Reply::Leases(second)) = &committed.replies[2] else { panic!("{:?}", committed.replies[2]) };
    assert_eq!(second[0].payload.as_bytes(), b"new");
}

/// A claim that nothing is left for is told so and leaves no trace, whatever else the batch did.
pub async fn finds_nothing_and_writes_nothing(fresh: Fresh) {
    let mut bench = Bench::new(fresh);
    let waiting = vec![claim("w1", Tags::default(), 1, 100), claim("w2", Tags::default(), 1, 200)];
    let committed = run(&bench, submit(job(1)), waiting).await;
    assert_eq!(numbers(&committed), [vec![1], vec![]]);
    let record = |name: &str| RecordKey { namespace: default(), kind: "worker".into(), key: name.into() };
    assert!(bench.store.record(&record("w1")).await.expect("the store answers").is_some());
    assert!(bench.store.record(&record("w2")).await.expect("the store answers").is_none(), "it was never heard of");
    let new = windlass_core::commands::submit::NewJob { tags: tags(&["a"]), ..job(2) };
    let committed = run(&bench, submit(new), vec![claim("w2", Tags::default(), 1, 300)]).await;
    assert_eq!((numbers(&committed), committed.wakes.len()), (vec![vec![]], 1), "others are woken for it");
    assert_eq!(leases(&mut bench, claim("w2", tags(&["a"]), 1, 400)).await.len(), 1);
}
