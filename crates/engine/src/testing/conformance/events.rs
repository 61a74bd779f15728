//! The event feed: numbered without gaps, read page by page, forgotten from its old end.

use super::{
    super::{Bench, Fresh, START},
    build::{accept, id, job, submit},
};
use crate::store::Trim;
use windlass_core::{Millis, What};

async fn tell(bench: &mut Bench, numbers: std::ops::Range<u64>) {
    accept(bench, numbers.map(|number| submit(job(number))).collect()).await;
}

/// From 1, strictly growing, in the order told, whatever the size of a page.
pub async fn numbers(fresh: Fresh) {
    let mut bench = Bench::new(fresh);
    let empty = bench.store.events_after(0, 10).await.expect("the store answers");
    assert!(empty.events.is_empty());
    assert_eq!((empty.oldest, empty.last), (1, 0), "before anything was told");
    for batch in 0..4 {
        tell(&mut bench, batch * 5..batch * 5 + 5).await;
    }
    let all = bench.events().await.unwrap_or_else(|why| panic!("{why}"));
    let numbers: Vec<u64> = all.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=20).collect::<Vec<u64>>());
    let told: Vec<What> = all.iter().map(|(_, event)| event.what.clone()).collect();
    assert_eq!(told, (0..20).map(|number| What::Submitted { job: id(number) }).collect::<Vec<_>>());
    for (after, limit, expected) in [(0, 3, 1..=3), (3, 4, 4..=7), (4, 7, 5..=11), (18, 10, 19..=20), (19, 1, 20..=20)]
    {
        let page = bench.store.events_after(after, limit).await.expect("the store answers");
        let numbers: Vec<u64> = page.events.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, expected.collect::<Vec<u64>>(), "{limit} after {after}");
        assert_eq!((page.oldest, page.last), (1, 20));
        assert!(page.events.iter().all(|(number, event)| *event == all[*number as usize - 1].1));
    }
    for after in [20, 21, u64::MAX - 1] {
        let page = bench.store.events_after(after, 10).await.expect("the store answers");
        assert!(page.events.is_empty(), "after {after}");
    }
}

/// What is older than asked for goes, what is younger stays, and numbers are never given twice.
pub async fn trimmed(fresh: Fresh) {
    let mut bench = Bench::new(fresh);
    for batch in 0..4 {
        bench.set(Millis(batch * 1_000));
        tell(&mut bench, batch as u64 * 5..batch as u64 * 5 + 5).await;
    }
    bench.events().await.unwrap_or_else(|why| panic!("{why}"));
    let trim = async |bench: &Bench, before: i64| {
        let trim = Trim { events_before: START + Millis(before), limit: 1_000 };
        bench.store.trim(trim).await.expect("the store answers")
    };
    trim(&bench, 0).await;
    assert_eq!(bench.store.events_after(0, 100).await.expect("the store answers").events.len(), 20);
    assert!(trim(&bench, 2_000).await > 0);
    let page = bench.store.events_after(0, 100).await.expect("the store answers");
    let numbers: Vec<u64> = page.events.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (11..=20).collect::<Vec<u64>>(), "told at 2 s is not before 2 s");
    assert_eq!((page.oldest, page.last), (11, 20));
    trim(&bench, 1_000_000).await;
    let page = bench.store.events_after(0, 100).await.expect("the store answers");
    assert!(page.events.is_empty());
    assert_eq!((page.oldest, page.last), (21, 20), "one more than the last, when none is kept");
    tell(&mut bench, 20..21).await;
    let all = bench.events().await.unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(all.iter().map(|(number, _)| *number).collect::<Vec<u64>>(), [21]);
}
