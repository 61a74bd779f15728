//! The PostgreSQL store against the reference store: same commands, same clock, same replies, same rows.
#![cfg(feature = "testing")]

mod support;

use support::{Pair, Story, claim, complete, ns, submit, walk::Walk};
use windlass_core::{Facet, JobId, Millis, RunId, State, Tags, Timestamp, WorkerId, commands::claim::Claim};
use windlass_engine::store::{JobQuery, RecordQuery, Store, Trim};

#[tokio::test]
async fn a_job_is_submitted_claimed_and_completed_once() {
    let pair = Pair::new().await;
    let mut story = Story::default();
    pair.run(vec![submit(1).into(), submit(2).into()]).await;
    let replies = pair.run(vec![claim("w1", 7, 1).into()]).await;
    let lease = support::lease_of(&replies);
    assert_eq!(lease.job, JobId::from_u128(1));
    pair.run(vec![complete(lease, "42").into(), complete(lease, "42").into()]).await;
    pair.compare(&mut story).await;
    let jobs = pair.postgres.jobs(&JobQuery { limit: 10, ..JobQuery::default() }).await.unwrap();
    let states: Vec<State> = jobs.iter().map(|job| job.state).collect();
    assert_eq!(states, [State::Pending, State::Completed]);
    pair.clock.advance(Millis::from_secs(8 * 86_400));
    pair.sweep().await;
    pair.compare(&mut story).await;
    assert_eq!(pair.postgres.jobs(&JobQuery { limit: 10, ..JobQuery::default() }).await.unwrap().len(), 1);
}

/// The same random commands on both stores: every reply, every row, every event, and what is due.
async fn walk(seed: u64, batches: usize) {
    println!("seed {seed}");
    let pair = Pair::new().await;
    let mut walk = Walk::new(seed);
    for at in 0..batches {
        let commands = (0..=walk.draw(6)).map(|_| walk.command()).collect();
        let replies = pair.run(commands).await;
        walk.leases.extend(support::leases_of(&replies));
        pair.clock.advance(Millis(walk.draw(9_000) as i64));
        if at % 7 == 0 {
            pair.sweep().await;
        }
        if at % 20 == 0 {
            pair.compare(&mut walk.story).await;
        }
    }
    pair.clock.advance(Millis::from_secs(86_400));
    pair.sweep().await;
    pair.compare(&mut walk.story).await;
    compare_lists(&pair).await;
    pair.clock.advance(Millis::from_secs(30 * 86_400));
    pair.sweep().await;
    pair.compare(&mut walk.story).await;
    compare_trim(&pair).await;
}

async fn compare_lists(pair: &Pair) {
    let all = JobQuery { namespace: Some(ns()), limit: 10, ..JobQuery::default() };
    let last = pair.memory.jobs(&all).await.unwrap().last().map(|job| (job.key.namespace.clone(), job.key.id));
    let queries = [
        all.clone(),
        JobQuery { namespace: None, before: last.clone(), ..all.clone() },
        JobQuery { before: last, ..all.clone() },
        JobQuery { states: vec![State::Failed, State::Skipped], limit: 1_000, ..all.clone() },
        JobQuery { states: vec![State::Completed, State::Pending, State::Scheduled], limit: 1_000, ..all.clone() },
        JobQuery { facet: Some(Facet::new("room", "é1")), limit: 1_000, ..all.clone() },
        JobQuery { holder: Some(WorkerId::new("w1").unwrap()), limit: 1_000, ..all.clone() },
        JobQuery { run: Some(RunId::from_u128(9)), limit: 1_000, ..all.clone() },
    ];
    for query in queries {
        let ids = |jobs: Vec<windlass_core::Job>| jobs.into_iter().map(|job| job.key.id).collect::<Vec<_>>();
        let expected = ids(pair.memory.jobs(&query).await.unwrap());
        assert_eq!(ids(pair.postgres.jobs(&query).await.unwrap()), expected, "{query:?}");
        for max in [3, 10_000] {
            let expected = pair.memory.count(&query, max).await.unwrap();
            assert_eq!(pair.postgres.count(&query, max).await.unwrap(), expected, "{query:?}");
        }
    }
    let things =
        RecordQuery { namespace: ns(), kind: "thing".into(), parent: None, facet: None, after: None, limit: 3 };
    let queries = [
        things.clone(),
        RecordQuery { after: Some("Z".into()), ..things.clone() },
        RecordQuery { parent: Some("p1".into()), limit: 100, ..things.clone() },
        RecordQuery { facet: Some(Facet::new("colour", "red")), limit: 100, ..things.clone() },
        RecordQuery { facet: Some(Facet::new("colour", "blue")), parent: Some("p2".into()), ..things },
    ];
    for query in queries {
        let expected = pair.memory.records(&query).await.unwrap();
        assert_eq!(pair.postgres.records(&query).await.unwrap(), expected, "{query:?}");
    }
}

async fn compare_trim(pair: &Pair) {
    let all = pair.memory.events_after(0, 100_000).await.unwrap().events;
    let middle = all[all.len() / 2].1.at;
    for before in [middle, Timestamp(i64::MAX)] {
        let trim = Trim { events_before: before, limit: 100_000 };
        assert_eq!(pair.postgres.trim(trim).await.unwrap(), pair.memory.trim(trim).await.unwrap());
        let expected = pair.memory.events_after(5, 50).await.unwrap();
        let found = pair.postgres.events_after(5, 50).await.unwrap();
        assert_eq!((found.events, found.oldest, found.last), (expected.events, expected.oldest, expected.last));
    }
}

#[tokio::test]
async fn random_walks_come_out_as_on_the_reference_store() {
    for seed in 1..=4 {
        walk(seed, 80).await;
    }
}

#[tokio::test]
async fn events_are_paged_without_gaps() {
    let pair = Pair::new().await;
    for at in 0..5u128 {
        pair.run((1..=3).map(|n| submit(at * 10 + n).into()).collect()).await;
    }
    for (after, limit) in [(0, 4), (1, 1), (2, 5), (13, 10), (14, 3), (15, 3), (99, 3), (0, 0), (u64::MAX, 1)] {
        let expected = pair.memory.events_after(after, limit).await.unwrap();
        let found = pair.postgres.events_after(after, limit).await.unwrap();
        assert_eq!(found.events, expected.events, "{limit} after {after}");
        assert_eq!((found.oldest, found.last), (1, 15));
    }
}

#[tokio::test]
async fn very_many_lanes_are_served_in_order() {
    let pair = Pair::new().await;
    let tags: Vec<Tags> = (0..1_500).map(|n| [format!("host-{n}").as_str()].into_iter().collect()).collect();
    let submits = tags.iter().enumerate().map(|(n, tags)| {
        let mut submit = submit(n as u128 + 1);
        (submit.job.tags, submit.job.priority) = (tags.clone(), (n % 7) as i32);
        submit.into()
    });
    pair.run(submits.collect()).await;
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
        let mut batch = support::batch(vec![claim(n).into()]);
        batch.limits = limits;
        let expected = pair.memory.run(batch.clone()).await.unwrap();
        let found = pair.postgres.run(batch).await.unwrap();
        let jobs = |outcome: &windlass_engine::store::Outcome| {
            support::leases_of(&outcome.replies).iter().map(|lease| lease.job).collect::<Vec<_>>()
        };
        assert_eq!(jobs(&found), jobs(&expected));
        assert_eq!(jobs(&found).len(), if n < 150 { 10 } else { 0 });
    }
}
