//! How many connections there may be, in all and from one address.

use parking_lot::Mutex;
use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

pub struct ConnectionPermits {
    total_max: usize,
    per_address_max: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    total: usize,
    by_address: HashMap<IpAddr, usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    Total,
    Address,
}

impl Full {
    pub fn name(self) -> &'static str {
        match self {
            Full::Total => "total",
            Full::Address => "address",
        }
    }
}

/// One connection's place, given back when dropped.
pub struct ConnectionPermit {
    permits: Arc<ConnectionPermits>,
    counted_by: Option<IpAddr>,
}

impl ConnectionPermits {
    pub fn new(total_max: usize, per_address_max: usize) -> Self {
        Self { total_max, per_address_max, taken: Mutex::default() }
    }

    pub fn take(self: &Arc<Self>, address: IpAddr) -> Result<ConnectionPermit, Full> {
        let counted_by = network(address);
        let mut taken = self.taken.lock();
        if taken.total >= self.total_max {
            return Err(Full::Total);
        }
        if let Some(network) = counted_by {
            let from_there = taken.by_address.entry(network).or_default();
            if *from_there >= self.per_address_max {
                return Err(Full::Address);
            }
            *from_there += 1;
        }
        taken.total += 1;
        Ok(ConnectionPermit { permits: self.clone(), counted_by })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut taken = self.permits.taken.lock();
        taken.total -= 1;
        let Some(network) = self.counted_by else { return };
        if let Some(from_there) = taken.by_address.get_mut(&network) {
            *from_there -= 1;
            if *from_there == 0 {
                taken.by_address.remove(&network);
            }
        }
    }
}

/// What an address is counted as. None for loopback: a reverse proxy or a test on this machine is everybody.
fn network(address: IpAddr) -> Option<IpAddr> {
    let address = address.to_canonical();
    if address.is_loopback() {
        return None;
    }
    Some(match address {
        IpAddr::V4(_) => address,
        // Whoever has one IPv6 address has a whole /64 of them.
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn places_are_counted_in_all_and_by_network_and_given_back() {
        let permits = Arc::new(ConnectionPermits::new(4, 2));
        let first = permits.take(at("10.0.0.1")).unwrap();
        let _second = permits.take(at("::ffff:10.0.0.1")).unwrap();
        assert_eq!(permits.take(at("10.0.0.1")).err(), Some(Full::Address));
        drop(first);
        let _third = permits.take(at("10.0.0.1")).unwrap();
        let six = [at("2001:db8::1"), at("2001:db8::ffff")].map(|address| permits.take(address).unwrap());
        assert_eq!(permits.take(at("127.0.0.1")).err(), Some(Full::Total));
        drop(six);
        assert_eq!(permits.taken.lock().by_address.len(), 1, "networks without connections are forgotten");
    }

    #[test]
    fn loopback_is_only_held_to_the_total() {
        let permits = Arc::new(ConnectionPermits::new(3, 1));
        let taken: Vec<_> = (0..3).map(|_| permits.take(at("127.0.0.1")).unwrap()).collect();
        assert_eq!(permits.take(at("::1")).err(), Some(Full::Total));
        drop(taken);
        assert!(permits.take(at("::1")).is_ok());
    }
}
