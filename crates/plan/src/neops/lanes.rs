//! Where entities go on by themselves. Steps in a row that are to go in parallel and run on the same type of entity are gone
//! through by each entity on a *lane* of its own; any other step waits for all that come before it.

use super::reference::EntityType;
use std::ops::Range;

/// One step, or several that entities go through on lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub steps: Range<usize>,
    pub lanes: bool,
}

/// The steps in stretches. Of each step: whether it is to go in parallel, and what it runs on.
pub fn stretches(steps: &[(bool, EntityType)]) -> Vec<Stretch> {
    let mut all: Vec<Stretch> = Vec::new();
    for (at, (parallel, on)) in steps.iter().enumerate() {
        let lanes = *parallel && !matches!(on, EntityType::Global | EntityType::Client);
        match all.last_mut().filter(|last| lanes && last.lanes && steps[last.steps.start].1 == *on) {
            Some(last) => last.steps.end = at + 1,
            None => all.push(Stretch { steps: at..at + 1, lanes }),
        }
    }
    for alone in all.iter_mut().filter(|stretch| stretch.steps.len() == 1) {
        alone.lanes = false;
    }
    all
}
