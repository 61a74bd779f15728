//! Expressions (CEL).
//!
//! An expression is compiled when the definition is read, so that everything that can be wrong with it is found then. What
//! it may cost is bounded before it runs, because nothing can stop it later.

use crate::{
    cost,
    meter::Meter,
    pattern::{self, Pattern, Written},
    vars::Vars,
};
use cel::{
    Context, Env, ExecutionError, IdedExpr,
    common::{
        ast::{EntryExpr, Expr as Ast, LiteralValue},
        types::{CelBool, CelString},
    },
};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
};

pub const LENGTH_MAX: usize = 4_096;
/// Loops inside loops (`map`, `filter`, `all`, `exists`).
const LOOPS_MAX: u32 = 3;
/// Parts inside parts, sums of sums included: each takes its share of a thread's stack.
const DEPTH_MAX: u32 = 100;
/// Brackets inside brackets. Reading them takes far more of the stack than working them out.
const BRACKETS_MAX: u16 = 24;
/// Signs, each of which may be one part inside another.
const SIGNS_MAX: usize = 1_000;
/// Characters of a value or of an error that are told.
const TOLD_MAX: usize = 300;

/// Making it costs more than most expressions. `matches` is ours, because the library compiles its pattern at every call.
static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    let added = cel::add_overload!(env, fn matches: (CelString, CelString) -> Result<CelBool>, id = "matches");
    let member = cel::add_member_overload!(env, fn matches: (CelString, CelString) -> Result<CelBool>);
    added.and(member).expect("the library has no function of that name");
    Arc::new(env)
});

fn matches(text: &CelString<'_>, wanted: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    let made = pattern::get(wanted.inner());
    let made =
        made.map_err(|why| ExecutionError::FunctionError { function: "matches".into(), message: why.to_string() })?;
    Ok(CelBool::from(made.is_match(text.inner())))
}

/// What an expression may name.
pub const VARIABLES: [&str; 6] = ["input", "steps", "item", "index", "payload", "output"];

pub struct Expr {
    made: IdedExpr,
    text: String,
    /// Steps it names.
    pub steps: BTreeSet<String>,
    /// Held so that they are compiled once.
    _patterns: Vec<Arc<Pattern>>,
}

impl std::fmt::Debug for Expr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Expr({:?})", self.text)
    }
}

impl Expr {
    pub fn new(text: &str) -> Result<Self, String> {
        Self::within(text, &mut Written::default())
    }

    /// One of a workflow's expressions, whose patterns count together.
    pub fn within(text: &str, written: &mut Written) -> Result<Self, String> {
        if text.len() > LENGTH_MAX {
            return Err(format!("an expression may have {LENGTH_MAX} bytes, not {}", text.len()));
        }
        if text.trim().is_empty() {
            return Err("the expression is empty".into());
        }
        let signs = text.chars().filter(char::is_ascii_punctuation).count();
        if signs > SIGNS_MAX {
            return Err(format!("an expression may have {SIGNS_MAX} signs such as brackets and dots, not {signs}"));
        }
        let made = ENV.parser().max_recursion_depth(BRACKETS_MAX).parse(text).map_err(|errors| {
            let told = errors.to_string();
            let first = told.lines().next().unwrap_or("it cannot be read").trim();
            format!("{text:?} is not an expression: {first}")
        })?;
        let mut seen = Seen::default();
        seen.walk(&made, &mut Vec::new(), 0);
        if let Some(unknown) = seen.unknown {
            return Err(format!("{text:?} names {unknown:?}; there are {}", VARIABLES.join(", ")));
        }
        if seen.loops > LOOPS_MAX {
            return Err(format!("{text:?} has loops {} deep; at most {LOOPS_MAX}", seen.loops));
        }
        if seen.depth > DEPTH_MAX {
            return Err(format!("an expression may have parts {DEPTH_MAX} deep, not more: {}", told(text)));
        }
        let patterns = seen.patterns.iter().map(|text| written.get(text)).collect::<Result<_, _>>()?;
        Ok(Self { made, text: text.to_owned(), steps: seen.steps, _patterns: patterns })
    }

    pub fn eval(&self, vars: &Vars, meter: &Meter) -> Result<Value, String> {
        let fault = |why: String| format!("{:?}: {}", self.text, told(&why));
        cost::charge(&self.made, vars, meter).map_err(fault)?;
        let mut context = Context::with_env(ENV.clone());
        context.set_variable_resolver(vars);
        let value = cel::Value::resolve(&self.made, &context).map_err(|error| fault(error.to_string()))?;
        value.json().map_err(|error| fault(error.to_string()))
    }

    pub fn holds(&self, vars: &Vars, meter: &Meter) -> Result<bool, String> {
        match self.eval(vars, meter)? {
            Value::Bool(holds) => Ok(holds),
            other => Err(format!("{:?} is {}, neither true nor false", self.text, told(&other.to_string()))),
        }
    }
}

/// No more of a text than people read.
fn told(text: &str) -> &str {
    text.char_indices().nth(TOLD_MAX).map_or(text, |(at, _)| &text[..at])
}

/// What is found out about an expression by looking at it.
#[derive(Default)]
struct Seen {
    steps: BTreeSet<String>,
    unknown: Option<String>,
    /// Those that are written out.
    patterns: BTreeSet<String>,
    loops: u32,
    /// Where the walk is, and how deep it went.
    at: u32,
    depth: u32,
}

impl Seen {
    fn walk(&mut self, expr: &IdedExpr, own: &mut Vec<String>, loops: u32) {
        self.at += 1;
        self.depth = self.depth.max(self.at);
        self.loops = self.loops.max(loops);
        if self.at <= DEPTH_MAX {
            self.look(expr, own, loops);
        }
        self.at -= 1;
    }

    fn look(&mut self, expr: &IdedExpr, own: &mut Vec<String>, loops: u32) {
        match &expr.expr {
            Ast::Ident(name) => self.name(name, own),
            Ast::Select(select) => {
                if matches!(&select.operand.expr, Ast::Ident(name) if name == "steps") {
                    self.steps.insert(select.field.clone());
                }
                self.walk(&select.operand, own, loops);
            }
            Ast::Call(call) => {
                if let ("matches", Some(wanted)) = (call.func_name.as_str(), call.args.last().and_then(literal)) {
                    self.patterns.insert(wanted);
                }
                if let ("_[_]", [of, at]) = (call.func_name.as_str(), &call.args[..])
                    && matches!(&of.expr, Ast::Ident(name) if name == "steps")
                    && let Some(name) = literal(at)
                {
                    self.steps.insert(name);
                }
                call.target.iter().for_each(|target| self.walk(target, own, loops));
                call.args.iter().for_each(|arg| self.walk(arg, own, loops));
            }
            Ast::Comprehension(inner) => {
                self.walk(&inner.iter_range, own, loops);
                self.walk(&inner.accu_init, own, loops);
                let before = own.len();
                own.extend([inner.iter_var.clone(), inner.accu_var.clone()]);
                own.extend(inner.iter_var2.clone());
                for part in [&inner.loop_cond, &inner.loop_step, &inner.result] {
                    self.walk(part, own, loops + 1);
                }
                own.truncate(before);
            }
            Ast::List(list) => list.elements.iter().for_each(|item| self.walk(item, own, loops)),
            Ast::Map(map) => map.entries.iter().for_each(|entry| self.entry(&entry.expr, own, loops)),
            Ast::Struct(map) => map.entries.iter().for_each(|entry| self.entry(&entry.expr, own, loops)),
            Ast::Literal(_) | Ast::Unspecified => {}
        }
    }

    fn entry(&mut self, entry: &EntryExpr, own: &mut Vec<String>, loops: u32) {
        match entry {
            EntryExpr::StructField(field) => self.walk(&field.value, own, loops),
            EntryExpr::MapEntry(entry) => {
                self.walk(&entry.key, own, loops);
                self.walk(&entry.value, own, loops);
            }
        }
    }

    fn name(&mut self, name: &str, own: &[String]) {
        let known = name.starts_with('@') || VARIABLES.contains(&name) || own.iter().any(|own| own == name);
        // Types are named like variables: `type(x) == int`.
        let kind = ["int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type"];
        if !known && !kind.contains(&name) {
            self.unknown.get_or_insert_with(|| name.to_owned());
        }
    }
}

fn literal(expr: &IdedExpr) -> Option<String> {
    match &expr.expr {
        Ast::Literal(LiteralValue::String(text)) => Some(text.inner().to_string()),
        _ => None,
    }
}
