//! How many jobs are in each state: of a namespace, and of each definition in it. Stores keep these numbers with every change,
//! because counting what grows would cost more with every job.

use crate::model::{
    change::JobChange,
    job::{Job, State},
    name::Namespace,
};
use std::collections::BTreeMap;

/// Jobs by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateCounts([i64; State::ALL.len()]);

impl StateCounts {
    /// By counting.
    pub fn of_all<'a>(jobs: impl Iterator<Item = &'a Job>) -> Self {
        let mut counts = Self::default();
        jobs.for_each(|job| counts.add(job.state, 1));
        counts
    }

    /// Never less than none, whatever a damaged store says.
    pub fn of(&self, state: State) -> u64 {
        u64::try_from(self.0[state as usize]).unwrap_or(0)
    }

    pub fn add(&mut self, state: State, by: i64) {
        self.0[state as usize] += by;
    }

    pub fn is_empty(&self) -> bool {
        self.0 == Self::default().0
    }

    fn each(&self) -> impl Iterator<Item = (State, i64)> {
        State::ALL.into_iter().zip(self.0).filter(|(_, count)| *count != 0)
    }
}

/// Whose jobs are counted: those of a definition, or (no name) all of the namespace. A definition always has a name.
pub fn definition_of(job: &Job) -> &str {
    job.spec.definition.as_ref().map_or("", |definition| &definition.name)
}

/// By how much a number of jobs changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountChange<'a> {
    pub namespace: &'a Namespace,
    /// Empty: all jobs of the namespace, with or without a definition.
    pub definition: &'a str,
    pub state: State,
    pub by: i64,
}

/// What a batch changes, by namespace, definition and state; what comes to nothing is left out.
pub fn changes(jobs: &[JobChange]) -> Vec<CountChange<'_>> {
    let mut sums: BTreeMap<(&Namespace, &str), StateCounts> = BTreeMap::new();
    for change in jobs {
        let (old, new) = (change.old.as_ref(), change.new.as_ref());
        if old.map(|job| job.state) == new.map(|job| job.state) {
            continue;
        }
        let Some(either) = new.or(old) else { continue };
        let (namespace, definition) = (&either.key.namespace, definition_of(either));
        for whose in [Some(""), Some(definition).filter(|name| !name.is_empty())].into_iter().flatten() {
            let sum = sums.entry((namespace, whose)).or_default();
            old.into_iter().for_each(|job| sum.add(job.state, -1));
            new.into_iter().for_each(|job| sum.add(job.state, 1));
        }
    }
    let each = |((namespace, definition), sum): ((_, _), StateCounts)| {
        let changes: Vec<_> = sum.each().map(|(state, by)| CountChange { namespace, definition, state, by }).collect();
        changes
    };
    sums.into_iter().flat_map(each).collect()
}
