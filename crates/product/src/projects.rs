//! Projects: named sets of items.

use crate::{
    Error, Products,
    records::{self, Change, Kept, Of, Put},
    rules::item::{self, Item, Project},
    write_change,
};
use windlass_core::{Refusal, commands::records::Expect};
use windlass_engine::ids;

const TEXT_BYTES_MAX: usize = 64 << 10;

pub async fn find(products: &Products, code: &str) -> Result<Kept<Project>, Error> {
    records::get(products, records::PROJECT, code).await?.ok_or_else(|| Error::not_found("project", code))
}

/// A project to be.
#[derive(Clone, Debug, Default)]
pub struct NewProject {
    pub code: String,
    pub name: Option<String>,
    pub description: Option<String>,
}

pub async fn create(products: &Products, new: &NewProject) -> Result<Project, Error> {
    item::check_project_code(&new.code)?;
    for (field, text) in [("name", &new.name), ("description", &new.description)] {
        if text.as_ref().is_some_and(|text| text.len() > TEXT_BYTES_MAX) {
            return Err(Error::invalid(field, format!("may have {TEXT_BYTES_MAX} bytes")));
        }
    }
    write_change!(products, Error, {
        if records::get(products, records::PROJECT, &new.code).await?.is_some() {
            return Err(Refusal::Exists { what: "project", name: new.code.clone() }.into());
        }
        let project = Project {
            id: ids::job_id().0,
            code: new.code.clone(),
            name: new.name.clone().unwrap_or_else(|| new.code.clone()),
            description: new.description.clone().unwrap_or_default(),
            created_at: products.engine().now().await?,
        };
        let put = Put::new(products, records::PROJECT, &project.code, Expect::Nothing).value(&project)?;
        Ok(Change { commands: vec![put], answer: project })
    })
}

/// The items of a project, by part number.
pub async fn members(products: &Products, code: &str) -> Result<Vec<Item>, Error> {
    let mut found = Vec::new();
    for member in records::list(products, records::MEMBER, Of::Under(code)).await? {
        found.extend(records::get(products, records::ITEM, &member.value).await?.map(|kept| kept.value));
    }
    found.sort_by(|a, b| a.part_number.cmp(&b.part_number));
    Ok(found)
}
