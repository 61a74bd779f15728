//! Bodies on their way in and out, watched.

use super::watched::Phase;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use thiserror::Error;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::WaitForCancellationFutureOwned;

/// The client stopped in the middle of a body.
#[derive(Clone, Copy, Debug, Error)]
#[error("the body stopped arriving")]
pub struct BodyTimeout;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A request's body that may not pause for long. Time in which nobody wants to read it does not count.
pub struct Arriving {
    body: Incoming,
    pause_max: Duration,
    pause: Option<Pin<Box<Sleep>>>,
}

impl Arriving {
    /// As a body for handlers; one that is empty needs no watching.
    pub fn body(body: Incoming, pause_max: Duration) -> axum::body::Body {
        if body.is_end_stream() {
            return axum::body::Body::empty();
        }
        axum::body::Body::new(Self { body, pause_max, pause: None })
    }
}

impl Body for Arriving {
    type Data = Bytes;
    type Error = Cause;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cause>>> {
        let this = self.get_mut();
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) {
            this.pause = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let pause_max = this.pause_max;
        let pause = this.pause.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + pause_max)));
        ready!(pause.as_mut().poll(cx));
        Poll::Ready(Some(Err(BodyTimeout.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer's body. Its end is the end of the request; a stream of events also ends when the server stops.
pub struct Leaving {
    body: axum::body::Body,
    phase: Phase,
    stop: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl Leaving {
    pub fn new(body: axum::body::Body, phase: Phase, stop: Option<WaitForCancellationFutureOwned>) -> Self {
        Self { body, phase, stop: stop.map(Box::pin) }
    }
}

impl Body for Leaving {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        if let Some(stop) = &mut this.stop
            && stop.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(None);
        }
        Pin::new(&mut this.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.phase.idle();
    }
}
