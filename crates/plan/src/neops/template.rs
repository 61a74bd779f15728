//! Texts with `{{ expression }}` in them, at any depth of a step's parameters.

use super::{
    expression::{Expression, skip_quoted},
    scope::Scope,
};
use crate::meter::Meter;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

const OPEN: &str = "{{";
const CLOSE: &str = "}}";
/// Expressions of one value.
const TOKENS_MAX: usize = 1_000;

/// A value in which every text that holds expressions is replaced by what they become.
pub fn fill(value: &Value, scope: &Scope, meter: &Meter) -> Result<Value, String> {
    Filling { scope, meter, left: TOKENS_MAX }.value(value)
}

/// The fields, each filled. Which one could not be is told.
pub fn fill_fields(fields: &Map<String, Value>, scope: &Scope, meter: &Meter) -> Result<Map<String, Value>, String> {
    let mut filling = Filling { scope, meter, left: TOKENS_MAX };
    let field = |(name, value): (&String, &Value)| match filling.value(value) {
        Ok(filled) => Ok((name.clone(), filled)),
        Err(why) => Err(format!("{name}: {why}")),
    };
    fields.iter().map(field).collect()
}

/// Whether a condition holds: it is `true` and nothing else; what cannot be evaluated does not hold. Braces are optional.
/// The error: it takes more than the budget.
pub fn holds(text: &str, scope: &Scope, meter: &Meter) -> Result<bool, String> {
    let text = text.trim();
    let inner = text.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix(CLOSE)).unwrap_or(text);
    match token(inner, scope, meter, false) {
        Err(why) if meter.is_over() => Err(why),
        found => Ok(found == Ok(Value::Bool(true))),
    }
}

/// Adds the names that a value's expressions look for. False: one may look at all there is, or cannot be read.
pub fn names(value: &Value, found: &mut BTreeSet<String>) -> bool {
    match value {
        Value::String(text) => match pieces(text) {
            Ok(pieces) => pieces.iter().all(|piece| match piece {
                Piece::Text(_) => true,
                Piece::Token(token) => names_of(token, found),
            }),
            Err(_) => false,
        },
        Value::Array(items) => items.iter().all(|item| names(item, found)),
        Value::Object(fields) => fields.values().all(|value| names(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

/// The same for a condition or a filter.
pub fn names_of(text: &str, found: &mut BTreeSet<String>) -> bool {
    let text = text.trim();
    let text = text.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix(CLOSE)).unwrap_or(text);
    let (first, second) = alternatives(text);
    let mut known = |text: &str| Expression::new(text.trim()).is_ok_and(|expression| expression.names(found));
    let first = known(first);
    second.is_none_or(known) && first
}

struct Filling<'a> {
    scope: &'a Scope,
    meter: &'a Meter,
    left: usize,
}

impl Filling<'_> {
    fn value(&mut self, value: &Value) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) if text.contains(OPEN) => self.text(text)?,
            Value::Array(items) => {
                let item = |(at, item)| self.value(item).map_err(|why| format!("[{at}]: {why}"));
                Value::Array(items.iter().enumerate().map(item).collect::<Result<_, _>>()?)
            }
            Value::Object(fields) => {
                let field = |(name, value): (&String, &Value)| match self.value(value) {
                    Ok(filled) => Ok((name.clone(), filled)),
                    Err(why) => Err(format!("{name}: {why}")),
                };
                Value::Object(fields.iter().map(field).collect::<Result<_, _>>()?)
            }
            plain => {
                self.meter.keep(self.meter.weigh(plain)?)?;
                plain.clone()
            }
        })
    }

    fn text(&mut self, text: &str) -> Result<Value, String> {
        let pieces = pieces(text)?;
        let tokens = pieces.iter().filter(|piece| matches!(piece, Piece::Token(_))).count();
        self.left = self.left.checked_sub(tokens).ok_or(format!("more than {TOKENS_MAX} expressions"))?;
        if let [Piece::Token(one)] = pieces[..] {
            return token(one, self.scope, self.meter, false);
        }
        let mut made = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => self.push(&mut made, text)?,
                Piece::Token(expression) => match token(expression, self.scope, self.meter, true)? {
                    Value::String(text) => self.push(&mut made, &text)?,
                    other => {
                        self.meter.keep(self.meter.json_bytes(&other)?)?;
                        made.push_str(&other.to_string());
                    }
                },
            }
        }
        Ok(Value::String(made))
    }

    fn push(&self, made: &mut String, more: &str) -> Result<(), String> {
        self.meter.touch(more.len() as u64)?;
        self.meter.keep(more.len() as u64)?;
        made.push_str(more);
        Ok(())
    }
}

/// What one expression becomes. Inside a text, null is an error; only an error is replaced by the fallback, and not one that
/// took more than the budget.
fn token(text: &str, scope: &Scope, meter: &Meter, embedded: bool) -> Result<Value, String> {
    let search = |text: &str| {
        let text = text.trim();
        match Expression::new(text)?.search(scope, meter)? {
            Value::Null if embedded => Err(format!("{text:?} is null inside a text")),
            found => Ok(found),
        }
    };
    match alternatives(text) {
        (first, None) => search(first),
        (first, Some(second)) => search(first).or_else(|why| if meter.is_over() { Err(why) } else { search(second) }),
    }
}

enum Piece<'a> {
    Text(&'a str),
    Token(&'a str),
}

fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let (mut made, mut rest) = (Vec::new(), text);
    while let Some(open) = rest.find(OPEN) {
        if open > 0 {
            made.push(Piece::Text(&rest[..open]));
        }
        let inner = &rest[open + OPEN.len()..];
        let end = close(inner).ok_or_else(|| format!("{OPEN} has no {CLOSE}"))?;
        made.push(Piece::Token(&inner[..end]));
        rest = &inner[end + CLOSE.len()..];
    }
    if !rest.is_empty() {
        made.push(Piece::Text(rest));
    }
    Ok(made)
}

/// Where the expression ends: at the first `}}` that closes nothing inside it.
fn close(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    places(text, |at, rest| match rest.as_bytes()[0] {
        b'{' => {
            open += 1;
            None
        }
        b'}' if open > 0 => {
            open -= 1;
            None
        }
        b'}' if rest.starts_with(CLOSE) => Some(at),
        _ => None,
    })
}

/// An expression, and what replaces it. `!!` in front of an operand is a double negation and belongs to it.
fn alternatives(text: &str) -> (&str, Option<&str>) {
    let mut operand = false;
    let found = places(text, |at, rest| {
        if rest.starts_with("!!") && operand {
            return Some(at);
        }
        let byte = rest.as_bytes()[0];
        if !byte.is_ascii_whitespace() {
            operand = !b"([{,:|&<>=!?".contains(&byte);
        }
        None
    });
    match found {
        Some(at) => (&text[..at], Some(&text[at + 2..])),
        None => (text, None),
    }
}

/// Goes over what is not quoted until something is found. Quoted parts are seen as their first mark.
fn places<T>(text: &str, mut see: impl FnMut(usize, &str) -> Option<T>) -> Option<T> {
    let mut bytes = text.bytes();
    loop {
        let at = text.len() - bytes.len();
        let byte = bytes.next()?;
        if text.is_char_boundary(at)
            && let Some(found) = see(at, &text[at..])
        {
            return Some(found);
        }
        if matches!(byte, b'\'' | b'"' | b'`') {
            skip_quoted(&mut bytes, byte);
        }
    }
}
