//! Why is this job not running?

use crate::job::State;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Why {
    pub job: Uuid,
    pub state: State,
    /// The most important reason in one sentence.
    pub summary: String,
    /// All reasons, the most important first.
    pub reasons: Vec<Cause>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cause {
    /// Stable, for machines: `ended`, `running`, `waits_for_jobs`, `waits_for_event`, `waits_for_approval`,
    /// `waits_for_time`, `waits_for_plan`, `concurrency_full`, `scheduled`, `no_worker_offers`,
    /// `workers_busy`, `workers_offline`, `jobs_ahead`, `ready`.
    pub code: String,
    /// Text for people.
    pub text: String,
    /// What to do, with a command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The jobs concerned, at most ten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<Uuid>,
    /// The workers concerned, at most ten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<String>,
}
