//! A connection's first head, taken in before anything is built to answer it.
//!
//! The HTTP library makes its buffers, over twenty kilobytes, as soon as it is asked to read. Those who send half a head and
//! wait are most of an attack and none of the work, so they get a buffer of the size of what they sent; and all heads that
//! are not finished share an allowance, so that nobody can fill the memory with them.

use super::Limits;
use bytes::{Bytes, BytesMut};
use std::sync::Arc;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// What unfinished heads may take, in units of a kilobyte: first ones, and such as come after a request. Separate, so that the
/// few who can be dear do not crowd out the many who are cheap.
const FIRST: usize = 32 << 10;
const LATER: usize = 16 << 10;
/// What a connection takes beside its buffer.
const BASE: usize = 1;
/// What the HTTP library takes for a head it was asked to read.
const IN_LIBRARY: u32 = 28;
/// Of a first buffer; most heads need no other.
const BUFFER: usize = 2 << 10;
const KILOBYTE: usize = 1 << 10;

/// The memory that unfinished heads share. One that comes in one go needs none of it.
#[derive(Clone)]
pub struct Allowance {
    first: Arc<Semaphore>,
    later: Arc<Semaphore>,
}

pub type Share = OwnedSemaphorePermit;

impl Default for Allowance {
    fn default() -> Self {
        Self { first: Arc::new(Semaphore::new(FIRST)), later: Arc::new(Semaphore::new(LATER)) }
    }
}

impl Allowance {
    fn take(&self, kilobytes: usize) -> Option<Share> {
        self.first.clone().try_acquire_many_owned(u32::try_from(kilobytes).ok()?).ok()
    }

    /// For a head that the library waits for.
    pub fn for_library(&self) -> Option<Share> {
        self.later.clone().try_acquire_many_owned(IN_LIBRARY).ok()
    }
}

/// Why there is no head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoHead {
    Ended,
    Late,
    /// The allowance is used up.
    Crowded,
}

/// Reads until the head is whole, or until the library can tell at once that it is none.
pub async fn first<S: AsyncRead + Unpin>(
    stream: &mut S,
    allowance: &Allowance,
    limits: &Limits,
    bytes_max: usize,
) -> Result<Bytes, NoHead> {
    let mut share: Option<Share> = None;
    let mut head = BytesMut::with_capacity(BUFFER);
    let arrive = async {
        loop {
            let seen = head.len();
            match stream.read_buf(&mut head).await {
                Ok(0) | Err(_) => return Err(NoHead::Ended),
                Ok(_) => {}
            }
            if is_whole(&head, seen) || !is_plausible(&head, seen) || head.len() >= bytes_max {
                return Ok(());
            }
            // Twice as much each time, or the long heads of one client would be copied again and again.
            let full = head.len() == head.capacity();
            let more = if full { head.capacity() } else { 0 };
            let needed = more / KILOBYTE + if share.is_none() { BASE + BUFFER / KILOBYTE } else { 0 };
            let taken = allowance.take(needed).ok_or(NoHead::Crowded)?;
            match &mut share {
                Some(share) => share.merge(taken),
                None => share = Some(taken),
            }
            head.reserve(more);
        }
    };
    timeout(limits.head, arrive).await.map_err(|_| NoHead::Late)??;
    Ok(head.freeze())
}

/// Whether there is an empty line; what was seen before holds none.
fn is_whole(head: &[u8], seen: usize) -> bool {
    let mut rest = &head[seen.saturating_sub(2)..];
    while let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
        rest = &rest[at + 1..];
        if rest.starts_with(b"\n") || rest.starts_with(b"\r\n") {
            return true;
        }
    }
    false
}

/// Whether this may become a head. What cannot is for the library to refuse, which it does without waiting for more.
fn is_plausible(head: &[u8], seen: usize) -> bool {
    let begins = head.first().is_none_or(|byte| byte.is_ascii_uppercase());
    begins && head[seen..].iter().all(|byte| matches!(byte, b'\t' | b'\r' | b'\n' | b' '..=b'~' | 0x80..))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::io::AsyncWriteExt;

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
        assert_eq!(allowance.first.available_permits(), FIRST, "all of it is given back");
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
}
