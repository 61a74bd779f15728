//! Workflow definitions: published once, never changed, deleted softly. A record per workflow lists its versions, and a record per
//! version has the document as it was published.

mod compared;
mod last;
mod page;
mod publish;
mod rows;
pub mod schema;
mod show;

use super::{
    Neops, Own,
    body::{Params, Path, empty, ok},
    error::{HttpError, Result},
    listing::{LIST_BYTES_MAX, LIST_MAX, bare},
    runs::By,
};
use crate::{
    app::App,
    dialect::Mount,
    problem::Problem,
    route::{Access, Route},
};
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::StatusCode;
use rows::{DOCUMENT, Entry, WORKFLOW, Workflow};
use serde_json::Value;
use std::sync::Arc;
use windlass_core::{Refusal, Timestamp, commands::audited::Audited};
use windlass_engine::Error;
use windlass_plan::neops::reference::Reference;

pub use rows::newest_live;

/// How often a write is tried that others were faster than.
const TRIES: usize = 10;

pub fn routes(on: &Mount<Own>) -> Vec<Route> {
    vec![
        on.post("/workflow-definition/publish", Access::Editor, publish::publish)
            .says("Publish a version of a workflow"),
        on.get("/workflow-definition", Access::Viewer, list).says("Versions of workflows, newest first"),
        on.get("/workflow-definition/page", Access::Viewer, page::page).says("A page of versions of workflows"),
        on.get("/workflow-definition/compare", Access::Viewer, compared::compare)
            .says("What changed between two versions"),
        on.get("/workflow-definition/find-by-semver/{reference}", Access::Viewer, find)
            .says("The version a reference means"),
        on.get("/workflow-definition/{id}", Access::Viewer, get).says("A version of a workflow"),
        on.delete("/workflow-definition/{id}", Access::Editor, delete).says("Delete a version softly"),
        on.post("/workflow-definition/{id}/restore", Access::Editor, restore).says("Bring a deleted version back"),
        on.get("/schema", Access::Open, schema::schema).says("JSON Schema of a workflow document"),
    ]
}

/// The newest live version that a reference means: its full id, and its document.
pub async fn resolve(neops: &Neops, reference: &Reference) -> Result<Option<(String, Arc<Value>)>, Problem> {
    let Some(found) = WORKFLOW.find(neops, &name_of(reference)).await? else { return Ok(None) };
    let Some(version) = reference.newest(found.value.live()) else { return Ok(None) };
    let id = Reference::exact(&reference.package, &reference.name, version).to_string();
    if let Some(known) = neops.own.documents.lock().get(&id) {
        return Ok(Some((id, known)));
    }
    let Some(found) = DOCUMENT.find(neops, &id).await? else { return Ok(None) };
    // As values they take a few times what they have as text.
    let (document, bytes) = (Arc::new(found.value), 4 * found.bytes);
    neops.own.documents.lock().put(id.clone(), document.clone(), bytes);
    Ok(Some((id, document)))
}

fn name_of(reference: &Reference) -> String {
    format!("{}/{}", reference.package, reference.name)
}

fn unknown(id: &str) -> HttpError {
    HttpError::not_found(format!("there is no workflow definition {id}"))
}

/// Newest first. Documents count: a list of large ones is cut, and says so.
async fn list(State(app): State<App>, params: Params) -> Result<Response> {
    let deleted = params.flag("findDeleted")?;
    let mut rows = rows::all(&app).await?;
    rows.retain(|row| deleted || row.entry.deleted_at.is_none());
    rows.sort_by(|a, b| (b.entry.created_at, &b.id).cmp(&(a.entry.created_at, &a.id)));
    let (total, mut bytes, mut shown) = (rows.len(), 0, Vec::new());
    for row in rows.into_iter().take(LIST_MAX) {
        let Some(document) = DOCUMENT.find(&app, &row.id).await? else { continue };
        bytes += document.value.to_string().len();
        if bytes > LIST_BYTES_MAX {
            break;
        }
        shown.push(show::definition(&row, document.value));
    }
    let more = shown.len() < total;
    bare(&app, shown, more).await
}

async fn get(State(app): State<App>, Path(id): Path<String>, params: Params) -> Result<Response> {
    let deleted = params.flag("findDeleted")?;
    let (reference, workflow) = named(&app, &id).await?;
    let entry = workflow.value.entry(&reference).filter(|entry| deleted || entry.deleted_at.is_none());
    shown(&app, &reference, entry.ok_or_else(|| unknown(&id))?).await
}

async fn find(State(app): State<App>, Path(text): Path<String>) -> Result<Response> {
    let no_reference =
        || HttpError::bad(format!("a reference looks like package/name:1, :1.2 or :1.2.3, not {text:?}"));
    let reference = Reference::parse(&text).ok_or_else(no_reference)?;
    let workflow = WORKFLOW.find(&app, &name_of(&reference)).await?.ok_or_else(|| unknown(&text))?;
    let version = reference.newest(workflow.value.live()).ok_or_else(|| unknown(&text))?;
    let exact = Reference::exact(&reference.package, &reference.name, version);
    let entry = workflow.value.entry(&exact).ok_or_else(|| unknown(&text))?;
    shown(&app, &exact, entry).await
}

/// A version that was asked for, with its document.
async fn shown(app: &App, reference: &Reference, entry: &Entry) -> Result<Response> {
    let id = reference.to_string();
    let document = DOCUMENT.find(app, &id).await?.ok_or_else(|| unknown(&id))?;
    let row = rows::Row::new(&name_of(reference), entry.clone());
    Ok(ok(show::definition(&row, document.value)).into_response())
}

/// The workflow that an id of a version names. What is no id names nothing.
async fn named(app: &App, id: &str) -> Result<(Reference, windlass_engine::records::Kept<Workflow>)> {
    let reference = Reference::parse(id).filter(|found| found.version().is_some()).ok_or_else(|| unknown(id))?;
    let workflow = WORKFLOW.find(app, &name_of(&reference)).await?.ok_or_else(|| unknown(id))?;
    Ok((reference, workflow))
}

async fn delete(State(neops): State<Neops>, by: By, Path(id): Path<String>) -> Result<Response> {
    mark(&neops, &id, (&by, "workflow_deleted"), |entry, now| match entry.deleted_at {
        None => {
            entry.deleted_at = Some(now);
            Ok(())
        }
        Some(_) => Err(unknown(&id)),
    })
    .await
}

async fn restore(State(neops): State<Neops>, by: By, Path(id): Path<String>) -> Result<Response> {
    mark(&neops, &id, (&by, "workflow_restored"), |entry, _| match entry.deleted_at.take() {
        Some(_) => Ok(()),
        None => Err(HttpError::bad(format!("{id} is not deleted"))),
    })
    .await
}

/// Changes what is said about one version, unless somebody else does so at the same time; then once more.
async fn mark(
    neops: &Neops,
    id: &str,
    (by, act): (&By, &'static str),
    change: impl Fn(&mut Entry, Timestamp) -> Result<()>,
) -> Result<Response> {
    for _ in 0..TRIES {
        let (reference, mut workflow) = named(neops, id).await?;
        let now = neops.engine.now().await?;
        let entry = workflow.value.entry_mut(&reference).ok_or_else(|| unknown(id))?;
        change(entry, now)?;
        entry.updated_at = now;
        let put = WORKFLOW.put(&workflow.key, &workflow.value, workflow.unchanged());
        if written(neops.engine.run(Audited::told(&by.name(), act, id, put)).await)? {
            neops.own.scheduler.notify_one();
            return Ok(empty(StatusCode::OK));
        }
    }
    Err(busy())
}

/// False: somebody else was faster.
pub fn written<T>(answer: Result<T, Error>) -> Result<bool> {
    match answer {
        Ok(_) => Ok(true),
        Err(Error::Refused(Refusal::VersionMismatch { .. } | Refusal::Exists { .. })) => Ok(false),
        Err(other) => Err(other.into()),
    }
}

fn busy() -> HttpError {
    HttpError::new(StatusCode::SERVICE_UNAVAILABLE, "others keep publishing versions of this workflow; try again")
}
