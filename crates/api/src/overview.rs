//! Figures for dashboards: how it stands, and how it went.

use crate::{is_default, job::Job, stats::Count};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uuid::Uuid;

/// How it stands in a namespace, and what needs attention. Made at most once a second, however many ask.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overview {
    pub namespace: String,
    /// The server's time.
    pub now: String,
    /// By state. These numbers are kept, so that they are exact and cost the same however many jobs there are.
    pub jobs: BTreeMap<String, Count>,
    /// By state, and `draining` for those among them that drain.
    pub workers: BTreeMap<String, u64>,
    /// Lanes with jobs that can be claimed, the one whose oldest job has waited longest first; at most 20.
    pub lanes: Vec<Lane>,
    /// Definitions with failed jobs in the last hour or two, at most 20. Only jobs whose workers reported are counted.
    pub failing: Vec<Failing>,
    /// What became of the other jobs in that time: those without a definition, and those whose workers did not report. Absent if
    /// none of them failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_others: Option<OtherJobs>,
    /// Workers that registered and are unreachable or offline without having unregistered, the one heard last first; at most 20.
    pub lost_workers: Vec<String>,
    /// Steps of runs that wait for approval or an event, those of the oldest run first; at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting_steps: Vec<WaitingStep>,
    /// The store accepts no more writes until there is room on its disk.
    #[serde(default, skip_serializing_if = "is_default")]
    pub store_full: bool,
    pub version: String,
    pub store: String,
}

/// All pending jobs that need the same tags.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lane {
    pub tags: Vec<String>,
    pub waiting: Count,
    /// The job that has waited longest.
    pub oldest: Uuid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_name: Option<String>,
    /// Since when it can be claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Why it is not running, as `why` says. Of the first five lanes only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The first of those reasons, for machines, such as `no_worker_offers`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason_code: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failing {
    pub definition: String,
    pub completed: u64,
    pub failed: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherJobs {
    pub completed: u64,
    pub failed: u64,
}

/// A step that goes on when it is approved or its event comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitingStep {
    pub run: Uuid,
    /// Absent for a run that was started with its definition in the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    pub step: String,
    pub job: Uuid,
    /// The event it waits for. Absent: it waits for approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// When it stops waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Span {
    /// The last 24 hours, by the minute; of one definition by the hour.
    #[default]
    Day,
    /// The last 30 days, by the hour.
    Month,
}

/// Which figures to read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ReadHistory {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Default: `day`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    /// Only jobs of this definition that ended with a report of their worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// An answer up to this old will do, at most 5000: it is made once for all who ask the same. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_ms: Option<u64>,
}

/// What was done. Figures are written down once a minute; if a server is killed, its last minute is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct History {
    /// The length of time each point stands for.
    pub step_ms: u64,
    /// In order. Times in which nothing was done have none.
    pub points: Vec<Point>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Point {
    /// When it begins.
    pub at: String,
    #[serde(skip_serializing_if = "is_default")]
    pub submitted: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub claimed: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub requeued: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub completed: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub failed: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub cancelled: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub skipped: u64,
    /// Half of the claimed jobs waited no longer, estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_p50_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_p95_ms: Option<u64>,
    /// Half of the jobs that ended ran no longer, estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_p50_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_p95_ms: Option<u64>,
}

/// What became of a definition's jobs. Only jobs that ended with a report of their worker are counted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DefinitionFigures {
    /// In the last 24 hours, like all figures here.
    pub completed: u64,
    pub failed: u64,
    /// Half of them ran no longer, estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_p50_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_p95_ms: Option<u64>,
    /// The jobs that ended last, the latest first, at most 20.
    pub recent: Vec<Job>,
}

/// How often attempts ended badly, by the reports of workers: also of jobs that were tried again afterwards. An attempt that a
/// worker never reported on is not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerFigures {
    /// Of this worker, in the last 24 hours, like all figures here.
    pub completed: u64,
    pub failed: u64,
    /// Of all workers of the namespace, this one included.
    pub fleet_completed: u64,
    pub fleet_failed: u64,
}

/// Namespaces the caller may see, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Namespaces {
    pub items: Vec<String>,
}

/// A setting of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Setting {
    pub name: String,
    /// Secrets are not shown.
    pub value: String,
    /// Where it comes from: a flag, a variable, a file, or the default.
    pub origin: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Settings {
    pub items: Vec<Setting>,
}

/// A protocol that is served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Dialect {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Calls since this server started.
    pub calls: u64,
    /// When this server was last called in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_call: Option<String>,
    /// Who called then, or up to a second before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_caller: Option<String>,
    /// How its jobs and workers stand, in the words of its users. Empty where the caller may not look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signs: Vec<Sign>,
}

/// Something that whoever runs the server should know, and what to do about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sign {
    /// What it is about, in a word or two.
    pub what: String,
    pub text: String,
    /// Missing if all is well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Dialects {
    pub items: Vec<Dialect>,
}
