//! Ends a run: what workers do for it ends at once, and what they did is undone if it can be.

use super::{row, row::Status};
use crate::dialects::neops::{
    HttpError, Neops, Result,
    body::{Path, id, ok},
    namespace,
};
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use windlass_core::{
    Refusal, RunId,
    commands::{all::All, audited::Audited, remind::Remind, stop_work::StopWork},
    stage::Hold,
};
use windlass_engine::{Error, store::JobQuery};

const TRIES: usize = 5;

pub async fn abort(State(neops): State<Neops>, by: super::By, Path(run): Path<String>) -> Result<Response> {
    let run = id("uuid", &run)?;
    for _ in 0..TRIES {
        let kept =
            row::find(&neops, run).await?.ok_or_else(|| HttpError::not_found(format!("there is no run {run}")))?;
        let mut row = kept.value.clone();
        // What is being undone goes on being undone.
        if row.status.is_final() || row.status == Status::Rollback || row.is_failing() {
            return Ok(ok(row.show()).into_response());
        }
        row.fail("aborted", "the run was aborted");
        row.aborted_by = by.0.clone();
        let mut commands = row.put(&neops, kept.unchanged(), neops.engine.now().await?);
        commands.push(StopWork { namespace: namespace(), run: RunId(run), by: by.name() }.into());
        let act = Audited::told(&by.name(), "run_aborted", run.to_string(), All { commands });
        match neops.engine.run(act).await {
            Ok(_) => {
                remind(&neops, RunId(run)).await?;
                return Ok(ok(row.show()).into_response());
            }
            Err(Error::Refused(Refusal::VersionMismatch { .. })) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(HttpError::conflict("the run changes all the time; try again"))
}

/// A run that waits for a lock waits no longer.
async fn remind(neops: &Neops, run: RunId) -> Result<()> {
    let query = JobQuery { namespace: Some(namespace()), run: Some(run), limit: 1_000, ..JobQuery::default() };
    for job in neops.engine.store().jobs(&query).await? {
        if job.live.hold == Some(Hold::Plan) && job.live.waiting == 1 {
            let job = Some(job.key.id);
            neops.engine.run(Remind { namespace: namespace(), run, job }).await?;
        }
    }
    Ok(())
}
