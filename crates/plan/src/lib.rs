//! Workflows: the format of a definition, all that can be wrong with it, and what comes next in a run of it.
//!
//! Pure: nothing here reads a store, a clock or a folder. [`workflow::Workflow::parse`] reads a definition, [`plan::Plan`] makes
//! a run's jobs from it and decides the steps whose turn has come. Steps without expressions need none of this once the
//! run is made: the graph in the rules knows what follows.
#![forbid(unsafe_code)]

mod cost;
pub mod expr;
mod faults;
pub mod format;
pub mod meter;
pub mod neops;
pub mod nodes;
pub mod pattern;
pub mod plan;
pub mod retry;
pub mod settings;
pub mod template;
pub mod vars;
pub mod workflow;

pub use format::{BYTES_MAX, Fault, is_native};
pub use meter::{Budget, Meter};
pub use workflow::Workflow;
