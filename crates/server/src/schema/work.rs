//! What compiling a schema takes, counted before it is begun.
//!
//! The compiler makes each schema once, whatever refers to it. But for `unevaluatedProperties` and `unevaluatedItems` it
//! follows everything that could have looked at a value already, references too, as often as there are ways to it: thirty
//! short schemas that each refer twice to the next would take it years.

use super::fits::{Holds, REFERENCES, Targets, holds};
use serde_json::{Map, Value};

/// Schemas made in all, and on the ways of one `unevaluated` keyword.
const UNITS_MAX: u64 = 100_000;
const WAYS_MAX: u64 = 5_000;
/// Each level takes its share of a thread's stack.
const DEPTH_MAX: usize = 150;
const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];

pub fn units(root: &Value, targets: &Targets) -> Result<u64, String> {
    let mut work = Work { root, targets, units: 0, ways: 0, depth: 0, open: Vec::new() };
    work.schema(root)?;
    Ok(work.units)
}

struct Work<'a> {
    root: &'a Value,
    targets: &'a Targets,
    units: u64,
    /// Of the `unevaluated` keyword that is being followed.
    ways: u64,
    depth: usize,
    /// What is being followed, so that circles end.
    open: Vec<*const Value>,
}

impl<'a> Work<'a> {
    fn count(&mut self) -> Result<(), String> {
        self.units += 1;
        self.ways += 1;
        if self.units > UNITS_MAX {
            return Err(format!(
                "compiling this schema would take more than {UNITS_MAX} steps, the most that it may take"
            ));
        }
        if !self.open.is_empty() && self.ways > WAYS_MAX {
            return Err(format!(
                "unevaluatedProperties or unevaluatedItems would have more than {WAYS_MAX} ways to follow; \
                 refer to fewer schemas beside it"
            ));
        }
        Ok(())
    }

    fn deeper(&mut self, look: impl FnOnce(&mut Self) -> Result<(), String>) -> Result<(), String> {
        if self.depth == DEPTH_MAX {
            return Err(format!(
                "references and schemas beside unevaluatedProperties are more than {DEPTH_MAX} levels deep"
            ));
        }
        self.depth += 1;
        look(self)?;
        self.depth -= 1;
        Ok(())
    }

    /// One schema and all that is in it.
    fn schema(&mut self, schema: &'a Value) -> Result<(), String> {
        self.count()?;
        match schema {
            Value::Object(keywords) => self.deeper(|work| work.keywords(schema, keywords)),
            Value::Array(items) => items.iter().try_for_each(|item| self.schema(item)),
            _ => Ok(()),
        }
    }

    fn keywords(&mut self, schema: &'a Value, keywords: &'a Map<String, Value>) -> Result<(), String> {
        for (name, sub) in keywords {
            match (holds(name), sub) {
                (Holds::Data, _) => {}
                (Holds::Named, Value::Object(named)) => named.values().try_for_each(|sub| self.schema(sub))?,
                _ => self.schema(sub)?,
            }
        }
        for _ in UNEVALUATED.iter().filter(|name| keywords.get(**name).is_some_and(|sub| *sub != Value::Bool(true))) {
            let before = std::mem::take(&mut self.ways);
            self.ways_of(schema)?;
            self.ways = before;
        }
        Ok(())
    }

    /// All that could have looked at the same value.
    fn ways_of(&mut self, schema: &'a Value) -> Result<(), String> {
        self.count()?;
        let Value::Object(keywords) = schema else { return Ok(()) };
        if self.open.contains(&std::ptr::from_ref(schema)) {
            return Ok(());
        }
        self.open.push(schema);
        self.deeper(|work| keywords.iter().try_for_each(|(name, sub)| work.beside(name, sub)))?;
        self.open.pop();
        Ok(())
    }

    fn beside(&mut self, name: &str, sub: &'a Value) -> Result<(), String> {
        match (name, sub) {
            ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => all.iter().try_for_each(|sub| self.both(sub)),
            ("if" | "then" | "else", _) => self.both(sub),
            ("dependentSchemas" | "dependencies", Value::Object(named)) => {
                named.values().try_for_each(|sub| self.both(sub))
            }
            ("properties" | "patternProperties", Value::Object(named)) => named.values().try_for_each(|_| self.count()),
            (
                "additionalProperties"
                | "unevaluatedProperties"
                | "items"
                | "prefixItems"
                | "additionalItems"
                | "contains"
                | "unevaluatedItems",
                _,
            ) => self.schema(sub),
            (name, Value::String(reference)) if REFERENCES.contains(&name) => {
                let target = self.targets.get(reference).and_then(|pointer| self.root.pointer(pointer));
                target.map_or(Ok(()), |target| self.ways_of(target))
            }
            _ => Ok(()),
        }
    }

    fn both(&mut self, sub: &'a Value) -> Result<(), String> {
        self.schema(sub)?;
        self.ways_of(sub)
    }
}
