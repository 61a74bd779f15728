//! Server-sent events: how they are written, and how much a connection may hold.
//!
//! A stream's reader may be slow or gone without saying so. What waits for it is bounded, and a reader that takes nothing
//! for a while is let go: it comes back with `Last-Event-ID` and misses nothing.

use crate::{
    app::App,
    auth::Caller,
    problem::{Problem, Result},
    route::Header,
    streams::StreamPermit,
};
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, header};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

/// Bytes that may wait for a reader.
const BUFFER: usize = 32 << 10;
/// Events that are at hand are sent together up to about so many bytes: each piece that waits takes memory beside its bytes.
pub const TOGETHER: usize = 4 << 10;
/// A reader that makes no room for so long is gone.
const STALL: Duration = Duration::from_secs(30);
pub const BEAT: Duration = Duration::from_secs(15);
/// No stream is open for longer. Readers come back by themselves.
const LIFE: Duration = Duration::from_secs(15 * 60);

pub const LAST_EVENT_ID: Header =
    Header::number("Last-Event-ID", "Goes on after this one, as browsers do by themselves; wins over `after`.");

/// The number a reader came as far as, if it says.
pub fn last_event(headers: &HeaderMap) -> Result<Option<u64>> {
    let number = |id: &str| {
        let refused = || Problem::invalid(LAST_EVENT_ID.name, "must be the number of an event of this stream");
        id.trim().parse().map_err(|_| refused())
    };
    LAST_EVENT_ID.of(headers)?.map(number).transpose()
}

type Frame = (Bytes, OwnedSemaphorePermit);

/// The writing end of a stream.
pub struct Sink {
    frames: mpsc::UnboundedSender<Frame>,
    room: Arc<Semaphore>,
    until: Instant,
    drain: CancellationToken,
    permit: StreamPermit,
}

/// The reader is gone, or has to come back.
#[derive(Debug)]
pub struct Closed;

impl Sink {
    /// Waits for room, but not for ever, and says nothing to whom it no longer concerns.
    pub async fn send(&mut self, frame: impl Into<Bytes>) -> Result<(), Closed> {
        let frame = frame.into();
        let size = u32::try_from(frame.len().clamp(1, BUFFER)).unwrap_or(u32::MAX);
        let room = self.room.clone().acquire_many_owned(size);
        let room = tokio::select! {
            biased;
            () = self.permit.ended.cancelled() => return Err(Closed),
            () = self.frames.closed() => return Err(Closed),
            room = timeout(STALL, room) => room,
        };
        let room = room.map_err(|_| Closed)?.map_err(|_| Closed)?;
        self.frames.send((frame, room)).map_err(|_| Closed)
    }

    /// Returns when the stream has to end.
    pub async fn over(&mut self) {
        tokio::select! {
            () = self.frames.closed() => {}
            () = self.permit.ended.cancelled() => {}
            () = sleep_until(self.until) => {}
            () = self.drain.cancelled() => {}
        }
    }
}

/// Opens a stream: `pump` writes to it until it is done or the stream is over.
pub fn open<P: Future<Output = ()> + Send + 'static>(
    app: &App,
    caller: &Caller,
    pump: impl FnOnce(Sink) -> P,
) -> Result<Response> {
    let permit = app.streams.enter(app, caller)?;
    // Bounded by the room that every frame has to find.
    let (frames, queue) = mpsc::unbounded_channel::<Frame>();
    let sink = Sink {
        frames,
        room: Arc::new(Semaphore::new(BUFFER)),
        until: Instant::now() + LIFE,
        drain: app.drain.clone(),
        permit,
    };
    tokio::spawn(pump(sink));
    // A frame's room is free again when the next one is asked for: then the connection has taken it.
    let frames = stream::unfold((queue, None::<OwnedSemaphorePermit>), |(mut queue, taken)| async move {
        drop(taken);
        let (bytes, room) = queue.recv().await?;
        Some((Ok::<_, Infallible>(bytes), (queue, Some(room))))
    });
    let mut response = Body::from_stream(frames).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// One event. A line break in the data cannot start another field.
pub fn frame(id: Option<u64>, event: &str, data: &str) -> String {
    let mut text = String::with_capacity(data.len() + event.len() + 48);
    if let Some(id) = id {
        text += &format!("id: {id}\n");
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    text += &format!("event: {}\n", event.chars().filter(|c| plain(*c)).collect::<String>());
    for line in data.replace("\r\n", "\n").split(['\n', '\r']) {
        text += &format!("data: {line}\n");
    }
    text += "\n";
    text
}

/// A sign of life that moves the reader's last event number on, where it has one.
pub fn beat(id: Option<u64>) -> String {
    id.map_or_else(|| ": beat\n\n".to_owned(), |id| format!(": beat\nid: {id}\n\n"))
}
