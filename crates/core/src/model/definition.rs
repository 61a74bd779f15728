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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionHead {
    pub latest: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    pub deleted_at: Option<Timestamp>,
}

impl Kind for DefinitionHead {
    const KIND: &'static str = "definition";
}

/// Sorts by name, then by version.
pub fn version_key(name: &str, version: u32) -> String {
    format!("{name}@{version:010}")
}
