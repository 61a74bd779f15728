//! All rows together, and against what the server has.

use super::row::{Faults, Rows, Spot};
use crate::pages::all;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::Hash,
};
use windlass_api::{
    item::{Item, ListItems},
    page::Paging,
};
use windlass_sdk::Client;

/// What the server has already.
#[derive(Default)]
pub struct Known {
    pub items: BTreeMap<String, Item>,
    pub projects: BTreeSet<String>,
}

impl Known {
    pub async fn read(client: &Client) -> anyhow::Result<Self> {
        let items =
            async |Paging { limit, cursor }| client.items(&ListItems { limit, cursor, ..ListItems::default() }).await;
        let items = all(items).await?.into_iter();
        let projects = all(async |paging| client.projects(&paging).await).await?.into_iter();
        Ok(Self {
            items: items.map(|item| (item.part_number.clone(), item)).collect(),
            projects: projects.map(|project| project.code).collect(),
        })
    }
}

/// Tells keys that were there before.
struct Once<K>(HashMap<K, Spot>);

impl<K: Hash + Eq> Once<K> {
    fn check(&mut self, key: K, at: &Spot, field: &str, name: &str, faults: &mut Faults) {
        if let Some(first) = self.0.get(&key) {
            faults.add(at, field, format!("{name} is there twice; first at {}:{}", first.file, first.line));
        } else {
            self.0.insert(key, at.clone());
        }
    }
}

pub fn check(rows: &Rows, known: &Known, faults: &mut Faults) {
    let mut projects = Once(HashMap::new());
    for row in &rows.projects {
        projects.check(row.code.clone(), &row.at, "code", &row.code, faults);
    }
    let mut items = Once(HashMap::new());
    for row in &rows.items {
        items.check(row.part.clone(), &row.at, "part_number", &row.part, faults);
        for code in row.projects.iter().flatten() {
            if !known.projects.contains(code) && !rows.projects.iter().any(|project| project.code == *code) {
                let why = format!("there is no project {code}, here or in the files");
                faults.add(&row.at, "projects", why);
            }
        }
    }
    let there = |part: &str| known.items.contains_key(part) || items.0.contains_key(part);
    let mut bom = Once(HashMap::new());
    for row in &rows.bom {
        let name = format!("{} in {}", row.child, row.parent);
        bom.check((row.parent.clone(), row.child.clone()), &row.at, "child_part_number", &name, faults);
        for (field, part) in [("parent_part_number", &row.parent), ("child_part_number", &row.child)] {
            if !there(part) {
                faults.add(&row.at, field, format!("there is no item {part}, here or in the files"));
            }
        }
    }
    for row in rows.revisions.iter().filter(|row| !there(&row.part)) {
        faults.add(&row.at, "part_number", format!("there is no item {}, here or in the files", row.part));
    }
    check_revisions(rows, known, faults);
    check_cycles(rows, faults);
}

/// Numbers follow each other from what is there.
fn check_revisions(rows: &Rows, known: &Known, faults: &mut Faults) {
    let mut by_part: BTreeMap<&str, BTreeMap<u32, &Spot>> = BTreeMap::new();
    for row in &rows.revisions {
        if by_part.entry(&row.part).or_default().insert(row.number, &row.at).is_some() {
            faults.add(&row.at, "revision_number", format!("revision {} of {} is there twice", row.number, row.part));
        }
    }
    for (part, numbers) in by_part {
        let mut last = known.items.get(part).map_or(1, |item| item.revision);
        for (number, at) in numbers {
            if number > last + 1 {
                let why = format!("revision {number} of {part} does not follow: {} is missing", last + 1);
                faults.add(at, "revision_number", why);
            }
            last = last.max(number);
        }
    }
}

/// Among the files' own rows; the server looks at those it has.
fn check_cycles(rows: &Rows, faults: &mut Faults) {
    let mut index: BTreeMap<&str, usize> = BTreeMap::new();
    let mut parents: Vec<Vec<usize>> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for row in &rows.bom {
        let mut at = |part| {
            *index.entry(part).or_insert_with(|| {
                parents.push(Vec::new());
                names.push(part);
                names.len() - 1
            })
        };
        let (parent, child) = (at(&*row.parent), at(&*row.child));
        parents[child].push(parent);
    }
    if let Some(path) = windlass_core::graph::cycle(&parents) {
        let path: Vec<&str> = path.into_iter().map(|at| names[at]).collect();
        let closes = |parent: &str, child: &str| path.windows(2).any(|pair| pair == [parent, child]);
        let row = rows.bom.iter().rev().find(|row| closes(&row.parent, &row.child));
        let row = row.or_else(|| rows.bom.iter().rev().find(|row| closes(&row.child, &row.parent)));
        if let Some(row) = row {
            let why = format!("items contain each other in a circle: {}", path.join(" -> "));
            faults.add(&row.at, "child_part_number", why);
        }
    }
}
