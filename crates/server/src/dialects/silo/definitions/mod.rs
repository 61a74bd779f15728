//! Job definitions: YAML files, which are the truth, and what is in force of them.

pub mod file;
pub mod folder;

use super::{
    Silo,
    body::{Json, Listed, Params, Path, ok, page, time},
    error::Result,
    namespace, products, schedule,
};
use crate::{app::App, auth::Caller};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, sync::Arc};
use windlass_api::Uuid;
use windlass_core::{
    RecordKey, Timestamp,
    definition::{Definition as Row, DefinitionHead, version_key},
    record::Kind as _,
};
use windlass_product::{
    Error,
    records::{self, Kind, Of},
    rules::{item::Item, trigger},
};

pub use windlass_product::rules::trigger::Scope as ScopeKind;

/// What the list says of a schedule without `cron`.
const BY_HAND: &str = "the trigger has no cron: jobs are created only by POST /api/jobs";
const HEAD: Kind<DefinitionHead> = Kind::new(DefinitionHead::KIND);

/// What a file says, with every default filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    pub name: String,
    pub version: u32,
    pub description: String,
    pub trigger: Trigger,
    pub scope: Scope,
    pub compute: Compute,
    pub runner: Runner,
    pub timeout: u64,
    pub max_retries: u32,
    pub priority: i32,
    pub source_file: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    #[serde(rename = "type")]
    pub kind: String,
    pub filter: BTreeMap<String, String>,
    pub cron: Option<String>,
    pub timezone: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scope {
    #[serde(rename = "type")]
    pub kind: ScopeKind,
    pub part_number: Option<String>,
    pub project: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compute {
    #[serde(rename = "type")]
    pub kind: String,
    pub command: String,
    pub args: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Runner {
    pub tags: Vec<String>,
}

impl Trigger {
    /// A schedule without times.
    fn is_by_hand(&self) -> bool {
        self.kind == "schedule" && self.cron.is_none()
    }
}

impl Definition {
    /// Every key must match; no key matches all.
    pub fn wants(&self, item: &Item) -> bool {
        trigger::fits(&self.trigger.filter, item)
    }
}

/// One that is in force: what it says, and the engine's number for this wording.
#[derive(Clone, Debug)]
pub struct InForce {
    pub definition: Arc<Definition>,
    pub number: u32,
    pub loaded_at: Timestamp,
}

impl InForce {
    pub fn show(&self, next_run_at: Option<Timestamp>) -> Value {
        let mut shown = copy(&self.definition);
        shown["loaded_at"] = json!(time(self.loaded_at));
        shown["next_run_at"] = json!(next_run_at.map(time));
        if self.definition.trigger.is_by_hand() {
            shown["note"] = json!(BY_HAND);
        }
        shown
    }
}

/// As a job keeps it.
pub fn copy(definition: &Definition) -> Value {
    let mut shown = json!(definition);
    shown["id"] = json!(id_of(&definition.name));
    shown
}

/// The same for the same name, over reloads and restarts.
pub fn id_of(name: &str) -> Uuid {
    super::derived("definition", name)
}

async fn version(app: &App, name: &Arc<str>, number: u32) -> Result<Option<InForce>, Error> {
    if let Some(found) = app.versions.get::<InForce>(&namespace(), name, number) {
        return Ok(Some(found));
    }
    let Some(row) = app.engine.read_record::<Row>(&namespace(), &version_key(name, number)).await? else {
        return Ok(None);
    };
    let damaged =
        |error: serde_json::Error| Error::Damaged { what: format!("definition {name}"), why: error.to_string() };
    let definition: Definition = serde_json::from_str(&row.body).map_err(damaged)?;
    let found = InForce { definition: Arc::new(definition), number, loaded_at: row.created_at };
    app.versions.put(&namespace(), name, number, found.clone());
    Ok(Some(found))
}

/// All that are in force, by name.
pub async fn all(app: &App) -> Result<Vec<InForce>, Error> {
    let heads = records::list(&products(app), HEAD, Of::All).await?;
    let mut found = Vec::new();
    for head in heads.into_iter().filter(|head| head.value.deleted_at.is_none()) {
        found.extend(version(app, &head.key, head.value.latest).await?);
    }
    Ok(found)
}

pub async fn find(app: &App, name: &str) -> Result<InForce, Error> {
    let missing = || Error::not_found("job definition", name);
    if name.len() > 128 {
        return Err(missing());
    }
    let key = RecordKey { namespace: namespace(), kind: DefinitionHead::KIND.into(), key: name.into() };
    let head = app.engine.read_record::<DefinitionHead>(&key.namespace, name).await?;
    let head = head.filter(|head| head.deleted_at.is_none()).ok_or_else(missing)?;
    version(app, &key.key, head.latest).await?.ok_or_else(missing)
}

pub async fn list(State(app): State<App>, params: Params) -> Result<Listed<Value>> {
    let paging = params.page()?;
    let Listed(found, total) = page(all(&app).await?, paging);
    let mut shown = Vec::with_capacity(found.len());
    for one in found {
        shown.push(one.show(schedule::next_run(&app, &one.definition).await?));
    }
    Ok(Listed(shown, total))
}

pub async fn one(State(app): State<App>, Path(name): Path<String>) -> Result<Json<Value>> {
    let found = find(&app, &name).await?;
    Ok(ok(found.show(schedule::next_run(&app, &found.definition).await?)))
}

/// A definition may be called like the path that reloads them all.
pub async fn named_reload(state: State<App>) -> Result<Json<Value>> {
    one(state, Path("reload".to_owned())).await
}

pub async fn reload(State(app): State<Silo>, caller: Caller) -> Result<Json<Value>> {
    let report = folder::load(&app, &caller.name).await?;
    Ok(ok(report.show()))
}
