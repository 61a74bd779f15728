//! Lists of jobs without pages, newest first.

use super::show::{Row, Shows, Status};
use crate::{
    app::App,
    dialects::neops::{
        HttpError, Result,
        body::Params,
        job::BOARD,
        listing::{self, LIST_MAX},
        namespace,
    },
};
use axum::{extract::State, response::Response};
use windlass_core::{Facet, Job, Millis, State as Stage, Timestamp, worker::Worker};
use windlass_engine::store::JobQuery;

const PAGE: usize = 500;

fn states(params: &Params) -> Result<Vec<Stage>> {
    let mut states = Vec::new();
    for word in params.all("status") {
        let status = Status::parse(word)
            .ok_or_else(|| HttpError::bad(format!("status: {word:?} is none of pending, polled, pushed")))?;
        states.extend(status.states());
    }
    Ok(states)
}

pub fn query(facet: Facet, states: Vec<Stage>) -> JobQuery {
    JobQuery { namespace: Some(namespace()), states, facet: Some(facet), ..JobQuery::default() }
}

pub fn every() -> Facet {
    Facet::new(BOARD, "1")
}

/// Jobs that a query finds, newest first, as long as they are wanted; and whether there are more than are read.
pub async fn read(
    app: &App,
    mut query: JobQuery,
    most: usize,
    mut goes_on: impl FnMut(&Job) -> bool,
) -> Result<(Vec<Job>, bool)> {
    let mut jobs = Vec::new();
    loop {
        query.limit = PAGE;
        let page = app.engine.store().jobs(&query).await?;
        let last = page.last().cloned();
        let full = page.len() == PAGE;
        for job in page {
            if !goes_on(&job) {
                return Ok((jobs, false));
            }
            if jobs.len() == most {
                return Ok((jobs, true));
            }
            jobs.push(job);
        }
        match last.filter(|_| full) {
            Some(last) => query.go_on_after(&last),
            None => return Ok((jobs, false)),
        }
    }
}

pub async fn rows(app: &App, jobs: &[Job]) -> Result<Vec<Row>> {
    let mut shows = Shows::new(app);
    let mut rows = Vec::with_capacity(jobs.len());
    for job in jobs {
        rows.extend(shows.row(job).await?);
    }
    Ok(rows)
}

async fn list(app: &App, states: Vec<Stage>) -> Result<Response> {
    let (jobs, more) = read(app, query(every(), states), LIST_MAX, |_| true).await?;
    listing::bare(app, rows(app, &jobs).await?, more).await
}

pub async fn all(State(app): State<App>, params: Params) -> Result<Response> {
    list(&app, states(&params)?).await
}

pub async fn active(State(app): State<App>) -> Result<Response> {
    list(&app, Status::Pending.states().chain(Status::Polled.states()).collect()).await
}

/// Jobs that a worker claimed. They are read back to those that could wait for it when it came.
pub async fn of_worker(app: &App, worker: &Worker, params: &Params) -> Result<Response> {
    let states = states(params)?;
    let is_its = |job: &Job| job.live.lease.as_ref().is_some_and(|lease| lease.worker == worker.id);
    let (jobs, more) = read(app, query(every(), states), LIST_MAX, |job| could_wait(job, worker.registered_at)).await?;
    let own: Vec<Job> = jobs.into_iter().filter(is_its).collect();
    listing::bare(app, rows(app, &own).await?, more).await
}

/// Whether a job could still be waiting at a time, by when it was made and how long it may wait.
fn could_wait(job: &Job, at: Timestamp) -> bool {
    job.spec.created_at + job.spec.policy.pending_deadline.unwrap_or(Millis(0)) >= at
}
