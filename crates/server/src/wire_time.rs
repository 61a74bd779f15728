//! Times as the native API writes them: RFC 3339 in UTC with milliseconds.

use crate::problem::{Problem, Result};
use windlass_core::Timestamp;

pub fn text(at: Timestamp) -> String {
    let time = jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::MAX);
    format!("{time:.3}")
}

pub fn maybe(at: Option<Timestamp>) -> Option<String> {
    at.map(text)
}

pub fn parse(field: &'static str, text: &str) -> Result<Timestamp> {
    let time: jiff::Timestamp = text
        .parse()
        .map_err(|_| Problem::invalid(field, format!("{text:?} is not a time; write it like 2026-01-31T12:00:00Z")))?;
    Ok(Timestamp(time.as_millisecond()))
}

pub use windlass_plan::settings::millis;
