//! Events: facts that were committed, in order.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uuid::Uuid;

/// One fact. `id` grows with each; all namespaces share the numbers, so that a reader of one namespace or of some kinds does not
/// see every number. Hand the last one seen back as `Last-Event-ID` to go on.
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
    /// The rest, by type: `attempt`, `reason`, `message`, `percent`, `by`, `name`, `version`.
    #[serde(flatten)]
    pub rest: BTreeMap<String, serde_json::Value>,
}

/// Which events to hear.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ListenEvents {
    /// `*` for all that the token may see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// One type, or several separated by commas.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// About this job only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<Uuid>,
    /// About this run and its jobs only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<Uuid>,
    /// Those after this number; from now on where absent. The header `Last-Event-ID` wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}
