//! What is asked of the store when somebody looks: how many jobs are unfinished, how long the oldest waits, who works.

use crate::problem::Result;
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};
use windlass_core::{
    Namespace, State,
    record::Kind,
    worker::{Liveness, Worker},
};
use windlass_engine::{
    Engine,
    store::{JobQuery, RecordQuery},
};

/// Jobs of one state are counted no further than this: counting what grows would make looking at a full queue expensive.
const JOBS_COUNTED_MAX: usize = 10_000;
const WORKERS_COUNTED_MAX: usize = 10_000;
const NAMESPACES_MAX: usize = 1_000;
/// How long an answer stands, so that many who ask cost no more than one.
const STANDS: Duration = Duration::from_millis(500);

/// A dialect and its namespace.
type Own = (&'static str, Namespace);

#[derive(Debug, Default)]
pub struct Figures {
    pub jobs: Vec<(&'static str, usize)>,
    pub oldest_seconds: f64,
    pub workers: ByState,
    /// By dialect, of those that have a namespace of their own.
    pub api_workers: BTreeMap<&'static str, ByState>,
    pub api_pending: BTreeMap<&'static str, usize>,
}

type ByState = BTreeMap<&'static str, usize>;

fn nobody() -> ByState {
    BTreeMap::from(["online", "draining", "unreachable", "offline"].map(|state| (state, 0)))
}

#[derive(Default)]
pub struct FiguresCache(tokio::sync::Mutex<Option<(Instant, Arc<Figures>)>>);

impl FiguresCache {
    pub async fn get(&self, engine: &Engine, dialects: &[Own]) -> Result<Arc<Figures>> {
        let mut kept = self.0.lock().await;
        if let Some((at, figures)) = &*kept
            && at.elapsed() < STANDS
        {
            return Ok(figures.clone());
        }
        let figures = Arc::new(look(engine, dialects).await?);
        *kept = Some((Instant::now(), figures.clone()));
        Ok(figures)
    }
}

async fn look(engine: &Engine, dialects: &[Own]) -> Result<Figures> {
    let store = engine.store();
    let now = engine.now().await?;
    let mut jobs = Vec::new();
    for state in State::ALL.into_iter().filter(|state| !state.is_final()) {
        let query = JobQuery { states: vec![state], limit: JOBS_COUNTED_MAX, ..JobQuery::default() };
        jobs.push((state.name(), store.count(&query, JOBS_COUNTED_MAX).await?));
    }
    let oldest = store.oldest_pending().await?.and_then(|job| job.live.pending_since);
    let oldest_seconds = oldest.map_or(0.0, |since| (now.0 - since.0).max(0) as f64 / 1_000.0);
    let mut api_pending = BTreeMap::new();
    for (api, namespace) in dialects {
        let pending =
            JobQuery { states: vec![State::Pending], namespace: Some(namespace.clone()), ..JobQuery::default() };
        api_pending.insert(*api, store.count(&pending, JOBS_COUNTED_MAX).await?);
    }
    let (workers, mut api_workers) = workers(engine, dialects).await?;
    // A dialect that nobody uses has no series.
    api_workers.retain(|_, states| states.values().any(|count| *count > 0));
    api_pending.retain(|api, count| *count > 0 || api_workers.contains_key(api));
    Ok(Figures { jobs, oldest_seconds, workers, api_workers, api_pending })
}

/// All of them, and those of each dialect.
async fn workers(engine: &Engine, of: &[Own]) -> Result<(ByState, BTreeMap<&'static str, ByState>)> {
    let (store, now) = (engine.store(), engine.now().await?);
    let mut each: BTreeMap<&'static str, ByState> = of.iter().map(|(api, _)| (*api, nobody())).collect();
    let mut counts = nobody();
    let mut left = WORKERS_COUNTED_MAX;
    for namespace in store.namespaces(NAMESPACES_MAX).await? {
        let api = of.iter().find(|(_, own)| *own == namespace).map(|(api, _)| *api);
        let query = RecordQuery { limit: left, ..RecordQuery::all(namespace, Worker::KIND) };
        let found = store.records(&query).await?;
        left -= found.len().min(left);
        for worker in found.iter().filter_map(|record| serde_json::from_str::<Worker>(&record.value).ok()) {
            let state = match worker.liveness(now) {
                Liveness::Online if worker.draining => "draining",
                liveness => liveness.name(),
            };
            *counts.entry(state).or_default() += 1;
            if let Some(own) = api.and_then(|api| each.get_mut(api)) {
                *own.entry(state).or_default() += 1;
            }
        }
        if left == 0 {
            break;
        }
    }
    Ok((counts, each))
}
