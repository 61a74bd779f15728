//! Whether a schema can be compiled and checked within limits, found out before either is begun.

use crate::problem::Problem;
use serde_json::Value;
use std::{borrow::Cow, collections::HashMap};
use windlass_plan::pattern;

/// Parts of a schema, keywords and values alike.
const PARTS_MAX: usize = 50_000;
const DEPTH_MAX: usize = 64;
const PATTERNS_MAX: usize = 100;
/// KiB of compiled patterns in all.
const PATTERNS_KIB_MAX: u64 = 4_096;
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Pointers to the parts of a schema that have names.
pub type Anchors = HashMap<String, String>;

/// What was found out about a schema.
pub struct Fit {
    pub anchors: Anchors,
    /// Memory it takes when it is compiled, about.
    pub bytes: usize,
}

pub fn check(field: &str, schema: &Value) -> Result<Fit, Problem> {
    let draft4 = schema["$schema"].as_str().is_some_and(|name| name.contains("draft-04"));
    let mut look = Look { field, draft4, ..Look::default() };
    look.schema(schema, true)?;
    let dangling = look.references.iter().find(|(name, _)| target(schema, &look.anchors, name).is_none());
    if let Some((name, at)) = dangling {
        return Err(Problem::invalid(format!("{field}{at}"), format!("{name:?} leads nowhere in this schema")));
    }
    Ok(Fit { bytes: 200 * look.parts + 2_048 * look.patterns_kib as usize, anchors: look.anchors })
}

/// A pattern as the library reads it: in schemas `\d` and `\w` are of ASCII.
pub fn ascii(text: &str) -> Cow<'_, str> {
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

/// What a reference within a schema names.
pub fn target<'a>(root: &'a Value, anchors: &Anchors, reference: &str) -> Option<&'a Value> {
    let name = reference.strip_prefix('#')?;
    match name.chars().next() {
        None => Some(root),
        Some('/') => root.pointer(&decoded(name)),
        Some(_) => root.pointer(anchors.get(name)?),
    }
}

/// References are parts of addresses, in which some characters are written `%25`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = (*first == b'%').then(|| tail.get(..2)).flatten().and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[derive(Default)]
struct Look<'a> {
    field: &'a str,
    draft4: bool,
    parts: usize,
    patterns: usize,
    patterns_kib: u64,
    anchors: Anchors,
    references: Vec<(String, String)>,
    path: Vec<String>,
}

impl Look<'_> {
    fn at(&self) -> String {
        self.path.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect()
    }

    fn refuse<T>(&self, why: impl Into<String>) -> Result<T, Problem> {
        Err(Problem::invalid(format!("{}{}", self.field, self.at()), why))
    }

    fn count(&mut self) -> Result<(), Problem> {
        self.parts += 1;
        if self.parts > PARTS_MAX {
            return self.refuse(format!("a schema may have {PARTS_MAX} parts, not more"));
        }
        if self.path.len() > DEPTH_MAX {
            return self.refuse(format!("a schema may be nested {DEPTH_MAX} levels deep, not deeper"));
        }
        Ok(())
    }

    fn within<T>(&mut self, name: &str, look: impl FnOnce(&mut Self) -> Result<T, Problem>) -> Result<T, Problem> {
        self.path.push(name.to_owned());
        let found = look(self)?;
        self.path.pop();
        Ok(found)
    }

    /// Whatever a keyword holds; where it could hold schemas, it is taken for one.
    fn schema(&mut self, value: &Value, root: bool) -> Result<(), Problem> {
        self.count()?;
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

    fn keyword(&mut self, name: &str, sub: &Value, root: bool) -> Result<(), Problem> {
        match (name, sub) {
            ("enum" | "const" | "default" | "examples", data) => self.data(data),
            ("properties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies", Value::Object(named)) => {
                self.named(named)
            }
            ("patternProperties", Value::Object(named)) => {
                for pattern in named.keys() {
                    self.within(pattern, |look| look.pattern(pattern))?;
                }
                self.named(named)
            }
            ("pattern", Value::String(pattern)) => self.pattern(pattern),
            ("$anchor" | "$dynamicAnchor", Value::String(anchor)) => self.anchor(anchor),
            ("$id", Value::String(_)) if !root => self.refuse("$id may stand at the root of a schema only"),
            ("id", Value::String(_)) if self.draft4 && !root => {
                self.refuse("id may stand at the root of a schema only")
            }
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

    fn named(&mut self, named: &serde_json::Map<String, Value>) -> Result<(), Problem> {
        for (name, sub) in named {
            self.within(name, |look| look.schema(sub, false))?;
        }
        Ok(())
    }

    /// Values that are no schemas.
    fn data(&mut self, value: &Value) -> Result<(), Problem> {
        self.count()?;
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.within("-", |look| look.data(item))),
            Value::Object(fields) => fields.values().try_for_each(|field| self.within("-", |look| look.data(field))),
            _ => Ok(()),
        }
    }

    fn anchor(&mut self, anchor: &str) -> Result<(), Problem> {
        let holder = self.path[..self.path.len() - 1].to_vec();
        let own = std::mem::replace(&mut self.path, holder);
        let at = self.at();
        self.path = own;
        match self.anchors.insert(anchor.to_owned(), at) {
            Some(_) => self.refuse(format!("the anchor {anchor:?} is there twice")),
            None => Ok(()),
        }
    }

    fn pattern(&mut self, text: &str) -> Result<(), Problem> {
        self.patterns += 1;
        if self.patterns > PATTERNS_MAX {
            return self.refuse(format!("a schema may have {PATTERNS_MAX} patterns, not more"));
        }
        match pattern::get(&ascii(text)) {
            Ok(made) => self.patterns_kib += made.kib(),
            Err(wrong) if wrong.too_large => return self.refuse(&*wrong.why),
            // Schemas have some signs that expressions have not; what is wrong indeed is found when it is compiled.
            Err(_) => self.patterns_kib += 64,
        }
        if self.patterns_kib > PATTERNS_KIB_MAX {
            return self.refuse(format!("the patterns take more than {PATTERNS_KIB_MAX} KiB when they are compiled"));
        }
        Ok(())
    }
}
