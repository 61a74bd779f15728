//! The format of a definition file, as it is written: YAML, or JSON, which is read by the same parser so that both have lines.

use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Value;
use windlass_api::fields::{Notation, With};
use windlass_core::Millis;
use windlass_yaml::{Booleans, Ordered, Spanned};

pub use windlass_yaml::Fault;

/// Steps by their ids, in the order of the file.
pub type Steps = Ordered<Spanned<String>, Spanned<With<FileStep, InStep>>>;

pub const BYTES_MAX: usize = 4 << 20;

/// A native file says so, or has `steps` where others have `jobs`.
pub fn is_native(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Marks {
        windlass: Option<serde::de::IgnoredAny>,
        steps: Option<serde::de::IgnoredAny>,
    }
    let marks: Option<Marks> = windlass_yaml::read(text, BYTES_MAX, Booleans::Strict).ok();
    match marks {
        Some(marks) => marks.windlass.is_some() || marks.steps.is_some(),
        // What cannot be read is reported by whoever it seems to belong to.
        None => text.lines().any(|line| line.starts_with("windlass:") || line.starts_with("steps:")),
    }
}

pub fn read(text: &str) -> Result<File, Fault> {
    windlass_yaml::read(text, BYTES_MAX, Booleans::Strict)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The marker: `windlass: workflow`.
    pub windlass: Option<Spanned<String>>,
    pub name: Option<Spanned<String>>,
    #[serde(default)]
    pub description: String,
    pub input_schema: Option<Spanned<Value>>,
    /// Jobs of a run at a time.
    pub max_parallel: Option<Spanned<u32>>,
    #[serde(default)]
    pub defaults: With<Nothing, InStep>,
    pub steps: Steps,
    pub outputs: Option<Spanned<Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FileStep {
    pub needs: Option<Spanned<Needs>>,
    #[serde(rename = "if")]
    pub condition: Option<Spanned<String>>,
    pub when: When,
    pub payload: Option<Spanned<Value>>,
    /// Short for a payload of `{shell: …}`.
    pub run: Option<Spanned<String>>,
    pub workflow: Option<Spanned<String>>,
    pub input: Option<Spanned<Value>>,
    pub wait: Option<Spanned<FileWait>>,
    pub map: Option<Spanned<FileMap>>,
    pub compensate: Option<Spanned<With<FileUndo, InUndo>>>,
    pub definition: Option<Spanned<String>>,
}

/// Settings of a step: as in the API, with durations that have units. How long jobs are kept is a matter of their run.
#[derive(Debug)]
pub struct InStep;

impl Notation for InStep {
    type Millis = Length;
    type Retry = Retry;
    const UNITS: bool = true;
    const WITHOUT: &'static [&'static str] = &["retention_ms"];
}

/// Settings of what compensates a step.
#[derive(Debug)]
pub struct InUndo;

impl Notation for InUndo {
    type Millis = Length;
    type Retry = Retry;
    const UNITS: bool = true;
    const WITHOUT: &'static [&'static str] =
        &["retention_ms", "pending_timeout_ms", "deadline_ms", "lease_ms", "concurrency"];
}

/// Nothing but settings.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Nothing {}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    pub attempts: Option<u32>,
    pub backoff: Option<Length>,
    pub backoff_max: Option<Length>,
    pub jitter_percent: Option<u8>,
    pub on_failure: Option<bool>,
    pub on_lost: Option<bool>,
    pub on_timeout: Option<bool>,
    pub timeout_retries: Option<u32>,
}

impl From<Retry> for windlass_api::job::Retry {
    fn from(retry: Retry) -> Self {
        Self {
            attempts: retry.attempts,
            backoff_ms: retry.backoff.map(Into::into),
            backoff_max_ms: retry.backoff_max.map(Into::into),
            jitter_percent: retry.jitter_percent,
            on_failure: retry.on_failure,
            on_lost: retry.on_lost,
            on_timeout: retry.on_timeout,
            timeout_retries: retry.timeout_retries,
            losses_max: None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// If all that it needs completed.
    #[default]
    Success,
    /// Whatever happened.
    Always,
    /// If something that it needs did not complete.
    OnFailure,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Needs {
    One(String),
    Several(Vec<String>),
}

impl Needs {
    pub fn names(&self) -> &[String] {
        match self {
            Needs::One(one) => std::slice::from_ref(one),
            Needs::Several(several) => several,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FileWait {
    pub event: Option<String>,
    pub approval: bool,
    #[serde(rename = "for")]
    pub time: Option<Length>,
    pub timeout: Option<Length>,
    pub on_timeout: OnTimeout,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    #[default]
    Fail,
    Continue,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileMap {
    pub over: Value,
    pub max_parallel: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FileUndo {
    pub payload: Option<Value>,
    pub run: Option<String>,
}

/// A length of time with its unit: `500ms`, `30s`, `10m`, `2h`, `7d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length(pub Millis);

impl From<Length> for u64 {
    fn from(length: Length) -> u64 {
        length.0.0.unsigned_abs()
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(D::Error::custom)
    }
}
