//! Figures for people and dashboards.

use crate::is_default;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uuid::Uuid;

/// How it stands in a namespace. Jobs are counted exactly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stats {
    pub namespace: String,
    /// By state.
    pub jobs: BTreeMap<String, Count>,
    /// By state.
    pub workers: BTreeMap<String, u64>,
    /// Number of claims that wait for a job on this server.
    pub waiting_claims: u64,
    /// Bytes that the namespace stores: payloads, results, logs, records and events, without artifacts. About: what is small is counted in
    /// steps.
    #[serde(default)]
    pub stored_bytes: u64,
    /// How many it may store (`stored_bytes_per_namespace_max`). Absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_bytes_max: Option<u64>,
    pub version: String,
    pub store: String,
    /// Who may call without a token, where a dialect's clients cannot send one: `never`, `loopback` or `anyone`.
    #[serde(default)]
    pub without_token: String,
}

/// Which jobs to count: all of the namespace, or those of one definition. These numbers are kept, and exact. Jobs that are chosen by
/// anything else are counted up to 1000, so that the call stays cheap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct CountJobs {
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: Option<String>,
    /// Only jobs of this definition, of any version. Not with the other filters.
    #[serde(skip_serializing_if = "is_default")]
    pub definition: Option<String>,
    /// `name:value`.
    #[serde(skip_serializing_if = "is_default")]
    pub facet: Option<String>,
    /// Only jobs whose name begins with this text.
    #[serde(skip_serializing_if = "is_default")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub run: Option<Uuid>,
    /// Only jobs this worker holds now.
    #[serde(skip_serializing_if = "is_default")]
    pub worker: Option<String>,
    /// An answer up to this old will do, at most 5000: it is made once for all who ask the same. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_ms: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobCounts {
    /// By state; all states are there.
    pub jobs: BTreeMap<String, Count>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Count {
    pub count: u64,
    /// There are more than `count`.
    pub more: bool,
}
