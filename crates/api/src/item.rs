//! Items: what is made, with its revisions, what it contains, and the projects it belongs to.

use crate::{Uuid, is_default};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Item {
    pub id: Uuid,
    pub part_number: String,
    pub item_type: String,
    pub schema: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub category: Option<String>,
    pub description: String,
    pub properties: Map<String, Value>,
    /// Codes, sorted.
    pub projects: Vec<String>,
    /// The highest one; they are numbered from 1.
    pub revision: u32,
    pub created_at: String,
    pub created_by: String,
    pub updated_at: String,
    pub updated_by: String,
}

/// An item to be. Its first revision is made with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct CreateItem {
    /// 1 to 64 of `A-Z a-z 0-9 . _ -`. Absent: made from the category, such as `F01-0007`.
    #[serde(skip_serializing_if = "is_default")]
    pub part_number: Option<String>,
    /// `part`, `assembly`, `drawing` or any other word; `part` where absent.
    #[serde(skip_serializing_if = "is_default")]
    pub item_type: Option<String>,
    /// Which numbering it follows; `default` where absent.
    #[serde(skip_serializing_if = "is_default")]
    pub schema: Option<String>,
    /// 1 to 8 of `A-Z 0-9`.
    #[serde(skip_serializing_if = "is_default")]
    pub category: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub properties: Option<Map<String, Value>>,
    /// Codes of projects that exist.
    #[serde(skip_serializing_if = "is_default")]
    pub projects: Option<Vec<String>>,
}

/// What is absent stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct UpdateItem {
    #[serde(skip_serializing_if = "is_default")]
    pub item_type: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub properties: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "is_default")]
    pub projects: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListItems {
    /// Only of this type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_type: Option<String>,
    /// Only of this numbering schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Only of the project with this code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Part of the part number or the description, whatever its case. A page may hold fewer than asked for, or none, while
    /// `next` says that there may be more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// 1 to 1000; 100 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Revision {
    pub id: Uuid,
    pub part_number: String,
    pub revision: u32,
    pub comment: String,
    pub properties: Map<String, Value>,
    pub created_at: String,
    pub created_by: String,
    /// Jobs that it set off; only told when it is made.
    #[serde(default, skip_serializing_if = "is_default")]
    pub jobs: Vec<SetOff>,
}

/// A job that something set off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetOff {
    pub job: Uuid,
    pub definition: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct CreateRevision {
    #[serde(skip_serializing_if = "is_default")]
    pub comment: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub properties: Option<Map<String, Value>>,
    /// Sets off no jobs: for history that is brought in from elsewhere.
    #[serde(skip_serializing_if = "is_default")]
    pub quiet: bool,
}

/// How a child belongs to its parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    #[default]
    Component,
    Alternate,
    Reference,
}

/// Where a row comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Somebody wrote it.
    #[default]
    Manual,
    /// A CAD assembly said so.
    Assembly,
}

/// One row of a bill of material.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BomRow {
    pub parent: String,
    pub child: String,
    /// 1: directly in the item that was asked for.
    pub level: u32,
    pub relation: Relation,
    pub quantity: f64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub unit: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub designators: Vec<String>,
    pub source: Source,
    /// Of the child; absent where it went meanwhile.
    #[serde(default, skip_serializing_if = "is_default")]
    pub item_type: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub revision: Option<u32>,
}

/// A leaf part, and how many of it are in the item over all ways.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Leaf {
    pub part_number: String,
    pub quantity: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BomDepth {
    /// How many levels, 1 to 20; 10 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
}

/// Absent and null are two things: null takes away.
pub(crate) fn told<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(from).map(Some)
}

/// A row to be; of a row that is there, what is absent stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PutBomRow {
    #[serde(skip_serializing_if = "is_default")]
    pub relation: Option<Relation>,
    /// More than 0; 1 where absent.
    #[serde(skip_serializing_if = "is_default")]
    pub quantity: Option<f64>,
    /// Null: none.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "told")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub unit: Option<Option<String>>,
    #[serde(skip_serializing_if = "is_default")]
    pub designators: Option<Vec<String>>,
}

/// What a CAD assembly says it contains. Rows written by hand are not touched, and nothing is taken out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MergeBom {
    pub entries: Vec<MergeEntry>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MergeEntry {
    pub child: String,
    /// 1 where absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub quantity: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MergedBom {
    pub added: Vec<Leaf>,
    /// No longer in the assembly. Still in the bill of material: taking out is for people.
    pub unreferenced: Vec<Leaf>,
    pub changed: Vec<ChangedQuantity>,
    pub unchanged: Vec<Leaf>,
    pub jobs: Vec<SetOff>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangedQuantity {
    pub part_number: String,
    pub before: f64,
    pub quantity: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Project {
    pub id: Uuid,
    pub code: String,
    pub name: String,
    pub description: String,
    pub created_at: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateProject {
    /// 1 to 32 of `A-Z 0-9 _ -`.
    pub code: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub description: Option<String>,
}
