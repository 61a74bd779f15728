//! Runs commands: queue, batch, load, decide, write, commit, wake. The only way to change a job.
#![forbid(unsafe_code)]

pub mod clock;
pub mod memory;
pub mod store;

pub use store::{Store, StoreError};
