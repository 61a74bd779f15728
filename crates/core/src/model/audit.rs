//! The audit log: what operators did. Kept apart from events, and longer: by default for a year ([`crate::Limits::audit_kept`]).

use crate::model::{is_default, name::Namespace, record::Kind, time::Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// So many entries are kept of one namespace. Beyond that only acts on principals and tokens are added, which admins alone can do;
/// the others are still among the events.
pub const ENTRIES_MAX: u64 = 100_000;

/// One act. In the system's namespace, so that all of them are one list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    pub namespace: Namespace,
    pub at: Timestamp,
    pub by: Arc<str>,
    pub act: Arc<str>,
    pub on: Arc<str>,
    /// Grows with each entry of the namespace.
    pub number: u64,
    /// It is removed then.
    pub until: Timestamp,
}

impl AuditEntry {
    /// In the order of these, entries come newest first; those of one namespace also within a millisecond.
    pub fn key(&self) -> String {
        let (at, number) = (i64::MAX - self.at.0.max(0), u64::MAX - self.number);
        format!("{at:016x}{number:016x}-{}", self.namespace)
    }

    /// Tells it from others, and fits into the whole numbers that every language has.
    pub fn id(&self) -> u64 {
        (self.at.0.unsigned_abs() << 12) | (self.number & 0xfff)
    }
}

impl Kind for AuditEntry {
    const KIND: &'static str = "audit_entry";
    fn due(&self) -> Option<Timestamp> {
        Some(self.until)
    }
    fn parent(&self) -> Option<Arc<str>> {
        Some(self.namespace.as_str().into())
    }
}

/// How many entries a namespace has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditCount {
    #[serde(default, skip_serializing_if = "is_default")]
    pub written: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub kept: u64,
}

impl AuditCount {
    pub const KEY: &'static str = "all";
}

impl Kind for AuditCount {
    const KIND: &'static str = "audit_count";
}
