//! The dialects: other job servers' protocols at their original paths, each a thin translation to the one engine.
//!
//! A dialect holds no state and no rules. What it alone understands rides on jobs, workers and records as opaque text.

pub mod silo;
pub mod workflow_graph;
