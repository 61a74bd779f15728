//! Projects: named sets of items.

use super::store::{self, Change, Kept, Of, Put};
use crate::{app::App, problem::Problem};
use windlass_core::{
    commands::records::Expect,
    product::item::{self, Item, Project},
};
use windlass_engine::ids;

const TEXT_BYTES_MAX: usize = 64 << 10;

pub async fn find(app: &App, code: &str) -> Result<Kept<Project>, Problem> {
    store::get::<Project>(app, store::PROJECT, code).await?.ok_or_else(|| Problem::not_found("project", code))
}

/// A project to be.
#[derive(Clone, Debug, Default)]
pub struct NewProject {
    pub code: String,
    pub name: Option<String>,
    pub description: Option<String>,
}

pub async fn create(app: &App, new: &NewProject) -> Result<Project, Problem> {
    item::check_project_code(&new.code)?;
    for (field, text) in [("name", &new.name), ("description", &new.description)] {
        if text.as_ref().is_some_and(|text| text.len() > TEXT_BYTES_MAX) {
            return Err(Problem::invalid(field, format!("may have {TEXT_BYTES_MAX} bytes")));
        }
    }
    store::settle!(app, Problem, {
        if store::get::<Project>(app, store::PROJECT, &new.code).await?.is_some() {
            return Err(Problem::new("exists", format!("the project {} exists already", new.code)));
        }
        let project = Project {
            id: ids::job_id().0,
            code: new.code.clone(),
            name: new.name.clone().unwrap_or_else(|| new.code.clone()),
            description: new.description.clone().unwrap_or_default(),
            created_at: app.engine.now().await?,
        };
        let put = Put::new(store::PROJECT, &project.code, Expect::Nothing).value(&project)?;
        Ok(Change { commands: vec![put], answer: project })
    })
}

/// The items of a project, by part number.
pub async fn members(app: &App, code: &str) -> Result<Vec<Item>, Problem> {
    let mut found = Vec::new();
    for member in store::list::<String>(app, store::MEMBER, Of::Under(code)).await? {
        found.extend(store::get::<Item>(app, store::ITEM, &member.value).await?.map(|kept| kept.value));
    }
    found.sort_by(|a, b| a.part_number.cmp(&b.part_number));
    Ok(found)
}
