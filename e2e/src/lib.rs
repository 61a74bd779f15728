//! Starts the real programs and looks at them from outside, as a user would.
#![forbid(unsafe_code)]

pub mod crowd;
mod history;
mod program;

pub use history::{History, submit_until};
pub use program::{ADMIN, Server, Worker, knob, program};
