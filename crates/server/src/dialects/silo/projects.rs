//! Projects over HTTP.

use super::{
    body::{Here, Json, Listed, Params, Path, Raw, created, ok, page, time},
    error::Result,
    items,
};
use crate::app::App;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
use windlass_product::{
    projects::{self, NewProject, find, members},
    records::{self, Of},
    rules::item::Project,
};

fn show(project: &Project) -> Value {
    json!({
        "id": project.id,
        "code": project.code,
        "name": project.name,
        "description": project.description,
        "created_at": time(project.created_at),
    })
}

#[derive(Deserialize)]
struct Create {
    code: String,
    name: Option<String>,
    description: Option<String>,
}

pub async fn create(State(app): State<App>, Here(products): Here, raw: Raw) -> Result<Json<Value>> {
    let Create { code, name, description } = raw.parse(&app).await?;
    Ok(created(show(&projects::create(&products, &NewProject { code, name, description }).await?)))
}

pub async fn list(Here(products): Here, params: Params) -> Result<Listed<Value>> {
    let paging = params.page()?;
    let Listed(found, total) = page(records::list(&products, records::PROJECT, Of::All).await?, paging);
    Ok(Listed(found.iter().map(|kept| show(&kept.value)).collect(), total))
}

pub async fn one(Here(products): Here, Path(code): Path<String>) -> Result<Json<Value>> {
    Ok(ok(show(&find(&products, &code).await?.value)))
}

pub async fn items(Here(products): Here, Path(code): Path<String>, params: Params) -> Result<Listed<Value>> {
    find(&products, &code).await?;
    let paging = params.page()?;
    let Listed(found, total) = page(members(&products, &code).await?, paging);
    Ok(Listed(found.iter().map(items::show).collect(), total))
}
