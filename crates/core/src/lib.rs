//! The rules of Windlass.
//!
//! Everything that decides what may happen to a job lives here, and nothing else does: no I/O, no clock,
//! no randomness, no async. Time and fresh ids come in with the commands, so the same batch always decides
//! the same, whichever store runs it and however often it has to be repeated.
//!
//! Start with [`job`] (the state machine) and [`commands::complete`] (one rule, whole); [`decider`] shows how a
//! batch of commands becomes a set of changes.
#![forbid(unsafe_code)]

// The tables the tests run on are shared with the tests outside, which know this crate by its name.
#[cfg(test)]
extern crate self as windlass_core;

pub mod cache;
pub mod change;
pub mod commands;
pub mod concurrency;
pub mod decider;
pub mod definition;
pub mod desk;
mod digest;
pub mod event;
pub mod graph;
pub mod id;
pub mod job;
pub mod keys;
pub mod life;
pub mod limits;
pub mod log;
pub mod log_count;
pub mod name;
pub mod pace;
mod parents;
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
pub mod tables;
pub mod time;
pub mod unique;
pub mod worker;

pub use change::{Decision, JobChange, LogAppend, LogDrop, RecordChange, Wake};
pub use commands::Command;
pub use decider::{Context, Decider, Step};
pub use event::{Event, What};
pub use id::{JobId, LeaseId, RunId};
pub use job::{Attempt, Job, Lease, Outcome, Progress, Reason, Spec, State};
pub use keys::{Head, HeadQuery, JobKey, Keys, RecordKey, Rows, WorkerKey};
pub use limits::Limits;
pub use log::{Chunk, LogForm, LogStream};
pub use name::{Facet, Lane, Namespace, Tags, WorkerId};
pub use payload::Payload;
pub use record::Record;
pub use refusal::Refusal;
pub use reply::{Leased, Reply};
pub use time::{Millis, Timestamp};

/// Keeps stored rows short: a field at its default is not written at all.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
