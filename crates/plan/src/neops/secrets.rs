//! Passwords of entities. Workers find them in the context of their jobs; expressions do not see them, and what people may read of
//! a result has a mask in their place.

use super::entity::{camel, id_of};
use jmespath::{Rcvar, Variable};
use serde_json::Value;
use std::{collections::BTreeMap, sync::LazyLock};

const FIELD: &str = "password";
/// Stands in the place of a password.
pub const MASK: &str = "***";

/// What was masked, each by its place as a JSON pointer.
pub type Masked = BTreeMap<String, Value>;

/// Null wherever it is handed on, and known again by its address where a field of this name is asked for.
static SECRET: LazyLock<Rcvar> = LazyLock::new(|| Rcvar::new(Variable::Null));

fn is_secret(field: &str) -> bool {
    camel(field) == FIELD
}

/// An entity as expressions see it.
pub(super) fn for_expressions(value: &Value) -> Rcvar {
    Rcvar::new(match value {
        Value::Array(items) => Variable::Array(items.iter().map(for_expressions).collect()),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| {
                let seen = if is_secret(name) { SECRET.clone() } else { for_expressions(value) };
                (name.clone(), seen)
            };
            Variable::Object(fields.iter().map(field).collect())
        }
        plain => Variable::try_from(plain).unwrap_or(Variable::Null),
    })
}

/// Whether a value that an expression asked for is one that it may not have.
pub(super) fn is_withheld(value: &Rcvar) -> bool {
    Rcvar::ptr_eq(value, &SECRET)
}

/// What people may see of the entities of a context.
pub fn strip(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(strip),
        Value::Object(fields) => {
            fields.retain(|name, _| !is_secret(name));
            fields.values_mut().for_each(strip);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Passwords stay that are left out of what replaces an entity: a caller who may not see them cannot send them back.
pub fn keep(before: &Value, after: &mut Value) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, old) in before {
                match after.get_mut(name) {
                    Some(new) => keep(old, new),
                    None if is_secret(name) => drop(after.insert(name.clone(), old.clone())),
                    None => {}
                }
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            for new in after {
                let id = id_of(new);
                before.iter().filter(|old| id.is_some() && id_of(old) == id).for_each(|old| keep(old, new));
            }
        }
        _ => {}
    }
}

/// Masks the passwords in the updates of a result: `{"updates": […]}`.
pub fn mask(updates: &mut Value) -> Masked {
    let mut masked = Masked::new();
    let all = updates.get_mut("updates").and_then(Value::as_array_mut);
    for (at, update) in all.into_iter().flatten().enumerate() {
        let sets_one = update.get("path").and_then(Value::as_str).is_some_and(is_secret);
        for part in ["value", "data"] {
            let Some(value) = update.get_mut(part) else { continue };
            let place = format!("/{at}/{part}");
            if sets_one && part == "value" { hide(value, place, &mut masked) } else { walk(value, &place, &mut masked) }
        }
    }
    masked
}

fn walk(value: &mut Value, place: &str, masked: &mut Masked) {
    match value {
        Value::Array(items) => {
            items.iter_mut().enumerate().for_each(|(at, item)| walk(item, &format!("{place}/{at}"), masked));
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let below = format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
                if is_secret(name) { hide(value, below, masked) } else { walk(value, &below, masked) }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// That there is none is no secret.
fn hide(value: &mut Value, place: String, masked: &mut Masked) {
    if !value.is_null() {
        masked.insert(place, std::mem::replace(value, MASK.into()));
    }
}

/// Whether a mask is in any of these.
pub fn has_mask(values: &[Value]) -> bool {
    values.iter().any(|value| match value {
        Value::String(text) => text == MASK,
        Value::Array(items) => has_mask(items),
        Value::Object(fields) => fields.values().any(|value| has_mask(std::slice::from_ref(value))),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    })
}

/// Puts the passwords back into a list of updates.
pub fn unmask(updates: Vec<Value>, masked: Masked) -> Vec<Value> {
    let mut all = Value::Array(updates);
    for (place, value) in masked {
        if let Some(masked) = all.pointer_mut(&place) {
            *masked = value;
        }
    }
    match all {
        Value::Array(updates) => updates,
        _ => Vec::new(),
    }
}
