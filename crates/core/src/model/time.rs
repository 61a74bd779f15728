//! Time as the rules see it: milliseconds, always handed in.

use serde::{Deserialize, Serialize};
use std::{
    ops::{Add, Sub},
    str::FromStr,
};

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

/// What a length may have: some 280,000 years, still exact as a number with decimals. More is a slip of the finger.
const LENGTH_MAX: f64 = 9e15;
const UNITS: [(&str, f64); 8] = [
    ("ms", 1.0),
    ("s", 1e3),
    ("sec", 1e3),
    ("m", 60e3),
    ("min", 60e3),
    ("h", 3_600e3),
    ("d", 86_400e3),
    ("w", 604_800e3),
];

/// The one way to write a length of time, wherever people write one: a number and its unit, `250ms`, `90s`, `1.5h`, `7d`.
impl FromStr for Millis {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = (&text[..digits], text[digits..].trim());
        let wrong = |why: String| format!("{text:?} is not a duration{why}; write it like 250ms, 90s, 5m, 2h or 7d");
        let number: f64 = number.parse().map_err(|_| wrong(String::new()))?;
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(|| match unit {
            "" => wrong(": it has no unit of time".into()),
            _ => wrong(format!(": {unit:?} is not a unit of time")),
        })?;
        let millis = (number * factor).round();
        if millis > LENGTH_MAX { Err(format!("{text:?} is too long")) } else { Ok(Self(millis as i64)) }
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
