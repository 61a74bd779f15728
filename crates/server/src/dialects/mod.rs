//! The dialects: other job servers' protocols at their original paths, each a thin translation to the one engine.
//!
//! A dialect holds no state and no rules. What it alone understands rides on jobs, workers and records as opaque text.

pub mod silo;
pub mod workflow_graph;

use crate::app::App;
use std::sync::Arc;
use windlass_core::Namespace;
use windlass_product::{Fires, Nothing};

/// What makes the jobs that a change of an item in this namespace sets off.
pub fn fires(app: &App, namespace: &Namespace) -> Arc<dyn Fires> {
    if *namespace == silo::namespace() { Arc::new(silo::trigger::ByDefinition(app.clone())) } else { Arc::new(Nothing) }
}

/// Namespaces in which revisions may have files: those of dialects that take some.
pub fn with_files() -> [Namespace; 1] {
    [silo::namespace()]
}
