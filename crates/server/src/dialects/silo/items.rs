//! Items over HTTP.

use super::{
    body::{Here, Json, Listed, Params, Path, Raw, created, ok, time},
    error::{HttpError, Result},
};
use crate::{app::App, auth::Caller, product::files};
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use windlass_product::{
    Part,
    items::{self, ItemChange, NewItem, Wanted, find},
    rules::item::Item,
};

pub fn show(item: &Item) -> Value {
    json!({
        "id": item.id,
        "part_number": item.part_number,
        "item_type": item.item_type,
        "schema": item.schema,
        "category": item.category,
        "description": item.description,
        "properties": item.properties,
        "projects": item.projects,
        "current_revision": item.current_revision,
        "created_at": time(item.created_at),
        "updated_at": time(item.updated_at),
        "created_by": item.created_by,
        "updated_by": item.updated_by,
    })
}

#[derive(Deserialize)]
struct Create {
    part_number: Option<String>,
    item_type: Option<String>,
    schema: Option<String>,
    category: Option<String>,
    description: Option<String>,
    properties: Option<Map<String, Value>>,
    projects: Option<Vec<String>>,
}

pub async fn create(State(app): State<App>, Here(products): Here, caller: Caller, raw: Raw) -> Result<Json<Value>> {
    let Create { part_number, item_type, schema, category, description, properties, projects } =
        raw.parse(&app).await?;
    let new = NewItem { part_number, item_type, schema, category, description, properties, projects };
    Ok(created(show(&items::create(&products, &caller.name, &new).await?)))
}

pub async fn list(Here(products): Here, params: Params) -> Result<Listed<Value>> {
    let (offset, limit) = params.page()?;
    let asked = |name: &str| params.get(name).map(str::to_owned);
    let wanted = Wanted {
        item_type: asked("item_type"),
        schema: asked("schema"),
        project: asked("project"),
        search: asked("search"),
    };
    let Part { found, total } = items::some(&products, &wanted, offset, limit).await?;
    Ok(Listed(found.iter().map(show).collect(), total))
}

pub async fn one(Here(products): Here, Path(part): Path<String>) -> Result<Json<Value>> {
    Ok(ok(show(&find(&products, &part).await?.value)))
}

pub async fn by_uuid(Here(products): Here, Path(id): Path<String>) -> Result<Json<Value>> {
    let missing = || HttpError::missing("item", &id);
    let id = windlass_api::Uuid::parse_str(&id).map_err(|_| missing())?.to_string();
    Ok(ok(show(&items::by_id(&products, &id).await?.ok_or_else(missing)?.value)))
}

#[derive(Deserialize)]
struct Update {
    description: Option<String>,
    item_type: Option<String>,
    properties: Option<Map<String, Value>>,
    projects: Option<Vec<String>>,
}

pub async fn update(
    State(app): State<App>,
    Here(products): Here,
    caller: Caller,
    Path(part): Path<String>,
    raw: Raw,
) -> Result<Json<Value>> {
    find(&products, &part).await?;
    let Update { description, item_type, properties, projects } = raw.parse(&app).await?;
    let change = ItemChange { description, item_type, properties, projects };
    Ok(ok(show(&items::update(&products, &caller.name, &part, &change).await?)))
}

pub async fn delete(State(app): State<App>, Here(products): Here, Path(part): Path<String>) -> Result<StatusCode> {
    files::delete_item(&app, &products, &part).await?;
    Ok(StatusCode::NO_CONTENT)
}
