//! Bills of material over HTTP: rows, all levels, where something is used, and the merge of what a CAD assembly says.

use super::{
    body::{Json, Listed, Params, Path, Raw, Who, created, ok, told},
    error::No,
    items, jobs,
    store::{self, Change, Kept, Of, Put},
    trigger::{self, Trigger},
};
use crate::app::App;
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use windlass_core::{
    Command,
    commands::records::Expect,
    product::{
        bom::{self, Bom, Relation, Row, Source},
        item::Item,
    },
};

const DEPTH: u32 = 10;
const DEPTH_MAX: u64 = 20;
const ENTRIES_MAX: usize = 10_000;
const EPOCH: &str = "all";

fn key(parent: &str, child: &str) -> String {
    format!("{parent}/{child}")
}

fn put(parent: &str, row: &Row, expect: Expect) -> Result<Command, No> {
    let key = key(parent, &row.child);
    Put::new(store::BOM, &key, expect).under(parent).facet("child", &row.child).value(row)
}

/// Written with every change, so that of two changes that are right only by themselves one is worked out again.
pub async fn touch(app: &App) -> Result<Command, No> {
    let found = store::get::<u64>(app, store::BOM_EPOCH, EPOCH).await?;
    let next = found.as_ref().map_or(1, |found| found.value + 1);
    Put::new(store::BOM_EPOCH, EPOCH, store::as_found(found.as_ref())).value(&next)
}

async fn rows(app: &App, parent: &str) -> Result<Vec<Row>, No> {
    let found = store::list::<Row>(app, store::BOM, Of::Under(parent)).await?;
    Ok(found.into_iter().map(|kept| kept.value).collect())
}

/// Everything below an item, so many levels down.
pub async fn below(app: &App, root: &str, depth_max: u32) -> Result<Bom, No> {
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

async fn items_of(app: &App, parts: BTreeSet<String>) -> Result<HashMap<String, Item>, No> {
    let mut found = HashMap::new();
    for part in parts {
        if let Some(kept) = store::get::<Item>(app, store::ITEM, &part).await? {
            found.insert(part, kept.value);
        }
    }
    Ok(found)
}

fn show(row: &Row, child: Option<&Item>) -> Value {
    json!({
        "child_part_number": row.child,
        "child_description": child.map(|child| &child.description),
        "child_item_type": child.map(|child| &child.item_type),
        "rel_type": row.relation,
        "quantity": number(row.quantity),
        "unit": row.unit,
        "reference_designators": row.designators,
        "source": row.source,
        "child_revision": child.map(|child| child.current_revision),
    })
}

/// Whole quantities without a fraction.
pub fn number(quantity: f64) -> Value {
    let whole = quantity.fract() == 0.0 && quantity.abs() < 9e15;
    if whole { json!(quantity as i64) } else { json!(quantity) }
}

pub async fn list(State(app): State<App>, Path(part): Path<String>) -> Result<Listed<Value>, No> {
    items::find(&app, &part).await?;
    let rows = rows(&app, &part).await?;
    let known = items_of(&app, rows.iter().map(|row| row.child.clone()).collect()).await?;
    let shown: Vec<Value> = rows.iter().map(|row| show(row, known.get(&row.child))).collect();
    let total = shown.len();
    Ok(Listed(shown, total))
}

pub async fn expanded(State(app): State<App>, Path(part): Path<String>, params: Params) -> Result<Listed<Value>, No> {
    items::find(&app, &part).await?;
    let depth = params.number("depth", 1, DEPTH_MAX)?.map_or(DEPTH, |depth| depth as u32);
    let bom = below(&app, &part, depth).await?;
    let levels = bom.expanded(&part, depth)?;
    let known = items_of(&app, levels.iter().map(|level| level.row.child.clone()).collect()).await?;
    let shown = levels.iter().map(|level| {
        let mut shown = show(level.row, known.get(&level.row.child));
        shown["parent_part_number"] = json!(level.parent);
        shown["level"] = json!(level.level);
        shown
    });
    let shown: Vec<Value> = shown.collect();
    let total = shown.len();
    Ok(Listed(shown, total))
}

pub async fn where_used(State(app): State<App>, Path(part): Path<String>) -> Result<Listed<Value>, No> {
    items::find(&app, &part).await?;
    let found = store::list::<Row>(&app, store::BOM, Of::With("child", &part)).await?;
    let shown = found.iter().map(|kept| {
        let parent = kept.key.rsplit_once('/').map_or(&*kept.key, |(parent, _)| parent);
        json!({"parent_part_number": parent, "rel_type": kept.value.relation, "quantity": number(kept.value.quantity)})
    });
    let shown: Vec<Value> = shown.collect();
    let total = shown.len();
    Ok(Listed(shown, total))
}

pub async fn flat(State(app): State<App>, Path(part): Path<String>) -> Result<Listed<Value>, No> {
    items::find(&app, &part).await?;
    let flat = below(&app, &part, u32::MAX).await?.flat(&part)?;
    let total = flat.len();
    let shown = flat.iter().map(|(part, total)| json!({"part_number": part, "total_quantity": number(*total)}));
    Ok(Listed(shown.collect(), total))
}

#[derive(Deserialize)]
struct NewRow {
    child_part_number: String,
    rel_type: Option<Relation>,
    quantity: Option<f64>,
    unit: Option<String>,
    reference_designators: Option<Vec<String>>,
}

fn check_quantity(quantity: f64) -> Result<f64, No> {
    let fits = quantity > 0.0 && quantity.is_finite();
    fits.then_some(quantity).ok_or_else(|| No::invalid("quantity: must be more than 0"))
}

pub async fn add(State(app): State<App>, Path(part): Path<String>, raw: Raw) -> Result<Json<Value>, No> {
    items::find(&app, &part).await?;
    let body: NewRow = raw.parse()?;
    let row = Row {
        child: body.child_part_number,
        relation: body.rel_type.unwrap_or_default(),
        quantity: check_quantity(body.quantity.unwrap_or(1.0))?,
        unit: body.unit,
        designators: body.reference_designators.unwrap_or_default(),
        source: Source::Manual,
    };
    let child = store::settle!(&app, {
        let parent = items::find(&app, &part).await?;
        let child = items::find(&app, &row.child).await?;
        if store::get::<Row>(&app, store::BOM, &key(&part, &row.child)).await?.is_some() {
            return Err(No::conflict(format!("{} is in the BOM of {part} already", row.child)));
        }
        let epoch = touch(&app).await?;
        below(&app, &row.child, u32::MAX).await?.check_row(&part, &row.child)?;
        // Both items are written as they are, so that neither can go meanwhile.
        let commands = vec![epoch, put(&part, &row, Expect::Nothing)?, stay(&parent)?];
        let commands = if row.child == part { commands } else { [commands, vec![stay(&child)?]].concat() };
        Ok(Change { commands, answer: child.value })
    })?;
    let mut shown = show(&row, Some(&child));
    shown["parent_part_number"] = json!(part);
    Ok(created(shown))
}

fn stay(item: &Kept<Item>) -> Result<Command, No> {
    items::put(&item.value, item.unchanged())
}

#[derive(Deserialize)]
struct Update {
    rel_type: Option<Relation>,
    quantity: Option<f64>,
    #[serde(default, deserialize_with = "told")]
    unit: Option<Option<String>>,
    reference_designators: Option<Vec<String>>,
}

async fn find(app: &App, part: &str, child: &str) -> Result<Kept<Row>, No> {
    let found = store::get::<Row>(app, store::BOM, &key(part, child)).await?;
    found.ok_or_else(|| No::missing("BOM row", format!("{part} -> {child}")))
}

pub async fn update(
    State(app): State<App>,
    Path((part, child)): Path<(String, String)>,
    raw: Raw,
) -> Result<Json<Value>, No> {
    items::find(&app, &part).await?;
    find(&app, &part, &child).await?;
    let body: Update = raw.parse()?;
    body.quantity.map_or(Ok(0.0), check_quantity)?;
    let row = store::settle!(&app, {
        let kept = find(&app, &part, &child).await?;
        let before = kept.value.clone();
        let row = Row {
            relation: body.rel_type.unwrap_or(before.relation),
            quantity: body.quantity.unwrap_or(before.quantity),
            unit: body.unit.clone().unwrap_or_else(|| before.unit.clone()),
            designators: body.reference_designators.clone().unwrap_or_else(|| before.designators.clone()),
            ..before
        };
        let commands = vec![touch(&app).await?, put(&part, &row, kept.unchanged())?];
        Ok(Change { commands, answer: row })
    })?;
    let known = items_of(&app, [child.clone()].into()).await?;
    let mut shown = show(&row, known.get(&child));
    shown["parent_part_number"] = json!(part);
    Ok(ok(shown))
}

pub async fn remove(State(app): State<App>, Path((part, child)): Path<(String, String)>) -> Result<StatusCode, No> {
    items::find(&app, &part).await?;
    store::settle!(&app, {
        let kept = find(&app, &part, &child).await?;
        let commands = vec![touch(&app).await?, store::delete(store::BOM, &kept.key, kept.unchanged())];
        Ok(Change { commands, answer: () })
    })?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
struct Merge {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    child_part_number: String,
    quantity: Option<f64>,
}

fn entries(body: Merge) -> Result<BTreeMap<String, f64>, No> {
    if body.entries.len() > ENTRIES_MAX {
        return Err(No::invalid(format!("entries: {} of them; {ENTRIES_MAX} are possible", body.entries.len())));
    }
    let mut found = BTreeMap::new();
    for entry in body.entries {
        let quantity = check_quantity(entry.quantity.unwrap_or(1.0))?;
        if found.insert(entry.child_part_number.clone(), quantity).is_some() {
            return Err(No::invalid(format!("entries: {} is there twice", entry.child_part_number)));
        }
    }
    Ok(found)
}

pub async fn merge(
    State(app): State<App>,
    Who(caller): Who,
    Path(part): Path<String>,
    raw: Raw,
) -> Result<Json<Value>, No> {
    items::find(&app, &part).await?;
    let entries = entries(raw.parse()?)?;
    let answer = store::settle!(&app, {
        let parent = items::find(&app, &part).await?;
        let epoch = touch(&app).await?;
        let before = rows(&app, &part).await?;
        let merge = bom::merge(&before, &entries);
        let mut commands = vec![epoch, stay(&parent)?];
        for child in entries.keys().filter(|child| **child != part) {
            let unknown = || No::invalid(format!("entries: there is no item {child}"));
            let kept = store::get::<Item>(&app, store::ITEM, child).await?.ok_or_else(unknown)?;
            if merge.added.iter().any(|(added, _)| added == child) {
                commands.push(stay(&kept)?);
            }
        }
        for (child, _) in &merge.added {
            below(&app, child, u32::MAX).await?.check_row(&part, child)?;
        }
        for row in merge.rows(&before) {
            commands.push(put(&part, &row, Expect::Anything)?);
        }
        commands.push(store::tell("bom.merged", &news(&part, &caller.name, &merge)));
        let fired = trigger::fire(&app, Trigger::BomChanged, &parent.value, &caller.name).await?;
        let mut answer = shown_merge(&part, &merge);
        answer["triggered_jobs"] = jobs::triggered(&fired);
        commands.extend(fired.into_iter().map(|made| made.submit()));
        Ok(Change { commands, answer })
    })?;
    Ok(ok(answer))
}

fn quantities(list: &[(String, f64)]) -> Vec<Value> {
    list.iter().map(|(part, quantity)| json!({"part_number": part, "quantity": number(*quantity)})).collect()
}

fn diff(merge: &bom::Merge) -> Value {
    let changed = merge.changed.iter().map(
        |(part, old, new)| json!({"part_number": part, "old_quantity": number(*old), "new_quantity": number(*new)}),
    );
    json!({
        "added": quantities(&merge.added),
        "removed": quantities(&merge.removed),
        "quantity_changed": changed.collect::<Vec<_>>(),
    })
}

fn shown_merge(part: &str, merge: &bom::Merge) -> Value {
    let mut diff = diff(merge);
    diff["unchanged"] = json!(quantities(&merge.unchanged));
    let warnings = merge.removed.iter().map(|(child, _)| {
        let message = format!("{child} is in the BOM of {part}, but no longer in the assembly");
        json!({"type": "unreferenced", "part_number": child, "message": message})
    });
    json!({
        "status": "merged",
        "diff": diff,
        "warnings": warnings.collect::<Vec<_>>(),
        "resolve_url": format!("/items/{part}/bom"),
    })
}

/// What subscribers hear. A merge of very many rows is told by its counts alone.
fn news(part: &str, user: &str, merge: &bom::Merge) -> Value {
    const TOLD_MAX: usize = 300;
    let many = merge.added.len() + merge.removed.len() + merge.changed.len() > TOLD_MAX;
    let mut diff =
        if many { json!({"added": [], "removed": [], "quantity_changed": [], "truncated": true}) } else { diff(merge) };
    diff["unchanged_count"] = json!(merge.unchanged.len());
    json!({
        "part_number": part,
        "user": user,
        "summary": merge.summary(),
        "diff": diff,
        "resolve_url": format!("/items/{part}/bom"),
    })
}
