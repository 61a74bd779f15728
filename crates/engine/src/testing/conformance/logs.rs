//! Logs, piece by piece.

use super::{
    super::{Bench, Fresh, snapshot},
    build::{accept, claim, default, job, key, leases, submit, tags},
};
use windlass_core::{
    Chunk, Command, LogAppend, LogForm, LogStream, Payload,
    commands::{append_log::AppendLog, holder::Holder},
    log::pieces_of,
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

/// Beyond its cap a log keeps its beginning and its newest part, pieces written and dropped in one batch included; chunks come
/// back as they were sent.
pub async fn caps(fresh: Fresh) {
    let mut bench = Bench::new(fresh);
    bench.limits.log_bytes_max = 100;
    accept(&mut bench, vec![submit(job(1)), submit(job(2))]).await;
    let leased = leases(&mut bench, claim("w1", tags(&[]), 2, 10)).await;
    let append = |at: usize, form: LogForm, data: Payload| -> Command {
        AppendLog { holder: Holder::lease(&default(), leased[at].lease), form, data }.into()
    };
    let text = |number: u8| append(0, LogForm::default(), Payload::from(vec![number; 10]));
    for batch in 0..4u8 {
        accept(&mut bench, (0..8).map(|piece| text(batch * 8 + piece)).collect()).await;
    }
    let sent = [
        Chunk { stream: Some(LogStream::Err), time: Some(1), sequence: Some(9), data: b"one\n", ..Chunk::default() },
        Chunk { continues: true, data: b"", ..Chunk::default() },
    ];
    accept(&mut bench, vec![append(1, LogForm::Chunks, pieces_of(sent, 100).remove(0))]).await;
    let store = &*bench.store;
    let whole = snapshot::whole_log(store, &key(1)).await.expect("the store answers");
    let kept: Vec<u64> = whole.iter().map(|append| append.piece).collect();
    assert_eq!(kept, (1..=5).chain(28..=32).collect::<Vec<u64>>());
    assert!(whole.iter().all(|append| append.data.as_bytes() == [append.piece as u8 - 1; 10]));
    let row = store.job(&key(1)).await.expect("the store answers").expect("it is there");
    let log = &row.live.log;
    assert_eq!((log.pieces, log.kept_pieces(), log.bytes, log.dropped_bytes), (32, 10, 100, 220));
    let page = store.read_log(&key(1), 7, 10).await.expect("the store answers");
    assert_eq!(page[0].piece, 28, "who has read what is gone goes on with what is there");
    let chunks = snapshot::whole_log(store, &key(2)).await.expect("the store answers");
    assert_eq!(chunks[0].chunks().collect::<Vec<_>>(), sent);
}
