//! Which steps of an ended run are done already in a new run of the same steps.
//!
//! A step keeps its result if it completed, was not undone, and so did and were all that it needs. Everything else runs
//! again, cleaning up included.

use crate::plan::{UNDO, members};
use serde_json::Value;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};
use windlass_core::{
    Job, JobId, Payload, RunId, State,
    commands::{submit::NewJob, submit_run::RunNode},
    job::ConcurrencyKey,
    stage,
};

pub fn name(job: &Job) -> &str {
    job.spec.node.as_ref().map_or("", |node| &node.name)
}

/// The steps of an ended run, as far as they go over into the new one.
pub struct Retry<'a> {
    /// The oldest first, as they were submitted.
    pub order: Vec<&'a Job>,
    names: HashMap<JobId, &'a str>,
    kept: HashSet<&'a str>,
    ids: HashMap<&'a str, JobId>,
    /// Steps whose items or parts go over with them.
    expanded: HashSet<&'a str>,
}

impl<'a> Retry<'a> {
    pub fn of(old: &'a [Job], mut ids: impl FnMut() -> JobId) -> Self {
        let steps: Vec<&Job> = old.iter().filter(|job| !name(job).starts_with(UNDO)).collect();
        let names: HashMap<JobId, &str> = steps.iter().map(|job| (job.key.id, name(job))).collect();
        let again = again(old, &steps, &names);
        let kept: HashSet<&str> = steps.iter().map(|job| name(job)).filter(|name| !again.contains(name)).collect();
        let by_name: HashMap<&str, &Job> = steps.iter().map(|job| (name(job), *job)).collect();
        // Parts go over only with a step that runs again although all that it needs is kept.
        let keeps_parts = |owner: &str| {
            let ready =
                |job: &&Job| job.spec.parents.iter().all(|id| names.get(id).is_some_and(|need| kept.contains(need)));
            !kept.contains(owner) && by_name.get(owner).is_some_and(ready)
        };
        let goes_over = |job: &&&Job| {
            let mut at = name(job);
            while let Some(owner) = stage::owner(at) {
                // Names of runs that were not planned may hold anything.
                if by_name.get(owner).is_some_and(|owner| owner.spec.stage.plan) && !keeps_parts(owner) {
                    return false;
                }
                at = owner;
            }
            true
        };
        let mut order: Vec<&Job> = steps.iter().filter(goes_over).copied().collect();
        order.sort_by_key(|job| job.key.id);
        let ids = order.iter().map(|job| (name(job), ids())).collect();
        let expanded = order.iter().filter_map(|job| stage::owner(name(job))).collect();
        Self { order, names, kept, ids, expanded }
    }

    /// The step of the new run for one of [`Retry::order`], by what that was given and what it gave. `runs` are the old one and
    /// the new one.
    pub fn node(&self, job: &Job, payload: Payload, result: Option<Payload>, runs: (RunId, RunId)) -> RunNode {
        let own = name(job);
        let kept = self.kept.contains(own).then(|| result.unwrap_or_default());
        let spec = &job.spec;
        let payload = match (spec.stage.plan && kept.is_none(), self.expanded.contains(own)) {
            (true, true) => self.renamed(&payload),
            (true, false) => Payload::default(),
            (false, _) => payload,
        };
        let mut stage = spec.stage.clone();
        stage.of = stage.of.and_then(|id| self.ids.get(self.names.get(&id)?).copied());
        let needs = spec.parents.iter().filter_map(|id| self.names.get(id)).map(|need| Arc::from(*need)).collect();
        let concurrency = spec.concurrency.as_ref().map(|key| ConcurrencyKey {
            key: key.key.replace(&runs.0.to_string(), &runs.1.to_string()).into(),
            limit: key.limit,
        });
        let job = NewJob { payload, concurrency, stage, kept, ..NewJob::like(job, self.ids[own]) };
        RunNode { name: own.into(), needs, job }
    }

    /// The payload of an expanded step names its parts by their jobs.
    fn renamed(&self, payload: &Payload) -> Payload {
        let mut value: Value = serde_json::from_slice(payload.as_bytes()).unwrap_or_default();
        let ids = members(&value);
        let new = ids.iter().filter_map(|id| self.ids.get(self.names.get(id)?)).map(ToString::to_string);
        value["members"] = new.collect();
        Payload::from(value.to_string().as_str())
    }
}

/// Names of the steps that run again.
fn again<'a>(old: &'a [Job], steps: &[&'a Job], names: &HashMap<JobId, &'a str>) -> HashSet<&'a str> {
    let undone = old.iter().filter(|job| job.state == State::Completed).filter_map(|job| name(job).strip_prefix(UNDO));
    let mut again: HashSet<&str> = HashSet::new();
    for undone in undone {
        let mut at = Some(undone);
        while let Some(name) = at {
            again.insert(name);
            at = stage::owner(name);
        }
    }
    again.extend(steps.iter().filter(|job| job.state != State::Completed).map(|job| name(job)));
    let mut behind: HashMap<&str, Vec<&str>> = HashMap::new();
    for job in steps {
        for need in job.spec.parents.iter().filter_map(|id| names.get(id)) {
            behind.entry(need).or_default().push(name(job));
        }
    }
    let mut open: Vec<&str> = again.iter().copied().collect();
    while let Some(at) = open.pop() {
        for &next in behind.get(at).into_iter().flatten() {
            if again.insert(next) {
                open.push(next);
            }
        }
    }
    again
}
