//! `/api/v1/stats` and `/api/v1/jobs/counts`: figures for people and dashboards.

use super::jobs::job_query;
use crate::{
    app::App,
    ask::{Answer, Ask, Query, ok},
    problem::{Code, Problem, Result},
    route::{Access, Route},
};
use axum::{extract::State, response::Response};
use std::collections::BTreeMap;
use windlass_api::{
    job::ListJobs,
    stats::{Count, CountJobs, JobCounts, Stats},
};
use windlass_core::{Namespace, State as JobState, record::Kind, worker::Worker};
use windlass_engine::store::RecordQuery;

/// What is not kept is counted up to this.
const COUNT_MAX: usize = 1_000;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/stats", Access::Viewer, stats)
            .says("Count jobs and workers by state")
            .answers::<Stats>(200),
        Route::get("/api/v1/jobs/counts", Access::Viewer, counts)
            .says("Count jobs by state: exactly, unless they are chosen by more than their definition")
            .query::<CountJobs>()
            .answers::<JobCounts>(200)
            .refuses(&[Code::Invalid]),
    ]
}

async fn stats(State(app): State<App>, ask: Ask) -> Result<Answer<Stats>> {
    let (stored_bytes, stored_bytes_max) = app.engine.stored_bytes(&ask.namespace).await?;
    Ok(ok(Stats {
        namespace: ask.namespace.to_string(),
        jobs: jobs(&app, &ask.namespace, None).await?,
        workers: workers(&app, &ask.namespace).await?,
        waiting_claims: app.engine.waiting(&ask.namespace) as u64,
        stored_bytes,
        stored_bytes_max,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        store: app.options.store.to_owned(),
        without_token: app.options.without_token.name().to_owned(),
    }))
}

/// By state, as the store keeps it.
pub async fn jobs(app: &App, namespace: &Namespace, definition: Option<&str>) -> Result<BTreeMap<String, Count>> {
    let kept = app.engine.store().job_counts(namespace, definition).await?;
    let exactly = |state: JobState| (state.name().to_owned(), Count { count: kept.of(state), more: false });
    Ok(JobState::ALL.into_iter().map(exactly).collect())
}

async fn counts(State(app): State<App>, ask: Ask, Query(query): Query<CountJobs>) -> Result<Response> {
    let question = || format!("counts {} {query:?}", ask.namespace);
    app.once.or_fresh(question, query.max_age_ms, count(&app, &ask.namespace, &query)).await
}

async fn count(app: &App, namespace: &Namespace, query: &CountJobs) -> Result<JobCounts> {
    let chosen = ListJobs {
        facet: query.facet.clone(),
        name: query.name.clone(),
        run: query.run,
        worker: query.worker.clone(),
        ..ListJobs::default()
    };
    if chosen == ListJobs::default() {
        return Ok(JobCounts { jobs: jobs(app, namespace, query.definition.as_deref()).await? });
    }
    if query.definition.is_some() {
        return Err(Problem::invalid("definition", "cannot be combined with other filters"));
    }
    let mut jobs = BTreeMap::new();
    for state in JobState::ALL {
        let mut one = job_query(namespace, &chosen, 1)?;
        one.states = vec![state];
        let count = app.engine.store().count(&one, COUNT_MAX + 1).await?;
        jobs.insert(state.name().to_owned(), capped(count));
    }
    Ok(JobCounts { jobs })
}

/// Of what was counted no further than one more.
pub fn capped(count: usize) -> Count {
    Count { count: count.min(COUNT_MAX) as u64, more: count > COUNT_MAX }
}

async fn workers(app: &App, namespace: &Namespace) -> Result<BTreeMap<String, u64>> {
    let query = RecordQuery { limit: COUNT_MAX, ..RecordQuery::all(namespace.clone(), Worker::KIND) };
    let now = app.engine.now().await?;
    let found = app.engine.store().records(&query).await?;
    let mut counts = BTreeMap::from(["online", "unreachable", "offline"].map(|state| (state.to_owned(), 0)));
    for row in found.iter().filter_map(|record| serde_json::from_str::<Worker>(&record.value).ok()) {
        *counts.entry(row.liveness(now).name().to_owned()).or_default() += 1;
    }
    Ok(counts)
}
