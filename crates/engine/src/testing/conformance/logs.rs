//! Logs, piece by piece.

use super::{
    super::{Bench, Fresh, snapshot},
    build::{accept, claim, default, job, key, leases, submit, tags},
};
use windlass_core::{
    Command, LogAppend, Payload,
    commands::{append_log::AppendLog, holder::Holder},
};

/// Pages hold as many pieces as fit, at least one, and go on where the last one ended.
pub async fn pages(fresh: Fresh) {
    let mut bench = Bench::new(fresh);
    accept(&mut bench, vec![submit(job(1)), submit(job(2))]).await;
    let leased = leases(&mut bench, claim("w1", tags(&[]), 1, 10)).await.remove(0);
    let append = |data: Vec<u8>| -> Command {
        AppendLog::new(Holder::lease(&default(), leased.lease), Payload::from(data)).into()
    };
    // Several batches, and several pieces in each; the last byte tells them apart.
    for batch in 0..5u8 {
        accept(&mut bench, (0..4u8).map(|piece| append(vec![0xff, 0, batch * 4 + piece])).collect()).await;
    }
    accept(&mut bench, vec![append(vec![7; 100]), append(vec![8; 1])]).await;
    let store = &*bench.store;
    let read = async |after, bytes_max| {
        let page: Vec<LogAppend> = store.read_log(&key(1), after, bytes_max).await.expect("the store answers");
        page.iter().map(|append| append.piece).collect::<Vec<u64>>()
    };
    assert_eq!(read(0, 9).await, [1, 2, 3]);
    assert_eq!(read(0, 8).await, [1, 2]);
    assert_eq!(read(3, 0).await, [4], "at least one");
    assert_eq!(read(19, 103).await, [20, 21]);
    assert_eq!(read(20, 10).await, [21], "at least one, however large");
    assert_eq!(read(21, 10).await, [22]);
    assert_eq!(read(22, 10).await, Vec::<u64>::new());
    assert_eq!(read(u64::MAX - 1, 10).await, Vec::<u64>::new());
    assert_eq!(read(0, 1 << 20).await, (1..=22).collect::<Vec<u64>>());
    let whole = snapshot::whole_log(store, &key(1)).await.expect("the store answers");
    let last: Vec<u8> = whole.iter().map(|append| *append.data.as_bytes().last().expect("none is empty")).collect();
    assert_eq!(last[..20], (0..20).collect::<Vec<u8>>(), "in the order they were written");
    assert!(whole.iter().all(|append| append.attempt == 1 && append.at == super::super::START));
    assert!(store.read_log(&key(2), 0, 100).await.expect("the store answers").is_empty());
    assert!(store.read_log(&key(3), 0, 100).await.expect("the store answers").is_empty());
}
