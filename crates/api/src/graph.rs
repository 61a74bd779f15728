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

/// The validation state of a node.
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
    /// Digest of the node's own parameters, as it was sent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub properties_hash: Option<String>,
    /// Digest of the node's last output, as it was sent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub output_hash: Option<String>,
    /// Digest of everything the node is computed from.
    pub input_hash: String,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub metadata: Map<String, Value>,
    pub updated_at: String,
    /// In a cone: the distance in edges.
    #[serde(default, skip_serializing_if = "is_default")]
    pub depth: Option<u32>,
}

/// The target depends on the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Edge {
    /// The item of the source node, if it is another item.
    #[serde(default, skip_serializing_if = "is_default")]
    pub item: Option<String>,
    pub source: String,
    pub target: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub kind: EdgeKind,
}

/// A feature graph or a part of it: nodes and the edges between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Graph {
    pub part_number: String,
    pub revision: u32,
    pub nodes: Vec<Node>,
    /// Edges to nodes of other items are included only in the whole graph.
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
    /// The revision. Default: the current one.
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
    /// The node's key.
    pub node: String,
    /// Default: `forward`.
    #[serde(default)]
    pub direction: Direction,
    /// Maximum distance in edges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u32>,
    /// The revision. Default: the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AskDirty {
    /// States, separated by commas. Default: `dirty,validating,failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The revision. Default: the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PutNode {
    pub key: String,
    /// What it is, such as `sketch` or `pad`: 1 to 64 of `a-z 0-9 _ -`. Required unless the write is partial.
    #[serde(skip_serializing_if = "is_default")]
    pub kind: Option<String>,
    #[serde(skip_serializing_if = "is_default", deserialize_with = "told")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub properties_hash: Option<Option<String>>,
    #[serde(skip_serializing_if = "is_default", deserialize_with = "told")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub output_hash: Option<Option<String>>,
    /// Default: clean if a worker writes it; otherwise the digests decide.
    #[serde(skip_serializing_if = "is_default")]
    pub state: Option<NodeState>,
    #[serde(skip_serializing_if = "is_default", deserialize_with = "told")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub message: Option<Option<String>>,
    #[serde(skip_serializing_if = "is_default")]
    pub metadata: Option<Map<String, Value>>,
}

/// A graph that replaces the stored one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PutGraph {
    /// Default: the item's current revision.
    #[serde(default, skip_serializing_if = "is_default")]
    pub revision: Option<u32>,
    /// At most 10,000.
    pub nodes: Vec<PutNode>,
    /// At most 50,000.
    #[serde(default, skip_serializing_if = "is_default")]
    pub edges: Vec<Edge>,
    /// Change only the given fields of the named nodes. `edges` must then be absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub partial: bool,
}

/// The effect of a write; all lists are sorted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SyncedGraph {
    pub part_number: String,
    pub revision: u32,
    pub nodes: u32,
    pub edges: u32,
    pub added: Vec<String>,
    /// Nodes whose parameters or sources changed.
    pub changed: Vec<String>,
    pub removed: Vec<String>,
    /// All nodes that are dirty now.
    pub dirty: Vec<String>,
    /// Nodes that are clean again by their digests alone.
    pub released: Vec<String>,
    /// Nodes of other items that became dirty.
    pub elsewhere: Vec<FarNode>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MarkDirty {
    /// The node's key.
    pub node: String,
}
