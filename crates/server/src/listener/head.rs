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
pub const FIRST: usize = 32 << 10;
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
    pub fn take(&self, kilobytes: usize) -> Option<Share> {
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
