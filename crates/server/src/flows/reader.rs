//! Who reads the plan of a run: our own planner, or that of the dialect whose mark its first part begins with.

use super::decide;
use crate::{
    app::App,
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
        Some(decide) => decide(app.clone(), unit).await,
        // Served by another server, or again when it is switched on.
        None => Ok(Decided::NotYet),
    }
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
