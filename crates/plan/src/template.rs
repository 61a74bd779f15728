//! Templates: JSON whose texts may hold `${{ expression }}`.

use crate::{
    expr::Expr,
    meter::{FIELD, Meter, NODE},
    pattern::Written,
    vars::Vars,
};
use serde_json::Value;

const OPEN: &str = "${{";
const CLOSE: &str = "}}";

/// JSON with expressions in its texts. A text that is one expression becomes its value; others become text.
#[derive(Debug)]
pub enum Template {
    Plain(Value),
    One(Box<Expr>),
    Text(Vec<Piece>),
    List(Vec<Template>),
    Map(Vec<(String, Template)>),
}

#[derive(Debug)]
pub enum Piece {
    Text(String),
    Expr(Box<Expr>),
}

impl Template {
    /// The fault comes with the place in the JSON, such as `.to[3]`.
    pub fn new(value: &Value) -> Result<Self, (String, String)> {
        Self::within(value, &mut Written::default())
    }

    /// One of a workflow's templates, whose patterns count together.
    pub fn within(value: &Value, written: &mut Written) -> Result<Self, (String, String)> {
        let made = match value {
            Value::String(text) if text.contains(OPEN) => {
                Self::text(text, written).map_err(|why| (String::new(), why))?
            }
            Value::Array(items) => {
                let item =
                    |(at, item)| Self::within(item, written).map_err(|(path, why)| (format!("[{at}]{path}"), why));
                let items: Vec<Template> = items.iter().enumerate().map(item).collect::<Result<_, _>>()?;
                Template::List(items)
            }
            Value::Object(fields) => {
                let field = |(name, value): (&String, &Value)| {
                    let made = Self::within(value, written).map_err(|(path, why)| (format!(".{name}{path}"), why))?;
                    Ok::<_, (String, String)>((name.clone(), made))
                };
                Template::Map(fields.iter().map(field).collect::<Result<_, _>>()?)
            }
            plain => return Ok(Template::Plain(plain.clone())),
        };
        // What holds no expression is kept as it is.
        Ok(if made.is_plain() { Template::Plain(value.clone()) } else { made })
    }

    fn text(text: &str, written: &mut Written) -> Result<Self, String> {
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some(at) = rest.find(OPEN) {
            let (before, inside) = (&rest[..at], &rest[at + OPEN.len()..]);
            let end = inside.find(CLOSE).ok_or_else(|| format!("{OPEN} has no {CLOSE} behind it"))?;
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            pieces.push(Piece::Expr(Box::new(Expr::within(inside[..end].trim(), written)?)));
            rest = &inside[end + CLOSE.len()..];
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        match <[Piece; 1]>::try_from(pieces) {
            Ok([Piece::Expr(expr)]) => Ok(Template::One(expr)),
            Ok([Piece::Text(text)]) => Ok(Template::Plain(Value::String(text))),
            Err(pieces) => Ok(Template::Text(pieces)),
        }
    }

    pub fn is_plain(&self) -> bool {
        match self {
            Template::Plain(_) => true,
            Template::One(_) | Template::Text(_) => false,
            Template::List(items) => items.iter().all(Template::is_plain),
            Template::Map(fields) => fields.iter().all(|(_, value)| value.is_plain()),
        }
    }

    pub fn each(&self, see: &mut dyn FnMut(&Expr)) {
        match self {
            Template::Plain(_) => {}
            Template::One(expr) => see(expr),
            Template::Text(pieces) => pieces.iter().for_each(|piece| match piece {
                Piece::Expr(expr) => see(expr),
                Piece::Text(_) => {}
            }),
            Template::List(items) => items.iter().for_each(|item| item.each(see)),
            Template::Map(fields) => fields.iter().for_each(|(_, value)| value.each(see)),
        }
    }

    /// What it comes to, charged before it is made.
    pub fn fill(&self, vars: &Vars, meter: &Meter) -> Result<Value, String> {
        Ok(match self {
            Template::Plain(value) => {
                meter.keep(meter.weigh(value)?)?;
                value.clone()
            }
            Template::One(expr) => {
                let value = expr.eval(vars, meter)?;
                meter.keep(meter.weigh(&value)?)?;
                value
            }
            Template::Text(pieces) => {
                let mut text = String::new();
                for piece in pieces {
                    match piece {
                        Piece::Text(plain) => push(&mut text, plain, meter)?,
                        Piece::Expr(expr) => match expr.eval(vars, meter)? {
                            Value::String(value) => push(&mut text, &value, meter)?,
                            other => push(&mut text, &meter.text(&other)?, meter)?,
                        },
                    }
                }
                Value::String(text)
            }
            Template::List(items) => {
                meter.keep(NODE * items.len() as u64)?;
                Value::Array(items.iter().map(|item| item.fill(vars, meter)).collect::<Result<_, _>>()?)
            }
            Template::Map(fields) => {
                let field = |(name, value): &(String, Template)| {
                    meter.keep(FIELD + name.len() as u64)?;
                    Ok((name.clone(), value.fill(vars, meter)?))
                };
                Value::Object(fields.iter().map(field).collect::<Result<_, String>>()?)
            }
        })
    }
}

fn push(text: &mut String, more: &str, meter: &Meter) -> Result<(), String> {
    meter.touch(more.len() as u64)?;
    meter.keep(more.len() as u64)?;
    text.push_str(more);
    Ok(())
}
