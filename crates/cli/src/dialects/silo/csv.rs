//! CSV as RFC 4180 has it: quotes around fields, doubled inside them, line breaks within. Every field keeps its place.

use super::row::{Faults, Kind, NO_KIND, Raw, Rows, Spot, add};
use std::{collections::BTreeMap, sync::Arc};

struct Field {
    line: usize,
    column: usize,
    text: String,
}

/// Line, column, and what is the matter there.
type Wrong = (usize, usize, &'static str);

struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    line: usize,
    column: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.rest.next()?;
        if next == '\n' {
            (self.line, self.column) = (self.line + 1, 1);
        } else {
            self.column += 1;
        }
        Some(next)
    }

    /// One field and whether the record ends with it; or where a quote is wrong.
    fn field(&mut self) -> Result<(Field, bool), Wrong> {
        let mut field = Field { line: self.line, column: self.column, text: String::new() };
        if self.rest.peek() == Some(&'"') {
            self.next();
            loop {
                match self.next() {
                    None => return Err((field.line, field.column, "a quote is opened and never closed")),
                    Some('"') if self.rest.peek() == Some(&'"') => field.text.extend(self.next()),
                    Some('"') => break,
                    Some(other) => field.text.push(other),
                }
            }
            return match self.next() {
                None | Some('\n') => Ok((field, true)),
                Some('\r') if matches!(self.rest.peek(), None | Some('\n')) => {
                    self.next();
                    Ok((field, true))
                }
                Some(',') => Ok((field, false)),
                Some(_) => Err((self.line, self.column - 1, "a quoted field goes on behind its closing quote")),
            };
        }
        loop {
            match self.next() {
                None | Some('\n') => return Ok((field, true)),
                Some('\r') if matches!(self.rest.peek(), None | Some('\n')) => {}
                Some(',') => return Ok((field, false)),
                Some('"') => return Err((self.line, self.column - 1, "a quote inside a field; put quotes around it")),
                Some(other) => field.text.push(other),
            }
        }
    }

    fn record(&mut self) -> Option<Result<Vec<Field>, Wrong>> {
        self.rest.peek()?;
        let mut fields = Vec::new();
        loop {
            match self.field() {
                Ok((field, last)) => {
                    fields.push(field);
                    if last {
                        return Some(Ok(fields));
                    }
                }
                Err(wrong) => return Some(Err(wrong)),
            }
        }
    }
}

pub fn read(file: &Arc<str>, text: &str, rows: &mut Rows, faults: &mut Faults) {
    let spot = |line, column| Spot { file: file.clone(), line, column };
    let mut reader = Reader { rest: text.chars().peekable(), line: 1, column: 1 };
    let head = match reader.record() {
        Some(Ok(head)) => head,
        Some(Err((line, column, why))) => return faults.add(&spot(line, column), "", why),
        None => return faults.add(&spot(1, 1), "", "the file is empty; its first line names the columns"),
    };
    let names: Vec<&str> = head.iter().map(|field| field.text.trim()).collect();
    let Some(kind) = Kind::of(names.iter().copied()) else { return faults.add(&spot(1, 1), "", NO_KIND) };
    for (field, name) in head.iter().zip(&names) {
        kind.check_field(&spot(field.line, field.column), name, faults);
        if names.iter().filter(|other| other == &name).count() > 1 {
            faults.add(&spot(field.line, field.column), name, "the column is there twice");
        }
    }
    while let Some(record) = reader.record() {
        let record = match record {
            Ok(record) => record,
            // Where a quote is wrong, everything behind it would be.
            Err((line, column, why)) => return faults.add(&spot(line, column), "", why),
        };
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
            ("part_number,schema\nA,\"x\n", "f.csv:2:3: a quote is opened and never closed"),
            ("part_number,schema\nA,\"x\"y\n", "f.csv:2:6: a quoted field goes on behind its closing quote"),
            ("part_number,schema\nA,x\"y\n", "f.csv:2:4: a quote inside a field"),
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
