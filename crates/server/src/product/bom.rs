//! Bills of material as they are kept: rows, all levels, where something is used, and the merge of what a CAD assembly says.

use super::{
    items,
    store::{self, Change, Kept, Of, Put},
};
use crate::{
    app::App,
    auth::Caller,
    dialects::silo::trigger::{self, Fired},
    problem::Problem,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};
use windlass_core::{
    Command,
    commands::records::Expect,
    product::{
        bom::{self, Bom, Merge, Relation, Row, Source},
        item::Item,
        trigger::Trigger,
    },
};

pub const ENTRIES_MAX: usize = 10_000;
const EPOCH: &str = "all";

fn key(parent: &str, child: &str) -> String {
    format!("{parent}/{child}")
}

fn put(parent: &str, row: &Row, expect: Expect) -> Result<Command, Problem> {
    let key = key(parent, &row.child);
    Put::new(store::BOM, &key, expect).under(parent).facet("child", &row.child).value(row)
}

/// Written with every change, so that of two changes that are right only by themselves one is worked out again.
pub async fn touch(app: &App) -> Result<Command, Problem> {
    let found = store::get::<u64>(app, store::BOM_EPOCH, EPOCH).await?;
    let next = found.as_ref().map_or(1, |found| found.value + 1);
    Put::new(store::BOM_EPOCH, EPOCH, store::as_found(found.as_ref())).value(&next)
}

/// What an item contains, by part number.
pub async fn rows(app: &App, parent: &str) -> Result<Vec<Row>, Problem> {
    let found = store::list::<Row>(app, store::BOM, Of::Under(parent)).await?;
    Ok(found.into_iter().map(|kept| kept.value).collect())
}

/// A page of that, after a child.
pub async fn page(app: &App, parent: &str, after: Option<&str>, limit: usize) -> Result<Vec<Row>, Problem> {
    let after = after.map(|child| Arc::from(key(parent, child)));
    let found = store::page::<Row>(app, store::BOM, Of::Under(parent), after, limit).await?;
    Ok(found.into_iter().map(|kept| kept.value).collect())
}

/// What contains an item directly: parents with their rows, by parent.
pub async fn users(app: &App, part: &str, after: Option<&str>, limit: usize) -> Result<Vec<(String, Row)>, Problem> {
    let after = after.map(|parent| Arc::from(key(parent, part)));
    let found = store::page::<Row>(app, store::BOM, Of::With("child", part), after, limit).await?;
    let parent = |kept: &Kept<Row>| kept.key.rsplit_once('/').map_or(&*kept.key, |(parent, _)| parent).to_owned();
    Ok(found.into_iter().map(|kept| (parent(&kept), kept.value)).collect())
}

/// Everything below an item, so many levels down.
pub async fn below(app: &App, root: &str, depth_max: u32) -> Result<Bom, Problem> {
    let mut bom = Bom::default();
    bom.put(root, rows(app, root).await?);
    for _ in 1..depth_max {
        let open = bom.open();
        if open.is_empty() {
            break;
        }
        for part in open {
            bom.put(&part, rows(app, &part).await?);
        }
    }
    Ok(bom)
}

/// Items by part number; those that are not there are left out.
pub async fn items_of(app: &App, parts: BTreeSet<String>) -> Result<HashMap<String, Item>, Problem> {
    let mut found = HashMap::new();
    for part in parts {
        if let Some(kept) = store::get::<Item>(app, store::ITEM, &part).await? {
            found.insert(part, kept.value);
        }
    }
    Ok(found)
}

/// Whole quantities without a fraction.
pub fn number(quantity: f64) -> Value {
    let whole = quantity.fract() == 0.0 && quantity.abs() < 9e15;
    if whole { json!(quantity as i64) } else { json!(quantity) }
}

fn check_quantity(quantity: f64) -> Result<f64, Problem> {
    let fits = quantity > 0.0 && quantity.is_finite();
    fits.then_some(quantity).ok_or_else(|| Problem::invalid("quantity", "must be more than 0"))
}

/// A row to be, or what to change about one.
#[derive(Clone, Debug, Default)]
pub struct NewRow {
    pub relation: Option<Relation>,
    pub quantity: Option<f64>,
    /// `Some(None)`: none.
    pub unit: Option<Option<String>>,
    pub designators: Option<Vec<String>>,
}

impl NewRow {
    fn over(&self, before: Row) -> Row {
        Row {
            relation: self.relation.unwrap_or(before.relation),
            quantity: self.quantity.unwrap_or(before.quantity),
            unit: self.unit.clone().unwrap_or(before.unit),
            designators: self.designators.clone().unwrap_or(before.designators),
            ..before
        }
    }
}

fn fresh(child: &str) -> Row {
    Row {
        child: child.to_owned(),
        relation: Relation::default(),
        quantity: 1.0,
        unit: None,
        designators: Vec::new(),
        source: Source::Manual,
    }
}

/// A row as it is now, its child, and whether it is new.
pub struct Written {
    pub row: Row,
    pub child: Option<Item>,
    pub is_new: bool,
}

/// What to do where the row is there already, or is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Add,
    Change,
    Either,
}

/// Writes one row by hand.
pub async fn write(app: &App, part: &str, child: &str, new: &NewRow, mode: Mode) -> Result<Written, Problem> {
    new.quantity.map_or(Ok(0.0), check_quantity)?;
    store::settle!(app, Problem, {
        let parent = items::find(app, part).await?;
        let kept = store::get::<Row>(app, store::BOM, &key(part, child)).await?;
        match (kept, mode) {
            (None, Mode::Change) => return Err(missing(part, child)),
            (None, _) => {
                let found = items::find(app, child).await?;
                let (row, epoch) = (new.over(fresh(child)), touch(app).await?);
                below(app, child, u32::MAX).await?.check_row(part, child)?;
                // Both items are written as they are, so that neither can go meanwhile.
                let mut commands = vec![epoch, put(part, &row, Expect::Nothing)?, stay(&parent)?];
                if child != part {
                    commands.push(stay(&found)?);
                }
                Ok(Change { commands, answer: Written { row, child: Some(found.value), is_new: true } })
            }
            (Some(_), Mode::Add) => Err(Problem::new("exists", format!("{child} is in the BOM of {part} already"))),
            (Some(kept), _) => {
                let (row, before) = (new.over(kept.value.clone()), kept.value.clone());
                let found = store::get::<Item>(app, store::ITEM, child).await?.map(|kept| kept.value);
                // The same again is nothing to write.
                let commands = match row == before {
                    true => Vec::new(),
                    false => vec![touch(app).await?, put(part, &row, kept.unchanged())?],
                };
                Ok(Change { commands, answer: Written { row, child: found, is_new: false } })
            }
        }
    })
}

fn missing(part: &str, child: &str) -> Problem {
    Problem::not_found("BOM row", key(part, child).replace('/', " -> "))
}

fn stay(item: &Kept<Item>) -> Result<Command, Problem> {
    items::put(&item.value, item.unchanged())
}

pub async fn find(app: &App, part: &str, child: &str) -> Result<Kept<Row>, Problem> {
    store::get::<Row>(app, store::BOM, &key(part, child)).await?.ok_or_else(|| missing(part, child))
}

pub async fn remove(app: &App, part: &str, child: &str) -> Result<(), Problem> {
    store::settle!(app, Problem, {
        let kept = find(app, part, child).await?;
        let commands = vec![touch(app).await?, store::delete(store::BOM, &kept.key, kept.unchanged())];
        Ok(Change { commands, answer: () })
    })
}

/// What an assembly says it contains, each child once.
pub fn entries(sent: impl ExactSizeIterator<Item = (String, Option<f64>)>) -> Result<BTreeMap<String, f64>, Problem> {
    if sent.len() > ENTRIES_MAX {
        return Err(Problem::invalid("entries", format!("{} of them; {ENTRIES_MAX} are possible", sent.len())));
    }
    let mut found = BTreeMap::new();
    for (child, quantity) in sent {
        let quantity = check_quantity(quantity.unwrap_or(1.0))?;
        if found.insert(child.clone(), quantity).is_some() {
            return Err(Problem::invalid("entries", format!("{child} is there twice")));
        }
    }
    Ok(found)
}

/// What a merge came to, and the jobs it set off.
pub struct Merged {
    pub merge: Merge,
    pub fired: Vec<Fired>,
}

pub async fn merge(app: &App, caller: &Caller, part: &str, entries: &BTreeMap<String, f64>) -> Result<Merged, Problem> {
    store::settle!(app, Problem, {
        let parent = items::find(app, part).await?;
        let epoch = touch(app).await?;
        let before = rows(app, part).await?;
        let merge = bom::merge(&before, entries);
        let mut commands = vec![epoch, stay(&parent)?];
        for child in entries.keys().filter(|child| *child != part) {
            let unknown = || Problem::invalid("entries", format!("there is no item {child}"));
            let kept = store::get::<Item>(app, store::ITEM, child).await?.ok_or_else(unknown)?;
            if merge.added.iter().any(|(added, _)| added == child) {
                commands.push(stay(&kept)?);
            }
        }
        for (child, _) in &merge.added {
            below(app, child, u32::MAX).await?.check_row(part, child)?;
        }
        for row in merge.rows(&before) {
            commands.push(put(part, &row, Expect::Anything)?);
        }
        commands.push(store::tell("bom.merged", &news(part, &caller.name, &merge)));
        let made = trigger::fire(app, Trigger::BomChanged, &parent.value, &caller.name).await?;
        let fired = trigger::told(&made);
        commands.extend(made.into_iter().map(|made| made.submit()));
        Ok(Change { commands, answer: Merged { merge, fired } })
    })
}

fn quantities(list: &[(String, f64)]) -> Vec<Value> {
    list.iter().map(|(part, quantity)| json!({"part_number": part, "quantity": number(*quantity)})).collect()
}

/// In Silo's words: its event has it, and its answer.
pub fn diff(merge: &Merge) -> Value {
    let changed = merge.changed.iter().map(
        |(part, old, new)| json!({"part_number": part, "old_quantity": number(*old), "new_quantity": number(*new)}),
    );
    json!({
        "added": quantities(&merge.added),
        "removed": quantities(&merge.removed),
        "quantity_changed": changed.collect::<Vec<_>>(),
        "unchanged": quantities(&merge.unchanged),
    })
}

/// What subscribers hear. A merge of very many rows is told by its counts alone.
fn news(part: &str, user: &str, merge: &Merge) -> Value {
    const TOLD_MAX: usize = 300;
    let many = merge.added.len() + merge.removed.len() + merge.changed.len() > TOLD_MAX;
    let none = || json!({"added": [], "removed": [], "quantity_changed": [], "truncated": true});
    let mut diff = if many { none() } else { diff(merge) };
    diff.as_object_mut().map(|diff| diff.remove("unchanged"));
    diff["unchanged_count"] = json!(merge.unchanged.len());
    json!({
        "part_number": part,
        "user": user,
        "summary": merge.summary(),
        "diff": diff,
        "resolve_url": format!("/items/{part}/bom"),
    })
}
