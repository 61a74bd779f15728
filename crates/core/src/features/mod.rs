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

use crate::{is_default, time::Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Of one graph.
pub const NODES_MAX: usize = 10_000;
pub const EDGES_MAX: usize = 50_000;
pub const KEY_CHARS_MAX: usize = 255;
pub const HASH_BYTES_MAX: usize = 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    Sketch,
    Pad,
    Pocket,
    Fillet,
    Chamfer,
    Constraint,
    Body,
    Part,
    Datum,
}

impl NodeKind {
    pub fn name(self) -> &'static str {
        match self {
            NodeKind::Sketch => "sketch",
            NodeKind::Pad => "pad",
            NodeKind::Pocket => "pocket",
            NodeKind::Fillet => "fillet",
            NodeKind::Chamfer => "chamfer",
            NodeKind::Constraint => "constraint",
            NodeKind::Body => "body",
            NodeKind::Part => "part",
            NodeKind::Datum => "datum",
        }
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
