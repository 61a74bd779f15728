//! What is due, and when to look again.

use super::{
    super::{Bench, Fresh, START},
    build::{accept, claim, default, job, key, leases, ns, submit, tags, tick},
};
use windlass_core::{
    Command, Millis, RecordKey, Timestamp,
    commands::{
        due::Due,
        holder::Holder,
        records::{Expect, PutRecord},
        renew::Renew,
        submit::Submit,
    },
};

fn record_key(number: i64) -> RecordKey {
    RecordKey { namespace: default(), kind: "note".into(), key: format!("{number}").into() }
}

fn expiring(number: i64, at: Timestamp) -> Command {
    let (expect, value) = (Expect::Anything, "{}".into());
    let key = record_key(number);
    PutRecord { key, expect, parent: None, value, facets: Vec::new(), expires_at: Some(at) }.into()
}

/// The longest due first, jobs and records alike, no more than asked for, and then the time of the next one.
pub async fn longest_first(fresh: Fresh) {
    let mut bench = Bench::new(fresh);
    let page = bench.store.due(10).await.expect("the store answers");
    assert!(page.due.is_empty() && page.next.is_none(), "{page:?}");
    let mut commands = Vec::new();
    // Due at 1 s, 2 s … 20 s, not in that order, in turn a job, a job elsewhere and a record.
    let expected: Vec<Due> = (1..=20).map(due_at).collect();
    for second in (0..20).map(|at| at * 7 % 20 + 1) {
        let at = START + Millis::from_secs(second);
        let mut new = job(second as u64);
        new.run_at = Some(at);
        commands.push(match second % 3 {
            0 => submit(new),
            1 => Submit { namespace: ns("other"), job: new }.into(),
            _ => expiring(second, at),
        });
    }
    accept(&mut bench, commands).await;
    for (now, limit, count) in [(0, 5, 0), (1, 5, 1), (9, 5, 5), (9, 9, 9), (9, 100, 9), (20, 3, 3), (20, 100, 20)] {
        bench.set(Millis::from_secs(now));
        let page = bench.store.due(limit).await.expect("the store answers");
        assert_eq!(page.due, expected[..count], "at {now} s, {limit} at most");
        let next = (count < 20).then(|| START + Millis::from_secs(count as i64 + 1));
        assert_eq!(page.next, next, "at {now} s, {limit} at most");
        assert_eq!(page.now, START + Millis::from_secs(now));
    }
    bench.set(Millis(999));
    assert!(bench.store.due(9).await.expect("the store answers").due.is_empty(), "a millisecond early");
}

fn due_at(second: i64) -> Due {
    match second % 3 {
        0 => Due::Job(key(second as u64)),
        1 => Due::Job(windlass_core::JobKey::new(&ns("other"), super::build::id(second as u64))),
        _ => Due::Record(record_key(second)),
    }
}

/// Renewals leave the due time behind and the sweep catches up; what has moved or gone is due no more.
pub async fn follows_the_rows(fresh: Fresh) {
    let mut bench = Bench::new(fresh);
    accept(&mut bench, vec![submit(job(1)), expiring(1, START + Millis(50_000))]).await;
    let mut asked = claim("w1", tags(&[]), 1, 10);
    asked.lease = Some(Millis(10_000));
    let leased = leases(&mut bench, asked).await.remove(0);
    bench.set(Millis(9_000));
    accept(&mut bench, vec![Renew { holder: Holder::lease(&default(), leased.lease), length: None }.into()]).await;
    bench.set(Millis(10_000));
    let page = bench.store.due(10).await.expect("the store answers");
    assert_eq!(page.due, [Due::Job(key(1))], "where it was before the renewal");
    assert_eq!(tick(&mut bench).await, 1);
    let page = bench.store.due(10).await.expect("the store answers");
    assert!(page.due.is_empty());
    assert_eq!(page.next, Some(START + Millis(19_000)), "where the renewal put it");
    accept(&mut bench, vec![super::build::complete(leased.lease, "1"), expiring(1, START + Millis(70_000))]).await;
    bench.set(Millis(60_000));
    let page = bench.store.due(10).await.expect("the store answers");
    assert!(page.due.is_empty(), "{page:?}");
    assert_eq!(page.next, Some(START + Millis(70_000)));
}
