//! CSV as RFC 4180 has it: quotes around fields, doubled inside them, line breaks within. Every field keeps its place.
//!
//! The library reads on whatever the quotes are like; a file whose quotes are wrong is refused here, where they are wrong.

use super::row::{Faults, Kind, NO_KIND, Raw, Rows, Spot, add};
use csv_core::ReadFieldResult;
use std::{collections::BTreeMap, sync::Arc};

struct Field {
    line: usize,
    column: usize,
    text: String,
    /// Its quotes are.
    wrong: bool,
}

const WRONG_QUOTE: &str =
    "a quote is wrong: quotes stand around a whole field and are closed at its end; inside they are doubled";

struct Reader<'a> {
    csv: csv_core::Reader,
    rest: &'a str,
    line: usize,
    column: usize,
    /// As large as the text, so that any field fits.
    out: Vec<u8>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        // As spreadsheets write it.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Self { csv: csv_core::Reader::new(), rest: text, line: 1, column: 1, out: vec![0; text.len() + 1] }
    }

    /// Goes on over what was read.
    fn pass(&mut self, text: &str) {
        match text.rsplit_once('\n') {
            Some((_, last)) => {
                (self.line, self.column) = (self.line + text.matches('\n').count(), last.chars().count() + 1);
            }
            None => self.column += text.chars().count(),
        }
    }

    /// One field and whether the record ends with it, none at the end of the text.
    fn field(&mut self) -> Option<(Field, bool)> {
        let (mut read, mut written) = (0, 0);
        let last = loop {
            let (result, input, output) = self.csv.read_field(&self.rest.as_bytes()[read..], &mut self.out[written..]);
            (read, written) = (read + input, written + output);
            match result {
                ReadFieldResult::InputEmpty | ReadFieldResult::OutputFull => {}
                ReadFieldResult::Field { record_end } => break record_end,
                ReadFieldResult::End => return None,
            }
        };
        let (whole, rest) = self.rest.split_at(read);
        self.rest = rest;
        // Empty lines before a record are read with its first field.
        let raw = whole.trim_start_matches(['\r', '\n']);
        self.pass(&whole[..whole.len() - raw.len()]);
        let text = String::from_utf8_lossy(&self.out[..written]).into_owned();
        let field = Field { line: self.line, column: self.column, wrong: !is_written_as(&text, raw), text };
        self.pass(raw);
        Some((field, last))
    }

    fn record(&mut self) -> Option<Vec<Field>> {
        let (first, mut last) = self.field()?;
        let mut fields = vec![first];
        while !last && let Some(next) = self.field() {
            fields.push(next.0);
            last = next.1;
        }
        Some(fields)
    }
}

/// Whether a field says this, as it stands in the file with what ends it.
fn is_written_as(text: &str, raw: &str) -> bool {
    let raw = raw.trim_end_matches([',', '\r', '\n']);
    raw == text && !raw.contains('"') || raw == format!("\"{}\"", text.replace('"', "\"\""))
}

pub fn read(file: &Arc<str>, text: &str, rows: &mut Rows, faults: &mut Faults) {
    let spot = |line, column| Spot { file: file.clone(), line, column };
    let mut reader = Reader::new(text);
    let Some(head) = reader.record() else {
        return faults.add(&spot(1, 1), "", "the file is empty; its first line names the columns");
    };
    if let Some(wrong) = head.iter().find(|field| field.wrong) {
        return faults.add(&spot(wrong.line, wrong.column), "", WRONG_QUOTE);
    }
    let names: Vec<&str> = head.iter().map(|field| field.text.trim()).collect();
    let Some(kind) = Kind::of(names.iter().copied()) else { return faults.add(&spot(1, 1), "", NO_KIND) };
    for (field, name) in head.iter().zip(&names) {
        kind.check_field(&spot(field.line, field.column), name, faults);
        if names.iter().filter(|other| other == &name).count() > 1 {
            faults.add(&spot(field.line, field.column), name, "the column is there twice");
        }
    }
    while let Some(record) = reader.record() {
        // Everything behind it would be wrong as well.
        if let Some(wrong) = record.iter().find(|field| field.wrong) {
            return faults.add(&spot(wrong.line, wrong.column), "", WRONG_QUOTE);
        }
        let at = spot(record[0].line, record[0].column);
        if record.len() == 1 && record[0].text.trim().is_empty() {
            continue;
        }
        if record.len() != names.len() {
            let why = format!("{} fields, but {} columns are named", record.len(), names.len());
            faults.add(&at, "", why);
            continue;
        }
        let fields: BTreeMap<_, _> = names
            .iter()
            .zip(record)
            .filter(|(_, field)| !field.text.is_empty())
            .map(|(name, field)| ((*name).to_owned(), (spot(field.line, field.column), field.text.into())))
            .collect();
        add(kind, Raw { at, fields }, rows, faults);
    }
}
