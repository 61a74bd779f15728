//! What an expression costs, found out before it runs, because nothing can stop it later.
//!
//! The expression is walked as it would be evaluated, with sizes in place of values: of what is there already the very
//! sizes, of what the expression makes the largest it could come to. Both sides of a choice count. The walk itself is paid
//! for, so it ends where the budget does.

use crate::{
    meter::{FIELD, Meter, NODE},
    pattern,
    vars::Vars,
};
use cel::{
    IdedExpr,
    common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr as Ast, LiteralValue, operators},
};
use serde_json::Value;
use std::collections::HashMap;

/// What is known of a value.
#[derive(Clone, Copy)]
enum Known<'a> {
    There(&'a Value),
    Text(&'a str),
    UpTo(Bound),
}

/// How large something could be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bound {
    bytes: u64,
    /// Its items.
    len: u64,
    /// Bytes of the largest of its parts.
    part: u64,
}

impl Bound {
    const SMALL: Bound = Bound { bytes: NODE, len: 0, part: 0 };

    fn text(length: usize) -> Self {
        Self { bytes: NODE + length as u64, ..Self::SMALL }
    }

    /// Anything of so many bytes.
    fn any(bytes: u64) -> Self {
        Self { bytes, len: bytes / NODE, part: bytes }
    }

    fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            len: self.len.saturating_add(other.len),
            part: self.part.max(other.part),
        }
    }

    fn or(self, other: Self) -> Self {
        Self { bytes: self.bytes.max(other.bytes), len: self.len.max(other.len), part: self.part.max(other.part) }
    }

    fn times(self, times: u64) -> Self {
        Self { bytes: self.bytes.saturating_mul(times), len: self.len.saturating_mul(times), part: self.part }
    }
}

/// Charges the meter for an evaluation, or says what is too much.
pub fn charge(expr: &IdedExpr, vars: &Vars, meter: &Meter) -> Result<(), String> {
    let mut walk = Walk { vars, meter, own: Vec::new(), sizes: HashMap::new(), made: 0 };
    let result = walk.expr(expr)?;
    let bytes = walk.bound(result)?.bytes;
    // It is copied on its way out, and once more as JSON.
    walk.make(bytes.saturating_mul(2))
}

struct Walk<'a> {
    vars: &'a Vars,
    meter: &'a Meter,
    /// Names that the expression itself brings, the innermost last.
    own: Vec<(&'a str, Known<'a>)>,
    /// Sizes of what is there, found out once each.
    sizes: HashMap<*const Value, Bound>,
    /// Bytes made that are still needed.
    made: u64,
}

impl<'a> Walk<'a> {
    fn expr(&mut self, expr: &'a IdedExpr) -> Result<Known<'a>, String> {
        self.meter.work(1)?;
        let small = Known::UpTo(Bound::SMALL);
        Ok(match &expr.expr {
            Ast::Literal(LiteralValue::String(text)) => Known::Text(text.inner()),
            Ast::Literal(LiteralValue::Bytes(bytes)) => Known::UpTo(Bound::text(bytes.inner().len())),
            Ast::Literal(_) | Ast::Unspecified => small,
            Ast::Ident(name) => self.name(name),
            Ast::Select(select) => {
                let of = self.expr(&select.operand)?;
                if select.test { small } else { self.part(of, Some(&select.field))? }
            }
            Ast::Call(call) => self.call(call)?,
            Ast::Comprehension(fold) => self.fold(fold)?,
            Ast::List(list) => {
                let parts = list.elements.iter().map(|item| (0, item));
                self.all(parts)?
            }
            Ast::Map(map) => self.entries(map.entries.iter().map(|entry| &entry.expr))?,
            Ast::Struct(map) => self.entries(map.entries.iter().map(|entry| &entry.expr))?,
        })
    }

    fn name(&self, name: &str) -> Known<'a> {
        let own = self.own.iter().rev().find(|(own, _)| *own == name).map(|(_, known)| *known);
        own.or_else(|| self.vars.get(name).map(Known::There)).unwrap_or(Known::UpTo(Bound::SMALL))
    }

    fn bound(&mut self, known: Known<'a>) -> Result<Bound, String> {
        match known {
            Known::UpTo(bound) => Ok(bound),
            Known::Text(text) => Ok(Bound::text(text.len())),
            Known::There(value) => match self.sizes.get(&std::ptr::from_ref(value)) {
                Some(bound) => Ok(*bound),
                None => self.measure(value),
            },
        }
    }

    fn measure(&mut self, value: &'a Value) -> Result<Bound, String> {
        let mut bound = Bound::SMALL;
        let mut part = |bytes: u64, beside: u64| {
            bound = Bound { bytes: bound.bytes + bytes + beside, len: bound.len + 1, part: bound.part.max(bytes) };
        };
        match value {
            Value::Array(items) => {
                for item in items {
                    part(self.meter.weigh(item)?, 0);
                }
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    part(self.meter.weigh(value)?, FIELD + name.len() as u64);
                }
            }
            other => bound.bytes = self.meter.weigh(other)?,
        }
        self.sizes.insert(value, bound);
        Ok(bound)
    }

    fn part(&mut self, of: Known<'a>, name: Option<&str>) -> Result<Known<'a>, String> {
        if let (Known::There(Value::Object(fields)), Some(name)) = (of, name) {
            return Ok(fields.get(name).map_or(Known::UpTo(Bound::SMALL), Known::There));
        }
        Ok(Known::UpTo(Bound::any(self.bound(of)?.part.max(NODE))))
    }

    fn read(&mut self, known: Known<'a>) -> Result<Bound, String> {
        let bound = self.bound(known)?;
        self.meter.touch(bound.bytes)?;
        Ok(bound)
    }

    /// Something new of so many bytes.
    fn make(&mut self, bytes: u64) -> Result<(), String> {
        self.meter.touch(bytes)?;
        self.made = self.made.saturating_add(bytes);
        self.meter.fits(self.made)
    }

    /// A list or a map of all these, which are copied into it.
    fn all(&mut self, parts: impl Iterator<Item = (u64, &'a IdedExpr)>) -> Result<Known<'a>, String> {
        let mut sum = Bound::SMALL;
        for (beside, part) in parts {
            let known = self.expr(part)?;
            let bytes = self.bound(known)?.bytes;
            sum = sum.and(Bound { bytes: bytes.saturating_add(beside), len: 1, part: bytes });
        }
        self.make(sum.bytes)?;
        Ok(Known::UpTo(sum))
    }

    fn entries(&mut self, entries: impl Iterator<Item = &'a EntryExpr>) -> Result<Known<'a>, String> {
        let parts = entries.flat_map(|entry| match entry {
            EntryExpr::StructField(field) => [Some((FIELD, &field.value)), None],
            EntryExpr::MapEntry(entry) => [Some((FIELD, &entry.key)), Some((0, &entry.value))],
        });
        self.all(parts.flatten())
    }

    fn call(&mut self, call: &'a CallExpr) -> Result<Known<'a>, String> {
        let mut args = Vec::with_capacity(3);
        for part in call.target.iter().map(|target| &**target).chain(&call.args) {
            args.push(self.expr(part)?);
        }
        let small = Known::UpTo(Bound::SMALL);
        Ok(match (call.func_name.as_str(), &args[..]) {
            (operators::CONDITIONAL, [_, then, otherwise]) => {
                let (then, otherwise) = (self.bound(*then)?, self.bound(*otherwise)?);
                Known::UpTo(then.or(otherwise))
            }
            (operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT, [of, at]) => {
                let name = if let Known::Text(name) = at { Some(*name) } else { None };
                self.part(*of, name)?
            }
            (operators::IN, [item, list]) => {
                let (item, list) = (self.read(*item)?, self.read(*list)?);
                self.meter.work(list.len.saturating_mul(1 + item.bytes / NODE))?;
                small
            }
            ("matches", [text, pattern]) => {
                self.matches(*text, *pattern)?;
                small
            }
            (operators::ADD, [left, right]) => {
                let sum = self.bound(*left)?.and(self.bound(*right)?);
                self.make(sum.bytes)?;
                Known::UpTo(sum)
            }
            (name, _) => {
                let mut sum = Bound::SMALL;
                for arg in &args {
                    sum = sum.and(self.read(*arg)?);
                }
                if gives_little(name) {
                    return Ok(small);
                }
                self.make(sum.bytes)?;
                Known::UpTo(sum)
            }
        })
    }

    fn matches(&mut self, text: Known<'a>, pattern: Known<'a>) -> Result<(), String> {
        let length = self.bound(text)?.bytes;
        let price = match pattern {
            // Compiled when the expression was read.
            Known::Text(pattern) => pattern::get(pattern).map_or(1, |made| made.price()),
            Known::There(Value::String(pattern)) => {
                let most = pattern.len().min(pattern::LENGTH_MAX) as u64;
                self.meter.work(most * pattern::COMPILE_PRICE)?;
                pattern::get(pattern).map_or(1, |made| made.price())
            }
            other => {
                let most = self.bound(other)?.bytes.min(pattern::LENGTH_MAX as u64);
                self.meter.work(most * pattern::COMPILE_PRICE)?;
                pattern::PRICE_MAX
            }
        };
        self.meter.work(length.saturating_mul(price))
    }

    fn fold(&mut self, fold: &'a ComprehensionExpr) -> Result<Known<'a>, String> {
        let range = self.expr(&fold.iter_range)?;
        self.expr(&fold.accu_init)?;
        let mut sum = Bound::SMALL;
        match range {
            Known::There(Value::Array(items)) => {
                for item in items {
                    sum = sum.and(self.pass(fold, Known::There(item), 1)?);
                }
            }
            Known::There(Value::Object(fields)) => {
                for name in fields.keys() {
                    sum = sum.and(self.pass(fold, Known::UpTo(Bound::text(name.len())), 1)?);
                }
            }
            other => {
                let bound = self.bound(other)?;
                if bound.len > 0 {
                    sum = self.pass(fold, Known::UpTo(Bound::any(bound.part.max(NODE))), bound.len)?;
                }
            }
        }
        // `map` and `filter` gather; the others come to a number, or to true or false.
        if !matches!(fold.accu_init.expr, Ast::List(_)) {
            return Ok(Known::UpTo(Bound::SMALL));
        }
        self.make(sum.bytes)?;
        Ok(Known::UpTo(sum))
    }

    /// One time through a loop, paid for as often as it could happen. What a pass makes is gone after it, but for what it
    /// adds.
    fn pass(&mut self, fold: &'a ComprehensionExpr, item: Known<'a>, times: u64) -> Result<Bound, String> {
        let (spent, made, depth) = (self.meter.spent(), self.made, self.own.len());
        let bytes = self.bound(item)?.bytes;
        self.make(bytes)?;
        let nothing = Known::UpTo(Bound::default());
        self.own.extend([(fold.iter_var.as_str(), item), (fold.accu_var.as_str(), nothing)]);
        self.expr(&fold.loop_cond)?;
        let step = self.expr(&fold.loop_step)?;
        let added = self.bound(step)?;
        self.own.truncate(depth);
        self.made = made;
        self.meter.work((self.meter.spent() - spent).saturating_mul(times - 1))?;
        Ok(added.times(times))
    }
}

/// Functions whose result is small whatever they are given.
fn gives_little(name: &str) -> bool {
    let operator = name.starts_with('_') || name.starts_with('@') || name == operators::LOGICAL_NOT;
    let known = ["size", "type", "int", "uint", "double", "bool", "contains", "startsWith", "endsWith", "hasValue"];
    operator || name == operators::NEGATE || known.contains(&name)
}
