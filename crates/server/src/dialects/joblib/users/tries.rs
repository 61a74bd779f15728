//! How often somebody may guess passwords. Counted before a password is checked, so that guesses made together count too.

use crate::peer::network;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::{
    collections::HashMap,
    net::IpAddr,
    time::{Duration, Instant},
};

pub const WITHIN: Duration = Duration::from_secs(300);
/// From one address at one account; from one address; at one account.
const MOST: [u32; 3] = [10, 100, 100];
const REMEMBERED_MAX: usize = 30_000;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Of {
    Both(IpAddr, [u8; 16]),
    Address(IpAddr),
    Account([u8; 16]),
}

#[derive(Default)]
pub struct Tries(Mutex<HashMap<Of, (Instant, u32)>>);

/// One try, which is taken back if it was right.
pub struct Try([Of; 3]);

/// What one address (IPv6: one /64) may begin.
const BEGUN_MOST: u32 = 100;

impl Tries {
    /// Or how long to wait.
    pub fn take(&self, address: IpAddr, account: &str, now: Instant) -> Result<Try, Duration> {
        let of = parts(address, account);
        self.count(of.into_iter().zip(MOST), now)?;
        Ok(Try(of))
    }

    /// The same for what needs no account.
    pub fn take_from(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        self.count([(Of::Address(network(address)), BEGUN_MOST)].into_iter(), now)
    }

    fn count(&self, of: impl ExactSizeIterator<Item = (Of, u32)> + Clone, now: Instant) -> Result<(), Duration> {
        let mut counts = self.0.lock();
        if counts.len() + of.len() > REMEMBERED_MAX {
            counts.retain(|_, (since, _)| now.duration_since(*since) < WITHIN);
        }
        for (of, most) in of.clone() {
            if let Some((since, count)) = counts.get(&of)
                && *count >= most
                && now.duration_since(*since) < WITHIN
            {
                return Err(WITHIN - now.duration_since(*since));
            }
        }
        for (of, _) in of {
            // Where there is no room, what is counted already still is.
            let full = counts.len() >= REMEMBERED_MAX;
            match counts.get_mut(&of) {
                Some(count) if now.duration_since(count.0) < WITHIN => count.1 += 1,
                Some(count) => *count = (now, 1),
                None if full => {}
                None => drop(counts.insert(of, (now, 1))),
            }
        }
        Ok(())
    }

    pub fn was_right(&self, Try(of): Try) {
        let mut counts = self.0.lock();
        for of in of {
            if let Some((_, count)) = counts.get_mut(&of) {
                *count = count.saturating_sub(1);
            }
        }
        // Whoever knows the password may mistype it as often again.
        counts.remove(&of[0]);
    }
}

fn parts(address: IpAddr, account: &str) -> [Of; 3] {
    let address = network(address);
    let mut name = [0; 16];
    name.copy_from_slice(&Sha256::digest(account)[..16]);
    [Of::Both(address, name), Of::Address(address), Of::Account(name)]
}
