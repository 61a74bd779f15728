//! Definitions: named, versioned recipes for jobs.

use crate::{is_default, job::Concurrency, job::Retry, object};
use serde::{Deserialize, Serialize};

/// A template for jobs. Settings of a job override those of its definition. A version never changes; a changed body is a new version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct DefinitionBody {
    #[serde(skip_serializing_if = "is_default")]
    pub description: String,
    /// Tags the worker must offer.
    #[serde(skip_serializing_if = "is_default")]
    pub tags: Vec<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub priority: Option<i32>,
    /// The payload of jobs that have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<serde_json::Value>,
    /// JSON Schema for the payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_schema: Option<serde_json::Value>,
    /// JSON Schema for the result. A completion that does not match it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_schema: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "is_default")]
    #[serde(deserialize_with = "object::maybe")]
    pub retry: Option<Retry>,
    #[serde(skip_serializing_if = "is_default")]
    pub timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "is_default")]
    pub pending_timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "is_default")]
    pub lease_ms: Option<u64>,
    #[serde(skip_serializing_if = "is_default")]
    #[serde(deserialize_with = "object::maybe")]
    pub concurrency: Option<Concurrency>,
    #[serde(skip_serializing_if = "is_default")]
    pub retention_ms: Option<u64>,
}

/// One version of a definition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Definition {
    pub name: String,
    pub namespace: String,
    pub version: u32,
    pub created_at: String,
    pub body: DefinitionBody,
}
