//! Which definitions something about an item sets off, for what, and which items the job then covers.

use super::{
    bom::{Bom, Inside},
    item::Item,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use uuid::Uuid;
use windlass_core::Refusal;

/// Why a job is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    RevisionCreated,
    BomChanged,
    Manual,
    Schedule,
}

impl Trigger {
    pub fn name(self) -> &'static str {
        match self {
            Trigger::RevisionCreated => "revision_created",
            Trigger::BomChanged => "bom_changed",
            Trigger::Manual => "manual",
            Trigger::Schedule => "schedule",
        }
    }
}

/// What a job covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    Item,
    Assembly,
    Project,
}

/// Every key must match, exactly; no key matches all.
pub fn fits(filter: &BTreeMap<String, String>, item: &Item) -> bool {
    filter.iter().all(|(key, wanted)| match key.as_str() {
        "item_type" => item.item_type == *wanted,
        "schema" => item.schema == *wanted,
        _ => false,
    })
}

/// The jobs that a matching definition makes for an item: one, or one for each of its projects, which is named then.
pub fn jobs_for(scope: Scope, item: &Item) -> Vec<Option<String>> {
    match scope {
        Scope::Item | Scope::Assembly => vec![None],
        Scope::Project => item.projects.iter().cloned().map(Some).collect(),
    }
}

/// An item that a job covers, as it was when the job was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Covered {
    pub part_number: String,
    pub item_id: Uuid,
    pub item_type: String,
    pub revision: u32,
    pub depth: u32,
    pub quantity: f64,
}

impl Covered {
    fn new(item: &Item, revision: u32, depth: u32, quantity: f64) -> Self {
        let (part_number, item_type) = (item.part_number.clone(), item.item_type.clone());
        Self { part_number, item_id: item.id, item_type, revision, depth, quantity }
    }

    /// One item by itself.
    pub fn item(item: &Item, revision: u32) -> Vec<Self> {
        vec![Self::new(item, revision, 0, 1.0)]
    }

    /// An item and all components below it. An item that nobody knows (it went meanwhile) is left out.
    pub fn assembly(
        item: &Item,
        revision: u32,
        bom: &Bom,
        known: &HashMap<String, Item>,
    ) -> Result<Vec<Self>, Refusal> {
        let below = bom.inside(&item.part_number)?.into_iter().filter(|inside| inside.depth > 0);
        let one = |Inside { part_number, depth, quantity }: Inside| {
            known.get(&part_number).map(|item| Self::new(item, item.current_revision, depth, quantity))
        };
        Ok(Self::item(item, revision).into_iter().chain(below.filter_map(one)).collect())
    }

    /// All items of a project, each by itself.
    pub fn project(members: &[Item]) -> Vec<Self> {
        members.iter().map(|item| Self::new(item, item.current_revision, 0, 1.0)).collect()
    }
}
