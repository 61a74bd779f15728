//! Create, list, show, run and cancel workflows.

use super::{
    array::{self, Array},
    body::{HttpError, Json, Path, Query, Result, Sent},
    namespace, sample as example,
    status::{self, Stored},
    translate, wire,
};
use crate::{app::App, auth::Caller};
use axum::{extract::State, response::Response};
use http::StatusCode;
use windlass_core::{
    Command, Refusal,
    commands::{all::All, cancel_run::CancelRun, submit_run::SubmitRun},
};
use windlass_engine::{Error, ids};

const LIST: usize = 100;
const LIST_MAX: usize = 1_000;

pub async fn create(State(app): State<App>, Sent(body): Sent<wire::Create>) -> Result<Json<wire::Workflow>> {
    translate::check(&body.jobs).map_err(HttpError::shape)?;
    let id = ids::run_id().to_string();
    let stored =
        Stored { id, name: body.name, trigger: body.trigger, run: None, jobs: body.jobs, version: 0, parts: 0 };
    app.engine.run(All { commands: stored.put_all()? }).await?;
    Ok(Json(StatusCode::CREATED, status::show(&app, stored).await?))
}

async fn runs(app: &App, stored: &Stored) -> Result<bool> {
    match stored.run {
        Some(run) => status::is_running(app, run).await,
        None => Ok(false),
    }
}

/// Replaces the sample's state, but not under the feet of its run.
pub async fn sample(State(app): State<App>) -> Result<Json<wire::Workflow>> {
    let before = status::load(&app, example::ID).await?;
    let version = before.as_ref().map_or(0, |before| before.version);
    if let Some(before) = before
        && runs(&app, &before).await?
    {
        return Ok(Json(StatusCode::CREATED, status::show(&app, before).await?));
    }
    let stored = example::workflow(version);
    app.engine.run(All { commands: stored.put_all()? }).await?;
    Ok(Json(StatusCode::CREATED, status::show(&app, stored).await?))
}

pub async fn list(State(app): State<App>, Query(query): Query<wire::List>) -> Response {
    array::answer(move |found| write_list(app, query, found))
}

async fn write_list(app: App, query: wire::List, mut found: Array) -> Result<()> {
    let (mut skip, mut left) = (query.offset.unwrap_or(0), query.limit.unwrap_or(LIST).min(LIST_MAX));
    let mut after = None;
    while left > 0 {
        let page = status::ids(&app, after).await?;
        let Some(last) = page.last().cloned() else { break };
        for id in page {
            // Without a filter what is skipped need not be looked at.
            if query.status.is_none() && skip > 0 {
                skip -= 1;
                continue;
            }
            let Some(stored) = status::load(&app, &id).await? else { continue };
            let shown = status::show(&app, stored).await?;
            let fits = |status: &String| shown.jobs.iter().any(|job| job.status.name() == status);
            if !query.status.as_ref().is_none_or(fits) {
                continue;
            }
            if skip > 0 {
                skip -= 1;
                continue;
            }
            found.push(&shown).await?;
            left -= 1;
            if left == 0 {
                break;
            }
        }
        after = Some(last);
    }
    found.end().await
}

pub async fn status(State(app): State<App>, Path(id): Path<String>) -> Result<Json<wire::Workflow>> {
    let stored = status::load(&app, &id).await?.ok_or(HttpError::bare(StatusCode::NOT_FOUND))?;
    Ok(Json(StatusCode::OK, status::show(&app, stored).await?))
}

/// Starts a run, unless one is under way: then this is the run that was asked for.
pub async fn run(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<StatusCode> {
    let mut stored = status::load(&app, &id).await?.ok_or(HttpError::bare(StatusCode::NOT_FOUND))?;
    if stored.jobs.is_empty() || runs(&app, &stored).await? {
        return Ok(StatusCode::ACCEPTED);
    }
    let run = ids::run_id();
    stored.run = Some(run);
    let submit = SubmitRun {
        namespace: namespace(),
        id: run,
        owner: Some(caller.name.clone()),
        definition: None,
        nodes: stored.jobs.iter().map(|job| translate::node(&id, job)).collect(),
        extra: None,
        plan: Default::default(),
    };
    let commands: Vec<Command> = vec![stored.put_head()?, submit.into()];
    match app.engine.run(All { commands }).await {
        // Somebody else started it at the same moment.
        Ok(_) | Err(Error::Refused(Refusal::VersionMismatch { .. })) => Ok(StatusCode::ACCEPTED),
        Err(error) => Err(error.into()),
    }
}

pub async fn cancel(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<StatusCode> {
    if let Some(run) = status::run_of(&app, &id).await? {
        let by = caller.name.clone();
        match app.engine.run(CancelRun { namespace: namespace(), run, by }).await {
            // A run that is past its retention was over long ago.
            Ok(_) | Err(Error::Refused(Refusal::NotFound { .. })) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(StatusCode::ACCEPTED)
}
