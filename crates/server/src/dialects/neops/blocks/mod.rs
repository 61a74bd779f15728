//! Function blocks: kept as definitions that are called `package/name:1.2.3`; the workers that serve them are linked to them.
//! They outlive their workers, and what was deleted comes back when it is registered again.

pub mod compat;
pub mod defaults;
mod register;
mod show;

use super::{Neops, Own, namespace};
use crate::{
    app::App,
    dialect::Mount,
    problem::{Code, Problem},
    route::{Access, Route},
    schema::pair::Pair,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_core::{
    Payload, Timestamp,
    definition::{Definition, DefinitionHead, version_key},
    record::Kind,
};
use windlass_engine::{records::readable, store::RecordQuery};
use windlass_plan::neops::reference::{EntityType, Reference, Version};

pub fn routes(on: &Mount<Own>) -> Vec<Route> {
    vec![
        on.post("/function-blocks/register", Access::Worker, register::register).says("Serve a function block"),
        on.get("/function-blocks/registrations/list", Access::Viewer, show::list).says("Function blocks"),
        on.get("/function-blocks/registrations/{package}/{name}/{version}", Access::Viewer, show::registration)
            .says("A function block and when it was registered"),
        on.get("/function-blocks/{package}/{name}/{version}", Access::Viewer, show::block).says("A function block"),
        on.get("/function-blocks/{package}/{name}/{version}/workers", Access::Viewer, show::workers)
            .says("The workers that serve a function block"),
        on.delete("/function-blocks/{package}/{name}/{version}", Access::Editor, show::delete)
            .says("Delete a function block"),
    ]
}

/// What is kept of a block beside its name and version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Body {
    /// Empty: not said.
    pub run_on: String,
    pub fb_type: String,
    pub description: String,
    pub markdown_help_text: String,
    pub deprecated: bool,
    pub parameter_json_schema: Value,
    pub result_data_json_schema: Value,
    pub is_idempotent: bool,
    pub is_pure: bool,
    pub reversible: bool,
}

impl Body {
    /// Whether whoever calls the one may call the other the same way.
    fn calls_alike(&self, other: &Self) -> bool {
        let key = |body: &Self| (body.parameter_json_schema.clone(), body.result_data_json_schema.clone());
        (&self.run_on, &self.fb_type, key(self)) == (&other.run_on, &other.fb_type, key(other))
    }

    /// Roughly what it takes in memory.
    fn bytes(&self) -> usize {
        let schemas = self.parameter_json_schema.to_string().len() + self.result_data_json_schema.to_string().len();
        1_024 + 4 * schemas + self.description.len() + self.markdown_help_text.len()
    }

    /// Takes long.
    fn compile(&self) -> Result<Pair, Problem> {
        Pair::new(
            ("parameterJsonSchema", &self.parameter_json_schema),
            ("resultDataJsonSchema", &self.result_data_json_schema),
        )
    }
}

/// A version of a block, ready for use.
pub struct Block {
    /// `package/name:1.2.3`.
    pub id: Arc<str>,
    pub reference: Reference,
    /// None: not said.
    pub run_on: Option<EntityType>,
    pub body: Body,
    schemas: Arc<Pair>,
}

impl Block {
    pub fn is_pure(&self) -> bool {
        self.body.is_pure
    }
    pub fn is_idempotent(&self) -> bool {
        self.body.is_idempotent
    }
    pub fn is_reversible(&self) -> bool {
        self.body.reversible
    }

    /// The parameters with the defaults of what is left out, if they meet the block's schema. May take long.
    pub fn fill(&self, mut parameters: Value) -> Result<Value, String> {
        defaults::fill(&self.body.parameter_json_schema, &mut parameters)?;
        let text = serde_json::to_vec(&parameters).map_err(|error| error.to_string())?;
        self.schemas.check_input(&Payload::from(text)).map_err(told)?;
        Ok(parameters)
    }

    /// The same, unless it would take longer than a moment.
    pub fn fill_here(&self, parameters: &Value) -> Option<Result<Value, String>> {
        let mut filled = parameters.clone();
        defaults::fill_here(&self.body.parameter_json_schema, &mut filled)?;
        let text = serde_json::to_vec(&filled).ok()?;
        let checked = self.schemas.check_input_here(&Payload::from(text))?;
        Some(checked.map(|()| filled).map_err(told))
    }

    /// Whether what a block gave back, as text, meets its schema. May take long.
    pub fn check_result(&self, data: &str) -> Result<(), String> {
        self.schemas.check_output(&Payload::from(data)).map_err(told)
    }

    /// The same, unless it would take longer than a moment.
    pub fn check_result_here(&self, data: &str) -> Option<Result<(), String>> {
        self.schemas.check_output_here(&Payload::from(data)).map(|checked| checked.map_err(told))
    }
}

fn told(problem: Problem) -> String {
    match problem.0.field.as_deref() {
        Some(place) if !place.is_empty() => format!("{place}: {}", problem.0.detail),
        _ => problem.0.detail,
    }
}

/// The newest version that a reference stands for. None: there is none, or it was deleted.
pub async fn resolve(app: &App, reference: &Reference) -> Result<Option<Arc<Block>>, Problem> {
    match newest(app, reference).await? {
        Some((reference, head)) => ready(app, reference, &head).await.map(Some),
        None => Ok(None),
    }
}

/// The same, and what was made ready before is not read again.
pub async fn resolve_known(neops: &Neops, reference: &Reference) -> Result<Option<Arc<Block>>, Problem> {
    let Some((reference, head)) = newest(neops, reference).await? else { return Ok(None) };
    let key = (Arc::<str>::from(reference.to_string()), head.latest);
    if let Some(known) = neops.own.blocks.lock().get(&key) {
        return Ok(Some(known));
    }
    let block = ready(neops, reference, &head).await?;
    neops.own.blocks.lock().put(key, block.clone(), block.body.bytes());
    Ok(Some(block))
}

async fn newest(app: &App, reference: &Reference) -> Result<Option<(Reference, DefinitionHead)>, Problem> {
    let there = versions(app, &reference.package, &reference.name).await?;
    let live = there.into_iter().filter(|(_, head)| head.deleted_at.is_none());
    let found = live.filter(|(version, _)| reference.fits(*version)).max_by_key(|(version, _)| *version);
    Ok(found.map(|(version, head)| (Reference::exact(&reference.package, &reference.name, version), head)))
}

async fn ready(app: &App, reference: Reference, head: &DefinitionHead) -> Result<Arc<Block>, Problem> {
    let id: Arc<str> = reference.to_string().into();
    let (body, _) = read(app, &id, head).await?;
    let compile = body.clone();
    let schemas = app.pairs.get((namespace(), id.clone(), head.latest), move || compile.compile()).await?;
    Ok(Arc::new(Block { id, reference, run_on: EntityType::parse(&body.run_on), body, schemas }))
}

/// The version in force, and when it was written.
async fn read(app: &App, id: &str, head: &DefinitionHead) -> Result<(Body, Timestamp), Problem> {
    let found = app.engine.read_record::<Definition>(&namespace(), &version_key(id, head.latest)).await?;
    let damaged = || Problem::new(Code::Damaged, format!("the function block {id} cannot be read"));
    let found = found.ok_or_else(damaged)?;
    let body = serde_json::from_str(&found.body).map_err(|_| damaged())?;
    Ok((body, found.created_at))
}

/// Every version that was ever registered, deleted ones as well.
async fn versions(app: &App, package: &str, name: &str) -> Result<Vec<(Version, DefinitionHead)>, Problem> {
    let prefix = format!("{package}/{name}:");
    let found = heads(app, &prefix, usize::MAX).await?;
    Ok(found.into_iter().filter_map(|(id, head)| Some((Version::parse(id.strip_prefix(&prefix)?)?, head))).collect())
}

/// Blocks whose id begins so, by id.
async fn heads(app: &App, prefix: &str, most: usize) -> Result<Vec<(Arc<str>, DefinitionHead)>, Problem> {
    let after = Some(prefix).filter(|prefix| !prefix.is_empty()).map(Arc::from);
    let mut pages = app.engine.pages(RecordQuery { after, ..RecordQuery::all(namespace(), DefinitionHead::KIND) });
    let mut heads = Vec::new();
    while let Some(page) = pages.next().await? {
        for record in page {
            if !record.key.key.starts_with(prefix) || heads.len() >= most {
                return Ok(heads);
            }
            let head = readable::<DefinitionHead>(&record);
            heads.extend(
                head.filter(|_| Reference::parse(&record.key.key).is_some()).map(|head| (record.key.key, head)),
            );
        }
    }
    Ok(heads)
}

/// A block as clients see it.
fn shown(id: &str, head: &DefinitionHead, body: &Body, updated: Timestamp) -> Option<Value> {
    let reference = Reference::parse(id)?;
    let version = reference.version()?;
    let mut shown = json!({
        "id": id,
        "package": reference.package,
        "name": reference.name,
        "majorVersion": version.major,
        "minorVersion": version.minor,
        "patchVersion": version.patch,
        "createdAt": super::body::time(head.created_at.unwrap_or(updated)),
        "updatedAt": super::body::time(updated),
        "deletedAt": head.deleted_at.map(super::body::time),
    });
    let Ok(Value::Object(body)) = serde_json::to_value(body) else { return None };
    shown.as_object_mut()?.extend(body);
    Some(shown)
}
