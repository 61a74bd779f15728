//! Who is at the other end of a connection, and what it is held to.

use std::{net::SocketAddr, time::Duration};
use thiserror::Error;

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub connections: usize,
    /// From one address; an IPv6 address counts with its whole /64. Loopback is only held to the total.
    pub per_address: usize,
    pub head: Duration,
    pub idle: Duration,
    pub body: Duration,
    /// Bytes a second that a body has to come with once it has been waited for for a while; 0 is no limit.
    pub body_rate: u64,
    pub write: Duration,
    pub handshake: Duration,
    /// How long requests may take to end when the server stops.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            per_address: 1_000,
            head: Duration::from_secs(10),
            idle: Duration::from_secs(120),
            body: Duration::from_secs(15),
            body_rate: 8 << 10,
            write: Duration::from_secs(30),
            handshake: Duration::from_secs(10),
            drain: Duration::from_secs(7),
        }
    }
}

/// Who is at the other end; in the extensions of every request that came over a socket.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pub address: SocketAddr,
    /// The address it reached us at.
    pub local: SocketAddr,
    pub tls: bool,
}

/// The client stopped in the middle of a body.
#[derive(Clone, Copy, Debug, Error)]
#[error("the body stopped arriving, or came too slowly")]
pub struct BodyTimeout;
