//! Projects over HTTP.

use super::{
    body::{Json, Listed, Params, Path, Raw, created, ok, page, time},
    error::No,
    items,
};
use crate::{
    app::App,
    product::{
        projects::{self, NewProject},
        store::{self, Of},
    },
};
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
use windlass_core::product::item::Project;

pub use crate::product::projects::{find, members};

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

pub async fn create(State(app): State<App>, raw: Raw) -> Result<Json<Value>, No> {
    let Create { code, name, description } = raw.parse(&app).await?;
    Ok(created(show(&projects::create(&app, &NewProject { code, name, description }).await?)))
}

pub async fn list(State(app): State<App>, params: Params) -> Result<Listed<Value>, No> {
    let paging = params.page()?;
    let Listed(found, total) = page(store::list::<Project>(&app, store::PROJECT, Of::All).await?, paging);
    Ok(Listed(found.iter().map(|kept| show(&kept.value)).collect(), total))
}

pub async fn one(State(app): State<App>, Path(code): Path<String>) -> Result<Json<Value>, No> {
    Ok(ok(show(&find(&app, &code).await?.value)))
}

pub async fn items(State(app): State<App>, Path(code): Path<String>, params: Params) -> Result<Listed<Value>, No> {
    find(&app, &code).await?;
    let paging = params.page()?;
    let Listed(found, total) = page(members(&app, &code).await?, paging);
    Ok(Listed(found.iter().map(items::show).collect(), total))
}
