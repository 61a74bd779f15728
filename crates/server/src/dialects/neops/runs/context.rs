//! The entities a run is about. Kept once for each run, and what its steps change beside it, by version; joined when a worker
//! is handed a job. Passwords are in here and go nowhere else.

use super::{
    super::{Neops, job::JobBrief, namespace},
    lanes::Lane,
};
use crate::{
    app::App,
    problem::{Code, Problem},
};
use serde_json::{Value, json, value::RawValue};
use std::sync::{Arc, LazyLock};
use windlass_api::Uuid;
use windlass_core::{
    Command, RecordKey,
    commands::records::{Expect, PutRecord},
    payload::pieces,
    stage::OF_RUN,
};
use windlass_engine::store::RecordQuery;
use windlass_plan::neops::updates::{self, Update};

const PIECE_BYTES: usize = 256 << 10;
/// All of a context, as text.
pub const BYTES_MAX: usize = 32 << 20;
/// What the steps of one turn may change.
pub const UPDATE_BYTES_MAX: usize = 900 << 10;

pub fn empty() -> Value {
    json!({"devices": [], "deviceGroups": [], "interfaces": []})
}

/// The same as text.
fn nothing() -> Arc<RawValue> {
    static TEXT: LazyLock<Arc<RawValue>> =
        LazyLock::new(|| serde_json::value::to_raw_value(&empty()).expect("plain data").into());
    TEXT.clone()
}

fn put(run: Uuid, key: String, value: String) -> Command {
    let key = RecordKey { namespace: namespace(), kind: OF_RUN.into(), key: key.into() };
    let parent = Some(run.to_string().into());
    PutRecord { key, expect: Expect::Anything, parent, value: value.into(), facets: Vec::new(), expires_at: None }
        .into()
}

/// Keeps a context as it is at the beginning.
pub fn keep(run: Uuid, context: &Value) -> Result<Vec<Command>, String> {
    let text = context.to_string();
    if text.len() > BYTES_MAX {
        return Err(format!("the entities of the run have {} bytes; at most {BYTES_MAX}", text.len()));
    }
    let piece = |(at, piece)| put(run, format!("{run}/context/{at:06}"), Value::from(piece).to_string());
    Ok(pieces(&text, PIECE_BYTES).enumerate().map(piece).collect())
}

/// Keeps what steps changed, as the next version.
pub fn keep_updates(run: Uuid, version: u32, updates: &[Value]) -> Command {
    put(run, format!("{run}/update/{version:06}"), json!({"updates": updates}).to_string())
}

/// Keys and values, in the order of the keys.
async fn below(app: &App, run: Uuid, what: &str) -> Result<Vec<(Arc<str>, Arc<str>)>, Problem> {
    let (parent, after) = (Some(run.to_string().into()), Some(format!("{run}/{what}/").into()));
    let query = RecordQuery { parent, after, limit: 100, ..RecordQuery::all(namespace(), OF_RUN) };
    let (mut all, end, mut pages) = (Vec::new(), format!("{run}/{what}0"), app.engine.pages(query));
    while let Some(page) = pages.next().await? {
        for record in page {
            if *record.key.key >= *end {
                return Ok(all);
            }
            all.push((record.key.key, record.value));
        }
    }
    Ok(all)
}

/// Everything its steps changed so far, in order.
pub async fn updates(app: &App, run: Uuid, version: u32) -> Result<Vec<Update>, Problem> {
    let mut all = Vec::new();
    for (_, text) in below(app, run, "update").await?.into_iter().take(version as usize) {
        let value: Value = serde_json::from_str(&text).map_err(damaged)?;
        all.extend(Update::read_all(&value, "dbUpdates").unwrap_or_default());
    }
    Ok(all)
}

fn damaged(error: serde_json::Error) -> Problem {
    Problem::new(Code::Damaged, format!("the context of a run cannot be read: {error}"))
}

pub async fn value(app: &App, run: Uuid, version: u32) -> Result<Value, Problem> {
    let pieces = below(app, run, "context").await?;
    let changes = if version == 0 { Vec::new() } else { updates(app, run, version).await? };
    let join = move || {
        let mut text = String::new();
        for (_, piece) in &pieces {
            text.push_str(&serde_json::from_str::<String>(piece)?);
        }
        let mut context = if text.is_empty() { empty() } else { serde_json::from_str(&text)? };
        updates::apply(&mut context, &changes);
        Ok(context)
    };
    app.aside.run(&namespace(), join).await?.map_err(damaged)
}

fn lane_key(run: Uuid, lane: Lane, piece: usize) -> String {
    format!("{run}/lane/{:06}/{:020}/{:06}.{piece:06}", lane.first, lane.entity, lane.at)
}

/// Keeps what a step of a lane changed, in records that are not too large.
pub fn keep_lane(run: Uuid, lane: Lane, updates: Vec<Value>) -> Vec<Command> {
    let pieces = in_pieces(updates).into_iter().enumerate();
    pieces.map(|(at, piece)| put(run, lane_key(run, lane, at), json!({"updates": piece}).to_string())).collect()
}

/// In the given order, as many at a time as fit a record.
pub fn in_pieces(updates: Vec<Value>) -> Vec<Vec<Value>> {
    let (mut pieces, mut some, mut bytes) = (Vec::new(), Vec::new(), 0);
    for update in updates {
        let size = update.to_string().len() + 1;
        if bytes + size > UPDATE_BYTES_MAX && !some.is_empty() {
            pieces.push(std::mem::take(&mut some));
            bytes = 0;
        }
        bytes += size;
        some.push(update);
    }
    if !some.is_empty() {
        pieces.push(some);
    }
    pieces
}

/// What the steps of a lane before this one changed.
pub async fn lane(app: &App, run: Uuid, lane: Lane) -> Result<Vec<Update>, Problem> {
    let here = format!("lane/{:06}/{:020}", lane.first, lane.entity);
    let (records, end) = (below(app, run, &here).await?, lane_key(run, lane, 0));
    let mut all = Vec::new();
    for (_, text) in records.iter().filter(|(key, _)| **key < *end) {
        let value: Value = serde_json::from_str(text).map_err(damaged)?;
        all.extend(Update::read_all(&value, "dbUpdates").unwrap_or_default());
    }
    Ok(all)
}

/// What all lanes of a stretch changed. The error is the run's own.
pub async fn lanes(app: &App, run: Uuid, first: usize) -> Result<Result<Vec<Value>, String>, Problem> {
    let (mut all, mut bytes) = (Vec::new(), 0);
    for (_, text) in below(app, run, &format!("lane/{first:06}")).await? {
        bytes += text.len();
        if bytes > BYTES_MAX {
            return Ok(Err(format!("its steps changed more than {BYTES_MAX} bytes")));
        }
        let mut value: Value = serde_json::from_str(&text).map_err(damaged)?;
        if let Some(updates) = value["updates"].as_array_mut() {
            all.append(updates);
        }
    }
    Ok(Ok(all))
}

/// The context of a job as workers get it, made once for all jobs that see the same.
pub async fn text(neops: &Neops, told: &JobBrief) -> Result<Arc<RawValue>, Problem> {
    let version = told.context.unwrap_or_default();
    if told.context.is_none() && told.lane.is_none() {
        return Ok(nothing());
    }
    let on_lane = told.lane.zip(told.entity.and_then(|id| u64::try_from(id).ok()));
    let seen = on_lane.map(|((first, at), entity)| Lane { first, at, entity });
    if seen.is_none()
        && let Some(known) = neops.own.contexts.lock().get(&(told.run, version))
    {
        return Ok(known);
    }
    let mut context = value(neops, told.run, version).await?;
    let changes = match seen {
        Some(seen) => lane(neops, told.run, seen).await?,
        None => Vec::new(),
    };
    let make = move || {
        updates::apply(&mut context, &changes);
        serde_json::value::to_raw_value(&context).map(Arc::from)
    };
    let text: Arc<RawValue> = neops.aside.run(&namespace(), make).await?.map_err(damaged)?;
    if seen.is_none() {
        neops.own.contexts.lock().put((told.run, version), text.clone(), text.get().len());
    }
    Ok(text)
}
