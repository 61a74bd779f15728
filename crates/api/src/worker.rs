//! Workers.

use crate::is_default;
use serde::{Deserialize, Serialize};

/// Make a worker known. Registering again replaces what was registered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RegisterWorker {
    /// Its name, unique in the namespace.
    pub worker: String,
    /// What it offers.
    #[serde(skip_serializing_if = "is_default")]
    pub tags: Vec<String>,
    /// How many jobs it does at a time; only told, not enforced.
    #[serde(skip_serializing_if = "is_default")]
    pub slots: u32,
    /// Offline after so long without a sign of life; 90 seconds where absent.
    #[serde(skip_serializing_if = "is_default")]
    pub offline_after_ms: Option<u64>,
    /// Forgotten after so long without one; a day where absent.
    #[serde(skip_serializing_if = "is_default")]
    pub delete_after_ms: Option<u64>,
    /// Anything else about it, for people: host, version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub info: Option<serde_json::Value>,
}

/// Names a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WorkerName {
    pub worker: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Liveness {
    Online,
    Unreachable,
    Offline,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Worker {
    pub worker: String,
    pub namespace: String,
    pub state: Liveness,
    pub draining: bool,
    pub tags: Vec<String>,
    pub slots: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    pub registered_at: String,
    pub last_seen: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<serde_json::Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct DrainWorker {
    /// False: it may claim again.
    pub draining: Option<bool>,
}

/// Wait until there may be news for a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct WatchWorker {
    pub worker: String,
    /// What the last call answered. Absent: the call is answered at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// Wait so long; at most 60000, none where absent.
    #[serde(skip_serializing_if = "is_default")]
    pub wait_ms: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerNews {
    /// A job it holds may have been cancelled or taken away, or it may claim no more, or again: ask with `sync`.
    pub news: bool,
    /// For the next call.
    pub seen: String,
}
