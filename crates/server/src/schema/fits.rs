//! Whether a schema can be compiled and checked within limits, found out before either is begun.
//!
//! The compiler and the walk that counts a check's steps have to understand a schema in the same way. So whatever could lead
//! them to different places is refused: names within names, other drafts inside, references to what is no schema.

use super::work;
use crate::problem::{Problem, Result};
use serde_json::Value;
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::Arc,
};
use windlass_plan::pattern::{self, Pattern};

/// Parts of a schema, keywords and values alike.
const PARTS_MAX: usize = 50_000;
const DEPTH_MAX: usize = 64;
const PATTERNS_MAX: usize = 100;
/// KiB of compiled patterns in all.
const PATTERNS_KIB_MAX: u64 = 4_096;
const RECURSIVE: &str = "$recursiveRef";
pub const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", RECURSIVE];

/// Where each reference leads, as a pointer into the schema.
pub type Targets = HashMap<String, String>;
/// Patterns by their texts in the schema. None: they have signs that only the compiler of schemas knows.
pub type Patterns = HashMap<String, Option<Arc<Pattern>>>;

/// What was found out about a schema.
pub struct Fit {
    /// The schema without a name of its own, which nothing in it may refer to.
    pub root: Value,
    pub targets: Targets,
    pub patterns: Patterns,
    /// Memory it takes when it is compiled, about.
    pub bytes: usize,
}

pub fn check(field: &str, schema: &Value) -> Result<Fit> {
    let draft = schema["$schema"].as_str().unwrap_or_default();
    let mut look = Look { field, draft, ..Look::default() };
    look.schema(schema, true)?;
    let targets = look.targets()?;
    let mut root = schema.clone();
    if let Value::Object(keywords) = &mut root {
        for name in ["$id", "id"] {
            if keywords.get(name).is_some_and(Value::is_string) {
                keywords.remove(name);
            }
        }
    }
    let units = work::units(&root, &targets).map_err(|why| Problem::invalid(field, why))?;
    let bytes = 400 * (look.parts + units as usize) + 2_048 * look.patterns_kib as usize;
    Ok(Fit { root, targets, patterns: look.patterns, bytes })
}

/// What a keyword holds.
pub enum Holds {
    /// Values that are no schemas.
    Data,
    /// Schemas by names that are no keywords.
    Named,
    /// A schema, or a list of schemas; or something that is treated as if it were.
    Schemas,
}

pub fn holds(keyword: &str) -> Holds {
    match keyword {
        "enum" | "const" | "default" | "examples" => Holds::Data,
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies" => {
            Holds::Named
        }
        _ => Holds::Schemas,
    }
}

/// A pattern as the library reads it: in schemas `\d` and `\w` are of ASCII.
fn ascii(text: &str) -> Cow<'_, str> {
    if !text.contains("\\d") && !text.contains("\\w") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(2 * text.len());
    let mut rest = text.chars();
    while let Some(sign) = rest.next() {
        match (sign, if sign == '\\' { rest.next() } else { None }) {
            ('\\', Some('d')) => out.push_str("[0-9]"),
            ('\\', Some('w')) => out.push_str("[0-9A-Z_a-z]"),
            (sign, next) => {
                out.push(sign);
                out.extend(next);
            }
        }
    }
    Cow::Owned(out)
}

/// References are parts of addresses, in which some characters are written `%25`.
fn decoded(text: &str) -> String {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = match (first, tail) {
            (b'%', [high, low, ..]) => digit(high).zip(digit(low)),
            _ => None,
        };
        bytes.push(hex.map_or(*first, |(high, low)| (high * 16 + low) as u8));
        rest = if hex.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn segment(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// A pointer spelled as we spell them.
fn pointer(text: &str) -> String {
    text.split('/').skip(1).map(|part| segment(&part.replace("~1", "/").replace("~0", "~"))).collect()
}

#[derive(Default)]
struct Look<'a> {
    field: &'a str,
    draft: &'a str,
    parts: usize,
    patterns_kib: u64,
    patterns_seen: usize,
    patterns: Patterns,
    /// Pointers to all that may be referred to, and to those among them that have names.
    schemas: HashSet<String>,
    anchors: HashMap<String, String>,
    references: Vec<(String, String)>,
    path: Vec<String>,
}

impl Look<'_> {
    fn at(&self) -> String {
        self.path.iter().map(|name| segment(name)).collect()
    }

    fn refuse<T>(&self, why: impl Into<String>) -> Result<T> {
        Err(Problem::invalid(format!("{}{}", self.field, self.at()), why))
    }

    fn count(&mut self) -> Result<()> {
        self.parts += 1;
        if self.parts > PARTS_MAX {
            return self.refuse(format!("a schema may have {PARTS_MAX} parts, not more"));
        }
        if self.path.len() > DEPTH_MAX {
            return self.refuse(format!("a schema may be nested {DEPTH_MAX} levels deep, not deeper"));
        }
        Ok(())
    }

    fn within<T>(&mut self, name: &str, look: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.path.push(name.to_owned());
        let found = look(self)?;
        self.path.pop();
        Ok(found)
    }

    /// Whatever a keyword holds; where it could hold schemas, it is taken for one.
    fn schema(&mut self, value: &Value, root: bool) -> Result<()> {
        self.count()?;
        if value.is_object() || value.is_boolean() {
            self.schemas.insert(self.at());
        }
        match value {
            Value::Object(fields) => {
                for (name, sub) in fields {
                    self.within(name, |look| look.keyword(name, sub, root))?;
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.within(&at.to_string(), |look| look.schema(item, false))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn keyword(&mut self, name: &str, sub: &Value, root: bool) -> Result<()> {
        match (holds(name), sub) {
            (Holds::Data, data) => return self.data(data),
            (Holds::Named, Value::Object(named)) => return self.named(name, named),
            _ => {}
        }
        match (name, sub) {
            ("pattern", Value::String(pattern)) => self.pattern(pattern),
            ("$anchor" | "$dynamicAnchor", Value::String(anchor)) => self.anchor(anchor),
            ("$id", Value::String(_)) if !root => self.refuse("$id may stand at the root of a schema only"),
            ("id", Value::String(_)) if !root && self.draft.contains("draft-04") => {
                self.refuse("id may stand at the root of a schema only")
            }
            ("$schema", Value::String(draft)) if *draft != *self.draft => {
                self.refuse("$schema must be the same in all of a schema")
            }
            (RECURSIVE, Value::String(reference)) if reference != "#" => self.refuse("only # can be written here"),
            (keyword, Value::String(reference)) if REFERENCES.contains(&keyword) => {
                if !reference.starts_with('#') {
                    return self.refuse(format!(
                        "{reference:?} leads out of this schema, and nothing is fetched; put it under $defs and write #/$defs/NAME"
                    ));
                }
                self.references.push((reference.clone(), self.at()));
                Ok(())
            }
            (_, other) => self.schema(other, false),
        }
    }

    fn named(&mut self, keyword: &str, named: &serde_json::Map<String, Value>) -> Result<()> {
        for (name, sub) in named {
            self.within(name, |look| {
                if keyword == "patternProperties" {
                    look.pattern(name)?;
                }
                look.schema(sub, false)
            })?;
        }
        Ok(())
    }

    fn data(&mut self, value: &Value) -> Result<()> {
        self.count()?;
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.within("-", |look| look.data(item))),
            Value::Object(fields) => fields.values().try_for_each(|field| self.within("-", |look| look.data(field))),
            _ => Ok(()),
        }
    }

    fn anchor(&mut self, anchor: &str) -> Result<()> {
        let holder = self.path[..self.path.len() - 1].iter().map(|name| segment(name)).collect();
        match self.anchors.insert(anchor.to_owned(), holder) {
            Some(_) => self.refuse(format!("the anchor {anchor:?} is there twice")),
            None => Ok(()),
        }
    }

    /// A reference to anything but a schema would have that compiled without anybody having looked at it.
    fn targets(&self) -> Result<Targets> {
        let mut targets = Targets::new();
        for (reference, at) in &self.references {
            let found = match &reference[1..] {
                "" => Some(String::new()),
                path if path.starts_with('/') => Some(pointer(&decoded(path))),
                anchor => self.anchors.get(anchor).cloned(),
            };
            let Some(found) = found.filter(|found| self.schemas.contains(found)) else {
                let why = format!("{reference:?} leads to no schema in this schema");
                return Err(Problem::invalid(format!("{}{at}", self.field), why));
            };
            targets.insert(reference.clone(), found);
        }
        Ok(targets)
    }

    fn pattern(&mut self, text: &str) -> Result<()> {
        self.patterns_seen += 1;
        if self.patterns_seen > PATTERNS_MAX {
            return self.refuse(format!("a schema may have {PATTERNS_MAX} patterns, not more"));
        }
        let made = match pattern::get(&ascii(text)) {
            Ok(made) => Some(made),
            Err(wrong) if wrong.too_large => return self.refuse(&*wrong.why),
            // Schemas have some signs that expressions have not; what is wrong indeed is found when it is compiled.
            Err(_) => None,
        };
        self.patterns_kib += made.as_ref().map_or(64, |made| made.kib());
        self.patterns.insert(text.to_owned(), made);
        if self.patterns_kib > PATTERNS_KIB_MAX {
            return self.refuse(format!("the patterns take more than {PATTERNS_KIB_MAX} KiB when they are compiled"));
        }
        Ok(())
    }
}
