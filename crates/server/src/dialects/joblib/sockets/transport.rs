//! From requests to sessions: long polling goes to the library as it is, for a WebSocket we agree ourselves and hand over the stream.
//!
//! A session keeps the request that opened it, so it is given one that has only what it needs.

use super::{
    super::{Joblib, Own},
    PAYLOAD_MAX,
};
use crate::{
    dialect::Mount,
    listener::{ConnectionPermit, Peer},
    problem::{Code, Problem},
    route::{Access, Route},
    websocket,
};
use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{Uri, header};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use std::{
    convert::Infallible,
    future::{self, Ready},
    io,
    net::{IpAddr, Ipv4Addr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::watch,
    time::{Instant, sleep},
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tower::Service;

/// With and without the slash: clients send either, and a redirect would end them.
const PATHS: [&str; 2] = ["/socket.io", "/socket.io/"];
/// As the library knows it.
const PATH: &str = "/socket.io/";
/// What of a query means something.
const PARAMETERS: [&str; 4] = ["EIO", "transport", "sid", "b64"];
/// The packet that says nothing: what those who poll hear when the server stops, and when their worker has left. They ask again,
/// unless they end.
const NOTHING_NEW: &str = "6";

/// How long after its worker left a session is expected to end.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// How long each of its polls is held in that time.
const LAST_POLLS: Duration = Duration::from_millis(200);

pub fn routes(on: &Mount<Own>) -> Vec<Route> {
    let both = |path| {
        let post = on.post(path, Access::Open, poll).body_max(PAYLOAD_MAX);
        [on.get(path, Access::Open, get).asks_origin(), post]
    };
    PATHS.into_iter().flat_map(both).collect()
}

/// Kept by a session for as long as it lives.
pub struct Opened {
    pub joblib: Joblib,
    _permit: ConnectionPermit,
    /// Until it has said who it is.
    stranger: Mutex<Option<ConnectionPermit>>,
    /// When a worker left its last room here.
    left: watch::Sender<Option<Instant>>,
}

impl Opened {
    /// Whoever it is has a token.
    pub fn is_known(&self) {
        *self.stranger.lock() = None;
    }

    pub fn worker_left(&self) {
        self.left.send_replace(Some(Instant::now()));
    }

    /// Comes soon after a worker has left, and for a while after every further poll. A client that ends waits for the answer to
    /// its poll, and it may be so quick that it never sends its own goodbye.
    async fn ends(&self) {
        let mut left = self.left.subscribe();
        loop {
            let since = *left.borrow_and_update();
            if since.is_some_and(|since| since.elapsed() < ENDS_WITHIN) {
                return sleep(LAST_POLLS).await;
            }
            if left.changed().await.is_err() {
                return future::pending().await;
            }
        }
    }
}

async fn get(State(joblib): State<Joblib>, request: Request) -> Result<Response, Problem> {
    if websocket::is_asked_for(request.headers()) {
        upgrade(joblib, request)
    } else {
        poll(State(joblib), request).await
    }
}

async fn poll(State(joblib): State<Joblib>, request: Request) -> Result<Response, Problem> {
    let head = bare(&joblib, &request)?;
    let opened = opened(&joblib, &head);
    let request = head.map(|()| request.into_body());
    let mut service = joblib.own.sockets.service.clone();
    let ends = async {
        match &opened {
            Some(opened) => opened.ends().await,
            None => future::pending().await,
        }
    };
    tokio::select! {
        answered = service.call(request) => match answered {
            Ok(response) => Ok(response.map(Body::new)),
            Err(never) => match never {},
        },
        () = joblib.drain.cancelled() => Ok(NOTHING_NEW.into_response()),
        () = ends => Ok(NOTHING_NEW.into_response()),
    }
}

/// What is kept for the session that polls.
fn opened(joblib: &Joblib, head: &http::Request<()>) -> Option<Arc<Opened>> {
    let is_poll = head.method() == http::Method::GET;
    let query = head.uri().query().filter(|_| is_poll)?;
    let sid = query.split('&').find_map(|pair| pair.strip_prefix("sid="))?.parse().ok()?;
    joblib.own.sockets.io.get_socket(sid)?.req_parts().extensions.get::<Arc<Opened>>().cloned()
}

fn upgrade(joblib: Joblib, mut request: Request) -> Result<Response, Problem> {
    let head = bare(&joblib, &request)?;
    let (response, stream) = websocket::accept(&mut request)?;
    let mut service = joblib.own.sockets.service.clone();
    let drain = joblib.drain.clone();
    tokio::spawn(async move {
        let Ok(stream) = stream.await else { return };
        let stream = Draining::new(TokioIo::new(stream), drain);
        if let Err(error) = service.call((stream, head)).await {
            tracing::debug!(%error, "a WebSocket that is not Engine.IO");
        }
    });
    Ok(response)
}

/// The request without everything that a session does not need, and with what it does.
fn bare(joblib: &Joblib, request: &Request) -> Result<http::Request<()>, Problem> {
    let query = request.uri().query().unwrap_or_default();
    let means = |pair: &&str| PARAMETERS.contains(&pair.split('=').next().unwrap_or_default());
    let kept: Vec<&str> = query.split('&').filter(means).collect();
    let uri = format!("{PATH}?{}", kept.join("&"));
    let mut bare = http::Request::new(());
    *bare.uri_mut() = Uri::try_from(uri).map_err(|_| Problem::new(Code::BadRequest, "the query is not legal"))?;
    *bare.method_mut() = request.method().clone();
    if let Some(content) = request.headers().get(header::CONTENT_TYPE) {
        bare.headers_mut().insert(header::CONTENT_TYPE, content.clone());
    }
    if !kept.iter().any(|pair| pair.starts_with("sid=")) {
        bare.extensions_mut().insert(open(joblib, request)?);
    }
    Ok(bare)
}

fn open(joblib: &Joblib, request: &Request) -> Result<Arc<Opened>, Problem> {
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let address = request.extensions().get::<Peer>().map_or(here, |peer| peer.address.ip());
    let full = |_| Problem::new(Code::Unavailable, "too many Socket.IO sessions are open").retry_after(1_000);
    let sockets = &joblib.own.sockets;
    let (permit, stranger) = (sockets.permits.take(address), sockets.strangers.take(address));
    let (permit, stranger) = (permit.map_err(full)?, Mutex::new(Some(stranger.map_err(full)?)));
    let left = watch::Sender::new(None);
    Ok(Arc::new(Opened { joblib: joblib.clone(), _permit: permit, stranger, left }))
}

/// What a client sends that leaves: a close frame, masked with zeros, with the code 1001.
const GOODBYE: &[u8] = &[0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe9];

/// A stream that ends when the server does: then it reads as if the client had said goodbye, which is answered with a close frame. The
/// library's own way to end a session tells clients not to come back.
struct Draining<S> {
    stream: S,
    drain: Pin<Box<WaitForCancellationFutureOwned>>,
    /// What is left to be read of it, once the server stops.
    goodbye: Option<&'static [u8]>,
}

impl<S> Draining<S> {
    fn new(stream: S, drain: CancellationToken) -> Self {
        Self { stream, drain: Box::pin(drain.cancelled_owned()), goodbye: None }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Draining<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.goodbye.is_none() {
            if Pin::new(&mut self.stream).poll_read(cx, buffer)?.is_ready() {
                return Poll::Ready(Ok(()));
            }
            ready!(self.drain.as_mut().poll(cx));
        }
        let left = self.goodbye.take().unwrap_or(GOODBYE);
        let (now, later) = left.split_at(left.len().min(buffer.remaining()));
        buffer.put_slice(now);
        self.goodbye = Some(later);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Draining<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// What lies behind the library's service. Nothing gets here, since every request has the library's path.
#[derive(Clone, Copy, Debug)]
pub struct Nowhere;

impl Service<Request> for Nowhere {
    type Response = Response;
    type Error = Infallible;
    type Future = Ready<Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request) -> Self::Future {
        future::ready(Ok(Problem::new(Code::NotFound, "there is nothing here").into_response()))
    }
}
