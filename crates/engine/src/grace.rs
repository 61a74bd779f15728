//! After nobody was there to hear them, the silence of workers is not held against them: an idle one would be removed before
//! its first heartbeat, and takes that for its end. (What is held gets grace by `Engine::grant_grace`.)

use crate::{
    engine::{Engine, Error},
    store::RecordQuery,
};
use windlass_core::{Namespace, Timestamp, commands::grace::Excuse, record::Kind, worker::Liveness, worker::Worker};

const PAGE: usize = 500;
const NAMESPACES_MAX: usize = 10_000;

/// `away_since`: when this server last knew to be able to hear them. If a worker was seen after that, another server heard
/// them all, and none is excused.
pub(crate) async fn excuse_workers(engine: &Engine, away_since: Option<Timestamp>) -> Result<(), Error> {
    let mut silent = Vec::new();
    for namespace in engine.store().namespaces(NAMESPACES_MAX).await? {
        for worker in workers(engine, &namespace).await? {
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

/// What cannot be read is none of ours: whoever needs it is told.
async fn workers(engine: &Engine, namespace: &Namespace) -> Result<Vec<Worker>, Error> {
    let (namespace, kind) = (namespace.clone(), Worker::KIND.into());
    let mut query = RecordQuery { namespace, kind, parent: None, facet: None, after: None, limit: PAGE };
    let mut found = Vec::new();
    loop {
        let page = engine.store().records(&query).await?;
        found.extend(page.iter().filter_map(|record| serde_json::from_str(&record.value).ok()));
        match page.last().filter(|_| page.len() == PAGE) {
            Some(last) => query.after = Some(last.key.key.clone()),
            None => return Ok(found),
        }
    }
}
