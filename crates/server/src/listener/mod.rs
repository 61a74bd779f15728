//! The accept loop: who may connect, for how long, and how it all ends.
//!
//! Our own, because what comes with the HTTP library has no limits that hold: a head that never ends, a body that stops
//! half-way, a reader that does not read and ten thousand connections that say nothing must cost their senders more than us.
//!
//! | what | limit |
//! |---|---|
//! | a request's head | so long from its first byte ([`Limits::head`]) |
//! | all heads that are not finished | so much memory together ([`head`]) |
//! | a connection without a request | so long ([`Limits::idle`]) |
//! | a pause within a body, or of a client that does not read its answer | so long ([`Limits::body`], [`Limits::write`]) |
//! | a body that comes in drops | so much a second at least ([`Limits::body_rate`]) |
//! | connections in all, and from one address | so many ([`Limits::connections`], [`Limits::per_address`]) |
//!
//! A connection that was upgraded (a WebSocket) still counts, is still cut off if it does not read, and is still waited for at the
//! end; see [`ConnectionGuard`].

pub mod bodies;
mod connection;
pub mod head;
pub mod permits;
mod tls;
mod watched;

pub use permits::{ConnectionPermit, ConnectionPermits};
pub use tls::{TlsError, acceptor};

pub use crate::peer::{BodyTimeout, Limits, Peer};

use crate::{app::App, metrics::Open, service::Service};
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::{TaskTracker, task_tracker::TaskTrackerToken};

/// How long to leave `accept` alone when the system has no more files or memory to give.
const BREATH: Duration = Duration::from_millis(100);
/// Connections that are told why they are turned away, at the same time. Others are simply closed.
const FAREWELLS: usize = 64;
const FAREWELL: Duration = Duration::from_secs(1);

/// What all connections share.
struct Shared {
    app: App,
    service: Service,
    tls: Option<TlsAcceptor>,
    limits: Limits,
    permits: Arc<ConnectionPermits>,
    farewells: Semaphore,
    heads: head::Allowance,
}

/// What a connection has for as long as its stream lives, whoever serves it: its place, its part of the gauge, and that the end of
/// the server waits for it. It goes with the stream, so after an upgrade it is whoever has the stream then who gives it back.
struct ConnectionGuard {
    _permit: ConnectionPermit,
    _open: Open,
    _task: TaskTrackerToken,
}

/// Serves until [`App::drain`] is cancelled, then lets requests finish and closes what is left.
pub async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, app: App, service: Service, limits: Limits) {
    let permits = Arc::new(ConnectionPermits::new(limits.connections, limits.per_address));
    let (farewells, heads) = (Semaphore::new(FAREWELLS), head::Allowance::default());
    let shared = Arc::new(Shared { app, service, tls, limits, permits, farewells, heads });
    let tasks = TaskTracker::new();
    let drain = shared.app.drain.clone();
    tokio::select! {
        () = drain.cancelled() => {}
        () = accept_all(&listener, &shared, &tasks) => {}
    }
    // Closed before the waiting begins, so that a load balancer sends the next one elsewhere.
    drop(listener);
    shared.app.engine.stop_waiting();
    tasks.close();
    if timeout(limits.drain, tasks.wait()).await.is_err() {
        tracing::warn!(left = tasks.len(), "some requests did not finish in time and were aborted");
    }
}

async fn accept_all(listener: &TcpListener, shared: &Arc<Shared>, tasks: &TaskTracker) {
    let mut failing = false;
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                failing = false;
                admit(stream, address, shared, tasks);
            }
            Err(error) if concerns_one_connection(&error) => {}
            Err(error) => {
                // Said once, not ten times a second for as long as it lasts.
                if !std::mem::replace(&mut failing, true) {
                    tracing::error!(%error, "no more connections can be accepted for now");
                }
                tokio::time::sleep(BREATH).await;
            }
        }
    }
}

fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

fn admit(stream: TcpStream, address: SocketAddr, shared: &Arc<Shared>, tasks: &TaskTracker) {
    let metrics = &shared.app.metrics;
    match shared.permits.take(address.ip()) {
        Ok(permit) => {
            let guard = ConnectionGuard { _permit: permit, _open: metrics.connection(), _task: tasks.token() };
            let shared = shared.clone();
            tokio::spawn(async move { connection::serve(stream, address, guard, &shared).await });
        }
        Err(full) => {
            metrics.refused_connection(full.name());
            if shared.tls.is_none() && shared.farewells.available_permits() > 0 {
                let shared = shared.clone();
                tasks.spawn(async move {
                    let Ok(_permit) = shared.farewells.try_acquire() else { return };
                    drop(timeout(FAREWELL, turn_away(stream)).await);
                });
            }
        }
    }
}

/// Says why, and waits for the other side to close: closing first would throw away what was said.
async fn turn_away(mut stream: TcpStream) -> io::Result<()> {
    let body = r#"{"type":"/docs/errors#unavailable","title":"The server cannot do this now","status":503,"detail":"too many connections are open","retry_after_ms":1000}"#;
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\nretry-after: 1\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await?;
    let mut rest = [0; 1_024];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}
