//! The feature graph of an item: sketches, pads, fillets; what depends on what; and which of it has to be validated again.
//!
//! A node remembers the last state anybody stated for it, and the digest of its inputs at that moment. It is clean as
//! long as its inputs are what they were then, whatever happened in between: undoing a change makes clean again without
//! anybody computing anything, and a node that comes out as it was before stops the change from going further.
//!
//! [`graph`] holds one item's graph, [`evaluate`] works out states where something changed and only there, [`sync`] lays what a
//! client sent over what was known, [`world`] looks across items, [`locks`] tells when two people are at the same thing.

pub mod evaluate;
pub mod graph;
pub mod locks;
pub mod sync;
pub mod world;

use crate::rules::is_default;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use windlass_core::{Refusal, Timestamp};

/// Of one graph.
pub const NODES_MAX: usize = 10_000;
pub const EDGES_MAX: usize = 50_000;
pub const KEY_CHARS_MAX: usize = 255;
pub const KIND_CHARS_MAX: usize = 64;
pub const HASH_BYTES_MAX: usize = 1_024;

/// What a node is, in the words of whoever writes the graph: `sketch`, `pad`, `weld`. No rule asks for a certain kind; a node of
/// another kind is a node with other inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeKind(Arc<str>);

impl NodeKind {
    pub fn new(text: &str) -> Result<Self, Refusal> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
        if (1..=KIND_CHARS_MAX).contains(&text.len()) && text.bytes().all(plain) {
            return Ok(Self(text.into()));
        }
        Err(Refusal::invalid("kind", format!("{text:?} is not a kind: use 1 to {KIND_CHARS_MAX} of a-z 0-9 _ -")))
    }

    pub fn name(&self) -> &str {
        &self.0
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EdgeKind {
    #[default]
    DependsOn,
    Contains,
    Constrains,
}

impl EdgeKind {
    pub fn name(self) -> &'static str {
        match self {
            EdgeKind::DependsOn => "depends_on",
            EdgeKind::Contains => "contains",
            EdgeKind::Constrains => "constrains",
        }
    }
}

/// Whether a node still holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Validation {
    #[default]
    Clean,
    Dirty,
    Validating,
    Failed,
}

impl Validation {
    pub const ALL: [Validation; 4] = [Validation::Clean, Validation::Dirty, Validation::Validating, Validation::Failed];

    pub fn name(self) -> &'static str {
        match self {
            Validation::Clean => "clean",
            Validation::Dirty => "dirty",
            Validation::Validating => "validating",
            Validation::Failed => "failed",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    pub key: Arc<str>,
    pub kind: NodeKind,
    /// Digest of its own parameters; opaque.
    #[serde(default, skip_serializing_if = "is_default")]
    pub properties_hash: Option<Arc<str>>,
    /// Digest of what came out when it was last computed; opaque.
    #[serde(default, skip_serializing_if = "is_default")]
    pub output_hash: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub metadata: Arc<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub message: Option<Arc<str>>,
    /// The last state anybody stated.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reported: Validation,
    /// Its inputs at that moment.
    pub reported_hash: Arc<str>,
    pub input_hash: Arc<str>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub state: Validation,
    pub updated_at: Timestamp,
}

/// What those who depend on a node see of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub clean: bool,
    pub output: String,
}

impl Seen {
    /// A source nobody knows counts as present, clean and constant until it appears.
    pub fn missing() -> Self {
        Self { clean: true, output: "missing".to_owned() }
    }
}

impl Node {
    pub fn seen(&self) -> Seen {
        let clean = self.state == Validation::Clean;
        let output = match self.output_hash.as_ref().filter(|_| clean) {
            Some(output) => output.to_string(),
            None => format!("in:{}", self.input_hash),
        };
        Seen { clean, output }
    }
}
