//! Expressions (CEL), and templates: JSON whose texts may hold `${{ expression }}`.
//!
//! An expression is compiled when the definition is read, so that everything that can be wrong with it is found then. What
//! it may cost is bounded before it runs, because nothing can stop it later.

use cel::{
    Context, Env, IdedExpr, Program,
    common::ast::{EntryExpr, Expr as Ast},
};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
};

pub const LENGTH_MAX: usize = 4_096;
/// Loops inside loops (`map`, `filter`, `all`, `exists`).
const LOOPS_MAX: u32 = 3;
/// Steps of evaluation, at worst.
const COST_MAX: u64 = 20_000_000;
const OPEN: &str = "${{";
const CLOSE: &str = "}}";

/// Making it costs more than most expressions.
static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// What an expression may name.
pub const VARIABLES: [&str; 6] = ["input", "steps", "item", "index", "payload", "output"];

pub struct Expr {
    program: Program,
    text: String,
    /// Steps it names, and whether it looks at all of them.
    pub steps: BTreeSet<String>,
    nodes: u64,
    loops: u32,
    sums: u64,
}

impl std::fmt::Debug for Expr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Expr({:?})", self.text)
    }
}

/// The values behind the names.
#[derive(Clone, Debug, Default)]
pub struct Vars {
    /// Each as JSON, and as expressions take it: that is shared, so that ten thousand items do not copy it as often.
    values: Vec<(&'static str, Value, cel::Value)>,
    size: u64,
}

impl Vars {
    pub fn set(&mut self, name: &'static str, value: Value) {
        self.size -= count(&self.take(name)).min(self.size);
        self.size += count(&value);
        let shared = cel::to_value(Whole(&value)).unwrap_or(cel::Value::Null);
        self.values.push((name, value, shared));
    }

    pub fn take(&mut self, name: &str) -> Value {
        let found = self.values.iter().position(|(known, ..)| *known == name);
        found.map_or(Value::Null, |at| self.values.swap_remove(at).1)
    }
}

/// Whole numbers are signed ones, however JSON keeps them: CEL does not mix the two.
struct Whole<'a>(&'a Value);

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Number(number) => match number.as_i64() {
                Some(whole) => serializer.serialize_i64(whole),
                None => serializer.serialize_f64(number.as_f64().unwrap_or_default()),
            },
            Value::Array(items) => serializer.collect_seq(items.iter().map(Whole)),
            Value::Object(fields) => serializer.collect_map(fields.iter().map(|(name, value)| (name, Whole(value)))),
            other => other.serialize(serializer),
        }
    }
}

fn count(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<u64>(),
        Value::Object(fields) => 1 + fields.values().map(count).sum::<u64>(),
        Value::String(text) => 1 + text.len() as u64 / 64,
        _ => 1,
    }
}

impl Expr {
    pub fn new(text: &str) -> Result<Self, String> {
        if text.len() > LENGTH_MAX {
            return Err(format!("an expression may have {LENGTH_MAX} bytes, not {}", text.len()));
        }
        if text.trim().is_empty() {
            return Err("the expression is empty".into());
        }
        let program = Program::compile(text).map_err(|errors| {
            let told = errors.to_string();
            let first = told.lines().next().unwrap_or("it cannot be read").trim();
            format!("{text:?} is no expression: {first}")
        })?;
        let mut seen = Seen::default();
        seen.walk(program.expression(), &mut Vec::new(), 0);
        if let Some(unknown) = seen.unknown {
            return Err(format!("{text:?} names {unknown:?}; there are {}", VARIABLES.join(", ")));
        }
        if seen.loops > LOOPS_MAX {
            return Err(format!("{text:?} has loops {} deep; at most {LOOPS_MAX}", seen.loops));
        }
        let text = text.to_owned();
        Ok(Self { program, text, steps: seen.steps, nodes: seen.nodes, loops: seen.loops, sums: seen.sums })
    }

    pub fn eval(&self, vars: &Vars) -> Result<Value, String> {
        let length = vars.size.saturating_mul(1 + self.sums).saturating_add(self.nodes);
        let cost = self.nodes.saturating_mul(length.saturating_pow(self.loops));
        if self.loops > 0 && cost > COST_MAX {
            return Err(format!("{:?} could take {cost} steps; at most {COST_MAX}", self.text));
        }
        let mut context = Context::with_env(ENV.clone());
        for (name, _, value) in &vars.values {
            context.add_variable_from_value(*name, value.clone());
        }
        let fault = |why: String| format!("{:?}: {why}", self.text);
        let value = self.program.execute(&context).map_err(|error| fault(error.to_string()))?;
        value.json().map_err(|error| fault(error.to_string()))
    }

    pub fn holds(&self, vars: &Vars) -> Result<bool, String> {
        match self.eval(vars)? {
            Value::Bool(holds) => Ok(holds),
            other => Err(format!("{:?} is {other}, neither true nor false", self.text)),
        }
    }
}

/// What is found out about an expression by looking at it.
#[derive(Default)]
struct Seen {
    steps: BTreeSet<String>,
    unknown: Option<String>,
    nodes: u64,
    loops: u32,
    sums: u64,
}

impl Seen {
    fn walk(&mut self, expr: &IdedExpr, own: &mut Vec<String>, loops: u32) {
        self.nodes += 1;
        self.loops = self.loops.max(loops);
        match &expr.expr {
            Ast::Ident(name) => self.name(name, own),
            Ast::Select(select) => {
                if matches!(&select.operand.expr, Ast::Ident(name) if name == "steps") {
                    self.steps.insert(select.field.clone());
                }
                self.walk(&select.operand, own, loops);
            }
            Ast::Call(call) => {
                self.sums += u64::from(call.func_name == "_+_");
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
        Ast::Literal(cel::common::ast::LiteralValue::String(text)) => Some(text.inner().to_string()),
        _ => None,
    }
}

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
        let made = match value {
            Value::String(text) if text.contains(OPEN) => Self::text(text).map_err(|why| (String::new(), why))?,
            Value::Array(items) => {
                let item = |(at, item)| Self::new(item).map_err(|(path, why)| (format!("[{at}]{path}"), why));
                let items: Vec<Template> = items.iter().enumerate().map(item).collect::<Result<_, _>>()?;
                Template::List(items)
            }
            Value::Object(fields) => {
                let field = |(name, value): (&String, &Value)| {
                    let made = Self::new(value).map_err(|(path, why)| (format!(".{name}{path}"), why))?;
                    Ok::<_, (String, String)>((name.clone(), made))
                };
                Template::Map(fields.iter().map(field).collect::<Result<_, _>>()?)
            }
            plain => return Ok(Template::Plain(plain.clone())),
        };
        // What holds no expression is kept as it is.
        Ok(if made.is_plain() { Template::Plain(value.clone()) } else { made })
    }

    fn text(text: &str) -> Result<Self, String> {
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some(at) = rest.find(OPEN) {
            let (before, inside) = (&rest[..at], &rest[at + OPEN.len()..]);
            let end = inside.find(CLOSE).ok_or_else(|| format!("{OPEN} has no {CLOSE} behind it"))?;
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            pieces.push(Piece::Expr(Box::new(Expr::new(inside[..end].trim())?)));
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

    pub fn fill(&self, vars: &Vars) -> Result<Value, String> {
        Ok(match self {
            Template::Plain(value) => value.clone(),
            Template::One(expr) => expr.eval(vars)?,
            Template::Text(pieces) => {
                let mut text = String::new();
                for piece in pieces {
                    match piece {
                        Piece::Text(plain) => text += plain,
                        Piece::Expr(expr) => text += &shown(&expr.eval(vars)?),
                    }
                }
                Value::String(text)
            }
            Template::List(items) => Value::Array(items.iter().map(|item| item.fill(vars)).collect::<Result<_, _>>()?),
            Template::Map(fields) => {
                let field = |(name, value): &(String, Template)| Ok((name.clone(), value.fill(vars)?));
                Value::Object(fields.iter().map(field).collect::<Result<_, String>>()?)
            }
        })
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn vars() -> Vars {
        let mut vars = Vars::default();
        vars.set("input", json!({"n": 2, "who": "ann", "list": [3, 1, 2]}));
        vars.set("steps", json!({"build": {"output": {"url": "u", "n": 7}, "state": "completed"}}));
        vars
    }

    #[test]
    fn expressions_and_what_they_come_to() {
        let table = [
            ("input.n + 1", json!(3)),
            ("steps.build.output.url + '/x'", json!("u/x")),
            ("steps['build'].output.n == 7", json!(true)),
            ("input.list.filter(x, x > 1)", json!([3, 2])),
            ("has(input.gone) ? 1 : 2", json!(2)),
            ("size(input.list)", json!(3)),
            ("input.who.startsWith('a')", json!(true)),
            ("{'a': input.n}", json!({"a": 2})),
        ];
        for (text, expected) in table {
            assert_eq!(Expr::new(text).unwrap().eval(&vars()).unwrap(), expected, "{text}");
        }
        let named = Expr::new("steps.a.output + steps['b'].output").unwrap();
        assert_eq!(named.steps.into_iter().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn what_cannot_be_worked_out_is_told() {
        for text in ["", "input.", "1 +", "foo.bar", "steps.a)", &"1+".repeat(4_000)] {
            assert!(Expr::new(text).is_err(), "{text}");
        }
        let deep = "input.list.map(a, input.list.map(b, input.list.map(c, input.list.map(d, d))))";
        assert!(Expr::new(deep).unwrap_err().contains("deep"));
        for text in ["input.gone", "input.n.x", "1 / 0", "input.who + 1"] {
            assert!(Expr::new(text).unwrap().eval(&vars()).is_err(), "{text}");
        }
        assert!(Expr::new("input.n").unwrap().holds(&vars()).is_err(), "a number is no condition");
    }

    #[test]
    fn what_would_take_too_long_is_not_begun() {
        let mut vars = Vars::default();
        vars.set("input", json!((0..100_000).collect::<Vec<_>>()));
        assert!(Expr::new("input.filter(x, x > 5).size()").unwrap().eval(&vars).is_ok());
        let square = "input.map(a, input.map(b, a * b)).size()";
        assert!(Expr::new(square).unwrap().eval(&vars).unwrap_err().contains("steps; at most"));
    }

    #[test]
    fn templates_keep_types_and_fill_texts() {
        let value = json!({"n": "${{ input.n }}", "t": "a ${{ input.n }}-${{ steps.build.output }}", "l": [1, "${{ input.list }}"], "p": "$plain {{ }}"});
        let template = Template::new(&value).unwrap();
        let expected = json!({"n": 2, "t": "a 2-{\"n\":7,\"url\":\"u\"}", "l": [1, [3, 1, 2]], "p": "$plain {{ }}"});
        assert_eq!(template.fill(&vars()).unwrap(), expected);
        assert!(Template::new(&json!({"a": [1, {"b": "x"}]})).unwrap().is_plain());
        let (path, why) = Template::new(&json!({"a": [1, {"b": "${{ 1 + }}"}]})).unwrap_err();
        assert_eq!(path, ".a[1].b");
        assert!(why.contains("no expression"), "{why}");
        assert!(Template::new(&json!("${{ 1")).unwrap_err().1.contains("}}"));
    }
}
