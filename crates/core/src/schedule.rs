//! Schedules: a job made again and again. Only fixed intervals are decided in here; calendars need a time-zone database,
//! so whoever has one tells the next time with [`crate::commands::fire::Fire`].

use crate::{
    is_default,
    name::Tags,
    policy::JobPolicy,
    record::Kind,
    time::{Millis, Timestamp},
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    pub name: Arc<str>,
    pub next_at: Timestamp,
    pub rule: Rule,
    pub template: Template,
    #[serde(default, skip_serializing_if = "is_default")]
    pub fired: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    Every(Millis),
    /// Evaluated outside.
    Calendar(Arc<str>),
}

/// What each firing submits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Template {
    pub priority: i32,
    #[serde(skip_serializing_if = "is_default")]
    pub tags: Tags,
    pub payload: Arc<str>,
    #[serde(skip_serializing_if = "is_default")]
    pub policy: JobPolicy,
    #[serde(skip_serializing_if = "is_default")]
    pub extra: Option<Arc<str>>,
}

impl Kind for Schedule {
    const KIND: &'static str = "schedule";
    fn due(&self) -> Option<Timestamp> {
        matches!(self.rule, Rule::Every(_)).then_some(self.next_at)
    }
}
