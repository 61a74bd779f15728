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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_people_write_them() {
        for (text, millis) in [
            ("250ms", 250),
            ("0s", 0),
            ("90s", 90_000),
            ("5m", 300_000),
            ("1.5h", 5_400_000),
            ("0.1s", 100),
            ("7 d", 604_800_000),
            ("1w", 604_800_000),
            ("2min", 120_000),
        ] {
            assert_eq!(text.parse(), Ok(Millis(millis)), "{text}");
        }
        for (text, why) in [
            ("", "not a duration"),
            ("s", "not a duration"),
            ("-1s", "not a duration"),
            ("1.2.3s", "not a duration"),
            ("5", "no unit of time"),
            ("5 parsecs", "not a unit of time"),
            ("5M", "not a unit of time"),
            ("1h30m", "not a unit of time"),
            ("1e3s", "not a unit of time"),
            ("99999999999999d", "too long"),
        ] {
            let told = text.parse::<Millis>().unwrap_err();
            assert!(told.contains(why), "{text}: {told}");
        }
    }
}
