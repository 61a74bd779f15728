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
    /// Project codes, sorted.
    pub projects: Vec<String>,
    /// The latest revision; revisions are numbered from 1.
    pub revision: u32,
    pub created_at: String,
    pub created_by: String,
    pub updated_at: String,
    pub updated_by: String,
}

/// A new item. Its first revision is created with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct CreateItem {
    /// 1 to 64 of `A-Z a-z 0-9 . _ -`. Default: the next number of the category, such as `F01-0007`.
    #[serde(skip_serializing_if = "is_default")]
    pub part_number: Option<String>,
    /// `part`, `assembly`, `drawing` or any other word. Default: `part`.
    #[serde(skip_serializing_if = "is_default")]
    pub item_type: Option<String>,
    /// The numbering schema. Default: `default`.
    #[serde(skip_serializing_if = "is_default")]
    pub schema: Option<String>,
    /// 1 to 8 of `A-Z 0-9`.
    #[serde(skip_serializing_if = "is_default")]
    pub category: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub properties: Option<Map<String, Value>>,
    /// Codes of existing projects.
    #[serde(skip_serializing_if = "is_default")]
    pub projects: Option<Vec<String>>,
}

/// Changes to an item. Absent fields stay as they are.
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
    /// Only items of this type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_type: Option<String>,
    /// Only items of this numbering schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Only items of the project with this code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Text in the part number or the description, ignoring case. A page may contain fewer items than asked for, or none, while
    /// `next` says that there may be more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// 1 to 1000. Default: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// `next` of the previous page.
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
    /// Jobs the revision triggered; only in the answer to its creation.
    #[serde(default, skip_serializing_if = "is_default")]
    pub jobs: Vec<SetOff>,
}

/// A job that was triggered.
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
    /// Trigger no jobs; for imported history.
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
    /// Written by hand.
    #[default]
    Manual,
    /// From a CAD assembly.
    Assembly,
}

/// One row of a bill of material.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BomRow {
    pub parent: String,
    pub child: String,
    /// 1: directly in the requested item.
    pub level: u32,
    pub relation: Relation,
    pub quantity: f64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub unit: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub designators: Vec<String>,
    pub source: Source,
    /// Of the child; absent if the child was deleted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub item_type: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub revision: Option<u32>,
}

/// A part without a bill of material of its own, and its total quantity in the item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Leaf {
    pub part_number: String,
    pub quantity: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BomDepth {
    /// How many levels, 1 to 20. Default: 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
}

/// Absent leaves the value as it is; null removes it.
pub(crate) fn told<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(from).map(Some)
}

/// A new row, or changes to an existing one; absent fields stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PutBomRow {
    #[serde(skip_serializing_if = "is_default")]
    pub relation: Option<Relation>,
    /// More than 0. Default: 1.
    #[serde(skip_serializing_if = "is_default")]
    pub quantity: Option<f64>,
    /// Null: none.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "told")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub unit: Option<Option<String>>,
    #[serde(skip_serializing_if = "is_default")]
    pub designators: Option<Vec<String>>,
}

/// The contents of a CAD assembly. Rows written by hand are not changed, and no row is deleted.
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
    /// Default: 1.
    #[serde(default, skip_serializing_if = "is_default")]
    pub quantity: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MergedBom {
    pub added: Vec<Leaf>,
    /// No longer in the assembly, but still in the bill of material: rows are deleted only by hand.
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
