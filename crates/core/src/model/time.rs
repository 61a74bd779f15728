//! Time as the rules see it: milliseconds, always handed in.

use serde::{Deserialize, Serialize};
use std::ops::{Add, Sub};

/// Milliseconds since the Unix epoch, by the clock of whoever is the authority (see the stores).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

/// A length of time in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub i64);

impl Millis {
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1_000))
    }
}

/// Saturating on purpose: a caller may ask for a lease of 2^63 seconds, and it must not wrap into the past.
impl Add<Millis> for Timestamp {
    type Output = Timestamp;
    fn add(self, length: Millis) -> Timestamp {
        Timestamp(self.0.saturating_add(length.0))
    }
}

impl Sub for Timestamp {
    type Output = Millis;
    fn sub(self, earlier: Timestamp) -> Millis {
        Millis(self.0.saturating_sub(earlier.0))
    }
}
