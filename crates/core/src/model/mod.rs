//! Plain data: what is stored, asked, answered and told. Nothing here knows the desk.

pub mod audit;
pub mod change;
pub mod counts;
pub mod credential;
pub mod definition;
pub mod digest;
pub mod event;
pub mod graph;
pub mod id;
pub mod job;
pub mod keys;
pub mod limits;
pub mod link;
pub mod log;
pub mod log_count;
pub mod name;
pub mod payload;
pub mod policy;
pub mod principal;
pub mod record;
pub mod refusal;
pub mod reply;
pub mod run;
pub mod schedule;
pub mod select;
pub mod stage;
pub mod stall;
pub mod time;
pub mod worker;

/// Keeps stored rows short: a field at its default is not written at all.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
