//! The jobs that wait for a job, page by page: one job may have any number of them.

use super::{Desk, Stop};
use crate::model::keys::{ChildrenFrom, JobKey, Keys};
use std::collections::HashMap;

#[derive(Default)]
pub(super) struct ChildrenPage {
    /// How many were asked for; fewer found means there are no more.
    asked: usize,
    jobs: Vec<JobKey>,
}

impl ChildrenPage {
    fn is_last(&self) -> bool {
        self.jobs.len() < self.asked
    }
}

impl Desk {
    /// The first `most` of these jobs, and the one behind them if there are more.
    pub(crate) fn children(&mut self, at: &ChildrenFrom, most: usize) -> Result<(Vec<JobKey>, Option<JobKey>), Stop> {
        self.want_children([(at.clone(), most)])?;
        let page = &self.children[at];
        // New ones behind a page that may not be the last come with the next page.
        let end = page.jobs.last().filter(|_| !page.is_last());
        let new = self.new_children.get(&at.parent).into_iter().flatten();
        let new = new.filter(|key| key.id >= at.first && end.is_none_or(|end| *key <= end));
        let mut all: Vec<JobKey> = page.jobs.iter().chain(new).cloned().collect();
        all.sort();
        let next = all.get(most).cloned();
        all.truncate(most);
        Ok((all, next))
    }

    /// Asks for the first so many children of many jobs at once. Their rows come along.
    pub(crate) fn want_children(
        &mut self,
        wanted: impl IntoIterator<Item = (ChildrenFrom, usize)>,
    ) -> Result<(), Stop> {
        let mut missing = false;
        for (at, most) in wanted {
            // One more tells whether these are all.
            let most = most.saturating_add(1);
            if self.children.get(&at).is_none_or(|page| page.asked < most && !page.is_last()) {
                let asked = self.wanted.children.entry(at).or_default();
                *asked = most.max(*asked);
                missing = true;
            }
        }
        if missing { Err(Stop::Need) } else { Ok(()) }
    }

    pub(super) fn know_children(&mut self, asked: &Keys, mut found: HashMap<ChildrenFrom, Vec<JobKey>>) {
        for (at, &asked) in &asked.children {
            let jobs = found.remove(at).unwrap_or_default();
            self.children.insert(at.clone(), ChildrenPage { asked, jobs });
        }
    }

    /// Dependents outside runs that this batch has told of an end so far.
    pub(crate) fn passed_on(&self) -> usize {
        self.passed_on
    }

    pub(crate) fn count_passed_on(&mut self, more: usize) {
        self.passed_on += more;
    }
}
