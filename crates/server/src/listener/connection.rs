//! One connection, from its first byte to its last.

use super::{
    ConnectionGuard, Peer, Shared,
    bodies::{Arriving, Held, Leaving, Rest},
    head::{self, NoHead},
    watched::{ActiveRequest, Phase, Watched},
};
use crate::{
    last_token::LastToken,
    problem::{Code, Problem},
};
use axum::response::IntoResponse;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

/// A head larger than this is refused. So is one with more than a hundred lines, which is the library's own limit: saying it
/// would only make it prepare that many for each request.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// What a client hears that forgot the TLS.
const PLAIN_REFUSED: &str = "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 101\r\n\
                             connection: close\r\n\r\n\
                             This request came as plain HTTP, and this port expects TLS. Use an address that begins with https://\n";
/// How often a connection that should end is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub async fn serve(stream: TcpStream, address: SocketAddr, guard: ConnectionGuard, shared: &Arc<Shared>) {
    if !says_something(&stream, shared).await {
        return;
    }
    // Answers are written whole; waiting for more to send along would only delay them.
    drop(stream.set_nodelay(true));
    let Ok(local) = stream.local_addr() else { return };
    let peer = Peer { address, local, tls: shared.tls.is_some() };
    // Boxed, so that those who never say anything do not pay for those who do.
    match &shared.tls {
        None => listen(stream, peer, guard, shared).await,
        Some(tls) => Box::pin(listen_tls(stream, tls, peer, guard, shared)).await,
    }
}

/// Buffers are only made for connections that are used: ten thousand silent ones should cost next to nothing.
/// Peeks, because a new stream counts as readable until somebody has tried.
async fn says_something(stream: &TcpStream, shared: &Shared) -> bool {
    let mut byte = [0];
    tokio::select! {
        first = timeout(shared.limits.idle, stream.peek(&mut byte)) => matches!(first, Ok(Ok(1..))),
        () = shared.app.drain.cancelled() => false,
    }
}

async fn listen_tls(stream: TcpStream, tls: &TlsAcceptor, peer: Peer, guard: ConnectionGuard, shared: &Arc<Shared>) {
    if speaks_http(&stream).await {
        return refuse_plain(stream, shared).await;
    }
    match timeout(shared.limits.handshake, tls.accept(stream)).await {
        Ok(Ok(stream)) => listen(stream, peer, guard, shared).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

/// A TLS handshake begins with byte 22; an HTTP request with its method.
async fn speaks_http(stream: &TcpStream) -> bool {
    let mut first = [0];
    matches!(stream.peek(&mut first).await, Ok(1)) && first[0].is_ascii_uppercase()
}

async fn refuse_plain(mut stream: TcpStream, shared: &Shared) {
    tracing::debug!("a client sent HTTP without TLS to a port that expects TLS");
    let answer = async {
        stream.write_all(PLAIN_REFUSED.as_bytes()).await?;
        stream.shutdown().await?;
        // What is unread when a connection is closed takes the answer with it.
        let mut rest = [0; 1 << 10];
        let mut left = HEAD_BYTES_MAX;
        while let count @ 1.. = stream.read(&mut rest).await? {
            left = left.checked_sub(count).ok_or(std::io::ErrorKind::InvalidData)?;
        }
        std::io::Result::Ok(())
    };
    drop(timeout(shared.limits.handshake, answer).await);
}

async fn listen<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    mut stream: S,
    peer: Peer,
    guard: ConnectionGuard,
    shared: &Arc<Shared>,
) {
    let first = tokio::select! {
        first = head::first(&mut stream, &shared.heads, &shared.limits, HEAD_BYTES_MAX) => first,
        () = shared.app.drain.cancelled() => return,
    };
    match first {
        Ok(first) => Box::pin(speak(stream, first, peer, guard, shared)).await,
        Err(NoHead::Crowded) => shared.app.metrics.refused_connection("heads"),
        Err(why @ (NoHead::Ended | NoHead::Late)) => tracing::debug!(?why, "a connection ended before its first head"),
    }
}

/// Answers the head that is there already and everything that follows.
async fn speak<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    first: Bytes,
    peer: Peer,
    guard: ConnectionGuard,
    shared: &Arc<Shared>,
) {
    let phase = Phase::default();
    let watched = Watched::new(stream, first, phase.clone(), shared.limits, shared.heads.clone(), guard);
    let stream = TokioIo::new(watched);
    let service = {
        let (phase, shared, token) = (phase.clone(), shared.clone(), LastToken::default());
        service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer);
            request.extensions_mut().insert(token.clone());
            // At once: the library looks for more to read before it begins to answer.
            answer(request, phase.busy(), shared.clone())
        })
    };
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEAD_BYTES_MAX).header_read_timeout(None);
    let connection = builder.serve_connection(stream, service).with_upgrades();
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return note(ended),
        () = shared.app.drain.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    // A connection that was never used does not end by itself.
    while timeout(LOOK_EVERY, connection.as_mut()).await.is_err() {
        if !phase.is_busy() {
            return;
        }
    }
}

fn note(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn answer(
    request: Request<Incoming>,
    active: ActiveRequest,
    shared: Arc<Shared>,
) -> Result<Response<Leaving>, Infallible> {
    let mut response = if is_ambiguous(request.headers()) {
        refuse_framing()
    } else {
        let request = Arriving::body(request, &shared.limits, active.phase());
        shared.service.answer(request).await
    };
    // After an upgrade the stream belongs to somebody else, who must not be taken for an idle client.
    let active = if response.status() == StatusCode::SWITCHING_PROTOCOLS { active.endless() } else { active };
    let active = match active.phase().take_rest() {
        None => Held::Alone(active),
        Some(rest) => Held::Shared(see_off(rest, active, &mut response, &shared)),
    };
    let endless = is_event_stream(response.headers());
    let stop = endless.then(|| shared.app.drain.clone().cancelled_owned());
    Ok(response.map(|body| Leaving::new(body, active, stop)))
}

/// A request is answered before all of its body was read.
fn see_off(
    rest: Rest,
    active: ActiveRequest,
    response: &mut Response<axum::body::Body>,
    shared: &Shared,
) -> Arc<ActiveRequest> {
    if !rest.is_small() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let active = Arc::new(active);
    rest.discard(shared.limits.body, active.clone());
    active
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|content| content.as_bytes().starts_with(b"text/event-stream"))
}

/// Two readers of such a request could disagree where it ends. The library refuses most of them, and closes after a request
/// that has a length beside its chunks.
fn is_ambiguous(headers: &HeaderMap) -> bool {
    let mut encodings = headers.get_all(header::TRANSFER_ENCODING).iter();
    match (encodings.next(), encodings.next()) {
        (None, _) => false,
        (Some(one), None) => !one.as_bytes().eq_ignore_ascii_case(b"chunked"),
        (Some(_), Some(_)) => true,
    }
}

fn refuse_framing() -> Response<axum::body::Body> {
    let problem = Problem::new(Code::BadRequest, "it is not clear where this request ends: send one Transfer-Encoding");
    let mut response = problem.into_response();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}
