//! How many of what came when.

use super::body::time;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use windlass_core::Timestamp;

pub const MINUTE: i64 = 60_000;
/// Widths that its clients know, but for the month, which is no width.
const WIDTHS: [(&str, i64); 7] = [
    ("5m", 5 * MINUTE),
    ("15m", 15 * MINUTE),
    ("1h", 60 * MINUTE),
    ("3h", 180 * MINUTE),
    ("6h", 360 * MINUTE),
    ("1d", 1_440 * MINUTE),
    ("1w", 10_080 * MINUTE),
];
const BUCKETS_MAX: i64 = 60;

/// Of times and the states of what was made then. The narrowest buckets of which there are not too many.
pub fn of(rows: Vec<(Timestamp, &str)>) -> Value {
    let times = || rows.iter().map(|(at, _)| at.0.max(0));
    let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    let fits = |(_, width): &&(&str, i64)| (last - first) / width < BUCKETS_MAX;
    let (name, width) = WIDTHS.iter().find(fits).copied().unwrap_or(WIDTHS[WIDTHS.len() - 1]);
    let mut counts: BTreeMap<i64, BTreeMap<&str, u64>> = BTreeMap::new();
    for (at, state) in &rows {
        *counts.entry(at.0.max(0) / width).or_default().entry(state).or_default() += 1;
    }
    let last = last / width;
    let first = (first / width).max(last - BUCKETS_MAX);
    let none = rows.is_empty();
    let buckets = (first..=last).filter(|_| !none).map(|at| {
        let counts: Map<String, Value> =
            counts.get(&at).into_iter().flatten().map(|(state, count)| ((*state).to_owned(), json!(count))).collect();
        json!({"start": time(Timestamp(at * width)), "counts": counts})
    });
    let buckets: Vec<Value> = buckets.collect();
    let (from, to) = (time(Timestamp(first * width)), time(Timestamp((last + 1) * width)));
    json!({"interval": name, "from": from, "to": to, "buckets": buckets})
}
