//! Projects: named sets of items.

use super::{
    body::{Json, Listed, Params, Path, Raw, created, ok, page, time},
    error::No,
    items,
    store::{self, Change, Kept, Of, Put},
};
use crate::app::App;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
use windlass_core::{
    commands::records::Expect,
    product::item::{self, Item, Project},
};
use windlass_engine::ids;

const TEXT_BYTES_MAX: usize = 64 << 10;

pub async fn find(app: &App, code: &str) -> Result<Kept<Project>, No> {
    store::get::<Project>(app, store::PROJECT, code).await?.ok_or_else(|| No::missing("project", code))
}

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
    let body: Create = raw.parse()?;
    item::check_project_code(&body.code)?;
    if [&body.name, &body.description].into_iter().flatten().any(|text| text.len() > TEXT_BYTES_MAX) {
        return Err(No::invalid(format!("name and description may have {TEXT_BYTES_MAX} bytes each")));
    }
    let project = store::settle!(&app, {
        if store::get::<Project>(&app, store::PROJECT, &body.code).await?.is_some() {
            return Err(No::conflict(format!("the project {} exists already", body.code)));
        }
        let project = Project {
            id: ids::job_id().0,
            code: body.code.clone(),
            name: body.name.clone().unwrap_or_else(|| body.code.clone()),
            description: body.description.clone().unwrap_or_default(),
            created_at: app.engine.now().await?,
        };
        let put = Put::new(store::PROJECT, &project.code, Expect::Nothing).value(&project)?;
        Ok(Change { commands: vec![put], answer: project })
    })?;
    Ok(created(show(&project)))
}

pub async fn list(State(app): State<App>, params: Params) -> Result<Listed<Value>, No> {
    let paging = params.page()?;
    let Listed(found, total) = page(store::list::<Project>(&app, store::PROJECT, Of::All).await?, paging);
    Ok(Listed(found.iter().map(|kept| show(&kept.value)).collect(), total))
}

pub async fn one(State(app): State<App>, Path(code): Path<String>) -> Result<Json<Value>, No> {
    Ok(ok(show(&find(&app, &code).await?.value)))
}

/// The items of a project, by part number.
pub async fn members(app: &App, code: &str) -> Result<Vec<Item>, No> {
    let mut found = Vec::new();
    for member in store::list::<String>(app, store::MEMBER, Of::Under(code)).await? {
        found.extend(store::get::<Item>(app, store::ITEM, &member.value).await?.map(|kept| kept.value));
    }
    found.sort_by(|a, b| a.part_number.cmp(&b.part_number));
    Ok(found)
}

pub async fn items(State(app): State<App>, Path(code): Path<String>, params: Params) -> Result<Listed<Value>, No> {
    find(&app, &code).await?;
    let paging = params.page()?;
    let Listed(found, total) = page(members(&app, &code).await?, paging);
    Ok(Listed(found.iter().map(items::show).collect(), total))
}
