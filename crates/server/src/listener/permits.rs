//! How many connections there may be, in all and from one address.

use crate::peer;
use parking_lot::Mutex;
use std::{collections::HashMap, net::IpAddr, sync::Arc};

pub struct ConnectionPermits {
    total_max: usize,
    per_address_max: usize,
    taken: Mutex<InUse>,
}

#[derive(Default)]
struct InUse {
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

    /// Networks with connections.
    pub fn networks(&self) -> usize {
        self.taken.lock().by_address.len()
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
    (!address.to_canonical().is_loopback()).then(|| peer::network(address))
}
