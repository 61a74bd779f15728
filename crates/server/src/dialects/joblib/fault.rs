//! What is wrong with a request, in the form of the original's validator: where, what kind of fault, and what stood there.

use serde::Serialize;
use serde_json::{Value, json};
use windlass_api::Uuid;

/// What stood there is repeated up to this length.
pub const INPUT_BYTES_MAX: usize = 1_000;

/// In a box, because it travels in results that are good most of the time.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Fault(Box<FaultBody>);

#[derive(Clone, Debug, Serialize)]
struct FaultBody {
    #[serde(rename = "type")]
    kind: &'static str,
    loc: Vec<Value>,
    msg: String,
    input: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    ctx: Option<Value>,
}

impl Fault {
    pub fn new(kind: &'static str, loc: &[&str], msg: impl Into<String>, input: Value) -> Self {
        let loc = loc.iter().map(|part| json!(part)).collect();
        let input = if input.to_string().len() <= INPUT_BYTES_MAX { input } else { Value::Null };
        Self(Box::new(FaultBody { kind, loc, msg: msg.into(), input, ctx: None }))
    }
    pub fn ctx(mut self, ctx: Value) -> Self {
        self.0.ctx = Some(ctx);
        self
    }
    /// Nothing of what stood there is repeated.
    pub fn hidden(mut self) -> Self {
        self.0.input = Value::Null;
        self
    }

    pub fn missing(loc: &[&str], input: Value) -> Self {
        Self::new("missing", loc, "Field required", input)
    }
    /// Something that has the right form and still cannot be taken.
    pub fn value(loc: &[&str], why: impl Into<String>) -> Self {
        let why = why.into();
        let msg = format!("Value error, {why}");
        Self::new("value_error", loc, msg, Value::Null).ctx(json!({"error": why}))
    }
    pub fn json(at: usize, why: impl Into<String>) -> Self {
        let mut fault = Self::new("json_invalid", &["body"], "JSON decode error", json!({}));
        fault.0.loc.push(json!(at));
        fault.ctx(json!({"error": why.into()}))
    }
    /// One of a few words. `words` as people list them: `'a', 'b' or 'c'`.
    pub fn word(loc: &[&str], words: &[&str], input: Value) -> Self {
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let expected = match quoted.as_slice() {
            [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            all => all.concat(),
        };
        Self::new("enum", loc, format!("Input should be {expected}"), input).ctx(json!({"expected": expected}))
    }
}

pub fn uuid(loc: &[&str], text: &str) -> Result<Uuid, Fault> {
    Uuid::parse_str(text).map_err(|error| {
        let msg = format!("Input should be a valid UUID, {error}");
        Fault::new("uuid_parsing", loc, msg, json!(text)).ctx(json!({"error": error.to_string()}))
    })
}

/// A whole number within bounds, as text.
pub fn number(loc: &[&str], text: &str, least: u64, most: u64) -> Result<u64, Fault> {
    let parsed: i128 = text.trim().parse().map_err(|_| {
        let msg = "Input should be a valid integer, unable to parse string as an integer";
        Fault::new("int_parsing", loc, msg, json!(text))
    })?;
    if parsed < i128::from(least) {
        let msg = format!("Input should be greater than or equal to {least}");
        return Err(Fault::new("greater_than_equal", loc, msg, json!(text)).ctx(json!({"ge": least})));
    }
    if parsed > i128::from(most) {
        let msg = format!("Input should be less than or equal to {most}");
        return Err(Fault::new("less_than_equal", loc, msg, json!(text)).ctx(json!({"le": most})));
    }
    Ok(parsed as u64)
}
