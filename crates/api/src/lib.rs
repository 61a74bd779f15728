//! What the native API says on the wire: requests, replies, events and the problem document.
//!
//! Server, SDK and command line share these types, so that none of them can drift. Times are RFC 3339 texts in UTC,
//! lengths are whole milliseconds and say so in their names, payloads are any JSON and are never re-written on the way.
#![forbid(unsafe_code)]

pub mod artifact;
pub mod definition;
pub mod event;
pub mod fields;
pub mod graph;
pub mod item;
pub mod job;
pub mod lease;
pub mod log;
pub mod object;
pub mod overview;
pub mod page;
pub mod problem;
pub mod pulse;
pub mod schedule;
pub mod session;
pub mod settings;
pub mod stats;
pub mod token;
pub mod why;
pub mod worker;
pub mod workflow;

pub use problem::{Code, Problem};
pub use serde_json::value::RawValue;
pub use settings::JobSettings;
pub use uuid::Uuid;

/// Any JSON, stored unchanged.
pub type Json = Box<RawValue>;

/// As digests are written.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// `1 job`, `2 jobs`: for nouns whose plural ends in s.
pub fn count_of(count: usize, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
