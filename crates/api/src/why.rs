//! Why is this job not running?

use crate::job::State;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Why {
    pub job: Uuid,
    pub state: State,
    /// In a sentence.
    pub summary: String,
    /// Everything that bears on it, the most important first.
    pub reasons: Vec<Cause>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cause {
    /// Stable, for machines: `ended`, `running`, `waits_for_jobs`, `waits_for_event`, `waits_for_approval`,
    /// `waits_for_time`, `waits_for_plan`, `concurrency_full`, `scheduled`, `no_worker_offers`,
    /// `workers_busy`, `workers_offline`, `jobs_ahead`, `ready`.
    pub code: String,
    /// For people.
    pub text: String,
    /// What to do about it: a sentence with a command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Jobs it is about, at most ten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<Uuid>,
    /// Workers it is about, at most ten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<String>,
}
