//! From steps to the jobs of a run.

use crate::{
    format::When,
    meter::{Budget, Meter},
    plan::{self, Done, NamedStep, Plan, StepTurn, UNDO},
    settings::new_job,
    template::Template,
    workflow::{Step, Work, Workflow},
};
use serde_json::Value;
use std::sync::Arc;
use windlass_api::JobSettings;
use windlass_core::{
    JobId,
    commands::{submit::NewJob, submit_run::RunNode},
    job::{ConcurrencyKey, DefinitionRef},
    policy::ParentPolicy,
    stage::Stage,
};

/// What the definition of a job says, where the step does not.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub reference: DefinitionRef,
    pub settings: JobSettings,
    pub payload: Option<Value>,
}

/// Bytes of a job beside what its step says.
const JOB: usize = 512;

/// One job per step. `of`: the step they are made for.
pub fn of_workflow(
    plan: &Plan,
    workflow: &Workflow,
    prefix: &str,
    of: Option<JobId>,
    ids: &mut dyn FnMut() -> JobId,
    meter: &Meter,
) -> Result<Vec<RunNode>, String> {
    let mut made = Vec::with_capacity(workflow.steps.len());
    for step in &workflow.steps {
        let mut job = job(plan, workflow, step, prefix, ids(), meter)?;
        let staged = step.is_staged();
        job.stage = plan::stage(staged, of);
        if let Work::Wait(wait) = &step.work {
            job.stage.wait = Some(wait.clone());
        }
        if let (false, Work::Job(template)) = (staged, &step.work) {
            // It holds no expression, so there is nothing to look at.
            let made = plan.payload(step, template.as_ref(), &Default::default(), meter);
            job.payload = made.map_err(|why| format!("{}: its payload: {why}", step.id))?;
        }
        if step.map.is_some() || !matches!(step.work, Work::Job(_)) {
            // Nobody works on it itself.
            job.concurrency = None;
        }
        let needs = step.needs.iter().map(|&at| name(prefix, &workflow.steps[at].id)).collect();
        made.push(RunNode { name: name(prefix, &step.id), needs, job });
    }
    Ok(made)
}

fn name(prefix: &str, id: &str) -> Arc<str> {
    format!("{prefix}{id}").into()
}

/// One item of a map.
pub(crate) fn item(
    plan: &Plan,
    place: &NamedStep,
    name: &str,
    asked: StepTurn,
    ids: &mut dyn FnMut() -> JobId,
    meter: &Meter,
) -> Result<RunNode, String> {
    let NamedStep { workflow, step, prefix, .. } = *place;
    let mut job = job(plan, workflow, step, prefix, ids(), meter)?;
    let is_sub = matches!(step.work, Work::Sub { .. });
    job.policy.parents = ParentPolicy::Skip;
    job.stage = plan::stage(is_sub, Some(asked.job));
    if let Some(limit) =
        step.map.as_ref().and_then(|map| map.max_parallel).filter(|_| step.settings.concurrency.is_none())
    {
        job.concurrency = Some(ConcurrencyKey { key: format!("run/{}/{}", plan.run, asked.name).into(), limit });
    }
    if is_sub {
        job.concurrency = None;
    }
    Ok(RunNode { name: name.into(), needs: Vec::new(), job })
}

pub fn undo(
    step: &Step,
    done: &Done,
    needs: Vec<Arc<str>>,
    ids: &mut dyn FnMut() -> JobId,
    meter: &Meter,
) -> Result<Option<RunNode>, String> {
    let Some(undo) = &step.undo else { return Ok(None) };
    meter.send(weight(&undo.settings))?;
    let mut job = new_job(&undo.settings, ids());
    job.policy.parents = ParentPolicy::RunAnyway;
    // Whatever is more than a little, or has to be worked out, is so when its turn has come.
    let small = Meter::new(Budget { work: 1_000, room: 4 << 10, ..Budget::default() });
    let filled = |template: &Template| template.fill(&Default::default(), &small);
    let plain = Some(&undo.payload).filter(|payload| payload.is_plain()).and_then(|payload| filled(payload).ok());
    job.stage = Stage { plan: plain.is_none(), wait: None, of: Some(done.job) };
    if let Some(plain) = plain {
        job.payload = plan::payload(&plain, meter)?;
    }
    Ok(Some(RunNode { name: format!("{UNDO}{}", done.name).into(), needs, job }))
}

/// Bytes that every job of these settings has.
fn weight(settings: &JobSettings) -> u64 {
    (JOB + settings.bytes()) as u64
}

fn job(
    plan: &Plan,
    workflow: &Workflow,
    step: &Step,
    prefix: &str,
    id: JobId,
    meter: &Meter,
) -> Result<NewJob, String> {
    let settings = plan.settings(step);
    meter.send(weight(&settings))?;
    let mut job = new_job(&settings, id);
    job.policy.parents = match step.when {
        When::Success => ParentPolicy::Skip,
        When::Always => ParentPolicy::RunAnyway,
        When::OnFailure => ParentPolicy::OnFailure,
    };
    if let Some(name) = &step.definition {
        let recipe = plan.recipe(step).ok_or_else(|| format!("there is no definition {name}"))?;
        job.definition = Some(recipe.reference.clone());
    }
    if let (None, Some(limit)) = (&job.concurrency, workflow.max_parallel) {
        let key = format!("run/{}/{prefix}", plan.run);
        job.concurrency = Some(ConcurrencyKey { key: key.trim_end_matches('/').into(), limit });
    }
    Ok(job)
}
