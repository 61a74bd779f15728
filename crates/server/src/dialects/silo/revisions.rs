//! Revisions over HTTP.

use super::{
    body::{Here, Json, Listed, Params, Path, Raw, created, ok, time},
    error::{HttpError, Result},
    jobs,
};
use crate::{app::App, auth::Caller};
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use windlass_product::{
    items,
    revisions::{self, NewRevision},
    rules::item::{Item, Revision},
};

fn show(item: &Item, revision: &Revision) -> Value {
    json!({
        "id": revision.id,
        "item_id": item.id,
        "part_number": item.part_number,
        "revision_number": revision.number,
        "comment": revision.comment,
        "properties": revision.properties,
        "created_at": time(revision.created_at),
        "created_by": revision.created_by,
    })
}

#[derive(Deserialize)]
struct Create {
    comment: Option<String>,
    properties: Option<Map<String, Value>>,
}

pub async fn create(
    State(app): State<App>,
    Here(products): Here,
    caller: Caller,
    Path(part): Path<String>,
    raw: Raw,
) -> Result<Json<Value>> {
    items::find(&products, &part).await?;
    let Create { comment, properties } = raw.parse(&app).await?;
    let made =
        revisions::create(&products, &caller.name, &part, &NewRevision { comment, properties, quiet: false }).await?;
    let mut shown = show(&made.item, &made.revision);
    shown["triggered_jobs"] = jobs::triggered(&made.fired);
    Ok(created(shown))
}

pub async fn list(Here(products): Here, Path(part): Path<String>, params: Params) -> Result<Listed<Value>> {
    let item = items::find(&products, &part).await?.value;
    let (offset, limit) = params.page()?;
    let total = item.current_revision;
    let newest = total.saturating_sub(u32::try_from(offset).unwrap_or(u32::MAX));
    let found = revisions::page(&products, &item, newest, limit).await?;
    Ok(Listed(found.iter().map(|revision| show(&item, revision)).collect(), total as usize))
}

pub async fn one(Here(products): Here, Path((part, number)): Path<(String, String)>) -> Result<Json<Value>> {
    let item = items::find(&products, &part).await?.value;
    let number = number.parse().map_err(|_| HttpError::missing("revision", &number))?;
    Ok(ok(show(&item, &revisions::find(&products, &item, number).await?)))
}
