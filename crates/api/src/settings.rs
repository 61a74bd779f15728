//! What a job may ask for, wherever it is described: in a submit, a definition, a schedule, a step of a workflow.
//!
//! A new setting is added here: to the struct, to [`JobSettings::NAMES`], to `read` and to `or`.

use crate::{
    fields::{Notation, Wire},
    is_default,
    job::{Concurrency, Retry},
    object::Object,
};
use serde::{Serialize, de::MapAccess};

/// How a job is queued, retried, ended and kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(default))]
pub struct JobSettings {
    /// What people call the job: 1 to 200 characters without control characters. Lists show it and find it by its beginning.
    #[serde(skip_serializing_if = "is_default")]
    pub name: Option<String>,
    /// Tags the worker must offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Lower numbers go first. Default: 100.
    #[serde(skip_serializing_if = "is_default")]
    pub priority: Option<i32>,
    /// Concurrency key: at most `limit` jobs with this key run at a time; the others wait.
    #[serde(skip_serializing_if = "is_default")]
    pub concurrency: Option<Concurrency>,
    #[serde(skip_serializing_if = "is_default")]
    pub retry: Option<Retry>,
    /// Time limit for an attempt, from its claim.
    #[serde(skip_serializing_if = "is_default")]
    pub timeout_ms: Option<u64>,
    /// Time limit for the job, over all attempts and the waits between them, from when it could first start: after its delay and the jobs
    /// it waits for. Then it fails.
    #[serde(skip_serializing_if = "is_default")]
    pub deadline_ms: Option<u64>,
    /// The job fails if it is not claimed within this time.
    #[serde(skip_serializing_if = "is_default")]
    pub pending_timeout_ms: Option<u64>,
    /// Lease duration. Default: what the worker asks for.
    #[serde(skip_serializing_if = "is_default")]
    pub lease_ms: Option<u64>,
    /// How long the job is kept after it has ended.
    #[serde(skip_serializing_if = "is_default")]
    pub retention_ms: Option<u64>,
}

impl JobSettings {
    /// The fields as the API writes them.
    pub const NAMES: &'static [&'static str] = &[
        "name",
        "tags",
        "priority",
        "concurrency",
        "retry",
        "timeout_ms",
        "deadline_ms",
        "pending_timeout_ms",
        "lease_ms",
        "retention_ms",
    ];

    /// These settings, and `general` ones where they say nothing.
    pub fn or(self, general: &JobSettings) -> JobSettings {
        JobSettings {
            name: self.name.or_else(|| general.name.clone()),
            tags: self.tags.or_else(|| general.tags.clone()),
            priority: self.priority.or(general.priority),
            concurrency: self.concurrency.or_else(|| general.concurrency.clone()),
            retry: self.retry.or_else(|| general.retry.clone()),
            timeout_ms: self.timeout_ms.or(general.timeout_ms),
            deadline_ms: self.deadline_ms.or(general.deadline_ms),
            pending_timeout_ms: self.pending_timeout_ms.or(general.pending_timeout_ms),
            lease_ms: self.lease_ms.or(general.lease_ms),
            retention_ms: self.retention_ms.or(general.retention_ms),
        }
    }

    /// Bytes of what has no fixed size.
    pub fn bytes(&self) -> usize {
        let tags: usize = self.tags.iter().flatten().map(|tag| 32 + tag.len()).sum();
        let name = self.name.as_ref().map_or(0, String::len);
        name + tags + self.concurrency.as_ref().map_or(0, |key| key.key.len())
    }

    /// Reads the value of the field that the API calls `name`; false if there is none of that name.
    pub(crate) fn read<'de, N: Notation, A: MapAccess<'de>>(
        &mut self,
        name: &str,
        map: &mut A,
    ) -> Result<bool, A::Error> {
        match name {
            "name" => self.name = map.next_value()?,
            "tags" if N::TAGS_LIST => self.tags = Some(map.next_value()?).filter(|tags: &Vec<_>| !tags.is_empty()),
            "tags" => self.tags = map.next_value()?,
            "priority" => self.priority = map.next_value()?,
            "concurrency" => {
                self.concurrency = map.next_value::<Option<Object<Concurrency>>>()?.map(|Object(key)| key);
            }
            "retry" => self.retry = map.next_value::<Option<Object<N::Retry>>>()?.map(|Object(retry)| retry.into()),
            "timeout_ms" => self.timeout_ms = millis::<N, A>(map)?,
            "deadline_ms" => self.deadline_ms = millis::<N, A>(map)?,
            "pending_timeout_ms" => self.pending_timeout_ms = millis::<N, A>(map)?,
            "lease_ms" => self.lease_ms = millis::<N, A>(map)?,
            "retention_ms" => self.retention_ms = millis::<N, A>(map)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn millis<'de, N: Notation, A: MapAccess<'de>>(map: &mut A) -> Result<Option<u64>, A::Error> {
    Ok(map.next_value::<Option<N::Millis>>()?.map(Into::into))
}

impl Notation for Wire {
    type Millis = u64;
    type Retry = Retry;
}
