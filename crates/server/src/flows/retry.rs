//! Goes on from where a run failed: a new run of the same steps, in which those that completed are done already.
//!
//! A step keeps its result if it completed, was not undone, and so did and were all that it needs. Everything else runs
//! again, cleaning up included.

use super::{
    decide, facts, jobs,
    start::{Started, keep_early},
};
use crate::{app::App, problem::Problem};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};
use windlass_core::{
    Job, JobId, Namespace, Payload, RunId, State,
    commands::{
        submit::NewJob,
        submit_run::{RunNode, RunPlan, SubmitRun},
    },
    job::ConcurrencyKey,
    run::{Run, RunState},
    stage,
};
use windlass_engine::ids;
use windlass_plan::plan::UNDO;

pub async fn retry(app: &App, namespace: &Namespace, id: RunId, owner: &Arc<str>) -> Result<Started, Problem> {
    let run = app.engine.read_record::<Run>(namespace, &id.to_string()).await?;
    let run = run.ok_or_else(|| Problem::not_found("run", id))?;
    match run.state() {
        RunState::Running => return Err(Problem::invalid("run", "the run has not ended; cancel it first")),
        RunState::Completed => return Err(Problem::invalid("run", "the run has completed; start a new one")),
        RunState::Failed | RunState::Cancelled => {}
    }
    let old = jobs(app, namespace, id).await?;
    if old.len() != run.total as usize {
        return Err(Problem::invalid("run", "some jobs of the run are past their retention; start a new one"));
    }
    let sorted = Sorted::of(&old);
    let new = ids::run_id();
    let mut nodes = Vec::new();
    for job in &sorted.order {
        nodes.push(sorted.node(app, job, (id, new), owner).await?);
    }
    let parts = decide::parts(app, namespace, id).await?;
    let plan = RunPlan { parts, compensates: run.compensates, retry_of: Some(id), ..RunPlan::default() };
    let plan = keep_early(app, namespace, new, plan).await?;
    let submit = SubmitRun {
        namespace: namespace.clone(),
        id: new,
        owner: Some(owner.clone()),
        definition: run.definition.clone(),
        nodes,
        extra: run.extra.clone(),
        plan,
    };
    app.engine.run(submit).await?;
    Ok(Started { id: new, state: RunState::Running, existing: false })
}

fn name(job: &Job) -> &str {
    job.spec.node.as_ref().map_or("", |node| &node.name)
}

/// The steps of an ended run, as far as they go over into the new one.
struct Sorted<'a> {
    order: Vec<&'a Job>,
    names: HashMap<JobId, &'a str>,
    kept: HashSet<&'a str>,
    ids: HashMap<&'a str, JobId>,
    /// Steps whose items or parts go over with them.
    expanded: HashSet<&'a str>,
}

impl<'a> Sorted<'a> {
    fn of(old: &'a [Job]) -> Self {
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
        // The oldest first, as they were submitted.
        let mut order: Vec<&Job> = steps.iter().filter(goes_over).copied().collect();
        order.sort_by_key(|job| job.key.id);
        let ids = order.iter().map(|job| (name(job), ids::job_id())).collect();
        let expanded = order.iter().filter_map(|job| stage::owner(name(job))).collect();
        Self { order, names, kept, ids, expanded }
    }

    async fn node(&self, app: &App, job: &Job, runs: (RunId, RunId), owner: &Arc<str>) -> Result<RunNode, Problem> {
        let own = name(job);
        let body = app.engine.store().body(&job.key).await?.unwrap_or_default();
        let kept = self.kept.contains(own).then(|| body.result.clone().unwrap_or_default());
        let spec = &job.spec;
        let payload = match (spec.stage.plan && kept.is_none(), self.expanded.contains(own)) {
            (true, true) => self.renamed(&body.payload),
            (true, false) => Payload::default(),
            (false, _) => body.payload,
        };
        let mut stage = spec.stage.clone();
        stage.of = stage.of.and_then(|id| self.ids.get(self.names.get(&id)?).copied());
        let needs = spec.parents.iter().filter_map(|id| self.names.get(id)).map(|need| Arc::from(*need)).collect();
        let concurrency = spec.concurrency.as_ref().map(|key| ConcurrencyKey {
            key: key.key.replace(&runs.0.to_string(), &runs.1.to_string()).into(),
            limit: key.limit,
        });
        let owner = Some(owner.clone());
        let job = NewJob { payload, concurrency, owner, stage, kept, ..NewJob::like(job, self.ids[own]) };
        Ok(RunNode { name: own.into(), needs, job })
    }

    /// The payload of an expanded step names its parts by their jobs.
    fn renamed(&self, payload: &Payload) -> Payload {
        let mut value = facts::value(payload);
        let ids = windlass_plan::plan::members(&value);
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
