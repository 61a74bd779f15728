//! Bills of material over HTTP.

use super::{
    body::{Here, Json, Listed, Params, Path, Raw, created, ok, told},
    error::Result,
    jobs,
};
use crate::{app::App, auth::Caller};
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use windlass_product::{
    bom::{self, Mode, NewRow, Written, number},
    items,
    rules::{
        bom::{Merge as Merging, Relation, Row},
        item::Item,
    },
};

/// Rows and parents are not paged in this protocol.
const ALL: usize = 100_000;

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

fn show_written(part: &str, written: &Written) -> Value {
    let mut shown = show(&written.row, written.child.as_ref());
    shown["parent_part_number"] = json!(part);
    shown
}

fn listed(shown: Vec<Value>) -> Listed<Value> {
    let total = shown.len();
    Listed(shown, total)
}

pub async fn list(Here(products): Here, Path(part): Path<String>) -> Result<Listed<Value>> {
    items::find(&products, &part).await?;
    let rows = bom::rows(&products, &part).await?;
    let known = bom::items_of(&products, rows.iter().map(|row| row.child.clone()).collect()).await?;
    Ok(listed(rows.iter().map(|row| show(row, known.get(&row.child))).collect()))
}

pub async fn expanded(Here(products): Here, Path(part): Path<String>, params: Params) -> Result<Listed<Value>> {
    items::find(&products, &part).await?;
    let depth = params.number("depth", 1, bom::DEPTH_MAX.into())?.map_or(bom::DEPTH, |depth| depth as u32);
    let below = bom::below(&products, &part, depth).await?;
    let levels = below.expanded(&part, depth)?;
    let known = bom::items_of(&products, levels.iter().map(|level| level.row.child.clone()).collect()).await?;
    let shown = levels.iter().map(|level| {
        let mut shown = show(level.row, known.get(&level.row.child));
        shown["parent_part_number"] = json!(level.parent);
        shown["level"] = json!(level.level);
        shown
    });
    Ok(listed(shown.collect()))
}

pub async fn where_used(Here(products): Here, Path(part): Path<String>) -> Result<Listed<Value>> {
    items::find(&products, &part).await?;
    let found = bom::users(&products, &part, None, ALL).await?;
    let shown = found.iter().map(|(parent, row)| {
        json!({"parent_part_number": parent, "rel_type": row.relation, "quantity": number(row.quantity)})
    });
    Ok(listed(shown.collect()))
}

pub async fn flat(Here(products): Here, Path(part): Path<String>) -> Result<Listed<Value>> {
    items::find(&products, &part).await?;
    let leaves = bom::below(&products, &part, u32::MAX).await?.flat(&part)?;
    let shown = leaves.iter().map(|(part, quantity)| json!({"part_number": part, "total_quantity": number(*quantity)}));
    Ok(listed(shown.collect()))
}

#[derive(Deserialize)]
struct Add {
    child_part_number: String,
    rel_type: Option<Relation>,
    quantity: Option<f64>,
    unit: Option<String>,
    reference_designators: Option<Vec<String>>,
}

pub async fn add(
    State(app): State<App>,
    Here(products): Here,
    Path(part): Path<String>,
    raw: Raw,
) -> Result<Json<Value>> {
    items::find(&products, &part).await?;
    let body: Add = raw.parse(&app).await?;
    let new = NewRow {
        relation: body.rel_type,
        quantity: body.quantity,
        unit: Some(body.unit),
        designators: body.reference_designators,
    };
    let written = bom::write(&products, &part, &body.child_part_number, &new, Mode::Add).await?;
    Ok(created(show_written(&part, &written)))
}

#[derive(Deserialize)]
struct Update {
    rel_type: Option<Relation>,
    quantity: Option<f64>,
    #[serde(default, deserialize_with = "told")]
    unit: Option<Option<String>>,
    reference_designators: Option<Vec<String>>,
}

pub async fn update(
    State(app): State<App>,
    Here(products): Here,
    Path((part, child)): Path<(String, String)>,
    raw: Raw,
) -> Result<Json<Value>> {
    items::find(&products, &part).await?;
    bom::find(&products, &part, &child).await?;
    let Update { rel_type, quantity, unit, reference_designators } = raw.parse(&app).await?;
    let new = NewRow { relation: rel_type, quantity, unit, designators: reference_designators };
    let written = bom::write(&products, &part, &child, &new, Mode::Change).await?;
    Ok(ok(show_written(&part, &written)))
}

pub async fn remove(Here(products): Here, Path((part, child)): Path<(String, String)>) -> Result<StatusCode> {
    items::find(&products, &part).await?;
    bom::remove(&products, &part, &child).await?;
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

pub async fn merge(
    State(app): State<App>,
    Here(products): Here,
    caller: Caller,
    Path(part): Path<String>,
    raw: Raw,
) -> Result<Json<Value>> {
    items::find(&products, &part).await?;
    let body: Merge = raw.parse(&app).await?;
    let entries = bom::entries(body.entries.into_iter().map(|entry| (entry.child_part_number, entry.quantity)))?;
    let merged = bom::merge(&products, &caller.name, &part, &entries).await?;
    let mut answer = shown_merge(&part, &merged.merge);
    answer["triggered_jobs"] = jobs::triggered(&merged.fired);
    Ok(ok(answer))
}

fn shown_merge(part: &str, merge: &Merging) -> Value {
    let warnings = merge.removed.iter().map(|(child, _)| {
        let message = format!("{child} is in the BOM of {part}, but no longer in the assembly");
        json!({"type": "unreferenced", "part_number": child, "message": message})
    });
    json!({
        "status": "merged",
        "diff": bom::diff(merge),
        "warnings": warnings.collect::<Vec<_>>(),
        "resolve_url": format!("/items/{part}/bom"),
    })
}
