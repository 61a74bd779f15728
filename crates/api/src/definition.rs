//! Definitions: named, versioned recipes for jobs.

use crate::{
    fields::{Notation, With, in_order},
    is_default,
    job::Retry,
    settings::JobSettings,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A template for jobs. Settings of a job override those of its definition. A version never changes; a changed body is a new version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(!remote, transform = without_name))]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct DefinitionBody {
    #[serde(skip_serializing_if = "is_default")]
    pub description: String,
    /// The payload of jobs that have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<serde_json::Value>,
    /// JSON Schema for the payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_schema: Option<serde_json::Value>,
    /// JSON Schema for the result. A completion that does not match it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_schema: Option<serde_json::Value>,
    /// What people call jobs that have no name of their own. (`name` in a file is the definition's.)
    #[serde(skip_serializing_if = "is_default")]
    pub job_name: Option<String>,
    /// As they are written; [`DefinitionBody::settings`] is what jobs get.
    #[serde(flatten, skip_deserializing)]
    #[cfg_attr(feature = "schema", schemars(!skip_deserializing))]
    pub set: JobSettings,
}

/// Flattened settings have a name, which is `job_name` here.
#[cfg(feature = "schema")]
fn without_name(schema: &mut schemars::Schema) {
    if let Some(properties) = schema.get_mut("properties").and_then(serde_json::Value::as_object_mut) {
        properties.remove("name");
    }
}

impl DefinitionBody {
    /// What its jobs ask for where they say nothing.
    pub fn settings(&self) -> JobSettings {
        JobSettings { name: self.job_name.clone(), ..self.set.clone() }
    }

    /// The text that is stored. The same body gives the same text in every version of the program, so that writing it again is
    /// recognised: the order of what there is never changes.
    pub fn text(&self) -> serde_json::Result<String> {
        const FIRST: [&str; 12] = [
            "description",
            "tags",
            "priority",
            "payload",
            "payload_schema",
            "result_schema",
            "retry",
            "timeout_ms",
            "pending_timeout_ms",
            "lease_ms",
            "concurrency",
            "retention_ms",
        ];
        in_order(&serde_json::to_string(self)?, &FIRST)
    }
}

impl Serialize for DefinitionBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        DefinitionBody::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for DefinitionBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(transparent)]
        struct Own(#[serde(with = "DefinitionBody")] DefinitionBody);
        let With { own: Own(own), settings, .. } = With::<Own, InDefinition>::deserialize(deserializer)?;
        Ok(DefinitionBody { set: settings, ..own })
    }
}

struct InDefinition;

impl Notation for InDefinition {
    type Millis = u64;
    type Retry = Retry;
    const WITHOUT: &'static [&'static str] = &["name"];
    const TAGS_LIST: bool = true;
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
