use bytes::Bytes;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use windlass_server::listener::{
    Limits,
    head::{Allowance, FIRST, NoHead, first},
};

fn limits() -> Limits {
    Limits { head: Duration::from_millis(50), ..Limits::default() }
}

async fn read(pieces: &[&[u8]], allowance: &Allowance) -> Result<Bytes, NoHead> {
    let (mut ours, mut theirs) = tokio::io::duplex(1 << 20);
    for piece in pieces {
        ours.write_all(piece).await.unwrap();
        tokio::task::yield_now().await;
    }
    first(&mut theirs, allowance, &limits(), 64 << 10).await
}

#[tokio::test]
async fn a_head_comes_in_one_piece_or_in_many() {
    let (whole, allowance) = (b"GET / HTTP/1.1\r\nhost: x\r\n\r\nbody", Allowance::default());
    assert_eq!(read(&[whole], &allowance).await.unwrap(), whole[..]);
    for end in ["\r\n\r\n", "\n\n", "\n\r\n"] {
        let (mut ours, mut theirs) = tokio::io::duplex(64);
        let sent = format!("GET / HTTP/1.1\r\nx: {}{end}", "y".repeat(3_000));
        let text = sent.clone();
        let write = tokio::spawn(async move {
            for byte in text.as_bytes() {
                ours.write_all(&[*byte]).await.unwrap();
            }
            ours
        });
        let head = first(&mut theirs, &allowance, &Limits::default(), 64 << 10).await.unwrap();
        assert_eq!(head, sent, "{end:?}");
        drop(write.await);
    }
    assert!(allowance.take(FIRST).is_some(), "all of it is given back");
}

#[tokio::test]
async fn what_cannot_be_a_head_is_handed_on_at_once() {
    let allowance = Allowance::default();
    for junk in [&b"\x16\x03\x01\x02"[..], b"get / ", b"GET /\x00", b"GET / HTTP/1.1\r\nx: \x7f", b"\r\n"] {
        assert_eq!(read(&[junk], &allowance).await.unwrap(), junk);
    }
    let long = vec![b'A'; 70 << 10];
    assert!(read(&[&long], &allowance).await.unwrap().len() >= 64 << 10);
}

#[tokio::test]
async fn unfinished_heads_wait_for_so_long_and_take_so_much() {
    let allowance = Allowance::default();
    assert_eq!(read(&[b"GET / HT"], &allowance).await.err(), Some(NoHead::Late));
    let _most = allowance.take(FIRST - 4).unwrap();
    assert_eq!(read(&[b"GET / HT"], &allowance).await.err(), Some(NoHead::Late), "room for a short one");
    let long = vec![b'A'; 4 << 10];
    assert_eq!(read(&[&long], &allowance).await.err(), Some(NoHead::Crowded), "none for a long one");
    let _rest = allowance.take(4).unwrap();
    assert!(read(&[b"GET / HTTP/1.1\r\n\r\n"], &allowance).await.is_ok(), "who dawdles not is let in");
    assert_eq!(read(&[b"GET / HT"], &allowance).await.err(), Some(NoHead::Crowded));
}
