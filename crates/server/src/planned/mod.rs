//! What is known of runs that are being planned: their turns, their plans, and which of them wait.

pub mod later;
pub mod plans;

use windlass_core::{JobId, Namespace, RunId};

/// Turns of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    pub namespace: Namespace,
    pub run: RunId,
    pub jobs: Vec<Option<JobId>>,
    /// Another one when a turn comes, goes, or is told again.
    pub mark: u64,
}

/// What came of the turns of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    /// So many were decided.
    Turns(usize),
    /// Somebody else holds what they need.
    NotYet,
}
