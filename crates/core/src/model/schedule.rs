//! Schedules: a job made again and again. Only fixed intervals are decided in here; calendars need a time-zone database,
//! so whoever has one tells the next time with [`crate::commands::fire::Fire`].

use crate::model::{
    id::JobId,
    is_default,
    job::{ConcurrencyKey, DefinitionRef},
    name::{Facet, Tags},
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
    /// Jobs made so far.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fired: u64,
    /// The last of them, in order.
    #[serde(default, skip_serializing_if = "is_default")]
    pub recent: Vec<Firing>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub missed: Missed,
    /// Kept, but makes no jobs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub paused: bool,
    /// What was asked for, as it was asked for. Never looked into.
    #[serde(default, skip_serializing_if = "is_default")]
    pub extra: Option<Arc<str>>,
}

/// One time that a schedule made a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Firing {
    pub at: Timestamp,
    pub job: JobId,
}

/// Firings that are remembered.
const RECENT_MAX: usize = 20;

/// What becomes of times that passed while nobody looked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// One job makes up for all of them.
    #[default]
    Once,
    /// They are let go.
    Skip,
}

/// A firing that comes later than this was missed: no sweep and no busy server takes so long.
const LATE_MAX: Millis = Millis::from_secs(60);

impl Schedule {
    pub fn new(name: &str, rule: Rule, next_at: Timestamp, template: Template) -> Self {
        let (missed, paused, extra) = (Missed::Once, false, None);
        Self { name: name.into(), next_at, rule, template, fired: 0, recent: Vec::new(), missed, paused, extra }
    }

    pub(crate) fn count(&mut self, firing: Firing) {
        self.fired += 1;
        self.recent.push(firing);
        self.recent.drain(..self.recent.len().saturating_sub(RECENT_MAX));
    }

    /// Whether a firing now would be too late to be wanted.
    pub(crate) fn is_let_go(&self, now: Timestamp) -> bool {
        self.missed == Missed::Skip && now - self.next_at > LATE_MAX
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    Every(Millis),
    /// Evaluated outside, by whoever knows calendars and time zones; the rules only keep the text.
    Calendar(Arc<str>),
}

/// What each firing submits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Template {
    /// What people call its jobs.
    #[serde(skip_serializing_if = "is_default")]
    pub name: Option<Arc<str>>,
    pub priority: i32,
    #[serde(skip_serializing_if = "is_default")]
    pub tags: Tags,
    pub payload: Arc<str>,
    #[serde(skip_serializing_if = "is_default")]
    pub definition: Option<DefinitionRef>,
    #[serde(skip_serializing_if = "is_default")]
    pub facets: Vec<Facet>,
    #[serde(skip_serializing_if = "is_default")]
    pub concurrency: Option<ConcurrencyKey>,
    #[serde(skip_serializing_if = "is_default")]
    pub policy: JobPolicy,
    #[serde(skip_serializing_if = "is_default")]
    pub extra: Option<Arc<str>>,
}

impl Kind for Schedule {
    const KIND: &'static str = "schedule";
    fn due(&self) -> Option<Timestamp> {
        (matches!(self.rule, Rule::Every(_)) && !self.paused).then_some(self.next_at)
    }
}
