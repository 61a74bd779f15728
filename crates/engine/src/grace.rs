//! After nobody was there to hear them, the silence of workers is not held against them: an idle one would be removed before
//! its first heartbeat, and takes that for its end. (What is held gets grace by `Engine::grant_grace`.)

use crate::{
    engine::Engine,
    error::Error,
    store::{JobQuery, RecordQuery},
};
use windlass_core::{
    State, Timestamp,
    commands::grace::{Excuse, Grace},
    record::Kind,
    worker::{Liveness, Worker},
};

const PAGE: usize = 500;
const NAMESPACES_MAX: usize = 10_000;

impl Engine {
    /// While this server was away nobody could renew, so every live lease gets its full length again before the first
    /// sweep looks at it.
    pub(crate) async fn grant_grace(&self) -> Result<(), Error> {
        let states = vec![State::Claimed, State::Running];
        let mut query = JobQuery { states, limit: PAGE, ..JobQuery::default() };
        loop {
            let held = self.store().jobs(&query).await?;
            let Some(last) = held.last() else { return Ok(()) };
            query.before = Some((last.key.namespace.clone(), last.key.id));
            self.run_many(held.into_iter().map(|job| Grace { job: job.key }).collect()).await?;
        }
    }
}

/// `away_since`: when this server last knew to be able to hear them. If a worker was seen after that, another server heard
/// them all, and none is excused.
pub(crate) async fn excuse_workers(engine: &Engine, away_since: Option<Timestamp>) -> Result<(), Error> {
    let mut silent = Vec::new();
    for namespace in engine.store().namespaces(NAMESPACES_MAX).await? {
        for worker in engine.readable_records::<Worker>(RecordQuery::all(namespace.clone(), Worker::KIND)).await? {
            if away_since.is_some_and(|since| worker.last_seen > since) {
                return Ok(());
            }
            if !worker.away && worker.declared != Liveness::Offline {
                silent.push(Excuse { namespace: namespace.clone(), worker: worker.id });
            }
        }
    }
    while !silent.is_empty() {
        let rest = silent.split_off(silent.len().min(PAGE));
        engine.run_many(std::mem::replace(&mut silent, rest)).await?;
    }
    Ok(())
}
