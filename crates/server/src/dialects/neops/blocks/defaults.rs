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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_left_out_gets_its_default_wherever_it_stands() {
        let schema = json!({
            "properties": {
                "message": {"type": "string"},
                "count": {"default": 1},
                "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null},
                "inner": {"$ref": "#/$defs/inner", "default": {}},
                "list": {"items": {"$ref": "#/$defs/inner"}},
            },
            "$defs": {"inner": {"properties": {"deep": {"default": [1]}}}},
        });
        let table = [
            (json!({}), json!({"count": 1, "maybe": null, "inner": {"deep": [1]}})),
            (
                json!({"count": null, "maybe": "x", "inner": {"deep": 2}, "list": [{}, 3]}),
                json!({"count": null, "maybe": "x", "inner": {"deep": 2}, "list": [{"deep": [1]}, 3]}),
            ),
            (json!([1]), json!([1])),
        ];
        for (mut value, expected) in table {
            fill(&schema, &mut value).unwrap();
            assert_eq!(value, expected);
        }
    }

    #[test]
    fn schemas_that_go_in_circles_or_ask_for_too_much_end() {
        let circle = json!({"$ref": "#", "properties": {"again": {"$ref": "#", "default": {}}}});
        assert!(fill(&circle, &mut json!({})).is_err());
        let much = json!({"items": {"properties": {"x": {"default": vec![0; 1_000]}}}});
        let mut items = Value::Array(vec![json!({}); 200]);
        assert!(fill(&much, &mut items).is_err());
    }
}
