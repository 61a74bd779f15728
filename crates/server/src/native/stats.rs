//! `/api/v1/stats`: figures for people and dashboards.

use crate::{
    app::App,
    ask::{Answer, Ask, ok},
    problem::Problem,
    route::{Access, Route},
};
use axum::extract::State;
use std::collections::BTreeMap;
use windlass_api::stats::{Count, Stats};
use windlass_core::{Namespace, State as JobState, record::Kind, worker::Worker};
use windlass_engine::store::{JobQuery, RecordQuery};

/// Counted exactly up to this.
const COUNT_MAX: usize = 1_000;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/stats", Access::Viewer, stats)
            .says("Count jobs and workers by state")
            .answers::<Stats>(200),
    ]
}

async fn stats(State(app): State<App>, ask: Ask) -> Result<Answer<Stats>, Problem> {
    Ok(ok(Stats {
        namespace: ask.namespace.to_string(),
        jobs: jobs(&app, &ask.namespace).await?,
        workers: workers(&app, &ask.namespace).await?,
        waiting_claims: app.engine.waiting(&ask.namespace) as u64,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        store: app.options.store.to_owned(),
        without_token: app.options.without_token.name().to_owned(),
    }))
}

/// By state.
pub async fn jobs(app: &App, namespace: &Namespace) -> Result<BTreeMap<String, Count>, Problem> {
    let mut jobs = BTreeMap::new();
    for state in JobState::ALL {
        jobs.insert(state.name().to_owned(), count(app, namespace, state).await?);
    }
    Ok(jobs)
}

/// Of what was counted no further than one more.
pub fn capped(count: usize) -> Count {
    Count { count: count.min(COUNT_MAX) as u64, more: count > COUNT_MAX }
}

async fn count(app: &App, namespace: &Namespace, state: JobState) -> Result<Count, Problem> {
    let query = JobQuery { namespace: Some(namespace.clone()), states: vec![state], ..JobQuery::default() };
    let count = app.engine.store().count(&query, COUNT_MAX + 1).await?;
    Ok(capped(count))
}

async fn workers(app: &App, namespace: &Namespace) -> Result<BTreeMap<String, u64>, Problem> {
    let query = RecordQuery {
        namespace: namespace.clone(),
        kind: Worker::KIND.into(),
        parent: None,
        facet: None,
        after: None,
        limit: COUNT_MAX,
    };
    let now = app.engine.now().await?;
    let found = app.engine.store().records(&query).await?;
    let mut counts = BTreeMap::from(["online", "unreachable", "offline"].map(|state| (state.to_owned(), 0)));
    for row in found.iter().filter_map(|record| serde_json::from_str::<Worker>(&record.value).ok()) {
        *counts.entry(row.liveness(now).name().to_owned()).or_default() += 1;
    }
    Ok(counts)
}
