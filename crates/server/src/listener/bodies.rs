//! Bodies on their way in and out, watched.

use super::{
    Limits,
    watched::{ActiveRequest, Phase},
};
use crate::peer::BodyTimeout;
use bytes::Bytes;
use http::{Request, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout};
use tokio_util::sync::WaitForCancellationFutureOwned;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// So much of a body that nobody wanted is read and thrown away, so that the connection can be used for the next request.
/// If more is left, or nobody knows how much, the answer says that the connection closes.
const DISCARD_MAX: u64 = 64 << 10;
/// Bytes a second that are thrown away of a body that was refused: whoever goes on sending is to notice.
const DISCARD_RATE: u32 = 1 << 20;
/// A body may take so many of the longest pauses before it has to come at a certain rate.
const PAUSES: u32 = 2;
/// How long a client that is told of the end may go on sending: closing at once would make its system throw the answer away.
const LINGER: Duration = Duration::from_secs(1);

/// A request's body that may not pause for long. Time in which nobody wants to read it does not count.
pub struct Arriving {
    /// None only while it is dropped.
    body: Option<Incoming>,
    pace: Pace,
    pause: Option<Pin<Box<Sleep>>>,
    /// The client sends nothing before it is told to.
    expects: bool,
    /// It ended or failed: there is nothing more to read.
    over: Option<End>,
    phase: Phase,
}

/// How long a body may be waited for: each time, and in all for what has come of it. A byte every now and then must not keep
/// the memory of a large body for hours.
pub struct Pace {
    pause_max: Duration,
    bytes_per_second: u64,
    received: u64,
    waited: Duration,
    /// The present pause, if there is one.
    since: Option<Instant>,
}

impl Pace {
    pub fn new(limits: &Limits) -> Self {
        let (pause_max, bytes_per_second) = (limits.body, limits.body_rate);
        Self { pause_max, bytes_per_second, received: 0, waited: Duration::ZERO, since: None }
    }

    /// Nothing is there: until when to wait.
    pub fn pauses(&mut self, now: Instant) -> Instant {
        self.since = Some(now);
        now + self.left().map_or(self.pause_max, |left| left.min(self.pause_max))
    }

    pub fn goes_on(&mut self, now: Instant) {
        self.waited += self.since.take().map_or(Duration::ZERO, |since| now.duration_since(since));
    }

    pub fn receives(&mut self, bytes: u64) {
        self.received += bytes;
    }

    fn left(&self) -> Option<Duration> {
        let earned = Duration::from_millis(self.received.saturating_mul(1_000).checked_div(self.bytes_per_second)?);
        Some((self.pause_max * PAUSES + earned).saturating_sub(self.waited))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Whole,
    Broken,
}

impl Arriving {
    /// As a body for handlers; one that is empty needs no watching.
    pub fn body(request: Request<Incoming>, limits: &Limits, phase: &Phase) -> Request<axum::body::Body> {
        if request.body().is_end_stream() {
            return request.map(|_| axum::body::Body::empty());
        }
        let expects = request.headers().contains_key(header::EXPECT);
        request.map(|body| {
            let (pace, phase) = (Pace::new(limits), phase.clone());
            axum::body::Body::new(Self { body: Some(body), pace, pause: None, expects, over: None, phase })
        })
    }
}

impl Body for Arriving {
    type Data = Bytes;
    type Error = Cause;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cause>>> {
        let this = self.get_mut();
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        this.expects = false;
        if let Poll::Ready(frame) = Pin::new(body).poll_frame(cx) {
            if this.pause.take().is_some() {
                this.pace.goes_on(Instant::now());
            }
            match &frame {
                None => this.over = Some(End::Whole),
                Some(Err(_)) => this.over = Some(End::Broken),
                Some(Ok(frame)) => this.pace.receives(frame.data_ref().map_or(0, |data| data.len() as u64)),
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let pace = &mut this.pace;
        let pause = this.pause.get_or_insert_with(|| Box::pin(sleep_until(pace.pauses(Instant::now()))));
        ready!(pause.as_mut().poll(cx));
        this.over = Some(End::Broken);
        Poll::Ready(Some(Err(BodyTimeout.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, Body::size_hint)
    }
}

/// The library would close the connection without a word.
impl Drop for Arriving {
    fn drop(&mut self) {
        if let Some(body) = self.body.take().filter(|body| self.over != Some(End::Whole) && !body.is_end_stream()) {
            self.phase.leave(Rest { body, waits: self.expects || self.over.is_some() });
        }
    }
}

/// What is left of a body whose request is answered.
pub struct Rest {
    body: Incoming,
    /// Nothing more is to come: the client waits to be asked for it, or has stopped sending.
    waits: bool,
}

impl Rest {
    /// Whether it is so little that it is better read than made an end with the connection.
    pub fn is_small(&self) -> bool {
        !self.waits && self.body.size_hint().upper().is_some_and(|left| left <= DISCARD_MAX)
    }

    /// Reads it away while the answer is sent. The turn lasts until then.
    pub fn discard(self, pause_max: Duration, active: Arc<ActiveRequest>) {
        let patience = if self.is_small() { pause_max } else { LINGER };
        if self.waits {
            return;
        }
        let mut body = self.body;
        tokio::spawn(async move {
            // An end by time closes the connection.
            let _ = timeout(patience, async {
                while let Some(Ok(frame)) = body.frame().await {
                    let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
                    sleep(Duration::from_secs(bytes) / DISCARD_RATE).await;
                }
            })
            .await;
            drop(body);
            drop(active);
        });
    }
}

/// The turn of a request that is being answered: of the answer alone, or also of what is left of the body. Nothing is read from
/// it: it is held until it is dropped.
pub enum Held {
    Alone(ActiveRequest),
    Shared(Arc<ActiveRequest>),
}

/// An answer's body. Its end is the end of the request; a stream of events also ends when the server stops.
pub struct Leaving {
    body: axum::body::Body,
    _active: Held,
    stop: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl Leaving {
    pub fn new(body: axum::body::Body, active: Held, stop: Option<WaitForCancellationFutureOwned>) -> Self {
        Self { body, _active: active, stop: stop.map(Box::pin) }
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
