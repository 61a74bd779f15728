//! A run's input, put together from `--input`: whole objects, and single members, whose text is read as the workflow's
//! `input_schema` says.

use anyhow::{bail, ensure};
use serde_json::{Map, Value};
use windlass_api::RawValue;

/// How far `$ref` is followed.
const REFS_MAX: usize = 8;

/// Whether a schema could say how one of these is meant.
pub fn has_members(texts: &[String]) -> bool {
    texts.iter().any(|text| object(text).is_none())
}

/// Whole objects and single members, later ones over earlier ones.
pub fn input(texts: &[String], schema: Option<&Value>) -> anyhow::Result<Option<Box<RawValue>>> {
    if texts.is_empty() {
        return Ok(None);
    }
    let mut all = Map::new();
    for text in texts {
        if let Some(members) = object(text) {
            all.extend(members);
            continue;
        }
        match text.split_once('=').map(|(name, value)| (name.trim(), value)) {
            Some((name, value)) if !name.is_empty() => {
                all.insert(name.to_owned(), member(name, value, schema)?);
            }
            _ => bail!("--input {text:?} is neither a JSON object nor name=value"),
        }
    }
    Ok(Some(RawValue::from_string(Value::Object(all).to_string())?))
}

fn object(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).ok()
}

/// The member's own schema, without references.
fn schema_of<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let mut found = schema.get("properties")?.get(name)?;
    for _ in 0..REFS_MAX {
        let Some(place) = found.get("$ref").and_then(Value::as_str) else { return Some(found) };
        found = schema.pointer(place.strip_prefix('#')?)?;
    }
    None
}

/// A text that the schema takes for a string is one; for everything else it is JSON. Where the schema does not say, it is JSON if it
/// can be.
fn member(name: &str, text: &str, schema: Option<&Value>) -> anyhow::Result<Value> {
    let schema = schema.and_then(|schema| schema_of(schema, name));
    let json: Option<Value> = serde_json::from_str(text).ok();
    let plain = || Value::String(text.to_owned());
    let types: Vec<&str> = match schema.and_then(|schema| schema.get("type")) {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => {
            let listed = schema.and_then(|schema| schema.get("enum")).and_then(Value::as_array);
            let is_listed = |value: &Value| listed.is_some_and(|listed| listed.contains(value));
            let quoted = json.as_ref().is_some_and(is_listed);
            return Ok(if is_listed(&plain()) && !quoted { plain() } else { json.unwrap_or_else(plain) });
        }
    };
    match json {
        // Also a string in quotes of its own, which is how one says that it is one where the schema leaves it open.
        Some(json) if types.iter().any(|kind| is(&json, kind)) => Ok(json),
        _ if types.contains(&"string") => Ok(plain()),
        _ => {
            let wanted = types.iter().map(|kind| format!("{} {kind}", article(kind))).collect::<Vec<_>>().join(" or ");
            ensure!(!types.is_empty(), "--input {name}={text}: the workflow's input_schema allows no type for {name}");
            bail!(
                "--input {name}={text}: by the workflow's input_schema {name} is {wanted}, and {text:?} is not; for example --input {}",
                example(name, types[0])
            )
        }
    }
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

fn article(kind: &str) -> &'static str {
    if kind.starts_with(['a', 'i', 'o']) { "an" } else { "a" }
}

fn example(name: &str, kind: &str) -> String {
    match kind {
        "integer" => format!("{name}=3"),
        "number" => format!("{name}=1.5"),
        "boolean" => format!("{name}=true"),
        "null" => format!("{name}=null"),
        "array" => format!("'{name}=[\"a\", \"b\"]'"),
        _ => format!("'{name}={{\"a\": 1}}'"),
    }
}
