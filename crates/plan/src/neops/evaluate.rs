//! Evaluates expressions. What each part makes is paid for before it is made, so that no expression takes more memory or work
//! than its budget, however its parts multiply each other.
//!
//! Values share their parts, so a small one may be a very large text: whatever looks at all of a value pays for all of it.

use super::secrets::is_withheld;
use crate::meter::{FIELD, Meter, NODE};
use jmespath::{
    Rcvar, Variable,
    ast::{Ast, Comparator, KeyValuePair},
};
use serde_json::Value;
use std::sync::LazyLock;

/// A place in a list, which may have grown to twice its size.
pub(super) const PLACE: u64 = 16;

static NULL: LazyLock<Rcvar> = LazyLock::new(|| Rcvar::new(Variable::Null));

pub(super) type Evaluated = Result<Rcvar, String>;

pub(super) struct Evaluator<'a> {
    pub text: &'a str,
    pub meter: &'a Meter,
}

impl Evaluator<'_> {
    pub fn value(&self, data: &Rcvar, ast: &Ast) -> Evaluated {
        self.meter.work(1)?;
        let before = self.meter.mark();
        let found = self.part(data, ast)?;
        // What was made on the way to a number or a text is gone.
        let left = match &*found {
            Variable::Null | Variable::Bool(_) | Variable::Number(_) => NODE,
            Variable::String(text) => NODE + text.len() as u64,
            Variable::Array(_) | Variable::Object(_) | Variable::Expref(_) => return Ok(found),
        };
        self.meter.back_to(before + left);
        Ok(found)
    }

    fn part(&self, data: &Rcvar, ast: &Ast) -> Evaluated {
        match ast {
            Ast::Identity { .. } => Ok(data.clone()),
            Ast::Literal { value, .. } => Ok(value.clone()),
            Ast::Field { name, .. } => field(data, name),
            Ast::Index { idx, .. } => Ok(index(data, i64::from(*idx))),
            Ast::Slice { start, stop, step, .. } => self.slice(data, (*start, *stop, *step)),
            Ast::Subexpr { lhs, rhs, .. } => self.value(&self.value(data, lhs)?, rhs),
            Ast::Projection { lhs, rhs, .. } => self.projection(&self.value(data, lhs)?, rhs),
            Ast::Flatten { node, .. } => self.flatten(&self.value(data, node)?),
            Ast::ObjectValues { node, .. } => self.values(&self.value(data, node)?),
            Ast::MultiList { elements, .. } => self.list(data, elements),
            Ast::MultiHash { elements, .. } => self.hash(data, elements),
            Ast::Comparison { comparator, lhs, rhs, .. } => self.compare(data, comparator, lhs, rhs),
            Ast::Not { .. } | Ast::And { .. } | Ast::Or { .. } | Ast::Condition { .. } => self.logic(data, ast),
            Ast::Function { name, args, .. } => self.call(data, name, args),
            Ast::Expref { .. } => Err("an expression after '&' is for functions only".into()),
        }
    }

    fn logic(&self, data: &Rcvar, ast: &Ast) -> Evaluated {
        match ast {
            Ast::Not { node, .. } => {
                let holds = !self.value(data, node)?.is_truthy();
                self.flag(holds)
            }
            Ast::Condition { predicate, then, .. } => match self.value(data, predicate)?.is_truthy() {
                true => self.value(data, then),
                false => Ok(NULL.clone()),
            },
            Ast::And { lhs, rhs, .. } | Ast::Or { lhs, rhs, .. } => {
                let left = self.value(data, lhs)?;
                let goes_on = left.is_truthy() == matches!(ast, Ast::And { .. });
                if goes_on { self.value(data, rhs) } else { Ok(left) }
            }
            other => self.value(data, other),
        }
    }

    fn compare(&self, data: &Rcvar, comparator: &Comparator, lhs: &Ast, rhs: &Ast) -> Evaluated {
        let (left, right) = (self.value(data, lhs)?, self.value(data, rhs)?);
        if left.get_type() == right.get_type() {
            self.look_over(&left)?;
        }
        left.compare(comparator, &right).map_or_else(|| Ok(NULL.clone()), |holds| self.flag(holds))
    }

    fn flag(&self, holds: bool) -> Evaluated {
        self.meter.keep(NODE)?;
        Ok(Rcvar::new(Variable::Bool(holds)))
    }

    /// A list of so many, all of them new.
    pub(super) fn made(&self, items: Vec<Rcvar>) -> Evaluated {
        Ok(Rcvar::new(Variable::Array(items)))
    }

    pub(super) fn room_for(&self, items: usize) -> Result<(), String> {
        self.meter.work(items as u64)?;
        self.meter.keep(NODE + PLACE * items as u64)
    }

    fn projection(&self, list: &Rcvar, each: &Ast) -> Evaluated {
        let Some(items) = list.as_array() else { return Ok(NULL.clone()) };
        let mut made = Vec::new();
        self.meter.keep(NODE)?;
        for item in items {
            let value = self.value(item, each)?;
            if !value.is_null() {
                self.meter.keep(PLACE)?;
                made.push(value);
            }
        }
        self.made(made)
    }

    fn flatten(&self, list: &Rcvar) -> Evaluated {
        let Some(items) = list.as_array() else { return Ok(NULL.clone()) };
        let mut made = Vec::new();
        self.room_for(items.len())?;
        for item in items {
            match item.as_array() {
                Some(inner) => {
                    self.room_for(inner.len())?;
                    made.extend(inner.iter().cloned());
                }
                None => made.push(item.clone()),
            }
        }
        self.made(made)
    }

    fn values(&self, object: &Rcvar) -> Evaluated {
        let Some(fields) = object.as_object() else { return Ok(NULL.clone()) };
        self.room_for(fields.len())?;
        self.made(fields.values().cloned().collect())
    }

    fn list(&self, data: &Rcvar, parts: &[Ast]) -> Evaluated {
        if data.is_null() {
            return Ok(NULL.clone());
        }
        self.room_for(parts.len())?;
        self.made(parts.iter().map(|part| self.value(data, part)).collect::<Result<_, _>>()?)
    }

    fn hash(&self, data: &Rcvar, parts: &[KeyValuePair]) -> Evaluated {
        if data.is_null() {
            return Ok(NULL.clone());
        }
        self.meter.keep(NODE + parts.iter().map(|part| FIELD + part.key.len() as u64).sum::<u64>())?;
        let field = |part: &KeyValuePair| Ok::<_, String>((part.key.clone(), self.value(data, &part.value)?));
        Ok(Rcvar::new(Variable::Object(parts.iter().map(field).collect::<Result<_, _>>()?)))
    }

    fn slice(&self, data: &Rcvar, (start, stop, step): (Option<i32>, Option<i32>, i32)) -> Evaluated {
        let Some(items) = data.as_array() else { return Ok(NULL.clone()) };
        let (len, step) = (items.len() as i64, i64::from(step));
        if step == 0 {
            return Err("the step of a slice must not be 0".into());
        }
        // The first and the last place that there may be, in the direction of the slice.
        let (low, high) = if step > 0 { (0, len) } else { (-1, len - 1) };
        let end = |at: i32| (i64::from(at) + if at < 0 { len } else { 0 }).clamp(low, high);
        let mut at = start.map_or(if step > 0 { low } else { high }, end);
        let stop = stop.map_or(if step > 0 { high } else { low }, end);
        self.room_for(usize::try_from((stop - at) / step).unwrap_or(0) + 1)?;
        let mut made = Vec::new();
        while (step > 0 && at < stop) || (step < 0 && at > stop) {
            made.extend(usize::try_from(at).ok().and_then(|at| items.get(at)).cloned());
            at += step;
        }
        self.made(made)
    }

    /// Pays for looking at all there is in a value.
    pub(super) fn look_over(&self, value: &Variable) -> Result<(), String> {
        self.meter.work(1)?;
        match value {
            Variable::Array(items) => items.iter().try_for_each(|item| self.look_over(item)),
            Variable::Object(fields) => fields.values().try_for_each(|value| self.look_over(value)),
            Variable::String(text) => self.meter.touch(text.len() as u64),
            Variable::Null | Variable::Bool(_) | Variable::Number(_) | Variable::Expref(_) => Ok(()),
        }
    }

    /// The same as plain JSON, of which nothing is shared.
    pub fn json(&self, value: &Variable) -> Result<Value, String> {
        self.meter.work(1)?;
        self.meter.keep(NODE)?;
        Ok(match value {
            Variable::Null => Value::Null,
            Variable::Bool(value) => Value::Bool(*value),
            Variable::Number(value) => Value::Number(value.clone()),
            Variable::String(value) => {
                self.meter.keep(value.len() as u64)?;
                Value::String(value.clone())
            }
            Variable::Array(items) => Value::Array(items.iter().map(|item| self.json(item)).collect::<Result<_, _>>()?),
            Variable::Object(fields) => {
                let field = |(name, value): (&String, &Rcvar)| {
                    self.meter.keep(FIELD + name.len() as u64)?;
                    Ok::<_, String>((name.clone(), self.json(value)?))
                };
                Value::Object(fields.iter().map(field).collect::<Result<_, _>>()?)
            }
            Variable::Expref(_) => return Err("an expression after '&' is for functions only".into()),
        })
    }
}

pub(super) fn or_null(found: Option<&Rcvar>) -> Rcvar {
    found.unwrap_or(&NULL).clone()
}

fn field(data: &Rcvar, name: &str) -> Evaluated {
    let found = or_null(data.as_object().and_then(|fields| fields.get(name)));
    if is_withheld(&found) {
        return Err(format!(
            "expressions do not see the field {name} of an entity; the worker finds it in the context of its job"
        ));
    }
    Ok(found)
}

fn index(data: &Rcvar, at: i64) -> Rcvar {
    let Some(items) = data.as_array() else { return NULL.clone() };
    let at = if at < 0 { at + items.len() as i64 } else { at };
    or_null(usize::try_from(at).ok().and_then(|at| items.get(at)))
}
