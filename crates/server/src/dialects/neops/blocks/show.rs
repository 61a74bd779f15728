//! Blocks as people look at them.

use super::{heads, read, shown};
use crate::{
    app::App,
    dialects::neops::{
        HttpError, Result,
        body::{Json, Params, Path, empty, ok},
        listing::{self, LIST_BYTES_MAX, LIST_MAX},
        namespace, workers,
    },
};
use axum::{extract::State, response::Response};
use http::StatusCode;
use serde_json::{Value, json};
use windlass_core::{Refusal, commands::definitions::DeleteDefinition, definition::DefinitionHead};
use windlass_engine::Error;
use windlass_plan::neops::reference::{Reference, Version};

type Named = Path<(String, String, String)>;

/// The block that a path names.
fn named((package, name, version): (String, String, String)) -> Result<String> {
    let version =
        Version::parse(&version).ok_or_else(|| HttpError::bad(format!("version: {version:?} is not like 1.2.3")))?;
    Ok(Reference::exact(&package, &name, version).to_string())
}

fn not_found(id: &str) -> HttpError {
    HttpError::not_found(format!("Function block with id {id} not found"))
}

async fn find(app: &App, id: &str) -> Result<(DefinitionHead, Value)> {
    let head = app.engine.read_record::<DefinitionHead>(&namespace(), id).await?;
    let head = head.filter(|head| head.deleted_at.is_none()).ok_or_else(|| not_found(id))?;
    let (body, updated) = read(app, id, &head).await?;
    let block = shown(id, &head, &body, updated).ok_or_else(|| not_found(id))?;
    Ok((head, block))
}

pub async fn block(State(app): State<App>, Path(path): Named) -> Result<Json<Value>> {
    Ok(ok(find(&app, &named(path)?).await?.1))
}

pub async fn registration(State(app): State<App>, Path(path): Named, params: Params) -> Result<Json<Value>> {
    let id = named(path)?;
    let (_, block) = find(&app, &id).await?;
    Ok(ok(with_times(&app, &id, block, params.flag("populateWorkers")?).await?))
}

async fn with_times(app: &App, id: &str, block: Value, populate: bool) -> Result<Value> {
    let (created, updated) = (block["createdAt"].clone(), block["updatedAt"].clone());
    let mut shown = json!({"functionBlock": block, "createdAt": created, "updatedAt": updated});
    if populate {
        shown["workers"] = workers::serving(app, id).await?.into();
    }
    Ok(shown)
}

pub async fn list(State(app): State<App>, params: Params) -> Result<Response> {
    let (deleted, populate) = (params.flag("findDeleted")?, params.flag("populateWorkers")?);
    let prefix = match (params.get("package"), params.get("name")) {
        (Some(package), Some(name)) => format!("{package}/{name}:"),
        (Some(package), None) => format!("{package}/"),
        _ => String::new(),
    };
    let mut found = heads(&app, &prefix, LIST_MAX + 1).await?;
    found.retain(|(id, head)| {
        let named = |name: &str| Reference::parse(id).is_some_and(|reference| reference.name == name);
        (deleted || head.deleted_at.is_none()) && params.get("name").is_none_or(named)
    });
    let (mut more, mut bytes) = (found.len() > LIST_MAX, 0);
    let mut items = Vec::with_capacity(found.len().min(LIST_MAX));
    for (id, head) in found.into_iter().take(LIST_MAX) {
        let (body, updated) = read(&app, &id, &head).await?;
        let Some(block) = shown(&id, &head, &body, updated) else { continue };
        let item = with_times(&app, &id, block, populate).await?;
        bytes += item.to_string().len();
        if bytes > LIST_BYTES_MAX {
            more = true;
            break;
        }
        items.push(item);
    }
    listing::bare(&app, items, more).await
}

pub async fn workers(State(app): State<App>, Path(path): Named) -> Result<Json<Vec<Value>>> {
    let id = named(path)?;
    find(&app, &id).await?;
    Ok(ok(workers::serving(&app, &id).await?))
}

pub async fn delete(State(app): State<App>, Path(path): Named) -> Result<Response> {
    let id = named(path)?;
    let delete = DeleteDefinition { namespace: namespace(), name: id.as_str().into() };
    match app.engine.run(delete).await {
        Ok(()) => Ok(empty(StatusCode::OK)),
        Err(Error::Refused(Refusal::NotFound { .. })) => Err(not_found(&id)),
        Err(error) => Err(error.into()),
    }
}
