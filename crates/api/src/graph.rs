//! Feature graphs: what an item is built from, what depends on what, and what has to be validated again.

use crate::{is_default, item::told};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EdgeKind {
    #[default]
    DependsOn,
    Contains,
    Constrains,
}

/// Whether a node still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    Clean,
    Dirty,
    Validating,
    Failed,
}

impl NodeState {
    pub fn name(self) -> &'static str {
        match self {
            NodeState::Clean => "clean",
            NodeState::Dirty => "dirty",
            NodeState::Validating => "validating",
            NodeState::Failed => "failed",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Node {
    pub key: String,
    /// What it is, as it was sent, such as `sketch` or `pad`.
    pub kind: String,
    pub state: NodeState,
    /// Digest of its own parameters, as it was sent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub properties_hash: Option<String>,
    /// Digest of what came out when it was last computed, as it was sent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub output_hash: Option<String>,
    /// Digest of everything it is computed from.
    pub input_hash: String,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub metadata: Map<String, Value>,
    pub updated_at: String,
    /// In a cone: the fewest edges it takes to get there.
    #[serde(default, skip_serializing_if = "is_default")]
    pub depth: Option<u32>,
}

/// The target depends on the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Edge {
    /// The item that the source is a node of, where it is another one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub item: Option<String>,
    pub source: String,
    pub target: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub kind: EdgeKind,
}

/// A graph, or a part of it: nodes, and the edges between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Graph {
    pub part_number: String,
    pub revision: u32,
    pub nodes: Vec<Node>,
    /// Those to nodes of other items are only in the whole graph.
    pub edges: Vec<Edge>,
    /// Nodes of other items that a cone reaches.
    #[serde(default, skip_serializing_if = "is_default")]
    pub elsewhere: Vec<FarNode>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FarNode {
    pub item: String,
    pub key: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub state: Option<NodeState>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub depth: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AskGraph {
    /// That of this revision; the live one where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// What depends on the node.
    #[default]
    Forward,
    /// What the node depends on.
    Backward,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AskCone {
    /// Its key.
    pub node: String,
    /// `forward` where absent.
    #[serde(default)]
    pub direction: Direction,
    /// So many edges away, and no further.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u32>,
    /// Of this revision; of the live one where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AskDirty {
    /// States with commas between; `dirty,validating,failed` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Of this revision; of the live one where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PutNode {
    pub key: String,
    /// What it is, such as `sketch` or `pad`: 1 to 64 of `a-z 0-9 _ -`. Needed unless the write is partial.
    #[serde(skip_serializing_if = "is_default")]
    pub kind: Option<String>,
    #[serde(skip_serializing_if = "is_default", deserialize_with = "told")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub properties_hash: Option<Option<String>>,
    #[serde(skip_serializing_if = "is_default", deserialize_with = "told")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub output_hash: Option<Option<String>>,
    /// Absent: a worker says that it is clean; for people the digests decide.
    #[serde(skip_serializing_if = "is_default")]
    pub state: Option<NodeState>,
    #[serde(skip_serializing_if = "is_default", deserialize_with = "told")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub message: Option<Option<String>>,
    #[serde(skip_serializing_if = "is_default")]
    pub metadata: Option<Map<String, Value>>,
}

/// A graph to be written in place of the one there is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PutGraph {
    /// The item's current one where absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub revision: Option<u32>,
    /// At most 10,000.
    pub nodes: Vec<PutNode>,
    /// At most 50,000.
    #[serde(default, skip_serializing_if = "is_default")]
    pub edges: Vec<Edge>,
    /// Only what is given about the nodes that are named changes; then there are no edges.
    #[serde(default, skip_serializing_if = "is_default")]
    pub partial: bool,
}

/// What a write came to; all lists are sorted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SyncedGraph {
    pub part_number: String,
    pub revision: u32,
    pub nodes: u32,
    pub edges: u32,
    pub added: Vec<String>,
    /// With other parameters or other sources than before.
    pub changed: Vec<String>,
    pub removed: Vec<String>,
    /// All that is dirty now.
    pub dirty: Vec<String>,
    /// Clean again, without anybody saying so.
    pub released: Vec<String>,
    /// Nodes of other items that became dirty.
    pub elsewhere: Vec<FarNode>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MarkDirty {
    /// Its key.
    pub node: String,
}
