//! `windlass import silo`: items, revisions and bills of material from files, checked as a whole before anything is written.
//!
//! What is there already is left alone or brought to what the files say, so that an import that was cut off is simply run
//! again.

mod apply;
mod check;
pub mod csv;
pub mod json;
pub mod row;

use super::{Noun, Part};
use crate::{
    context::{Context, Done},
    fail::code,
    output,
    remote::Remote,
};
use clap::{Args, FromArgMatches};
use row::{Faults, Rows};
use std::path::PathBuf;

pub const PART: &Part = &Part {
    import: Some(Noun {
        name: "silo",
        about: Silo::augment_args,
        run: |matches, context| Box::pin(async move { Silo::from_arg_matches(matches)?.run(context).await }),
    }),
    ..Part::NOTHING
};

/// Import items, revisions, bills of material and projects from CSV or JSON files.
///
/// All files are checked first, together and against the data on the server. If there is any error, nothing is written, and every
/// error is reported with file, line, column and field. An import that was interrupted can be run again: existing data is left
/// alone. Imported revisions trigger no jobs.
///
/// The first line of a CSV file has the column names, which decide what the rows are:
///
///   items      part_number; item_type, schema, category, description, projects (A;B), properties (JSON) or properties.NAME
///   revisions  part_number, revision_number; comment, properties
///   BOM rows   parent_part_number, child_part_number; quantity, rel_type, unit, reference_designators (R1;R2)
///   projects   code; name, description
///
/// A JSON file is a list of objects with these fields, or an object with lists `items`, `revisions`, `bom` and `projects`.
/// Revision 1 is created with its item. Columns that only the server writes (id, created_at, …) are ignored. The items are created in
/// the namespace silo, unless --namespace names another one.
#[derive(Args)]
#[command(after_help = "Examples:
  windlass import silo items.csv bom.csv revisions.csv
  windlass import silo everything.json --check           only check the file
  curl -H \"$T\" $SILO/api/items?limit=500 > items.json && windlass import silo items.json")]
struct Silo {
    /// CSV (.csv) or JSON (.json) files. They may refer to each other.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Only check the files; write nothing.
    #[arg(long)]
    check: bool,
}

/// Faults told at most; the rest are counted.
const TOLD_MAX: usize = 50;

impl Silo {
    async fn run(self, context: &Context) -> Done {
        let (mut rows, mut faults) = (Rows::default(), Faults::default());
        for file in &self.files {
            row::read(file, &mut rows, &mut faults)?;
        }
        let client = in_namespace(&context.remote).client()?;
        let known = check::Known::read(&client).await?;
        check::check(&rows, &known, &mut faults);
        if !faults.0.is_empty() {
            return Ok(refuse(&faults));
        }
        if self.check {
            let summary = apply::Summary::default();
            context.format.one(&summary, || format!("{}: all valid; nothing was written", rows.told()))?;
            return Ok(code::OK);
        }
        let bar = output::bar(Some(rows.count() as u64), "importing");
        let done = apply::apply(&client, &rows, &known, &bar).await;
        bar.finish_and_clear();
        let summary = done.map_err(|error| error.context("the import was interrupted; run it again to continue"))?;
        context.format.one(&summary, || summary.text())?;
        Ok(code::OK)
    }
}

/// Where Silo's own clients look.
fn in_namespace(remote: &Remote) -> Remote {
    let mut remote = remote.clone();
    remote.options.namespace.get_or_insert_with(|| "silo".to_owned());
    remote
}

fn refuse(faults: &Faults) -> u8 {
    for fault in faults.0.iter().take(TOLD_MAX) {
        crate::output::note(fault);
    }
    let more = faults.0.len().saturating_sub(TOLD_MAX);
    if more > 0 {
        eprintln!("… and {more} more");
    }
    eprintln!("{} errors; nothing was written", faults.0.len());
    code::ERROR
}
