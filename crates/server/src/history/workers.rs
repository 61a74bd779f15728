//! How each worker's attempts ended, by the hour: one record an hour holds all workers of a namespace.

use super::{HOUR_MS, KIND, MINUTES_KEPT, change, read};
use crate::{app::App, auth::system_namespace, problem::Result};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};
use windlass_core::{Namespace, RecordKey, Timestamp};
use windlass_engine::{
    history::{Hour, Reports},
    store::RecordQuery,
};

/// Workers told apart in one hour; what others report counts for the fleet alone.
const WORKERS_MAX: usize = 1_000;
const HOURS: i64 = 24;

/// What workers of a namespace reported in an hour, before it is written down.
type Held = HashMap<(Namespace, Hour), Vec<(Arc<str>, Reports)>>;

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Sheet {
    fleet: Reports,
    workers: BTreeMap<Arc<str>, Reports>,
}

fn key(namespace: &Namespace, hour: Hour) -> RecordKey {
    let key = format!("{}{hour:010}", prefix(namespace)).into();
    RecordKey { namespace: system_namespace(), kind: KIND.into(), key }
}

fn prefix(namespace: &Namespace) -> String {
    format!("w~{namespace}~")
}

pub(super) async fn write_down(app: &App) {
    let mut sheets = Held::new();
    for (namespace, hour, worker, reports) in app.engine.history().take_workers() {
        sheets.entry((namespace, hour)).or_default().push((worker, reports));
    }
    for ((namespace, hour), reports) in sheets {
        let expires_at = Timestamp((hour + 1) * HOUR_MS) + MINUTES_KEPT;
        let fill = |sheet: &mut Sheet| reports.iter().for_each(|(worker, reports)| sheet.add(worker, *reports));
        if let Err(problem) = change(app, &key(&namespace, hour), None, expires_at, fill).await {
            tracing::warn!(problem = %problem.0, "figures of some workers are lost");
        }
    }
}

impl Sheet {
    fn add(&mut self, worker: &Arc<str>, reports: Reports) {
        self.fleet.add(reports);
        if self.workers.len() < WORKERS_MAX || self.workers.contains_key(worker) {
            self.workers.entry(worker.clone()).or_default().add(reports);
        }
    }
}

/// What a worker and what all workers of its namespace reported within the last day, to the hour.
pub async fn told(app: &App, namespace: &Namespace, worker: &str, now: Timestamp) -> Result<(Reports, Reports)> {
    let first = now.0 / HOUR_MS - HOURS + 1;
    let query = RecordQuery {
        after: Some(key(namespace, first - 1).key),
        limit: HOURS as usize + 1,
        ..RecordQuery::all(system_namespace(), KIND)
    };
    let (mut own, mut fleet) = (Reports::default(), Reports::default());
    let prefix = prefix(namespace);
    let found = app.engine.store().records(&query).await?;
    for sheet in found.iter().filter(|record| record.key.key.starts_with(&prefix)).map(read::<Sheet>) {
        fleet.add(sheet.fleet);
        own.add(sheet.workers.get(worker).copied().unwrap_or_default());
    }
    for (hour, name, reports) in app.engine.history().workers(namespace) {
        if hour >= first {
            fleet.add(reports);
            own.add(if *name == *worker { reports } else { Reports::default() });
        }
    }
    Ok((own, fleet))
}
