//! Defaults that a schema has for what is left out: of properties, at any depth, through references within the schema.

use serde_json::Value;

const DEPTH_MAX: usize = 32;
/// What may be filled in, in parts of JSON: a small schema can ask for a lot in every item of a long list.
const PARTS_MAX: usize = 100_000;
/// The same where it has to be done in a moment.
const PARTS_HERE: usize = 1_000;

/// Fills them in. Err: that would be too much.
pub fn fill(schema: &Value, value: &mut Value) -> Result<(), &'static str> {
    Filling { root: schema, left: PARTS_MAX }.visit(schema, value, 0)
}

/// The same. None: it would take longer than a moment, and the value is filled in part.
pub fn fill_here(schema: &Value, value: &mut Value) -> Option<()> {
    Filling { root: schema, left: PARTS_HERE }.visit(schema, value, 0).ok()
}

struct Filling<'a> {
    root: &'a Value,
    left: usize,
}

impl<'a> Filling<'a> {
    fn visit(&mut self, schema: &'a Value, value: &mut Value, depth: usize) -> Result<(), &'static str> {
        if depth > DEPTH_MAX {
            return Ok(());
        }
        self.spend(1)?;
        if let Some(there) = schema["$ref"].as_str().and_then(|to| self.root.pointer(to.strip_prefix('#')?)) {
            self.visit(there, value, depth + 1)?;
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.visit(part, value, depth + 1)?;
        }
        match value {
            Value::Object(fields) => {
                for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                    if let (None, Some(default)) = (fields.get(name), schema.get("default")) {
                        self.spend(parts(default))?;
                        fields.insert(name.clone(), default.clone());
                    }
                    if let Some(value) = fields.get_mut(name) {
                        self.visit(schema, value, depth + 1)?;
                    }
                }
                Ok(())
            }
            Value::Array(items) if schema["items"].is_object() => {
                items.iter_mut().try_for_each(|item| self.visit(&schema["items"], item, depth + 1))
            }
            _ => Ok(()),
        }
    }

    fn spend(&mut self, parts: usize) -> Result<(), &'static str> {
        self.left = self.left.checked_sub(parts).ok_or("its schema asks for too many defaults")?;
        Ok(())
    }
}

fn parts(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(parts).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(parts).sum::<usize>(),
        Value::String(text) => 1 + text.len() / 64,
        _ => 1,
    }
}
