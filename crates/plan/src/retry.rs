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

fn name(job: &Job) -> &str {
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

#[cfg(test)]
mod tests {
    use super::*;
    use State::*;
    use windlass_core::{
        JobKey, Lane, Namespace,
        job::{Node, Spec},
        stage::Stage,
    };

    const RUNS: (u128, u128) = (7, 8);

    /// Steps by number, name, state and the numbers of what they need. A name with a star is decided by the planner.
    fn run(steps: &[(u128, &str, State, &[u128])]) -> Vec<Job> {
        let job = |&(id, name, state, needs): &(u128, &str, State, &[u128])| {
            let (named, plan) = name.strip_suffix('*').map_or((name, false), |name| (name, true));
            let node = Some(Node { run: RunId::from_u128(RUNS.0), name: named.into() });
            let parents = needs.iter().map(|id| JobId::from_u128(*id)).collect();
            let spec = Spec { node, parents, stage: Stage { plan, ..Stage::default() }, ..Spec::default() };
            Job {
                key: JobKey::new(&Namespace::default(), JobId::from_u128(id)),
                lane: Lane(0),
                priority: 0,
                seq: 0,
                state,
                due: None,
                spec: Arc::new(spec),
                live: Default::default(),
            }
        };
        steps.iter().map(job).collect()
    }

    /// The ids of new jobs are those of the old ones, in order, and a hundred.
    fn retry(old: &[Job]) -> Retry<'_> {
        let mut next = 100;
        Retry::of(old, move || {
            next += 1;
            JobId::from_u128(next)
        })
    }

    /// What goes over; what is done already in brackets.
    fn told(old: &[Job]) -> Vec<String> {
        let retry = retry(old);
        let shown = |job: &&Job| match retry.kept.contains(name(job)) {
            true => format!("({})", name(job)),
            false => name(job).to_owned(),
        };
        retry.order.iter().map(shown).collect()
    }

    #[test]
    fn what_failed_and_all_behind_it_runs_again() {
        let old = run(&[
            (1, "a", Completed, &[]),
            (2, "b", Failed, &[1]),
            (3, "c", Completed, &[1]),
            (4, "d", Skipped, &[2, 3]),
            (5, "e", Completed, &[3]),
            // It ran although what it needs failed.
            (6, "clean", Completed, &[2]),
        ]);
        assert_eq!(told(&old), ["(a)", "b", "(c)", "d", "(e)", "clean"]);
    }

    #[test]
    fn what_was_undone_runs_again_and_what_undid_it_does_not_go_over() {
        let old = run(&[
            (1, "a", Completed, &[]),
            (2, "b", Completed, &[1]),
            (3, "c", Failed, &[2]),
            (4, "~undo/b", Completed, &[]),
            (5, "~undo/a", Failed, &[]),
        ]);
        assert_eq!(told(&old), ["(a)", "b", "c"], "undoing a failed, so it still holds");
    }

    #[test]
    fn an_undone_item_takes_its_step_along() {
        let old = run(&[
            (1, "m*", Completed, &[]),
            (2, "m[0]", Completed, &[]),
            (3, "m[1]", Completed, &[]),
            (4, "last", Failed, &[1]),
            (5, "~undo/m[0]", Completed, &[]),
        ]);
        assert_eq!(told(&old), ["m", "m[0]", "(m[1])", "last"]);
    }

    #[test]
    fn parts_go_over_only_with_a_step_whose_needs_are_kept() {
        let parts = |first: State| {
            let old = run(&[
                (1, "a", first, &[]),
                (2, "m*", Failed, &[1]),
                (3, "m[0]", Completed, &[]),
                (4, "m[1]", Failed, &[]),
            ]);
            told(&old)
        };
        assert_eq!(parts(Completed), ["(a)", "m", "(m[0])", "m[1]"]);
        assert_eq!(parts(Failed), ["a", "m"], "what a gives may be other items");
    }

    #[test]
    fn parts_of_a_step_that_is_done_stay_behind() {
        let old = run(&[(1, "m*", Completed, &[]), (2, "m[0]", Completed, &[]), (3, "b", Failed, &[1])]);
        assert_eq!(told(&old), ["(m)", "b"]);
    }

    #[test]
    fn a_new_step_has_the_result_or_the_payload_and_names_new_jobs() {
        let mut old = run(&[
            (1, "a", Completed, &[]),
            (2, "m*", Failed, &[1]),
            (3, "m[0]", Completed, &[]),
            (4, "m[1]", Failed, &[]),
            (5, "w*", Skipped, &[2]),
        ]);
        let key = format!("wf/{}", RunId::from_u128(RUNS.0)).into();
        let of = Some(JobId::from_u128(2));
        let stage = Stage { of, ..Stage::default() };
        old[3].spec = Arc::new(Spec {
            concurrency: Some(ConcurrencyKey { key, limit: 2 }),
            name: Some("the second".into()),
            stage,
            ..(*old[3].spec).clone()
        });
        let retry = retry(&old);
        let runs = (RunId::from_u128(RUNS.0), RunId::from_u128(RUNS.1));
        let ids = [3, 4].map(|id| JobId::from_u128(id).to_string());
        let expanded = Payload::from(serde_json::json!({ "members": ids, "x": 1 }).to_string().as_str());
        let made: Vec<RunNode> = retry
            .order
            .iter()
            .map(|job| {
                let payload = if name(job) == "m" { expanded.clone() } else { Payload::from("1") };
                retry.node(job, payload, Some(Payload::from("2")), runs)
            })
            .collect();
        let [a, m, first, second, w] = &made[..] else { panic!("{}", made.len()) };
        assert_eq!((a.job.kept.as_ref(), &a.job.payload), (Some(&Payload::from("2")), &Payload::from("1")));
        assert_eq!((m.job.kept.as_ref(), &*m.needs), (None, &["a".into()][..]));
        let members: Value = serde_json::from_slice(m.job.payload.as_bytes()).unwrap();
        let new = [103, 104].map(|id| JobId::from_u128(id).to_string());
        assert_eq!(members, serde_json::json!({ "members": new, "x": 1 }));
        assert!(first.job.kept.is_some() && second.job.kept.is_none());
        assert_eq!(second.job.stage.of, Some(JobId::from_u128(102)));
        let key = second.job.concurrency.as_ref().map(|key| &*key.key);
        assert_eq!(key, Some(&*format!("wf/{}", runs.1)));
        assert_eq!((second.job.name.as_deref(), second.job.retry_of), (Some("the second"), Some(JobId::from_u128(4))));
        assert!(w.job.payload.is_empty(), "what it was given is decided anew");
    }
}
