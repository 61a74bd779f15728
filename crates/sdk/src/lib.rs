//! Client and worker loop for Windlass.
//!
//! [`worker::Worker`] claims jobs and runs a handler for each. [`Client`] has one method per call of the native API, with the same nouns and verbs. Errors are [`Error::Problem`] where the
//! server said no, and [`Error::Unreachable`] where nobody knows whether it heard.
#![forbid(unsafe_code)]

mod address;
mod artifacts;
mod certificate;
mod client;
mod error;
mod events;
mod items;
pub mod worker;
mod workflows;

pub use artifacts::Download;
pub use client::{Client, ClientBuilder};
pub use error::Error;
pub use events::EventStream;
pub use windlass_api as api;
