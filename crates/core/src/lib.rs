//! The rules of Windlass.
//!
//! Everything that decides what may happen to a job lives here, and nothing else does: no I/O, no clock,
//! no randomness, no async. Time and fresh ids come in with the commands, so the same batch always decides
//! the same, whichever store runs it and however often it has to be repeated.
//!
//! Layers, each knowing only those before it: `model` (plain data), `desk` (the rows of a batch), `moves` (what commands share),
//! `commands` (one rule each), and on top the [`decider`].
//!
//! Start with [`job`] (the state machine) and [`commands::complete`] (one rule, whole); [`decider`] shows how a
//! batch of commands becomes a set of changes.
#![forbid(unsafe_code)]

pub mod cache;
pub mod commands;
pub mod decider;
pub mod desk;
mod model;
mod moves;
pub mod tables;

// By what they are about, not by the layer they lie in.
pub use model::{
    audit, change, counts, credential, definition, digest, event, graph, id, job, keys, limits, link, log, log_count,
    name, payload, policy, principal, record, refusal, reply, run, schedule, select, stage, stall, time, worker,
};
pub use moves::{concurrency, pace, unique};

pub use change::{Decision, JobChange, LogAppend, LogDrop, RecordChange, Wake};
pub use commands::Command;
pub use counts::StateCounts;
pub use decider::{Context, Decider, Step};
pub use event::{About, Event, What};
pub use id::{JobId, LeaseId, RunId};
pub use job::{Attempt, Job, Lease, Outcome, Progress, Reason, Spec, State};
pub use keys::{Access, ChildrenFrom, Head, HeadQuery, JobKey, Keys, RecordKey, Rows, WorkerKey};
pub use limits::Limits;
pub use log::{Chunk, LogForm, LogStream};
pub use name::{Facet, Lane, Namespace, Tags, WorkerId};
pub use payload::Payload;
pub use record::Record;
pub use refusal::Refusal;
pub use reply::{Leased, Reply};
pub use time::{Millis, Timestamp};
