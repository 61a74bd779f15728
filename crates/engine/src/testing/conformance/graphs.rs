//! Large graphs: what ends at their root reaches every leaf, in one step or by the next sweep.

use super::{
    super::{Bench, Fresh},
    build::{accept, claim, default, id, job, leases, submit, tags, tick},
};
use crate::store::JobQuery;
use windlass_core::{
    RunId, State,
    commands::{
        fail::Fail,
        holder::Holder,
        submit::NewJob,
        submit_run::{RunNode, SubmitRun},
    },
};

async fn run(bench: &mut Bench, nodes: Vec<RunNode>) {
    let id = RunId::from_u128(1);
    let run = SubmitRun::new(default(), id, nodes);
    accept(bench, vec![run.into()]).await;
}

fn node(number: u64, needs: Option<u64>) -> RunNode {
    let needs = needs.iter().map(|need| format!("n{need}").into()).collect();
    RunNode { name: format!("n{number}").into(), needs, job: job(number) }
}

async fn fail_root(bench: &mut Bench) {
    let leased = leases(bench, claim("w1", tags(&[]), 1, 10)).await.remove(0);
    let holder = Holder::lease(&default(), leased.lease);
    accept(bench, vec![Fail { holder, message: "no".into(), retryable: false, result: Default::default() }.into()])
        .await;
    tick(bench).await;
}

async fn count(bench: &Bench, state: State) -> usize {
    let query = JobQuery { namespace: Some(default()), states: vec![state], ..JobQuery::default() };
    bench.store.count(&query, 100_000).await.expect("the store answers")
}

/// More than one step ends at once: a root, 3 branches, 2,000 leaves on each, and one more on the last leaf.
pub async fn wide(fresh: Fresh) {
    let mut bench = Bench::new(fresh);
    let mut nodes = vec![node(0, None), node(1, Some(0)), node(2, Some(0)), node(3, Some(0))];
    nodes.extend((4..6_004).map(|number| node(number, Some(1 + number % 3))));
    nodes.push(node(6_004, Some(6_003)));
    run(&mut bench, nodes).await;
    fail_root(&mut bench).await;
    assert_eq!(count(&bench, State::Skipped).await, 6_004);
    assert_eq!(count(&bench, State::Failed).await, 1);
    let told = bench.events().await.unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(told.iter().filter(|(_, event)| event.what.ends_job()).count(), 6_005, "each ends once");
}

/// Outside runs, in pieces: a job that 300 wait for, behind the last of which stands a chain of 100.
pub async fn alone(fresh: Fresh) {
    let mut bench = Bench::new(fresh);
    let parent = |number: u64| if number <= 300 { 0 } else { number - 1 };
    let mut root = job(0);
    root.policy.retry.attempts = 1;
    let after = |number: u64| submit(NewJob { parents: vec![id(parent(number))], ..job(number) });
    accept(&mut bench, [submit(root)].into_iter().chain((1..=400).map(after)).collect()).await;
    let leased = leases(&mut bench, claim("w1", tags(&[]), 1, 10)).await.remove(0);
    let holder = Holder::lease(&default(), leased.lease);
    let fail = Fail { holder, message: "no".into(), retryable: false, result: Default::default() };
    accept(&mut bench, vec![fail.into()]).await;
    let first = count(&bench, State::Skipped).await;
    assert_eq!(first, bench.limits.pass_on_max, "the first piece comes with the failure");
    tick(&mut bench).await;
    assert_eq!(count(&bench, State::Skipped).await, 400);
    let told = bench.events().await.unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(told.iter().filter(|(_, event)| event.what.ends_job()).count(), 401, "each ends once");
}

/// A chain: each link waits for the one before.
pub async fn deep(fresh: Fresh) {
    let mut bench = Bench::new(fresh);
    run(&mut bench, (0..500).map(|number| node(number, number.checked_sub(1))).collect()).await;
    fail_root(&mut bench).await;
    assert_eq!(count(&bench, State::Skipped).await, 499);
}
