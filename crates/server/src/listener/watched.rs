//! A stream that ends when its client takes too long: to send a head, to send anything, to read what it asked for.
//!
//! Timers are only set when there is something to wait for, so a request that arrives whole costs none.

use super::Limits;
use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep_until},
};

/// What a connection is doing: nothing, receiving a head, or a request.
#[derive(Clone, Default)]
pub struct Phase(Arc<AtomicU8>);

const IDLE: u8 = 0;
const HEAD: u8 = 1;
const BUSY: u8 = 2;

impl Phase {
    /// A head has arrived whole.
    pub fn busy(&self) {
        self.0.store(BUSY, Ordering::Release);
    }
    /// The answer is complete.
    pub fn idle(&self) {
        self.0.store(IDLE, Ordering::Release);
    }
    pub fn is_busy(&self) -> bool {
        self.get() == BUSY
    }
    fn get(&self) -> u8 {
        self.0.load(Ordering::Acquire)
    }
}

pub struct Watched<S> {
    stream: S,
    phase: Phase,
    limits: Limits,
    /// When the first byte of the present head came.
    head_began: Instant,
    /// What the timer is set for, if for anything.
    armed: Option<u8>,
    timer: Pin<Box<Sleep>>,
    /// Runs while the client does not take what is written.
    stall: Option<Pin<Box<Sleep>>>,
}

impl<S> Watched<S> {
    pub fn new(stream: S, phase: Phase, limits: Limits) -> Self {
        let now = Instant::now();
        let timer = Box::pin(sleep_until(now + limits.idle));
        Self { stream, phase, limits, head_began: now, armed: None, timer, stall: None }
    }

    /// Nothing came. An idle connection then ends as if the client had closed it; a head that is not finished is an error.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let phase = self.phase.get();
        if phase == BUSY {
            self.armed = None;
            return Poll::Pending;
        }
        if self.armed != Some(phase) {
            let until = match phase {
                HEAD => self.head_began + self.limits.head,
                _ => Instant::now() + self.limits.idle,
            };
            self.timer.as_mut().reset(until);
            self.armed = Some(phase);
        }
        ready!(self.timer.as_mut().poll(cx));
        match phase {
            HEAD => Poll::Ready(Err(timed_out("the head did not arrive in time"))),
            _ => Poll::Ready(Ok(())),
        }
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
        let polled = Pin::new(&mut this.stream).poll_read(cx, buffer);
        if polled.is_pending() {
            return this.wait(cx);
        }
        this.armed = None;
        if buffer.filled().len() > before && this.phase.get() == IDLE {
            this.phase.0.store(HEAD, Ordering::Release);
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
