//! Writes what is not there yet. Each step can be done again.

use super::{
    check::Known,
    row::{Bom, Item, Rows},
};
use crate::pages::all;
use anyhow::Context as _;
use futures_util::{StreamExt, TryStreamExt, stream};
use indicatif::ProgressBar;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use windlass_api::item::{BomRow, CreateItem, CreateProject, CreateRevision, Item as There, PutBomRow, UpdateItem};
use windlass_sdk::Client;

/// Items written at a time.
const AT_ONCE: usize = 8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    pub created: usize,
    pub updated: usize,
    pub unchanged: usize,
}

impl Count {
    fn note(&mut self, done: Did) {
        match done {
            Did::Create => self.created += 1,
            Did::Update => self.updated += 1,
            Did::Nothing => self.unchanged += 1,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Did {
    Create,
    Update,
    Nothing,
}

#[derive(Debug, Default, Serialize)]
pub struct Summary {
    pub projects: Count,
    pub items: Count,
    pub revisions: Count,
    pub bom: Count,
}

impl Summary {
    pub fn text(&self) -> String {
        let line = |name: &str, count: &Count| {
            let Count { created, updated, unchanged } = count;
            format!("{name:10} {created} created, {updated} updated, {unchanged} unchanged")
        };
        let all = [
            ("projects", &self.projects),
            ("items", &self.items),
            ("revisions", &self.revisions),
            ("BOM rows", &self.bom),
        ];
        all.map(|(name, count)| line(name, count)).join("\n")
    }
}

pub async fn apply(client: &Client, rows: &Rows, known: &Known, bar: &ProgressBar) -> anyhow::Result<Summary> {
    let mut summary = Summary::default();
    for row in &rows.projects {
        let done = if known.projects.contains(&row.code) {
            Did::Nothing
        } else {
            let (name, description) = (row.name.clone(), row.description.clone());
            client.create_project(&CreateProject { code: row.code.clone(), name, description }).await?;
            Did::Create
        };
        summary.projects.note(done);
        bar.inc(1);
    }
    let mut items =
        stream::iter(&rows.items)
            .map(|row| async move {
                write_item(client, row, known.items.get(&row.part)).await.with_context(|| place(&row.at))
            })
            .buffer_unordered(AT_ONCE);
    while let Some(done) = items.try_next().await? {
        summary.items.note(done);
        bar.inc(1);
    }
    revisions(client, rows, known, bar, &mut summary.revisions).await?;
    bom(client, rows, known, bar, &mut summary.bom).await?;
    Ok(summary)
}

fn place(at: &super::row::Spot) -> String {
    format!("{}:{}", at.file, at.line)
}

async fn write_item(client: &Client, row: &Item, there: Option<&There>) -> anyhow::Result<Did> {
    let Some(there) = there else {
        let new = CreateItem {
            part_number: Some(row.part.clone()),
            item_type: row.item_type.clone(),
            schema: row.schema.clone(),
            category: row.category.clone(),
            description: row.description.clone(),
            properties: row.properties.clone(),
            projects: row.projects.clone(),
        };
        client.create_item(&new).await?;
        return Ok(Did::Create);
    };
    let change = difference(row, there);
    if change == UpdateItem::default() {
        return Ok(Did::Nothing);
    }
    client.update_item(&row.part, &change).await?;
    Ok(Did::Update)
}

/// Only what the file says, and only where that is something else.
fn difference(row: &Item, there: &There) -> UpdateItem {
    let mut projects = row.projects.clone();
    projects.iter_mut().for_each(|codes| {
        codes.sort();
        codes.dedup();
    });
    UpdateItem {
        item_type: row.item_type.clone().filter(|new| *new != there.item_type),
        description: row.description.clone().filter(|new| *new != there.description),
        properties: row.properties.clone().filter(|new| *new != there.properties),
        projects: projects.filter(|new| *new != there.projects),
    }
}

async fn revisions(
    client: &Client,
    rows: &Rows,
    known: &Known,
    bar: &ProgressBar,
    count: &mut Count,
) -> anyhow::Result<()> {
    let mut sorted: Vec<_> = rows.revisions.iter().collect();
    sorted.sort_by_key(|row| (&row.part, row.number));
    for row in sorted {
        bar.inc(1);
        if row.number <= known.items.get(&row.part).map_or(1, |item| item.revision) {
            count.note(Did::Nothing);
            continue;
        }
        let new = CreateRevision { comment: row.comment.clone(), properties: row.properties.clone(), quiet: true };
        let made = client.create_revision(&row.part, &new).await.with_context(|| place(&row.at))?;
        anyhow::ensure!(
            made.revision == row.number,
            "{}: somebody else made revision {} of {} meanwhile",
            place(&row.at),
            row.number,
            row.part
        );
        count.note(Did::Create);
    }
    Ok(())
}

async fn bom(client: &Client, rows: &Rows, known: &Known, bar: &ProgressBar, count: &mut Count) -> anyhow::Result<()> {
    let mut by_parent: BTreeMap<&str, Vec<&Bom>> = BTreeMap::new();
    for row in &rows.bom {
        by_parent.entry(&row.parent).or_default().push(row);
    }
    for (parent, rows) in by_parent {
        let there = if known.items.contains_key(parent) { children(client, parent).await? } else { HashMap::new() };
        for row in rows {
            bar.inc(1);
            let did = match there.get(&row.child) {
                None => Did::Create,
                Some(there) if is_same(row, there) => Did::Nothing,
                Some(_) => Did::Update,
            };
            if did != Did::Nothing {
                let body = PutBomRow {
                    relation: row.relation,
                    quantity: row.quantity,
                    unit: row.unit.clone().map(Some),
                    designators: row.designators.clone(),
                };
                client.put_bom_row(parent, &row.child, &body).await.with_context(|| place(&row.at))?;
            }
            count.note(did);
        }
    }
    Ok(())
}

async fn children(client: &Client, parent: &str) -> anyhow::Result<HashMap<String, BomRow>> {
    let found = all(async |paging| client.bom(parent, &paging).await).await?;
    Ok(found.into_iter().map(|row| (row.child.clone(), row)).collect())
}

fn is_same(row: &Bom, there: &BomRow) -> bool {
    row.quantity.is_none_or(|quantity| quantity == there.quantity)
        && row.relation.is_none_or(|relation| relation == there.relation)
        && row.unit.as_ref().is_none_or(|unit| Some(unit) == there.unit.as_ref())
        && row.designators.as_ref().is_none_or(|list| *list == there.designators)
}
