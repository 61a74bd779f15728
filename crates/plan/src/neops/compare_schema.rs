//! What changed in the schema of a workflow's parameters: what accepts less breaks callers, what accepts more does not.

use super::compare::{Found, Level, Target, escaped, same};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// How deep properties are compared one by one; below, any change is a change.
const DEPTH_MAX: usize = 16;

pub(super) fn compare(old: &Value, new: &Value, found: &mut Found) {
    level(old, new, &SchemaPath { path: "/parameterSchema".into(), property: None, depth: 0 }, found);
}

struct SchemaPath {
    path: String,
    /// The property of the workflow's input that this is part of.
    property: Option<String>,
    depth: usize,
}

impl SchemaPath {
    fn below(&self, name: &str) -> Self {
        let path = format!("{}/properties/{}", self.path, escaped(name));
        Self { path, property: self.property.clone().or_else(|| Some(name.into())), depth: self.depth + 1 }
    }

    fn tell(&self, found: &mut Found, level: Level, code: &'static str, what: &str) {
        let whose = self.property.as_ref().map_or("the parameters".to_owned(), |name| format!("parameter {name:?}"));
        let target = self.property.clone().map(Target::Property);
        found.add(level, code, self.path.clone(), format!("{whose}: {what}"), target);
    }
}

fn level(old: &Value, new: &Value, at: &SchemaPath, found: &mut Found) {
    let (Some(before), Some(after)) = (old.as_object(), new.as_object()) else {
        if !same(old, new) {
            at.tell(found, Level::Minor, "schemaChanged", "the schema changed");
        }
        return;
    };
    if at.depth < DEPTH_MAX {
        properties(before, after, at, found);
    }
    let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        if ["properties", "required"].contains(&key.as_str()) && at.depth < DEPTH_MAX {
            continue;
        }
        let (one, other) = (before.get(key), after.get(key));
        if !same(one.unwrap_or(&Value::Null), other.unwrap_or(&Value::Null)) {
            let (level, code) = keyword(key, one, other);
            at.tell(found, level, code, &format!("{key} changed"));
        }
    }
}

fn properties(old: &Map<String, Value>, new: &Map<String, Value>, at: &SchemaPath, found: &mut Found) {
    let empty = Map::new();
    let of = |schema: &'_ Map<String, Value>| {
        schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let (before, after) = (of(old), of(new));
    let (needed, needs) = (required(old), required(new));
    for (name, schema) in &before {
        match after.get(name) {
            Some(now) => level(schema, now, &at.below(name), found),
            None => at.below(name).tell(found, Level::Major, "propertyRemoved", "is gone"),
        }
    }
    for (name, schema) in &after {
        let place = at.below(name);
        let has_default = schema.as_object().unwrap_or(&empty).contains_key("default");
        let (was, is) = (needed.contains(name.as_str()), needs.contains(name.as_str()) && !has_default);
        match (before.contains_key(name), was, is) {
            (false, _, true) => place.tell(found, Level::Major, "requiredPropertyAdded", "is new and required"),
            (false, _, false) => place.tell(found, Level::Minor, "propertyAdded", "is new"),
            (true, false, true) => place.tell(found, Level::Major, "propertyRequired", "is required now"),
            (true, true, false) => place.tell(found, Level::Minor, "propertyOptional", "is no longer required"),
            _ => {}
        }
    }
}

fn required(schema: &Map<String, Value>) -> BTreeSet<&str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

const STRICTER: (Level, &str) = (Level::Major, "schemaStricter");
const LOOSER: (Level, &str) = (Level::Minor, "schemaLooser");

/// What a change of one keyword calls for. What is not known is neither harmless nor a break.
fn keyword(key: &str, old: Option<&Value>, new: Option<&Value>) -> (Level, &'static str) {
    match key {
        "title" | "description" | "default" | "examples" | "$schema" | "$id" | "$comment" | "deprecated" => {
            (Level::Patch, "schemaDescribed")
        }
        "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
            bound(old, new, |old, new| new < old)
        }
        "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
            bound(old, new, |old, new| new > old)
        }
        "type" | "enum" => choice(old, new),
        "pattern" | "const" | "format" | "multipleOf" | "uniqueItems" if new.is_some_and(|new| new != false) => {
            STRICTER
        }
        "pattern" | "const" | "format" | "multipleOf" | "uniqueItems" => LOOSER,
        "additionalProperties" if new.is_some_and(|new| new == false) => STRICTER,
        "additionalProperties" if old.is_some_and(|old| old == false) => LOOSER,
        _ => (Level::Minor, "schemaChanged"),
    }
}

fn bound(old: Option<&Value>, new: Option<&Value>, looser: fn(f64, f64) -> bool) -> (Level, &'static str) {
    match (old.and_then(Value::as_f64), new.and_then(Value::as_f64)) {
        (_, None) => LOOSER,
        (Some(old), Some(new)) if looser(old, new) => LOOSER,
        _ => STRICTER,
    }
}

/// Types and enumerations: more to choose from is looser. An integer is a number too.
fn choice(old: Option<&Value>, new: Option<&Value>) -> (Level, &'static str) {
    let (Some(old), Some(new)) = (old, new) else { return if new.is_none() { LOOSER } else { STRICTER } };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
    let new = list(new);
    let kept = |value: &Value| new.contains(value) || (value == "integer" && new.iter().any(|new| new == "number"));
    if list(old).iter().all(kept) { LOOSER } else { STRICTER }
}
