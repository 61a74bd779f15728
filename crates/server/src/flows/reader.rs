//! Who reads the plan of a run: our own planner, or that of the dialect whose mark its first part begins with.

use super::{begun, decide};
use crate::{
    app::App,
    dialect::Planner,
    planned::{Decided, Unit},
    problem::{Code, Problem, Result},
};
use std::sync::Arc;
use windlass_core::{
    RecordKey,
    record::Kind,
    stage::{self, PlanPart},
};

/// Begins a plan that is not ours. No JSON begins so.
const MARK: char = '#';

/// The first part of a plan that this dialect reads.
pub fn marked(dialect: &str, text: &str) -> String {
    format!("{MARK}{dialect}\n{text}")
}

/// What a plan's first part says behind its mark.
pub fn unmarked(text: &str) -> &str {
    match text.strip_prefix(MARK) {
        Some(rest) => rest.split_once('\n').map_or("", |(_, text)| text),
        None => text,
    }
}

pub async fn decide(app: &App, unit: Unit) -> Result<Decided> {
    let reader = reader_of(app, &unit).await?;
    if reader.is_empty() {
        return decide::advance(app, unit).await.map(Decided::Turns);
    }
    match app.dialects.planner(&reader) {
        Some(planner) => with(planner, app, unit).await,
        // Served by another server, or again when it is switched on.
        None => Ok(Decided::NotYet),
    }
}

/// One turn after the other, each noted before it is begun: what a dialect does in it has no budget of ours.
async fn with(planner: &Planner, app: &App, unit: Unit) -> Result<Decided> {
    let mut done = 0;
    for job in unit.jobs.clone() {
        let one = Unit { jobs: vec![job], ..unit.clone() };
        let begun = match begun::turn(app, &unit.namespace, unit.run, job).await {
            Err(problem) if begun::is_elsewhere(&problem) => return Ok(Decided::NotYet),
            begun => begun?,
        };
        let Some(begun) = begun else {
            tracing::warn!(namespace = %unit.namespace, run = %unit.run, why = &*begun::why(), "a run is given up");
            (planner.give_up)(app.clone(), one, begun::why()).await?;
            done += 1;
            continue;
        };
        let decided = tokio::select! {
            decided = (planner.decide)(app.clone(), one) => decided,
            () = app.drain.cancelled() => Err(Problem::new(Code::Unavailable, "the server stops").retry_after(500)),
        };
        match decided {
            Ok(Decided::Turns(count)) => {
                begun.ended().await;
                done += count;
            }
            other => {
                begun.given_up().await;
                return other;
            }
        }
    }
    Ok(Decided::Turns(done))
}

/// Empty: ours.
async fn reader_of(app: &App, unit: &Unit) -> Result<Arc<str>> {
    if let Some(known) = app.plans.reader(unit.run) {
        return Ok(known);
    }
    let (namespace, first) = (unit.namespace.clone(), stage::part_key(unit.run, 0));
    let key = RecordKey { namespace, kind: PlanPart::KIND.into(), key: first.into() };
    let reader: Arc<str> = match app.engine.store().record(&key).await? {
        None => Arc::default(),
        Some(record) => {
            let part: PlanPart = serde_json::from_str(&record.value)
                .map_err(|error| Problem::new(Code::Damaged, format!("{}: {error}", PlanPart::KIND)))?;
            let mark = part.text.strip_prefix(MARK).and_then(|rest| rest.split_once('\n'));
            mark.map_or_else(Arc::default, |(name, _)| name.into())
        }
    };
    app.plans.put_reader(unit.run, reader.clone());
    Ok(reader)
}
