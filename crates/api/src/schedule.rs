//! Schedules: a job made again and again.

use crate::{is_default, job::SubmitJob, object};
use serde::{Deserialize, Serialize};

/// When, and what. Exactly one of `cron` and `every_ms`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PutSchedule {
    /// Five fields (minute, hour, day, month, weekday), or six with seconds first; `@daily` and the like work too.
    #[serde(skip_serializing_if = "is_default")]
    pub cron: Option<String>,
    /// IANA name such as `Europe/Berlin`; `UTC` where absent.
    #[serde(skip_serializing_if = "is_default")]
    pub time_zone: Option<String>,
    /// A fixed interval, at least a second.
    #[serde(skip_serializing_if = "is_default")]
    pub every_ms: Option<u64>,
    /// What to do about times that passed while no server was running.
    #[serde(skip_serializing_if = "is_default")]
    pub missed: Missed,
    /// Keeps it but makes no jobs.
    #[serde(skip_serializing_if = "is_default")]
    pub paused: bool,
    /// The job to make each time.
    #[serde(deserialize_with = "object::one")]
    pub job: SubmitJob,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// One job makes up for all of them.
    #[default]
    Once,
    /// They are let go.
    Skip,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Schedule {
    pub name: String,
    pub namespace: String,
    pub schedule: PutSchedule,
    /// Jobs made so far.
    pub fired: u64,
    /// The next times, at most five; none while paused.
    pub next: Vec<String>,
}
