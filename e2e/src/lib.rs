//! Starts the real programs and looks at them from outside, as a user would.
#![forbid(unsafe_code)]

mod history;
mod program;

pub use history::{History, submit_until};
pub use program::{Server, Worker, knob, program};
