//! What becomes of a run that fails: whether anything was done that has to be undone, and in which order.

use std::collections::BTreeMap;

/// An execute job, the last of its tries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran<Id> {
    pub job: Id,
    /// Its place among the steps.
    pub step: usize,
    /// A worker had it, or one of its tries.
    pub claimed: bool,
    pub pure: bool,
    pub reversible: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<Id> {
    /// Nothing can have happened.
    Safe,
    /// To be undone, one wave after the other.
    RollBack(Vec<Vec<Id>>),
    /// Something happened that nothing undoes, so nothing is.
    Blocked,
}

/// Waves are the steps in reverse order; what a worker began counts as done, whatever came of it.
pub fn classify<Id: Clone>(ran: &[Ran<Id>]) -> Verdict<Id> {
    let done: Vec<&Ran<Id>> = ran.iter().filter(|ran| ran.claimed && !ran.pure).collect();
    if done.is_empty() {
        return Verdict::Safe;
    }
    if done.iter().any(|ran| !ran.reversible) {
        return Verdict::Blocked;
    }
    let mut waves: BTreeMap<usize, Vec<Id>> = BTreeMap::new();
    for ran in done {
        waves.entry(ran.step).or_default().push(ran.job.clone());
    }
    Verdict::RollBack(waves.into_values().rev().collect())
}
