//! Goes on from where a run failed: a new run of the same steps, in which those that completed are done already. Which ones that
//! are is decided in [`windlass_plan::retry`].

use super::{
    decide, jobs,
    start::{Started, keep_early},
};
use crate::{
    app::App,
    problem::{Problem, Result},
};
use std::sync::Arc;
use windlass_core::{
    Namespace, RunId,
    commands::{
        submit::NewJob,
        submit_run::{RunNode, RunPlan, SubmitRun},
    },
    run::{Run, RunState},
};
use windlass_engine::ids;
use windlass_plan::retry::Retry;

pub async fn retry(app: &App, namespace: &Namespace, id: RunId, owner: &Arc<str>) -> Result<Started> {
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
    let retry = Retry::of(&old, ids::job_id);
    let new = ids::run_id();
    let mut nodes = Vec::new();
    for job in &retry.order {
        let body = app.engine.store().body(&job.key).await?.unwrap_or_default();
        let node = retry.node(job, body.payload, body.result, (id, new));
        nodes.push(RunNode { job: NewJob { owner: Some(owner.clone()), ..node.job }, ..node });
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
