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

#[cfg(test)]
#[path = "../../../core/tests/seeds/mod.rs"]
mod seeds;
#[cfg(test)]
mod tests {
    use super::*;

    /// Spreads a seed over all bits (splitmix64).
    fn mix(seed: u64) -> u64 {
        let mut mixed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn row(child: &str, quantity: f64, source: Source) -> Row {
        Row { child: child.into(), relation: Relation::Component, quantity, unit: None, designators: vec![], source }
    }

    fn bom(rows: &[(&str, &str, f64)]) -> Bom {
        let mut by_parent: BTreeMap<&str, Vec<Row>> = BTreeMap::new();
        for (parent, child, quantity) in rows {
            by_parent.entry(parent).or_default().push(row(child, *quantity, Source::Manual));
        }
        let mut bom = Bom::default();
        by_parent.into_iter().for_each(|(parent, rows)| bom.put(parent, rows));
        bom
    }

    #[test]
    fn quantities_multiply_down_and_add_up_over_ways() {
        let bom = bom(&[("car", "axle", 2.0), ("axle", "wheel", 2.0), ("car", "wheel", 1.0), ("wheel", "bolt", 5.0)]);
        assert_eq!(bom.flat("car").unwrap(), [("bolt".to_owned(), 25.0)]);
        let inside = bom.inside("car").unwrap();
        let told: Vec<_> = inside.iter().map(|i| (i.part_number.as_str(), i.depth, i.quantity)).collect();
        assert_eq!(told, [("car", 0, 1.0), ("axle", 1, 2.0), ("wheel", 1, 5.0), ("bolt", 2, 25.0)]);
        let expanded = bom.expanded("car", 10).unwrap();
        let told: Vec<_> = expanded.iter().map(|l| (l.parent, l.row.child.as_str(), l.level)).collect();
        let all =
            [("car", "axle", 1), ("axle", "wheel", 2), ("wheel", "bolt", 3), ("car", "wheel", 1), ("wheel", "bolt", 2)];
        assert_eq!(told, all);
        assert_eq!(bom.expanded("car", 1).unwrap().len(), 2);
        assert_eq!(bom.flat("bolt").unwrap(), [], "a part contains nothing, itself neither");
    }

    #[test]
    fn only_components_count_as_inside() {
        let mut bom = bom(&[("a", "b", 2.0)]);
        let alternate = Row { relation: Relation::Alternate, ..row("c", 9.0, Source::Manual) };
        bom.put("a", vec![row("b", 2.0, Source::Manual), alternate]);
        assert_eq!(bom.flat("a").unwrap(), [("b".to_owned(), 2.0)]);
        assert_eq!(bom.expanded("a", 1).unwrap().len(), 2);
    }

    #[test]
    fn a_row_that_would_close_a_cycle_names_it() {
        let bom = bom(&[("a", "b", 1.0), ("b", "c", 1.0), ("b", "d", 1.0)]);
        for (parent, child, path) in [
            ("a", "a", Some("a a")),
            ("c", "a", Some("c a b c")),
            ("b", "a", Some("b a b")),
            ("a", "c", None),
            ("c", "d", None),
        ] {
            let told = bom.check_row(parent, child).err().map(|refusal| match refusal {
                Refusal::Cycle { path } => path.join(" "),
                other => panic!("{other}"),
            });
            assert_eq!(told.as_deref(), path, "{parent} -> {child}");
        }
        let round = {
            let mut round = bom.clone();
            round.put("c", vec![row("a", 1.0, Source::Manual)]);
            round
        };
        assert!(matches!(round.flat("a"), Err(Refusal::Cycle { .. })), "damage is told, not walked for ever");
    }

    #[test]
    fn a_merge_touches_only_what_came_from_an_assembly() {
        let rows = [
            row("F01-001", 8.0, Source::Assembly),
            row("PRT-100", 1.0, Source::Assembly),
            row("PRT-400", 2.0, Source::Assembly),
            row("MAN-1", 3.0, Source::Manual),
            row("MAN-2", 3.0, Source::Manual),
        ];
        let entries = [("F01-001", 12.0), ("PRT-100", 1.0), ("PRT-300", 1.0), ("MAN-1", 99.0)];
        let entries = entries.map(|(child, quantity)| (child.to_owned(), quantity)).into();
        let merge = merge(&rows, &entries);
        assert_eq!(merge.added, [("PRT-300".to_owned(), 1.0)]);
        assert_eq!(merge.removed, [("PRT-400".to_owned(), 2.0)]);
        assert_eq!(merge.changed, [("F01-001".to_owned(), 8.0, 12.0)]);
        assert_eq!(merge.unchanged, [("MAN-1".to_owned(), 3.0), ("PRT-100".to_owned(), 1.0)]);
        assert_eq!(merge.summary(), "BOM updated: 1 added, 1 quantity changed, 1 unreferenced");
        let written = merge.rows(&rows);
        assert_eq!(written, [row("PRT-300", 1.0, Source::Assembly), row("F01-001", 12.0, Source::Assembly)]);
    }

    /// Every path, one by one.
    fn naive(bom: &Bom, part: &str, quantity: f64, depth: u32, found: &mut BTreeMap<String, (u32, f64)>) {
        let entry = found.entry(part.to_owned()).or_insert((depth, 0.0));
        *entry = (entry.0.min(depth), entry.1 + quantity);
        for row in bom.rows(part) {
            naive(bom, &row.child, quantity * row.quantity, depth + 1, found);
        }
    }

    #[test]
    fn what_is_inside_agrees_with_counting_every_way() {
        for seed in seeds::of(0..200) {
            let count = 2 + mix(seed) % 9;
            let mut rows = Vec::new();
            let names: Vec<String> = (0..count).map(|n| format!("p{n}")).collect();
            for parent in 0..count {
                for child in parent + 1..count {
                    let dice = mix(seed * 1_000 + parent * 20 + child);
                    if dice.is_multiple_of(3) {
                        rows.push((&*names[parent as usize], &*names[child as usize], (dice % 4 + 1) as f64));
                    }
                }
            }
            let bom = bom(&rows);
            let mut expected = BTreeMap::new();
            naive(&bom, "p0", 1.0, 0, &mut expected);
            let inside = bom.inside("p0").unwrap();
            let told: BTreeMap<_, _> = inside.into_iter().map(|i| (i.part_number, (i.depth, i.quantity))).collect();
            assert_eq!(told, expected, "seed {seed}");
            for (parent, child, _) in &rows {
                assert!(bom.check_row(child, parent).is_err(), "seed {seed}: {child} -> {parent}");
                assert!(bom.check_row(parent, child).is_ok(), "seed {seed}");
            }
        }
    }
}
