//! Two ways to keep rows for good: one file on disk, or PostgreSQL. Neither knows a rule.
#![forbid(unsafe_code)]

pub mod embedded;
pub mod postgres;
#[cfg(feature = "testing")]
pub mod testing;
mod weight;
