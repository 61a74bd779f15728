//! The entities a run is about. Kept once for each run, and what its steps change beside it, by version; joined when a worker
//! is handed a job. Passwords are in here and go nowhere else.

use super::super::{Neops, namespace};
use crate::{
    app::App,
    problem::{Code, Problem},
};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_api::Uuid;
use windlass_core::{
    Command, RecordKey,
    commands::records::{Expect, PutRecord},
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
    let (mut made, mut rest) = (Vec::new(), text.as_str());
    while !rest.is_empty() {
        let mut end = rest.len().min(PIECE_BYTES);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let key = format!("{run}/context/{:06}", made.len());
        made.push(put(run, key, Value::from(&rest[..end]).to_string()));
        rest = &rest[end..];
    }
    Ok(made)
}

/// Keeps what steps changed, as the next version.
pub fn keep_updates(run: Uuid, version: u32, updates: &[Value]) -> Command {
    put(run, format!("{run}/update/{version:06}"), json!({"updates": updates}).to_string())
}

async fn below(app: &App, run: Uuid, what: &str) -> Result<Vec<String>, Problem> {
    let mut query = RecordQuery {
        namespace: namespace(),
        kind: OF_RUN.into(),
        parent: Some(run.to_string().into()),
        facet: None,
        after: Some(format!("{run}/{what}/").into()),
        limit: 100,
    };
    let (mut all, end) = (Vec::new(), format!("{run}/{what}0"));
    loop {
        let page = app.engine.store().records(&query).await?;
        let inside = page.iter().take_while(|record| *record.key.key < *end).map(|record| record.value.to_string());
        let before = all.len();
        all.extend(inside);
        match page.last().filter(|_| page.len() == query.limit && all.len() - before == page.len()) {
            Some(last) => query.after = Some(last.key.key.clone()),
            None => return Ok(all),
        }
    }
}

/// Everything its steps changed so far, in order.
pub async fn updates(app: &App, run: Uuid, version: u32) -> Result<Vec<Update>, Problem> {
    let mut all = Vec::new();
    for text in below(app, run, "update").await?.into_iter().take(version as usize) {
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
        for piece in &pieces {
            text.push_str(&serde_json::from_str::<String>(piece)?);
        }
        let mut context = if text.is_empty() { empty() } else { serde_json::from_str(&text)? };
        updates::apply(&mut context, &changes);
        Ok(context)
    };
    app.aside.run(&namespace(), join).await?.map_err(damaged)
}

/// The same as text, for workers.
pub async fn text(neops: &Neops, run: Uuid, version: u32) -> Result<Arc<str>, Problem> {
    if let Some(known) = neops.own.contexts.lock().get(&(run, version)) {
        return Ok(known);
    }
    let text: Arc<str> = value(neops, run, version).await?.to_string().into();
    neops.own.contexts.lock().put((run, version), text.clone(), text.len());
    Ok(text)
}
