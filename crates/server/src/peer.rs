//! Who is at the other end of a connection, and what it is held to.

use http::HeaderMap;
use std::{
    net::{IpAddr, Ipv6Addr, SocketAddr},
    str::FromStr,
    time::Duration,
};
use thiserror::Error;

/// Addresses of a request's way that are looked at.
const HOPS_MAX: usize = 16;

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

/// What an address is counted as: a client with one IPv6 address has a whole /64 of them.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64))),
        v4 => v4,
    }
}

/// Addresses with the same first bits: `10.0.0.0/8`, `2001:db8::/32`, or one address alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// As IPv6.
    first: u128,
    bits: u32,
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0:?} is not an address or a network, e.g. 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32")]
pub struct NotANetwork(String);

impl FromStr for Network {
    type Err = NotANetwork;
    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        let wrong = || NotANetwork(text.to_owned());
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(all), str::parse).ok().filter(|bits| *bits <= all).ok_or_else(wrong)?;
        Ok(Self { first: as_v6(address), bits: 128 - all + bits })
    }
}

impl Network {
    pub fn has(&self, address: IpAddr) -> bool {
        let differ = self.first ^ as_v6(address);
        self.bits == 0 || differ >> (128 - self.bits) == 0
    }
}

fn as_v6(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// Who calls: who is at the other end, or if that is one of the proxies, the last one in `X-Forwarded-For` that is not. What is
/// further in front any client may have written.
pub fn client(peer: IpAddr, headers: &HeaderMap, proxies: &[Network]) -> IpAddr {
    let is_proxy = |address: IpAddr| proxies.iter().any(|network| network.has(address));
    let lines = headers.get_all("x-forwarded-for").iter().rev();
    let hops = lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.rsplit(',')).take(HOPS_MAX);
    let mut client = peer;
    for hop in hops {
        match address(hop.trim()) {
            Some(before) if is_proxy(client) => client = before,
            _ => break,
        }
    }
    client
}

/// Some proxies add the port.
fn address(text: &str) -> Option<IpAddr> {
    text.parse().ok().or_else(|| text.parse().ok().map(|socket: SocketAddr| socket.ip()))
}

/// The client stopped in the middle of a body.
#[derive(Clone, Copy, Debug, Error)]
#[error("the body stopped arriving, or came too slowly")]
pub struct BodyTimeout;
