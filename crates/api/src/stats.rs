//! Figures for people and dashboards.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counts are exact up to 1000 and stop there, so that the call stays cheap.
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
    pub version: String,
    pub store: String,
    /// Who may call without a token, where a dialect's clients cannot send one: `never`, `loopback` or `anyone`.
    #[serde(default)]
    pub without_token: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Count {
    pub count: u64,
    /// There are more than `count`.
    pub more: bool,
}
