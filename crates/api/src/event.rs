//! Events: facts that were committed, in order.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uuid::Uuid;

/// One fact. `id` grows with each; all namespaces share the numbers, so that a reader of one namespace or of some kinds does not
/// see every number. To resume, send the last number you saw as `Last-Event-ID`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    pub id: u64,
    pub namespace: String,
    pub at: String,
    /// `submitted`, `claimed`, `completed`, `worker_online` and so on.
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Uuid>,
    /// Other fields, depending on the type: `attempt`, `reason`, `message`, `percent`, `by`, `name`, `version`.
    #[serde(flatten)]
    pub rest: BTreeMap<String, serde_json::Value>,
}

/// Which events to follow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ListenEvents {
    /// A namespace, or `*` for all namespaces the token may see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// One type, or several separated by commas.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Only events of this job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<Uuid>,
    /// Only events of this run and its jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<Uuid>,
    /// Only events after this number. Default: only new events. The header `Last-Event-ID` overrides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// `false` ends the stream after the last event that there was when it began. Default: `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follow: Option<bool>,
}
