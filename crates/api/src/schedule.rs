//! Schedules: a job made again and again.

use crate::{
    is_default,
    job::{State, SubmitJob},
    object,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A schedule. Exactly one of `cron` and `every_ms` is required.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PutSchedule {
    /// Five fields (minute, hour, day, month, weekday), six with seconds first, or a shortcut such as `@daily`.
    #[serde(skip_serializing_if = "is_default")]
    pub cron: Option<String>,
    /// IANA name such as `Europe/Berlin`. Default: `UTC`.
    #[serde(skip_serializing_if = "is_default")]
    pub time_zone: Option<String>,
    /// A fixed interval, at least 1000.
    #[serde(skip_serializing_if = "is_default")]
    pub every_ms: Option<u64>,
    /// What to do about runs that were missed while no server was up.
    #[serde(skip_serializing_if = "is_default")]
    pub missed: Missed,
    /// Create no jobs while paused.
    #[serde(skip_serializing_if = "is_default")]
    pub paused: bool,
    /// The job to create each time.
    #[serde(deserialize_with = "object::one")]
    pub job: SubmitJob,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// Create one job for all of them.
    #[default]
    Once,
    /// Drop them.
    Skip,
}

/// One time that a schedule created a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Firing {
    pub at: String,
    pub job: Uuid,
    /// The job's state. Absent: the job is no longer kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Schedule {
    pub name: String,
    pub namespace: String,
    pub schedule: PutSchedule,
    /// Number of jobs created so far.
    pub fired: u64,
    /// The next times, at most five; none while paused.
    pub next: Vec<String>,
    /// The last jobs it created, the latest first, at most 20. Not in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recent: Vec<Firing>,
}
