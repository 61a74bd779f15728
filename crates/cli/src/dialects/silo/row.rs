//! Rows as the files have them, with the places they are at, and what they mean.

use super::{csv, json};
use crate::{files, output::clean};
use anyhow::bail;
use serde_json::{Map, Value};
use std::{collections::BTreeMap, fmt, path::Path, sync::Arc};
use windlass_api::{count_of, item::Relation};
use windlass_product::rules::item as rules;

/// Where something stands in a file; lines and columns count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    pub file: Arc<str>,
    pub line: usize,
    pub column: usize,
}

/// A mistake, and where it is.
#[derive(Clone, Debug)]
pub struct Fault {
    at: Spot,
    field: String,
    why: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spot { file, line, column } = &self.at;
        let field = if self.field.is_empty() { String::new() } else { format!("{}: ", self.field) };
        write!(f, "{file}:{line}:{column}: {field}{}", clean(&self.why))
    }
}

#[derive(Default)]
pub struct Faults(pub Vec<Fault>);

impl Faults {
    pub fn add(&mut self, at: &Spot, field: &str, why: impl Into<String>) {
        self.0.push(Fault { at: at.clone(), field: field.to_owned(), why: why.into() });
    }
}

/// A row before anybody knows what it is: fields by name, each with its place. Empty ones are left out.
pub struct Raw {
    pub at: Spot,
    pub fields: BTreeMap<String, (Spot, Value)>,
}

pub struct Item {
    pub at: Spot,
    pub part: String,
    pub item_type: Option<String>,
    pub schema: Option<String>,
    pub category: Option<String>,
    pub description: Option<String>,
    pub properties: Option<Map<String, Value>>,
    pub projects: Option<Vec<String>>,
}

pub struct Revision {
    pub at: Spot,
    pub part: String,
    pub number: u32,
    pub comment: Option<String>,
    pub properties: Option<Map<String, Value>>,
}

pub struct Bom {
    pub at: Spot,
    pub parent: String,
    pub child: String,
    pub quantity: Option<f64>,
    pub relation: Option<Relation>,
    pub unit: Option<String>,
    pub designators: Option<Vec<String>>,
}

pub struct Project {
    pub at: Spot,
    pub code: String,
    pub name: Option<String>,
    pub description: Option<String>,
}

#[derive(Default)]
pub struct Rows {
    pub items: Vec<Item>,
    pub revisions: Vec<Revision>,
    pub bom: Vec<Bom>,
    pub projects: Vec<Project>,
}

impl Rows {
    pub fn count(&self) -> usize {
        self.items.len() + self.revisions.len() + self.bom.len() + self.projects.len()
    }

    pub fn told(&self) -> String {
        let counts = [
            (self.items.len(), "item"),
            (self.revisions.len(), "revision"),
            (self.bom.len(), "BOM row"),
            (self.projects.len(), "project"),
        ];
        counts.map(|(count, one)| count_of(count, one)).join(", ")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Item,
    Revision,
    Bom,
    Project,
}

/// Columns that only a server writes: files that were read from one have them.
const PASSED_OVER: [&str; 14] = [
    "id",
    "item_id",
    "current_revision",
    "revision",
    "created_at",
    "created_by",
    "updated_at",
    "updated_by",
    "child_description",
    "child_item_type",
    "child_revision",
    "source",
    "level",
    "triggered_jobs",
];

impl Kind {
    /// What rows with these fields are.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str> + Clone) -> Option<Self> {
        let has = |wanted: &str| names.clone().into_iter().any(|name| name == wanted);
        match () {
            () if has("parent_part_number") && has("child_part_number") => Some(Kind::Bom),
            () if has("part_number") && has("revision_number") => Some(Kind::Revision),
            () if has("part_number") => Some(Kind::Item),
            () if has("code") => Some(Kind::Project),
            () => None,
        }
    }

    fn fields(self) -> &'static [&'static str] {
        match self {
            Kind::Item => &["part_number", "item_type", "schema", "category", "description", "properties", "projects"],
            Kind::Revision => &["part_number", "revision_number", "comment", "properties"],
            Kind::Bom => {
                &["parent_part_number", "child_part_number", "quantity", "rel_type", "unit", "reference_designators"]
            }
            Kind::Project => &["code", "name", "description"],
        }
    }

    pub fn check_field(self, at: &Spot, name: &str, faults: &mut Faults) {
        let own = matches!(self, Kind::Item | Kind::Revision) && name.starts_with("properties.");
        if !(own || self.fields().contains(&name) || PASSED_OVER.contains(&name)) {
            faults.add(at, name, format!("unknown; a row of this kind has {}", self.fields().join(", ")));
        }
    }
}

pub const NO_KIND: &str = "these are neither items (part_number), revisions (part_number, revision_number), \
    BOM rows (parent_part_number, child_part_number) nor projects (code)";

/// The largest file that is read.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Reads one file.
pub fn read(file: &Path, rows: &mut Rows, faults: &mut Faults) -> anyhow::Result<()> {
    let name: Arc<str> = file.display().to_string().into();
    let text = files::read_text(file, FILE_BYTES_MAX)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("csv") => csv::read(&name, text, rows, faults),
        Some("json") => json::read(&name, text, rows, faults),
        _ => bail!("{name} is neither .csv nor .json; its name has to say what it is"),
    }
    Ok(())
}

/// Takes a row for what it is.
pub fn add(kind: Kind, raw: Raw, rows: &mut Rows, faults: &mut Faults) {
    let before = faults.0.len();
    let mut take = Take { raw: &raw, faults };
    match kind {
        Kind::Item => {
            let row = Item {
                at: raw.at.clone(),
                part: take.name("part_number"),
                item_type: take.checked("item_type", rules::check_item_type),
                schema: take.checked("schema", rules::check_schema),
                category: take.checked("category", rules::check_category),
                description: take.text("description"),
                properties: take.properties(),
                projects: take.list("projects"),
            };
            rows.items.extend((take.faults.0.len() == before).then_some(row));
        }
        Kind::Revision => {
            let row = Revision {
                at: raw.at.clone(),
                part: take.name("part_number"),
                number: take.revision(),
                comment: take.text("comment"),
                properties: take.properties(),
            };
            rows.revisions.extend((take.faults.0.len() == before).then_some(row));
        }
        Kind::Bom => {
            let row = Bom {
                at: raw.at.clone(),
                parent: take.name("parent_part_number"),
                child: take.name("child_part_number"),
                quantity: take.quantity(),
                relation: take.relation(),
                unit: take.text("unit"),
                designators: take.list("reference_designators"),
            };
            rows.bom.extend((take.faults.0.len() == before).then_some(row));
        }
        Kind::Project => {
            let row = Project {
                at: raw.at.clone(),
                code: take.checked("code", rules::check_project_code).unwrap_or_default(),
                name: take.text("name"),
                description: take.text("description"),
            };
            if row.code.is_empty() && take.faults.0.len() == before {
                take.faults.add(&raw.at, "code", "is missing");
            }
            rows.projects.extend((take.faults.0.len() == before).then_some(row));
        }
    }
}

struct Take<'a> {
    raw: &'a Raw,
    faults: &'a mut Faults,
}

impl Take<'_> {
    fn wrong(&mut self, field: &str, why: impl Into<String>) {
        let at = self.raw.fields.get(field).map_or(&self.raw.at, |(at, _)| at);
        self.faults.add(at, field, why);
    }

    fn value(&self, field: &str) -> Option<Value> {
        self.raw.fields.get(field).map(|(_, value)| value.clone()).filter(|value| !value.is_null())
    }

    fn text(&mut self, field: &str) -> Option<String> {
        match self.value(field)? {
            Value::String(text) => Some(text),
            other => {
                self.wrong(field, format!("must be a text, not {other}"));
                None
            }
        }
    }

    fn checked(&mut self, field: &str, check: fn(&str) -> Result<(), windlass_core::Refusal>) -> Option<String> {
        let text = self.text(field)?;
        match check(&text) {
            Ok(()) => Some(text),
            Err(refusal) => {
                let told = refusal.to_string();
                self.wrong(field, told.split_once(": ").map_or(told.clone(), |(_, why)| why.to_owned()));
                None
            }
        }
    }

    /// A part number, which has to be there.
    fn name(&mut self, field: &str) -> String {
        if self.value(field).is_none() {
            self.wrong(field, "is missing");
            return String::new();
        }
        self.checked(field, rules::check_part_number).unwrap_or_default()
    }

    fn list(&mut self, field: &str) -> Option<Vec<String>> {
        match self.value(field)? {
            Value::String(text) => {
                let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
                Some(parts.map(str::to_owned).collect())
            }
            Value::Array(list) if list.iter().all(Value::is_string) => {
                Some(list.into_iter().filter_map(|one| one.as_str().map(str::to_owned)).collect())
            }
            other => {
                self.wrong(field, format!("must be a list of texts, not {other}"));
                None
            }
        }
    }

    /// One JSON object, and single properties beside it.
    fn properties(&mut self) -> Option<Map<String, Value>> {
        let mut found = match self.value("properties") {
            None => None,
            Some(Value::Object(map)) => Some(map),
            Some(Value::String(text)) => match serde_json::from_str(&text) {
                Ok(map) => Some(map),
                Err(error) => {
                    self.wrong("properties", format!("must be a JSON object: {error}"));
                    None
                }
            },
            Some(other) => {
                self.wrong("properties", format!("must be an object, not {other}"));
                None
            }
        };
        for (name, (_, value)) in &self.raw.fields {
            if let Some(name) = name.strip_prefix("properties.") {
                found.get_or_insert_default().insert(name.to_owned(), value.clone());
            }
        }
        found
    }

    fn number(&mut self, field: &str) -> Option<f64> {
        let value = self.value(field)?;
        let number = match &value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        if number.is_none() {
            self.wrong(field, format!("must be a number, not {value}"));
        }
        number
    }

    fn quantity(&mut self) -> Option<f64> {
        let number = self.number("quantity")?;
        if !(number > 0.0 && number.is_finite()) {
            self.wrong("quantity", "must be more than 0");
        }
        Some(number)
    }

    fn revision(&mut self) -> u32 {
        let Some(number) = self.number("revision_number") else {
            if self.value("revision_number").is_none() {
                self.wrong("revision_number", "is missing");
            }
            return 0;
        };
        if number < 1.0 || number.fract() != 0.0 || number > f64::from(u32::MAX) {
            self.wrong("revision_number", "must be a whole number from 1 on");
        }
        number as u32
    }

    fn relation(&mut self) -> Option<Relation> {
        match self.text("rel_type")?.as_str() {
            "component" => Some(Relation::Component),
            "alternate" => Some(Relation::Alternate),
            "reference" => Some(Relation::Reference),
            other => {
                self.wrong("rel_type", format!("{other:?} is none of component, alternate, reference"));
                None
            }
        }
    }
}
