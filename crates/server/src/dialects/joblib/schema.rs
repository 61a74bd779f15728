//! Whether two schemas are the same: as values, whatever the order of their keys and however their numbers are written.

use serde_json::{Value, value::RawValue};
use sha2::{Digest, Sha256};

/// The same for equal schemas and for no others.
pub fn print(schema: &RawValue) -> String {
    let value: Value = serde_json::from_str(schema.get()).unwrap_or_default();
    let mut normal = String::with_capacity(schema.get().len());
    write(&value, &mut normal);
    windlass_api::hex(&Sha256::digest(normal))
}

fn write(value: &Value, into: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort();
            into.push('{');
            for name in names {
                into.push_str(&Value::from(name.as_str()).to_string());
                into.push(':');
                write(&fields[name], into);
                into.push(',');
            }
            into.push('}');
        }
        Value::Array(items) => {
            into.push('[');
            for item in items {
                write(item, into);
                into.push(',');
            }
            into.push(']');
        }
        Value::Number(number) => into.push_str(&number_of(number)),
        other => into.push_str(&other.to_string()),
    }
}

/// `1.0` and `1` are one number.
fn number_of(number: &serde_json::Number) -> String {
    match number.as_f64() {
        Some(whole) if number.is_f64() && whole.fract() == 0.0 && whole.abs() < 9e15 => (whole as i64).to_string(),
        _ => number.to_string(),
    }
}
