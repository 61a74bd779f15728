//! A stream that ends when its client takes too long: to send a head, to send anything, to read what it asked for.
//!
//! Timers are only set when there is something to wait for, so a request that arrives whole costs none.

use super::{
    ConnectionGuard, Limits,
    bodies::Rest,
    head::{Allowance, Share},
};
use bytes::{Buf, Bytes};
use parking_lot::{Mutex, MutexGuard};
use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep_until},
};

/// What a connection is doing: nothing, receiving a head, or a request.
#[derive(Clone, Default)]
pub struct Phase(Arc<State>);

#[derive(Default)]
struct State {
    /// The present phase in the lowest byte, and above it how many requests there have been. Whatever outlives its request
    /// (what is left of its body, say) must not end the phase of a later one.
    now: AtomicU64,
    /// Of the memory for heads that do not come in one go; given back when the head is there.
    share: Mutex<Option<Share>>,
    /// Of the present request's body, where nobody wanted all of it.
    rest: Mutex<Option<Rest>>,
}

const IDLE: u8 = 0;
const HEAD: u8 = 1;
const BUSY: u8 = 2;

impl Phase {
    /// A head has arrived whole.
    pub fn busy(&self) -> ActiveRequest {
        let requests = (self.0.now.load(Ordering::Acquire) >> 8) + 1;
        let now = requests << 8 | u64::from(BUSY);
        self.0.now.store(now, Ordering::Release);
        drop(self.share().take());
        ActiveRequest { phase: self.clone(), now }
    }
    /// Leaves what was not read of a body to whoever sends the answer.
    pub fn leave(&self, rest: Rest) {
        *self.rest() = Some(rest);
    }
    pub fn take_rest(&self) -> Option<Rest> {
        self.rest().take()
    }
    fn rest(&self) -> MutexGuard<'_, Option<Rest>> {
        self.0.rest.lock()
    }
    pub fn is_busy(&self) -> bool {
        self.get() == BUSY
    }
    fn get(&self) -> u8 {
        self.0.now.load(Ordering::Acquire) as u8
    }
    /// An idle connection begins to receive a head. Only the connection itself says so, and nobody else changes an idle one.
    fn begin_head(&self) {
        self.0.now.fetch_or(u64::from(HEAD), Ordering::AcqRel);
    }
    fn share(&self) -> MutexGuard<'_, Option<Share>> {
        self.0.share.lock()
    }
}

/// One request on a connection. When it is dropped, the connection is idle again.
pub struct ActiveRequest {
    phase: Phase,
    now: u64,
}

impl ActiveRequest {
    pub fn phase(&self) -> &Phase {
        &self.phase
    }
    /// For a connection that serves something else from here on.
    pub fn endless(mut self) -> Self {
        self.now = u64::MAX;
        self
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let idle = self.now & !0xff;
        // Another value: the next request is here already.
        let _ = self.phase.0.now.compare_exchange(self.now, idle, Ordering::AcqRel, Ordering::Acquire);
    }
}

pub struct Watched<S> {
    stream: S,
    /// Read before the library was asked to.
    early: Bytes,
    phase: Phase,
    limits: Limits,
    heads: Allowance,
    /// When the first byte of the present head came.
    head_began: Instant,
    /// What is waited for, if anything is, and how long.
    awaited: Option<(u8, Instant)>,
    /// Never later than that. It is only set anew when it has to be earlier, or when it has run out too early, so that an
    /// ordinary request sets none.
    timer: Pin<Box<Sleep>>,
    /// Runs while the client does not take what is written.
    stall: Option<Pin<Box<Sleep>>>,
    _guard: ConnectionGuard,
}

impl<S> Watched<S> {
    pub fn new(
        stream: S,
        early: Bytes,
        phase: Phase,
        limits: Limits,
        heads: Allowance,
        guard: ConnectionGuard,
    ) -> Self {
        let now = Instant::now();
        let timer = Box::pin(sleep_until(now + limits.idle));
        Self { stream, early, phase, limits, heads, head_began: now, awaited: None, timer, stall: None, _guard: guard }
    }

    /// Nothing came. An idle connection then ends as if the client had closed it; a head that is not finished is an error. While
    /// a request is answered, somebody has to look now and then whether the connection has become idle since: the library does
    /// not look again by itself.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let phase = self.phase.get();
            let until = match self.awaited {
                Some((awaited, until)) if awaited == phase => until,
                _ => self.expect(phase)?,
            };
            ready!(self.timer.as_mut().poll(cx));
            if Instant::now() < until {
                self.timer.as_mut().reset(until);
                continue;
            }
            self.awaited = None;
            match phase {
                HEAD => return Poll::Ready(Err(timed_out("the head did not arrive in time"))),
                BUSY => {}
                _ => return Poll::Ready(Ok(())),
            }
        }
    }

    /// Begins to wait for something: until when.
    fn expect(&mut self, phase: u8) -> io::Result<Instant> {
        let until = match phase {
            HEAD => self.head_began + self.limits.head,
            _ => Instant::now() + self.limits.idle,
        };
        if until < self.timer.deadline() || self.timer.is_elapsed() {
            self.timer.as_mut().reset(until);
        }
        self.awaited = Some((phase, until));
        if phase == HEAD && !self.takes_share() {
            return Err(timed_out("too many heads are not finished"));
        }
        Ok(until)
    }

    /// A head that did not come in one go needs its part of the memory for such.
    fn takes_share(&self) -> bool {
        let mut share = self.phase.share();
        if share.is_none() {
            *share = self.heads.for_library();
        }
        share.is_some()
    }

    fn stalled(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let limit = self.limits.write;
        let stall = self.stall.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + limit)));
        ready!(stall.as_mut().poll(cx));
        Poll::Ready(timed_out("the client does not read"))
    }

    fn written<T>(&mut self, cx: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match polled {
            Poll::Ready(done) => {
                self.stall = None;
                Poll::Ready(done)
            }
            Poll::Pending => self.stalled(cx).map(Err),
        }
    }
}

fn timed_out(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, why)
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let polled = if this.early.has_remaining() {
            let count = this.early.len().min(buffer.remaining());
            buffer.put_slice(&this.early.split_to(count));
            if this.early.is_empty() {
                // Or its memory would be kept for as long as the connection.
                this.early = Bytes::new();
            }
            Poll::Ready(Ok(()))
        } else {
            Pin::new(&mut this.stream).poll_read(cx, buffer)
        };
        if polled.is_pending() {
            return this.wait(cx);
        }
        this.awaited = None;
        if buffer.filled().len() > before && this.phase.get() == IDLE {
            this.phase.begin_head();
            this.head_began = Instant::now();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.written(cx, polled)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write_vectored(cx, pieces);
        this.written(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_flush(cx);
        this.written(cx, polled)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_shutdown(cx);
        this.written(cx, polled)
    }
}
