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

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> (Rows, Vec<String>) {
        let (mut rows, mut faults) = (Rows::default(), Faults::default());
        read(&"f.csv".into(), text, &mut rows, &mut faults);
        (rows, faults.0.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_mark_of_the_byte_order_is_no_part_of_the_first_column() {
        let (rows, faults) = told("\u{feff}part_number,description\nA,one\n");
        assert_eq!((rows.items.len(), faults), (1, Vec::new()));
        assert_eq!(told("\u{feff}part_number,\"de\"scription\nA,one\n").1.len(), 1);
    }

    #[test]
    fn quotes_line_breaks_and_empty_fields() {
        let (rows, faults) = told(
            "part_number,description,projects,properties.mass\r\nA,\"one, \"\"two\"\"\nthree\",P1;P2,\r\n\r\nB,,,2\n",
        );
        assert_eq!(faults, Vec::<String>::new());
        assert_eq!(rows.items[0].description.as_deref(), Some("one, \"two\"\nthree"));
        assert_eq!(rows.items[0].projects.as_deref(), Some(&["P1".to_owned(), "P2".into()][..]));
        assert_eq!((rows.items[1].at.line, rows.items[1].description.is_none()), (5, true));
        assert_eq!(rows.items[1].properties.as_ref().unwrap()["mass"], "2");
    }

    #[test]
    fn mistakes_are_told_with_their_places() {
        for (text, expected) in [
            ("", "f.csv:1:1: the file is empty; its first line names the columns"),
            ("a,b\n1,2\n", "f.csv:1:1: these are neither items"),
            ("part_number,colour\nA,red\n", "f.csv:1:13: colour: unknown; a row of this kind has part_number"),
            ("part_number,schema,schema\n", "f.csv:1:13: schema: the column is there twice"),
            ("part_number,schema\nA\n", "f.csv:2:1: 1 fields, but 2 columns are named"),
            ("part_number,schema\nA,\"x\n", "f.csv:2:3: a quote is wrong"),
            ("part_number,schema\nA,\"x\"y\n", "f.csv:2:3: a quote is wrong"),
            ("part_number,schema\nA,x\"y\n", "f.csv:2:3: a quote is wrong"),
            ("part_number,item_type\nA,Part\n", "f.csv:2:3: item_type: \"Part\" is no item type"),
            ("item_type,part_number\npart,\n", "f.csv:2:1: part_number: is missing"),
            ("parent_part_number,child_part_number,quantity\nA,B,many\n", "f.csv:2:5: quantity: must be a number"),
            ("parent_part_number,child_part_number,quantity\nA,B,0\n", "f.csv:2:5: quantity: must be more than 0"),
            ("parent_part_number,child_part_number,rel_type\nA,B,x\n", "f.csv:2:5: rel_type: \"x\" is none of"),
            ("part_number,revision_number\nA,1.5\n", "f.csv:2:3: revision_number: must be a whole number"),
            ("part_number,properties\nA,{\n", "f.csv:2:3: properties: must be a JSON object"),
            ("code\nlow\n", "f.csv:2:1: code: \"low\" is no project code"),
        ] {
            let (rows, faults) = told(text);
            assert!(faults.first().is_some_and(|told| told.starts_with(expected)), "{text:?}: {faults:?}");
            assert_eq!(rows.items.iter().filter(|item| item.part == "A" && item.item_type.is_some()).count(), 0);
        }
    }
}
