//! Starts the real programs and looks at them from outside, as a user would.
#![forbid(unsafe_code)]

pub mod crowd;
mod graph;
mod history;
mod plain;
mod program;

pub use graph::{Graph, GraphWorker, job};
pub use history::{History, events_so_far, submit_until};
pub use plain::Plain;
pub use program::{ADMIN, Server, Worker, knob, program};
