//! Memory for the bodies of requests, and of answers that are large: so much in all, and so much of it for one principal.
//!
//! A body takes its room before it is read: as much as its head announces, or as it grows where nothing is announced. It keeps
//! the room until its request is answered. Small bodies take none: what they may need together is bounded by the number of
//! connections, and they are what workers send all the time.

use crate::problem::{Code, Problem, Result};
use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};
use thiserror::Error;

/// A body of at most so many bytes needs no room.
pub const FREE: u64 = 16 << 10;
/// An answer of so many bytes needs none either.
pub const ANSWER_FREE: u64 = 64 << 10;
/// A body of unknown length takes room in steps of this.
pub const STEP: u64 = 64 << 10;

/// What all bodies may take, and those of one principal.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub total: u64,
    pub share: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { total: 256 << 20, share: 64 << 20 }
    }
}

#[derive(Default)]
pub struct Rooms {
    limits: Limits,
    taken: Mutex<InUse>,
}

#[derive(Default)]
struct InUse {
    total: u64,
    by_name: HashMap<Arc<str>, u64>,
}

impl Rooms {
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, taken: Mutex::default() })
    }

    /// Room for a body of one principal, given back when the last clone is dropped.
    pub fn take(self: &Arc<Self>, name: &Arc<str>, bytes: u64) -> Result<Room> {
        let room = Room(Arc::new(Taking { rooms: self.clone(), name: name.clone(), bytes: AtomicU64::new(0) }));
        room.grow(bytes)?;
        Ok(room)
    }

    fn add(&self, name: &Arc<str>, bytes: u64) -> Result<()> {
        let Limits { total, share } = self.limits;
        let mut taken = self.taken.lock();
        let own = taken.by_name.get(name).copied().unwrap_or(0);
        // What is larger than the limit itself is let through alone, so that no setting makes a route useless.
        if own > 0 && own.saturating_add(bytes) > share {
            let why = format!(
                "the large requests and answers of {name} that are on their way may have {share} bytes in all (bodies_per_principal_max), \
                 and have {own}; send fewer large ones at a time"
            );
            return Err(Problem::new(Code::TooMany, why).at("body").retry_after(1_000));
        }
        if taken.total > 0 && taken.total.saturating_add(bytes) > total {
            let why = format!("large requests and answers may have {total} bytes at a time (bodies_max); try again");
            return Err(Problem::new(Code::Unavailable, why).at("body").retry_after(1_000));
        }
        taken.total += bytes;
        match taken.by_name.get_mut(name) {
            Some(own) => *own += bytes,
            None => drop(taken.by_name.insert(name.clone(), bytes)),
        }
        Ok(())
    }

    fn give_back(&self, name: &Arc<str>, bytes: u64) {
        let mut taken = self.taken.lock();
        taken.total -= bytes;
        if let Some(own) = taken.by_name.get_mut(name) {
            *own -= bytes;
            if *own == 0 {
                taken.by_name.remove(name);
            }
        }
    }

    /// Bytes taken now.
    pub fn taken(&self) -> u64 {
        self.taken.lock().total
    }
}

#[derive(Clone)]
pub struct Room(Arc<Taking>);

struct Taking {
    rooms: Arc<Rooms>,
    name: Arc<str>,
    bytes: AtomicU64,
}

impl Room {
    pub fn grow(&self, bytes: u64) -> Result<()> {
        if bytes > 0 {
            self.0.rooms.add(&self.0.name, bytes)?;
            self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        if bytes > 0 {
            self.rooms.give_back(&self.name, bytes);
        }
    }
}

/// A body that keeps its room until it is sent.
pub struct Held {
    body: Body,
    _room: Room,
}

impl Held {
    pub fn new(body: Body, room: Room) -> Self {
        Self { body, _room: room }
    }
}

impl hyper::body::Body for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Why a body is not read on.
#[derive(Debug, Error)]
#[error("the body is refused")]
pub struct Refused(pub Problem);

/// A body that did not say how long it is: takes room as it grows, and ends at its route's limit.
pub struct Growing {
    body: Body,
    room: Room,
    max: u64,
    seen: u64,
    /// Bytes it has room for.
    covered: u64,
    too_large: fn(usize) -> Problem,
}

impl Growing {
    pub fn new(body: Body, room: Room, max: usize, too_large: fn(usize) -> Problem) -> Self {
        Self { body, room, max: max as u64, seen: 0, covered: FREE, too_large }
    }

    fn count(&mut self, bytes: usize) -> Result<()> {
        self.seen += bytes as u64;
        if self.seen > self.max {
            return Err((self.too_large)(self.max as usize));
        }
        if self.seen > self.covered {
            let more = (self.seen - self.covered).div_ceil(STEP) * STEP;
            // The first step also pays for what was free so far.
            self.room.grow(if self.covered == FREE { more + FREE } else { more })?;
            self.covered += more;
        }
        Ok(())
    }
}

impl hyper::body::Body for Growing {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        let length = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref().map(Bytes::len));
        if let Err(problem) = this.count(length.unwrap_or(0)) {
            return Poll::Ready(Some(Err(axum::Error::new(Refused(problem)))));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
