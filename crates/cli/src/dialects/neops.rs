//! `windlass import neops`: devices, interfaces and groups from files, checked as a whole before anything is written.
//!
//! Each is put as the file has it, so that an import that was cut off is simply run again.

use super::{Noun, Part};
use crate::{
    context::{Context, Done},
    fail::code,
    files, output,
};
use anyhow::Context as _;
use clap::{Args, FromArgMatches};
use futures_util::{StreamExt, TryStreamExt, stream};
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};
use windlass_plan::neops::{
    entity::{self, KEPT},
    reference::EntityType,
};
use windlass_sdk::Client;

pub const PART: &Part = &Part {
    import: Some(Noun {
        name: "neops",
        about: Neops::augment_args,
        run: |matches, context| Box::pin(async move { Neops::from_arg_matches(matches)?.run(context).await }),
    }),
    ..Part::NOTHING
};

/// Entities written at a time.
const AT_ONCE: usize = 8;
/// Faults told at most; the rest are counted.
const TOLD_MAX: usize = 50;
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Import devices, interfaces and device groups for neops runs from JSON files.
///
/// A file is an object with the lists `devices`, `interfaces` and `deviceGroups`; each may be missing. Every entity needs an `id`, a
/// whole number from 1. Other fields are optional, but must have the types that workers expect.
///
/// All files are checked first. If there is any error, nothing is written, and every error is reported with its file and its place.
/// An import that was interrupted can be run again: what is there already is left alone. A password that a file leaves out stays as
/// it is.
#[derive(Args)]
#[command(after_help = "Examples:
  windlass import neops devices.json
  windlass import neops devices.json groups.json --check     only check the files")]
struct Neops {
    /// JSON files.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Only check the files; write nothing.
    #[arg(long)]
    check: bool,
}

struct Row {
    entity: EntityType,
    id: u64,
    value: Value,
    at: String,
}

#[derive(Debug, Default, Serialize)]
struct Summary {
    created: usize,
    updated: usize,
    unchanged: usize,
}

impl Neops {
    async fn run(self, context: &Context) -> Done {
        let (mut rows, mut faults) = (Vec::new(), Vec::new());
        for file in &self.files {
            read(file, &mut rows, &mut faults)?;
        }
        twice(&rows, &mut faults);
        if !faults.is_empty() {
            return Ok(refuse(&faults));
        }
        if self.check {
            let told = format!("{} entities: all valid; nothing was written", rows.len());
            context.format.one(&Summary::default(), || told.clone())?;
            return Ok(code::OK);
        }
        let client = context.client()?;
        let bar = output::bar(Some(rows.len() as u64), "importing");
        let mut writes = stream::iter(&rows).map(|row| write(&client, row)).buffer_unordered(AT_ONCE);
        let mut summary = Summary::default();
        while let Some(outcome) =
            writes.try_next().await.context("the import was interrupted; run it again to continue")?
        {
            bar.inc(1);
            match outcome.as_str() {
                "created" => summary.created += 1,
                "updated" => summary.updated += 1,
                _ => summary.unchanged += 1,
            }
        }
        bar.finish_and_clear();
        let Summary { created, updated, unchanged } = summary;
        context.format.one(&summary, || format!("{created} created, {updated} updated, {unchanged} unchanged"))?;
        Ok(code::OK)
    }
}

fn read(file: &Path, rows: &mut Vec<Row>, faults: &mut Vec<String>) -> anyhow::Result<()> {
    let shown = file.display();
    let text = files::read(file, FILE_BYTES_MAX)?;
    let lists: HashMap<String, Vec<Value>> = match serde_json::from_slice(&text) {
        Ok(lists) => lists,
        Err(error) => {
            faults.push(format!("{shown}: must be an object of lists: {error}"));
            return Ok(());
        }
    };
    for (name, list) in lists {
        let Some((entity, _)) = KEPT.into_iter().find(|(_, list)| *list == name) else {
            faults.push(format!("{shown}: {name}: unknown; there are devices, interfaces and deviceGroups"));
            continue;
        };
        for (index, value) in list.into_iter().enumerate() {
            let at = format!("{name}[{index}]");
            match entity::check(entity, &value, &at) {
                Ok(id) => rows.push(Row { entity, id, value, at: format!("{shown}: {at}") }),
                Err(found) => faults.extend(found.iter().map(|fault| format!("{shown}: {fault}"))),
            }
        }
    }
    Ok(())
}

fn twice(rows: &[Row], faults: &mut Vec<String>) {
    let mut seen: HashMap<(EntityType, u64), &str> = HashMap::new();
    for row in rows {
        if let Some(first) = seen.insert((row.entity, row.id), &row.at) {
            faults.push(format!("{}: {} {} is there twice; first at {first}", row.at, row.entity.as_str(), row.id));
        }
    }
}

async fn write(client: &Client, row: &Row) -> anyhow::Result<String> {
    #[derive(Deserialize)]
    struct Written {
        outcome: String,
    }
    let path = format!("/api/v1/entities/{}/{}", row.entity.as_str(), row.id);
    let request = client.plain_request(Method::PUT, &path).json(&row.value);
    let response = client.send(request).await.with_context(|| row.at.clone())?;
    let written: Written = serde_json::from_slice(&response.bytes().await?).context("the answer cannot be read")?;
    Ok(written.outcome)
}

fn refuse(faults: &[String]) -> u8 {
    for fault in faults.iter().take(TOLD_MAX) {
        output::note(fault);
    }
    if faults.len() > TOLD_MAX {
        eprintln!("… and {} more", faults.len() - TOLD_MAX);
    }
    eprintln!("{} errors; nothing was written", faults.len());
    code::ERROR
}
