//! The format of a definition file, as it is written: YAML, or JSON, which is read by the same parser so that both have lines.

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};
use serde_json::Value;
use serde_saphyr::{Location, Spanned};
use std::{fmt, marker::PhantomData};
use windlass_api::fields::{Notation, With};
use windlass_core::Millis;

pub const BYTES_MAX: usize = 4 << 20;
const DEPTH_MAX: usize = 32;

/// What is wrong with a definition, where, and in which field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line and column, from 1; 0 where there is no place.
    pub line: u64,
    pub column: u64,
    /// Such as `steps.build.needs`.
    pub field: String,
    pub text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}, column {}: ", self.line, self.column)?;
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.text)
    }
}

impl Fault {
    pub fn at(location: Location, field: impl Into<String>, text: impl Into<String>) -> Self {
        Self { line: location.line(), column: location.column(), field: field.into(), text: text.into() }
    }
}

/// A native file says so, or has `steps` where others have `jobs`.
pub fn is_native(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Marks {
        windlass: Option<serde::de::IgnoredAny>,
        steps: Option<serde::de::IgnoredAny>,
    }
    let marks: Option<Marks> = serde_saphyr::from_str_with_options(text, options()).ok();
    match marks {
        Some(marks) => marks.windlass.is_some() || marks.steps.is_some(),
        // What cannot be read is reported by whoever it seems to belong to.
        None => text.lines().any(|line| line.starts_with("windlass:") || line.starts_with("steps:")),
    }
}

pub fn read(text: &str) -> Result<File, Fault> {
    if text.len() > BYTES_MAX {
        let why = format!("the definition has {} bytes; at most {BYTES_MAX}", text.len());
        return Err(Fault { line: 0, column: 0, field: String::new(), text: why });
    }
    serde_saphyr::from_str_with_options(text, options()).map_err(|error| {
        let location = error.location().unwrap_or(Location::UNKNOWN);
        let told = error.to_string();
        Fault::at(location, "", told.lines().next().unwrap_or("it cannot be read").to_owned())
    })
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            max_aliases: 0,
            max_anchors: 0,
            max_merge_keys: 0,
            max_documents: 1,
            max_nodes: 1_000_000,
            max_events: 2_000_000,
        },
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::Error,
    }
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
    pub steps: Ordered<Spanned<With<FileStep, InStep>>>,
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
    const WITHOUT: &'static [&'static str] = &["retention_ms", "pending_timeout_ms", "lease_ms", "concurrency"];
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

impl Length {
    pub fn parse(text: &str) -> Option<Self> {
        let at = text.find(|c: char| !c.is_ascii_digit())?;
        let number: i64 = text[..at].parse().ok()?;
        let unit = match &text[at..] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        Some(Self(Millis(number.checked_mul(unit)?)))
    }
}

impl From<Length> for u64 {
    fn from(length: Length) -> u64 {
        length.0.0.unsigned_abs()
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Length::parse(&text).ok_or_else(|| {
            D::Error::custom(format!("{text:?} is not a duration; write it like 500ms, 30s, 10m, 2h, 7d"))
        })
    }
}

/// A map in the order of the file.
#[derive(Debug)]
pub struct Ordered<T>(pub Vec<(Spanned<String>, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = Ordered<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of steps by their ids")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered<T>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Ordered(entries))
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}
