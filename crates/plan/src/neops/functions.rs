//! Functions of expressions. The library works out most of them; what each may make is paid for first. One that is not
//! listed here is refused, so that a new version of the library brings none that costs nothing.

use super::evaluate::{Evaluated, Evaluator, PLACE, or_null};
use crate::meter::{FIELD, NODE, weight_of_text};
use jmespath::{Context, Rcvar, Runtime, Variable, ast::Ast};
use std::sync::LazyLock;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut runtime = Runtime::new();
    runtime.register_builtin_functions();
    runtime
});

impl Evaluator<'_> {
    pub(super) fn call(&self, data: &Rcvar, name: &str, args: &[Ast]) -> Evaluated {
        let Some(function) = RUNTIME.get_function(name) else { return Err(format!("there is no function {name:?}")) };
        match (name, args) {
            ("map", [Ast::Expref { ast, .. }, list]) => return self.map(ast, &self.value(data, list)?),
            ("sort_by" | "max_by" | "min_by", [list, Ast::Expref { ast, .. }]) => {
                return self.by(name, &self.value(data, list)?, ast).map_err(|why| format!("{name}: {why}"));
            }
            ("map", _) => return Err("map takes an expression after '&', and a list".into()),
            ("sort_by" | "max_by" | "min_by", _) => {
                return Err(format!("{name} takes a list, and an expression after '&'"));
            }
            _ => {}
        }
        let args = args.iter().map(|arg| self.value(data, arg)).collect::<Result<Vec<_>, _>>()?;
        self.charge(name, &args).map_err(|why| format!("{name}: {why}"))?;
        let made = function.evaluate(&args, &mut Context::new(self.text, &RUNTIME));
        made.map_err(|error| error.reason.to_string())
    }

    /// Pays for what a function looks at and for what it makes.
    fn charge(&self, name: &str, args: &[Rcvar]) -> Result<(), String> {
        self.meter.keep(NODE)?;
        for arg in args {
            self.meter.work(1 + len(arg))?;
            self.meter.touch(bytes(arg))?;
        }
        let keep = |bytes: u64| self.meter.keep(bytes);
        let all = |count: fn(&Variable) -> u64| args.iter().map(|arg| count(arg)).fold(0_u64, u64::saturating_add);
        match name {
            "abs" | "avg" | "ceil" | "ends_with" | "floor" | "length" | "not_null" | "starts_with" | "sum"
            | "to_array" | "type" => Ok(()),
            "contains" => args.iter().try_for_each(|arg| self.look_over(arg)),
            "max" | "min" => self.compared(args, 1),
            "sort" => {
                keep(PLACE.saturating_mul(all(len)))?;
                self.compared(args, rounds(all(len)))
            }
            "values" => keep(PLACE.saturating_mul(all(len))),
            "reverse" => keep(PLACE.saturating_mul(all(len)).saturating_add(all(bytes))),
            "keys" => keep(all(names)),
            // Each is copied, and then moved into the one that it makes.
            "merge" => keep(all(names).saturating_mul(2)),
            "join" => keep(joined(args)),
            "to_number" => {
                keep(args.iter().filter_map(|arg| arg.as_string()).map(|text| weight_of_text(text.as_bytes())).sum())
            }
            "to_string" => {
                args.iter().filter(|arg| !arg.is_string()).try_for_each(|arg| keep(self.meter.json_bytes(&**arg)?))
            }
            other => Err(format!("expressions here have no function {other:?}")),
        }
    }

    /// Pays for comparing the items of lists with each other so many times.
    fn compared(&self, lists: &[Rcvar], rounds: u64) -> Result<(), String> {
        let spent = self.meter.spent();
        lists.iter().try_for_each(|list| self.look_over(list))?;
        self.meter.work((self.meter.spent() - spent).saturating_mul(2 * rounds))
    }

    fn map(&self, each: &Ast, list: &Rcvar) -> Evaluated {
        let items = list.as_array().ok_or("map takes an expression after '&', and a list")?;
        self.room_for(items.len())?;
        self.made(items.iter().map(|item| self.value(item, each)).collect::<Result<_, _>>()?)
    }

    /// The items in the order of what the expression makes of them, or the first or the last in it.
    fn by(&self, name: &str, list: &Rcvar, each: &Ast) -> Evaluated {
        let items = list.as_array().ok_or("its first argument must be a list")?;
        self.room_for(4 * items.len())?;
        let mut pairs = Vec::new();
        for item in items {
            let key = self.value(item, each)?;
            let of_one_kind = pairs.first().is_none_or(|(first, _): &(Rcvar, _)| first.get_type() == key.get_type());
            if !(key.is_number() || key.is_string()) || !of_one_kind {
                return Err("its expression must come to numbers, or to texts, for all items".into());
            }
            self.meter.touch(bytes(&key).saturating_mul(2 * rounds(items.len() as u64)))?;
            pairs.push((key, item));
        }
        self.meter.work((items.len() as u64).saturating_mul(rounds(items.len() as u64)))?;
        let better = |best: usize, at: usize| match name {
            "max_by" => pairs[at].0 > pairs[best].0,
            _ => pairs[at].0 < pairs[best].0,
        };
        if name != "sort_by" {
            let best = (0..pairs.len()).reduce(|best, at| if better(best, at) { at } else { best });
            return Ok(or_null(best.map(|best| pairs[best].1)));
        }
        pairs.sort_by(|one, other| one.0.cmp(&other.0));
        self.made(pairs.into_iter().map(|(_, item)| item.clone()).collect())
    }
}

/// How often sorting so many looks at each.
fn rounds(items: u64) -> u64 {
    u64::from(u64::BITS - items.leading_zeros()) + 1
}

/// Items or fields.
fn len(value: &Variable) -> u64 {
    match value {
        Variable::Array(items) => items.len() as u64,
        Variable::Object(fields) => fields.len() as u64,
        Variable::Null | Variable::Bool(_) | Variable::Number(_) | Variable::String(_) | Variable::Expref(_) => 0,
    }
}

fn bytes(value: &Variable) -> u64 {
    value.as_string().map_or(0, |text| text.len() as u64)
}

fn names(value: &Variable) -> u64 {
    value.as_object().into_iter().flatten().map(|(name, _)| FIELD + name.len() as u64).sum()
}

/// Bytes of texts with others between them; each is copied before.
fn joined(args: &[Rcvar]) -> u64 {
    let [glue, list] = args else { return 0 };
    let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = items.iter().map(|item| NODE + 2 * bytes(item)).fold(0_u64, u64::saturating_add);
    texts.saturating_add(bytes(glue).saturating_mul(items.len() as u64))
}
