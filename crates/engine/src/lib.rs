//! Runs commands: queue, batch, load, decide, write, commit, wake. The only way to change a job.
#![forbid(unsafe_code)]

pub mod clock;
pub mod memory;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;

pub use store::{Store, StoreError};
