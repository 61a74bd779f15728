//! Socket.IO: the wake-ups beside the calls. What happened is told to those in the rooms it concerns, and a worker whose last
//! socket is gone is doubted.
//!
//! One [`pump`] for a server follows the events of the namespace, so what one server committed reaches the sockets of another. All
//! that is said here is a hint: whoever misses it finds out by asking.

mod audience;
mod pump;
pub mod results;
pub mod said;
pub mod say;
mod session;
pub mod ties;
mod transport;

use crate::listener::ConnectionPermits;
use audience::Audience;
use results::Results;
use socketioxide::{SocketIo, handler::ConnectHandler, service::SocketIoService};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use ties::Ties;
use tokio::runtime::Handle;
use transport::Nowhere;

pub use audience::{Listening, listen};
pub use transport::routes;

/// Bytes of one body or message, as clients are told.
const PAYLOAD_MAX: usize = 1_000_000;
const PING_EVERY: Duration = Duration::from_secs(25);
const PONG_WITHIN: Duration = Duration::from_secs(20);
/// A session that has not said who it is ends after this time, and so does an upgrade that is not finished.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Packets that may wait for a reader that is slow. More are dropped.
const WAITING_MAX: usize = 128;
/// Read at a time from a WebSocket: its packets are small, and each connection has this for as long as it is open.
const READ_BUFFER: usize = 4 << 10;
/// Sessions in all, and from one address: those that poll hold no connection, so they are counted here.
const SESSIONS_MAX: usize = 10_000;
const SESSIONS_PER_ADDRESS: usize = 1_000;
/// The same for those that have not said who they are yet: however many come, places and connections are left for the others.
const STRANGERS_MAX: usize = 1_000;
const STRANGERS_PER_ADDRESS: usize = 250;

pub struct Sockets {
    service: SocketIoService<Nowhere>,
    io: SocketIo,
    permits: Arc<ConnectionPermits>,
    strangers: Arc<ConnectionPermits>,
    audience: Audience,
    ties: Ties,
    results: Results,
    /// Where the pump runs. None: wherever somebody first listens.
    runtime: OnceLock<Handle>,
}

impl Default for Sockets {
    fn default() -> Self {
        Self::new()
    }
}

impl Sockets {
    pub fn new() -> Self {
        let builder = SocketIo::builder()
            .ping_interval(PING_EVERY)
            .ping_timeout(PONG_WITHIN)
            .upgrade_timeout(CONNECT_WITHIN)
            .connect_timeout(CONNECT_WITHIN)
            .max_payload(PAYLOAD_MAX as u64)
            .max_buffer_size(WAITING_MAX)
            .ws_max_message_size(PAYLOAD_MAX)
            .ws_max_frame_size(PAYLOAD_MAX)
            .ws_read_buffer_size(READ_BUFFER);
        let (service, io) = builder.build_with_inner_svc(Nowhere);
        io.ns("/", session::begin.with(session::admit));
        let permits = Arc::new(ConnectionPermits::new(SESSIONS_MAX, SESSIONS_PER_ADDRESS));
        let strangers = Arc::new(ConnectionPermits::new(STRANGERS_MAX, STRANGERS_PER_ADDRESS));
        let (audience, ties, results, runtime) = Default::default();
        Self { service, io, permits, strangers, audience, ties, results, runtime }
    }

    /// Whoever listens first may do so on threads that are for slow work.
    pub fn run_here(&self) {
        self.runtime.get_or_init(Handle::current);
    }

    fn runtime(&self) -> Handle {
        self.runtime.get().cloned().unwrap_or_else(Handle::current)
    }
}
