//! JSON files. Values are kept as they stand in the text, so that a mistake in one of them has a place.

use super::row::{Faults, Kind, NO_KIND, Raw, Rows, Spot, add};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{collections::BTreeMap, sync::Arc};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File<'a> {
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    revisions: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    bom: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    projects: Vec<&'a RawValue>,
}

struct Text<'a> {
    file: &'a Arc<str>,
    text: &'a str,
    /// Where each line begins.
    lines: Vec<usize>,
}

impl<'a> Text<'a> {
    fn new(file: &'a Arc<str>, text: &'a str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { file, text, lines: std::iter::once(0).chain(breaks).collect() }
    }

    /// The place of a piece of the text, which it was borrowed from.
    fn place(&self, piece: &str) -> Spot {
        let at = piece.as_ptr() as usize - self.text.as_ptr() as usize;
        let line = self.lines.partition_point(|begin| *begin <= at);
        let column = self.text[self.lines[line - 1]..at].chars().count() + 1;
        Spot { file: self.file.clone(), line, column }
    }

    fn fault(&self, error: &serde_json::Error, within: Option<&str>, faults: &mut Faults) {
        let base = within.map_or(Spot { file: self.file.clone(), line: 1, column: 1 }, |piece| self.place(piece));
        // The parser counts from the piece it was given.
        let (line, column) = (error.line().max(1), error.column().max(1));
        let column = if line == 1 { base.column + column - 1 } else { column };
        let told = error.to_string();
        let why = told.split(" at line ").next().unwrap_or(&told).to_owned();
        faults.add(&Spot { line: base.line + line - 1, column, ..base }, "", why);
    }
}

pub fn read(file: &Arc<str>, text: &str, rows: &mut Rows, faults: &mut Faults) {
    let at = Text::new(file, text);
    let list = text.trim_start().starts_with('[');
    let found: Result<Vec<(Option<Kind>, &RawValue)>, serde_json::Error> = if list {
        serde_json::from_str::<Vec<&RawValue>>(text).map(|all| all.into_iter().map(|one| (None, one)).collect())
    } else {
        serde_json::from_str::<File>(text).map(|file| {
            let kinds = [
                (Kind::Project, file.projects),
                (Kind::Item, file.items),
                (Kind::Revision, file.revisions),
                (Kind::Bom, file.bom),
            ];
            kinds.into_iter().flat_map(|(kind, all)| all.into_iter().map(move |one| (Some(kind), one))).collect()
        })
    };
    match found {
        Err(error) => at.fault(&error, None, faults),
        Ok(found) => {
            for (kind, one) in found {
                row(&at, kind, one, rows, faults);
            }
        }
    }
}

fn row(text: &Text<'_>, kind: Option<Kind>, one: &RawValue, rows: &mut Rows, faults: &mut Faults) {
    let raw: BTreeMap<String, &RawValue> = match serde_json::from_str(one.get()) {
        Ok(raw) => raw,
        Err(error) => return text.fault(&error, Some(one.get()), faults),
    };
    let at = text.place(one.get());
    let Some(kind) = kind.or_else(|| Kind::of(raw.keys().map(String::as_str))) else {
        return faults.add(&at, "", NO_KIND);
    };
    let mut fields = BTreeMap::new();
    for (name, value) in raw {
        let place = text.place(value.get());
        kind.check_field(&place, &name, faults);
        match serde_json::from_str(value.get()) {
            Ok(value) => drop(fields.insert(name, (place, value))),
            Err(error) => text.fault(&error, Some(value.get()), faults),
        }
    }
    add(kind, Raw { at, fields }, rows, faults);
}
