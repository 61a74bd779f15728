//! How often somebody may guess passwords. Counted before a password is checked, so that guesses made together count too.

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::{
    collections::HashMap,
    net::IpAddr,
    time::{Duration, Instant},
};

const WITHIN: Duration = Duration::from_secs(300);
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

impl Tries {
    /// Or how long to wait.
    pub fn take(&self, address: IpAddr, account: &str, now: Instant) -> Result<Try, Duration> {
        let of = parts(address, account);
        let mut counts = self.0.lock();
        if counts.len() + of.len() > REMEMBERED_MAX {
            counts.retain(|_, (since, _)| now.duration_since(*since) < WITHIN);
        }
        for (of, most) in of.iter().zip(MOST) {
            if let Some((since, count)) = counts.get(of)
                && *count >= most
                && now.duration_since(*since) < WITHIN
            {
                return Err(WITHIN - now.duration_since(*since));
            }
        }
        for of in of {
            // Where there is no room, what is counted already still is.
            let full = counts.len() >= REMEMBERED_MAX;
            match counts.get_mut(&of) {
                Some(count) if now.duration_since(count.0) < WITHIN => count.1 += 1,
                Some(count) => *count = (now, 1),
                None if full => {}
                None => drop(counts.insert(of, (now, 1))),
            }
        }
        Ok(Try(of))
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

/// An IPv6 address counts with its whole /64.
fn parts(address: IpAddr, account: &str) -> [Of; 3] {
    let address = match address.to_canonical() {
        IpAddr::V6(six) => IpAddr::V6((u128::from(six) & (u128::MAX << 64)).into()),
        four => four,
    };
    let mut name = [0; 16];
    name.copy_from_slice(&Sha256::digest(account)[..16]);
    [Of::Both(address, name), Of::Address(address), Of::Account(name)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    #[test]
    fn guessing_ends_after_ten_and_begins_again_later() {
        let (tries, now) = (Tries::default(), Instant::now());
        for _ in 0..10 {
            assert!(tries.take(ip(1), "a@x", now).is_ok());
        }
        assert_eq!(tries.take(ip(1), "a@x", now).err(), Some(WITHIN));
        assert!(tries.take(ip(2), "a@x", now).is_ok(), "somebody else at the same account");
        assert!(tries.take(ip(1), "b@x", now).is_ok(), "the same at another account");
        assert!(tries.take(ip(1), "a@x", now + WITHIN).is_ok());
    }

    #[test]
    fn one_address_and_one_account_have_limits_of_their_own() {
        let (tries, now) = (Tries::default(), Instant::now());
        let many = |from: u8| (0..100).all(|at| tries.take(ip(from), &format!("{at}@x"), now).is_ok());
        assert!(many(1) && tries.take(ip(1), "new@x", now).is_err(), "one address");
        let (tries, now) = (Tries::default(), Instant::now());
        assert!((0..100).all(|from| tries.take(ip(from), "a@x", now).is_ok()));
        assert!(tries.take(ip(200), "a@x", now).is_err(), "one account");
    }

    #[test]
    fn being_right_costs_nothing() {
        let (tries, now) = (Tries::default(), Instant::now());
        for _ in 0..300 {
            let one = tries.take(ip(1), "a@x", now).unwrap_or_else(|_| panic!("refused"));
            tries.was_right(one);
        }
    }
}
