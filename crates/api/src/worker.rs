//! Workers.

use crate::is_default;
use serde::{Deserialize, Serialize};

/// Register a worker. Registering again replaces the registration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RegisterWorker {
    /// The worker's name, unique in the namespace.
    pub worker: String,
    /// Tags it offers.
    #[serde(skip_serializing_if = "is_default")]
    pub tags: Vec<String>,
    /// How many jobs it runs at a time; for information, not enforced.
    #[serde(skip_serializing_if = "is_default")]
    pub slots: u32,
    /// The worker is offline after this long without a call. Default: 90000.
    #[serde(skip_serializing_if = "is_default")]
    pub offline_after_ms: Option<u64>,
    /// The worker is deleted after this long without a call. Default: one day.
    #[serde(skip_serializing_if = "is_default")]
    pub delete_after_ms: Option<u64>,
    /// Other information for people, such as host and version.
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
    /// False ends the drain.
    pub draining: Option<bool>,
}

/// Wait until there may be news for a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct WatchWorker {
    pub worker: String,
    /// `seen` of the last answer. If absent, the call is answered at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// How long to wait, at most 60000. Default: 0.
    #[serde(skip_serializing_if = "is_default")]
    pub wait_ms: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerNews {
    /// A job of the worker may have been cancelled or revoked, or the worker drained or undrained: call `sync`.
    pub news: bool,
    /// Send this with the next call.
    pub seen: String,
}
