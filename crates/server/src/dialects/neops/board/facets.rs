//! What there is to choose from: how many jobs have which value, under every filter but the one for that value.

use super::{
    page::{FIELDS, Filters},
    show::Row,
};
use crate::dialects::neops::body::time;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn counts(rows: &[Row], filters: &Filters<'_>, name: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let Some((_, of)) = FIELDS.iter().find(|(field, _)| *field == name) else { return counts };
    for value in rows.iter().filter(|row| filters.fit(row, Some(name))).filter_map(of) {
        *counts.entry(value).or_default() += 1;
    }
    counts
}

/// The busiest first.
fn busiest(counts: BTreeMap<String, u64>, most: usize, label: impl Fn(&str) -> Option<String>) -> Value {
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let show = |(value, count): (String, u64)| json!({"label": label(&value), "value": value, "count": count});
    counts.into_iter().take(most).map(show).collect()
}

pub fn of(rows: &[Row], filters: &Filters<'_>, most: usize, more: bool) -> Value {
    let count = |name: &str| counts(rows, filters, name);
    let list = |name: &str| busiest(count(name), most, |_| None);
    let name = |id: &str| rows.iter().find(|row| row.worker_id.as_deref() == Some(id))?.worker_name.clone();
    let since = rows.iter().map(|row| row.created).min().filter(|_| more);
    json!({
        "status": count("status"),
        "state": count("state"),
        "type": count("type"),
        "functionBlockId": list("functionBlockId"),
        "worker": busiest(count("workerId"), most, name),
        "stepLabel": list("stepLabel"),
        "entityId": list("entityId"),
        "workflowExecutionId": list("workflowExecutionId"),
        "since": since.map(time),
    })
}
