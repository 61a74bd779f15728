//! Who gets what: the store's claim query against the plain one of the rules, alone, in crowds and side by side.

use super::{
    super::{Bench, Fresh, snapshot, walk::Dice},
    build::{accept, claim, complete, default, job, key, leases, ns, submit, tags, tick},
};
use crate::store::{Batch, Store, StoreError};
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};
use windlass_core::{
    Command, HeadQuery, JobId, Limits, Millis, Reply, Tags,
    commands::{claim::Claim, submit::Submit},
    decider::Item,
    select,
};

const TAGS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

fn some_tags(dice: &mut Dice, chance: u32) -> Tags {
    TAGS.into_iter().filter(|_| dice.percent(chance)).collect()
}

async fn expected(bench: &Bench, offered: &Tags, max: usize) -> Vec<JobId> {
    let jobs = snapshot::all_jobs(&*bench.store, 1_000).await.expect("the store answers");
    let query = HeadQuery { namespace: default(), offered: offered.clone() };
    select::heads(jobs.iter(), &query, max).into_iter().map(|job| job.key.id).collect()
}

/// A few hundred jobs in a few hundred lanes: every claim takes exactly what the rules say, in that order.
pub async fn in_order(fresh: Fresh) {
    let (mut bench, mut dice) = (Bench::new(fresh), Dice::new(5));
    let mut next = 0;
    let mut more = |dice: &mut Dice, count: u64| -> Vec<Command> {
        let draw = |number| {
            let mut new = job(number);
            new.tags = some_tags(dice, 30);
            new.priority = [1, 5, 5, -3, 100][dice.below(5)];
            new.payload = format!("{number}").as_str().into();
            let namespace = if dice.percent(10) { ns("other") } else { default() };
            Submit { namespace, job: new }.into()
        };
        next += count;
        (next - count..next).map(draw).collect()
    };
    let first = more(&mut dice, 300);
    accept(&mut bench, first).await;
    for round in 0..60u128 {
        let offered = some_tags(&mut dice, if round % 3 == 0 { 100 } else { 60 });
        let max = 1 + dice.below(8);
        // Every other time the batch also makes new work, which the claim sees.
        let mut commands = if round % 2 == 0 { Vec::new() } else { more(&mut dice, 3) };
        let taken = if commands.is_empty() { Some(expected(&bench, &offered, max).await) } else { None };
        commands.insert(0, claim("w1", offered.clone(), max, 1 + round * 100).into());
        let replies = accept(&mut bench, commands).await;
        let Reply::Leases(got) = &replies[0] else { panic!("a claim was answered with {:?}", replies[0]) };
        if let Some(taken) = taken {
            assert_eq!(got.iter().map(|leased| leased.lease.job).collect::<Vec<_>>(), taken, "offering {offered:?}");
        }
        for leased in got {
            assert!(leased.job.spec.tags.subset_of(&offered) && leased.job.key.namespace == default());
            let number = (leased.lease.job.0.as_u128() & 0xffff_ffff).to_string();
            assert_eq!(leased.payload.as_bytes(), number.as_bytes(), "with its own payload");
        }
        let places: Vec<(i32, i64)> = got.iter().map(|leased| select::order(&leased.job)).collect();
        assert!(places.is_sorted(), "{places:?}");
        let left = expected(&bench, &offered, 1).await;
        assert!(got.len() == max || left.is_empty(), "{} of {max} claimed, but {left:?} was there", got.len());
    }
}

/// Lanes that appear after an empty claim are seen by the next; a lane that fell empty and was trimmed comes back.
pub async fn lanes_come_and_go(fresh: Fresh) {
    let mut bench = Bench::new(fresh);
    for round in 0..3u64 {
        let offered = tags(&["a", "b"]);
        assert!(leases(&mut bench, claim("w1", offered.clone(), 5, 1 + u128::from(round) * 100)).await.is_empty());
        let mut tagged = job(round * 10 + 1);
        tagged.tags = tags(&["b"]);
        let mut foreign = job(round * 10 + 2);
        foreign.tags = tags(&["a", "b", "c"]);
        accept(&mut bench, vec![submit(tagged), submit(foreign)]).await;
        let got = leases(&mut bench, claim("w1", offered, 5, 50 + u128::from(round) * 100)).await;
        assert_eq!(got.len(), 1, "round {round}");
        accept(&mut bench, vec![complete(got[0].lease, "1")]).await;
        let rest = leases(&mut bench, claim("w1", tags(&TAGS), 5, 70 + u128::from(round) * 100)).await;
        accept(&mut bench, rest.iter().map(|leased| complete(leased.lease, "1")).collect()).await;
        bench.set(Millis((round as i64 + 1) * 30 * 86_400_000));
        tick(&mut bench).await;
        let now = crate::clock::Clock::now(&*bench.clock);
        let trim = crate::store::Trim { events_before: now, limit: 10_000 };
        bench.store.trim(trim).await.expect("the store answers");
    }
}

/// Many claimers at once, each with its own batches: every job goes to exactly one of them.
pub async fn side_by_side(fresh: Fresh) {
    const JOBS: u64 = 400;
    const CLAIMERS: u128 = 8;
    let mut bench = Bench::new(fresh);
    let mut dice = Dice::new(9);
    let draw = |number| {
        let mut new = job(number);
        new.tags = some_tags(&mut dice, 20);
        submit(new)
    };
    accept(&mut bench, (0..JOBS).map(draw).collect()).await;
    let claimers = (0..CLAIMERS).map(|claimer| tokio::spawn(take_all(bench.store.clone(), claimer)));
    let mut taken: HashMap<JobId, u128> = HashMap::new();
    for (claimer, task) in claimers.collect::<Vec<_>>().into_iter().enumerate() {
        for id in task.await.expect("no claimer panics") {
            let before = taken.insert(id, claimer as u128);
            assert_eq!(before, None, "{id} went to two");
        }
    }
    assert_eq!(taken.len() as u64, JOBS, "no claimer found nothing while there was something");
    let attempts: BTreeSet<u32> = snapshot::all_jobs(&*bench.store, 1_000)
        .await
        .expect("the store answers")
        .iter()
        .map(|job| job.live.attempt)
        .collect();
    assert_eq!(attempts, BTreeSet::from([1]));
}

async fn take_all(store: Arc<dyn Store>, claimer: u128) -> Vec<JobId> {
    let (mut taken, mut round) = (Vec::new(), 0);
    loop {
        round += 1;
        let asked: Claim = claim(&format!("w{claimer}"), tags(&TAGS), 3, (claimer << 64) | (round << 8) | 1);
        let items = vec![Item { command: asked.into(), seed: round as u64, by: None }];
        match store.run(Batch::new(items, Limits::default())).await {
            Ok(mut outcome) => match outcome.replies.remove(0) {
                Ok(Reply::Leases(leases)) if leases.is_empty() => return taken,
                Ok(Reply::Leases(leases)) => taken.extend(leases.iter().map(|leased| leased.lease.job)),
                other => panic!("a claim was answered with {other:?}"),
            },
            // Nothing was written; the engine would try again as well.
            Err(StoreError::Conflict(_)) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

/// How many go first: of the same lane only, by priority and then by place, and no further than asked.
pub async fn ahead(fresh: Fresh) {
    let mut bench = Bench::new(fresh);
    let mut commands = Vec::new();
    for number in 0..30 {
        let mut new = job(number);
        new.priority = if number % 3 == 0 { 50 } else { 100 };
        new.tags = tags(if number % 2 == 0 { &["even"] } else { &["odd"] });
        commands.push(submit(new));
    }
    accept(&mut bench, commands).await;
    let mut expected: Vec<u64> = (0..30).filter(|number| number % 2 == 0).collect();
    expected.sort_by_key(|number| (number % 3 != 0, *number));
    for (place, number) in expected.iter().enumerate() {
        let row = bench.store.job(&key(*number)).await.expect("the store answers").expect("it is there");
        for max in [0, 1, 5, 100] {
            let found = bench.store.ahead(&row, max).await.expect("the store answers");
            assert_eq!(found, place.min(max), "job {number}, counting to {max}");
        }
    }
}
