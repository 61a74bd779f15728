//! Definitions: named recipes for jobs. A version never changes once written; a new body is a new version.

use crate::model::{is_default, record::Kind, time::Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One version of a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    pub name: Arc<str>,
    pub version: u32,
    /// JSON text; the rules never look into it.
    pub body: Arc<str>,
    pub created_at: Timestamp,
}

impl Kind for Definition {
    const KIND: &'static str = "definition_version";
    fn parent(&self) -> Option<Arc<str>> {
        Some(self.name.clone())
    }
}

/// Points at the version in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionHead {
    pub latest: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    pub deleted_at: Option<Timestamp>,
    /// When its first version was written. None on rows of versions that did not keep it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub created_at: Option<Timestamp>,
    /// Workers that are linked to it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub links: u32,
    /// It is deleted when its last link is gone and none of its jobs is pending.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retires: bool,
    /// Deleted by itself, it is forgotten then.
    #[serde(default, skip_serializing_if = "is_default")]
    pub forget_at: Option<Timestamp>,
    /// What says whether another body is the same, where not the text does.
    #[serde(default, skip_serializing_if = "is_default")]
    pub print: Option<Arc<str>>,
}

impl DefinitionHead {
    /// In force, from now on.
    pub(crate) fn revived(self) -> Self {
        Self { deleted_at: None, forget_at: None, ..self }
    }

    /// In force, but nobody serves it any more.
    pub(crate) fn is_left(&self) -> bool {
        self.retires && self.links == 0 && self.deleted_at.is_none()
    }
}

impl Kind for DefinitionHead {
    const KIND: &'static str = "definition";
    fn due(&self) -> Option<Timestamp> {
        self.forget_at
    }
}

/// Sorts by name, then by version.
pub fn version_key(name: &str, version: u32) -> String {
    format!("{name}@{version:010}")
}
