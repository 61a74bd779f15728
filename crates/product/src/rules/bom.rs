//! Bills of material: which item contains which, how many of it, and what follows from that over all levels.
//!
//! What contains what never forms a cycle. A [`Bom`] is as much of it as somebody loaded: whoever asks about an item has
//! loaded everything below it.

use super::is_default;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use windlass_core::Refusal;

/// Rows one answer may have. A tree whose parts are shared on every level has more paths than anybody can read.
pub const ROWS_MAX: usize = 100_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    #[default]
    Component,
    Alternate,
    Reference,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    #[default]
    Manual,
    Assembly,
}

/// One child of a parent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub child: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub relation: Relation,
    pub quantity: f64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub unit: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub designators: Vec<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub source: Source,
}

/// Rows by parent, each list by child.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bom(BTreeMap<String, Vec<Row>>);

/// One row of the expansion; `level` counts from 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Level<'a> {
    pub parent: &'a str,
    pub row: &'a Row,
    pub level: u32,
}

/// An item below another one: its shortest distance, and how many of it are in there over all ways.
#[derive(Clone, Debug, PartialEq)]
pub struct Inside {
    pub part_number: String,
    pub depth: u32,
    pub quantity: f64,
}

impl Bom {
    pub fn put(&mut self, parent: &str, mut rows: Vec<Row>) {
        rows.sort_by(|a, b| a.child.cmp(&b.child));
        self.0.insert(parent.to_owned(), rows);
    }

    pub fn rows(&self, parent: &str) -> &[Row] {
        self.0.get(parent).map_or(&[], Vec::as_slice)
    }

    pub fn knows(&self, parent: &str) -> bool {
        self.0.contains_key(parent)
    }

    /// Children nobody has loaded the rows of yet.
    pub fn open(&self) -> BTreeSet<String> {
        let children = self.0.values().flatten().map(|row| &row.child);
        children.filter(|child| !self.knows(child)).cloned().collect()
    }

    /// All levels, parents before their children, down to `depth_max`.
    pub fn expanded<'a>(&'a self, root: &'a str, depth_max: u32) -> Result<Vec<Level<'a>>, Refusal> {
        let mut found = Vec::new();
        let mut open: Vec<Level> =
            self.rows(root).iter().rev().map(|row| Level { parent: root, row, level: 1 }).collect();
        while let Some(next) = open.pop() {
            if found.len() == ROWS_MAX {
                return Err(Refusal::too_large("rows", found.len() + 1, ROWS_MAX));
            }
            if next.level < depth_max {
                let (parent, level) = (next.row.child.as_str(), next.level + 1);
                open.extend(self.rows(parent).iter().rev().map(|row| Level { parent, row, level }));
            }
            found.push(next);
        }
        Ok(found)
    }

    fn components<'a>(&'a self, parent: &str) -> impl Iterator<Item = &'a Row> {
        self.rows(parent).iter().filter(|row| row.relation == Relation::Component)
    }

    /// The item itself and every component below it, by distance and then by part number.
    pub fn inside(&self, root: &str) -> Result<Vec<Inside>, Refusal> {
        let order = self.parents_first(root)?;
        let mut found: HashMap<&str, (u32, f64)> = HashMap::from([(root, (0, 1.0))]);
        for parent in &order {
            let (depth, quantity) = found[parent];
            for row in self.components(parent) {
                let child = found.entry(&row.child).or_insert((depth + 1, 0.0));
                child.0 = child.0.min(depth + 1);
                child.1 += quantity * row.quantity;
            }
        }
        let mut all: Vec<Inside> = found
            .into_iter()
            .map(|(part, (depth, quantity))| Inside { part_number: part.to_owned(), depth, quantity })
            .collect();
        all.sort_by(|a, b| (a.depth, &a.part_number).cmp(&(b.depth, &b.part_number)));
        Ok(all)
    }

    /// Components that contain nothing themselves, with how many of each are in the root, by part number.
    pub fn flat(&self, root: &str) -> Result<Vec<(String, f64)>, Refusal> {
        let leaf = |part: &str| part != root && self.components(part).next().is_none();
        let mut leaves: Vec<(String, f64)> = self
            .inside(root)?
            .into_iter()
            .filter(|inside| leaf(&inside.part_number))
            .map(|inside| (inside.part_number, inside.quantity))
            .collect();
        leaves.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(leaves)
    }

    /// The root and all components below it, each before what it contains.
    fn parents_first<'a>(&'a self, root: &'a str) -> Result<Vec<&'a str>, Refusal> {
        let mut parts = vec![root];
        let mut index: HashMap<&str, usize> = HashMap::from([(root, 0)]);
        let mut parents: Vec<Vec<usize>> = vec![Vec::new()];
        let mut next = 0;
        while next < parts.len() {
            for row in self.components(parts[next]) {
                let at = *index.entry(&row.child).or_insert(parts.len());
                if at == parts.len() {
                    parts.push(&row.child);
                    parents.push(Vec::new());
                }
                parents[at].push(next);
            }
            next += 1;
        }
        let order = windlass_core::graph::order(&parents);
        if order.len() < parts.len() {
            let path = windlass_core::graph::cycle(&parents).unwrap_or_default();
            return Err(Refusal::Cycle { path: path.into_iter().map(|at| parts[at].to_owned()).collect() });
        }
        Ok(order.into_iter().map(|at| parts[at]).collect())
    }

    /// Refuses a row that would make an item contain itself. Everything below `child` has been loaded.
    pub fn check_row(&self, parent: &str, child: &str) -> Result<(), Refusal> {
        let mut from: HashMap<&str, &str> = HashMap::new();
        let mut open = vec![child];
        while let Some(at) = open.pop() {
            if at == parent {
                let back = std::iter::successors(Some(at), |at| from.get(at).copied().filter(|_| **at != *child));
                let mut path: Vec<String> = back.map(str::to_owned).collect();
                path.push(parent.to_owned());
                path.reverse();
                return Err(Refusal::Cycle { path });
            }
            for row in self.rows(at) {
                if !from.contains_key(row.child.as_str()) && row.child != child {
                    from.insert(&row.child, at);
                    open.push(&row.child);
                }
            }
        }
        Ok(())
    }
}

/// What a merge comes to, each list by part number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merge {
    pub added: Vec<(String, f64)>,
    /// On the server, but not in the request. Never deleted, only told.
    pub removed: Vec<(String, f64)>,
    /// Part number, old and new quantity.
    pub changed: Vec<(String, f64, f64)>,
    pub unchanged: Vec<(String, f64)>,
}

/// Compares what a CAD assembly says with the rows that came from it before. Rows that people wrote are never touched.
pub fn merge(rows: &[Row], entries: &BTreeMap<String, f64>) -> Merge {
    let mut merge = Merge::default();
    let known: BTreeMap<&str, &Row> = rows.iter().map(|row| (row.child.as_str(), row)).collect();
    for (child, &quantity) in entries {
        match known.get(child.as_str()) {
            None => merge.added.push((child.clone(), quantity)),
            Some(row) if row.source == Source::Assembly && row.quantity != quantity => {
                merge.changed.push((child.clone(), row.quantity, quantity));
            }
            Some(row) => merge.unchanged.push((child.clone(), row.quantity)),
        }
    }
    let gone = known.values().filter(|row| row.source == Source::Assembly && !entries.contains_key(&row.child));
    merge.removed = gone.map(|row| (row.child.clone(), row.quantity)).collect();
    merge
}

impl Merge {
    /// The rows to write.
    pub fn rows(&self, before: &[Row]) -> Vec<Row> {
        let added = self.added.iter().map(|(child, quantity)| Row {
            child: child.clone(),
            relation: Relation::Component,
            quantity: *quantity,
            unit: None,
            designators: Vec::new(),
            source: Source::Assembly,
        });
        let changed = self.changed.iter().filter_map(|(child, _, quantity)| {
            let row = before.iter().find(|row| row.child == *child)?;
            Some(Row { quantity: *quantity, ..row.clone() })
        });
        added.chain(changed).collect()
    }

    /// For people, in the words clients look for.
    pub fn summary(&self) -> String {
        let counts = [
            (self.added.len(), "added"),
            (self.changed.len(), "quantity changed"),
            (self.removed.len(), "unreferenced"),
        ];
        let parts: Vec<String> =
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        let told = if parts.is_empty() { "no changes".to_owned() } else { parts.join(", ") };
        format!("BOM updated: {told}")
    }
}
