//! What is kept of workflows.

use super::super::namespace;
use crate::records::Records;
use crate::{app::App, problem::Problem};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_core::Timestamp;
use windlass_plan::neops::{
    publish::Held,
    reference::{EntityType, Reference, Version},
};

/// By `package/name`.
pub const WORKFLOW: Records<Workflow> = Records::new("neops_workflow", namespace);
/// By `package/name:1.2.3`, as it was published.
pub const DOCUMENT: Records<Value> = Records::new("neops_document", namespace);

/// Versions of one workflow, deleted ones included: their numbers stay taken.
pub const VERSIONS_MAX: usize = 2_000;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Workflow {
    /// In the order of their numbers.
    pub versions: Vec<Entry>,
}

/// What is said about a version beside its document.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    pub version: Version,
    pub seed: EntityType,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
    /// Who published it. None: somebody without a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Whether its document has schedules.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cron: bool,
}

impl Workflow {
    pub fn held(&self) -> Vec<Held> {
        let held = |entry: &Entry| Held { version: entry.version, deleted: entry.deleted_at.is_some() };
        self.versions.iter().map(held).collect()
    }

    pub fn live(&self) -> impl Iterator<Item = Version> {
        self.versions.iter().filter(|entry| entry.deleted_at.is_none()).map(|entry| entry.version)
    }

    pub fn entry(&self, reference: &Reference) -> Option<&Entry> {
        self.versions.iter().find(|entry| Some(entry.version) == reference.version())
    }

    pub fn entry_mut(&mut self, reference: &Reference) -> Option<&mut Entry> {
        self.versions.iter_mut().find(|entry| Some(entry.version) == reference.version())
    }

    pub fn add(&mut self, entry: Entry) {
        self.versions.push(entry);
        self.versions.sort_by_key(|entry| entry.version);
    }
}

/// A version, and how it is called.
#[derive(Clone, Debug)]
pub struct Row {
    /// `package/name`.
    pub name: String,
    pub id: String,
    pub entry: Entry,
    /// The newest run that the row stands for, where that was looked up.
    pub last: Option<Last>,
}

/// A run, as far as rows of workflows tell.
#[derive(Clone, Debug)]
pub struct Last {
    pub workflow: String,
    pub created_at: Timestamp,
    pub shown: Value,
}

impl Row {
    pub fn new(name: &str, entry: Entry) -> Self {
        Self { id: format!("{name}:{}", entry.version), name: name.to_owned(), entry, last: None }
    }

    pub fn package(&self) -> &str {
        self.name.split_once('/').map_or(&*self.name, |(package, _)| package)
    }

    /// The name without its package.
    pub fn own_name(&self) -> &str {
        self.name.split_once('/').map_or(&*self.name, |(_, name)| name)
    }
}

/// Versions that a list is made of.
const LOOKED_AT: usize = 50_000;

/// Every version of every workflow, of the first ones.
pub async fn all(app: &App) -> Result<Vec<Row>, Problem> {
    let mut rows = Vec::new();
    WORKFLOW
        .each(app, None, |kept| {
            rows.extend(kept.value.versions.into_iter().map(|entry| Row::new(&kept.key, entry)));
            rows.len() < LOOKED_AT
        })
        .await?;
    Ok(rows)
}

/// The newest live version of each workflow that has one, with whether it has schedules.
pub async fn newest_live(app: &App) -> Result<Vec<(String, bool)>, Problem> {
    let mut found = Vec::new();
    WORKFLOW
        .each(app, None, |kept| {
            let live = kept.value.versions.into_iter().rev().find(|entry| entry.deleted_at.is_none());
            found.extend(live.map(|entry| (Row::new(&kept.key, entry.clone()).id, entry.cron)));
            true
        })
        .await?;
    Ok(found)
}
