//! JMESPath expressions: read within limits, and searched within a bound on what they can grow to.
//!
//! The library reads and evaluates by recursion and knows no limit of depth, so what could nest too deep is refused before
//! it sees it. Expressions cannot loop, but `[@, @]` doubles what it is given, and a chain of such doubles it each time.

use super::{document::EXPRESSION_BYTES_MAX, scope::Scope};
use jmespath::{Context, Rcvar, Runtime, Variable, ast::Ast};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
};

/// How deep parentheses and brackets may lie in each other.
const DEPTH_MAX: usize = 32;
/// Parts of one expression; each is a level of recursion for the library.
const LINKS_MAX: usize = 200;
/// Bytes of memory that a result may take at most.
const ROOM_MAX: u64 = 256 << 20;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut runtime = Runtime::new();
    runtime.register_builtin_functions();
    runtime
});

#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    text: Arc<str>,
    ast: Arc<Ast>,
    /// How many times what it is given it can become.
    growth: u64,
}

impl Expression {
    pub fn new(text: &str) -> Result<Self, String> {
        check(text)?;
        let ast = jmespath::parse(text).map_err(|error| format!("{text:?} is no expression: {}", error.reason))?;
        Ok(Self { text: text.into(), growth: growth(&ast), ast: Arc::new(ast) })
    }

    /// The value, null where a path leads nowhere.
    pub fn search(&self, scope: &Scope) -> Result<Value, String> {
        if self.growth.saturating_mul(scope.room()) > ROOM_MAX {
            return Err(format!("{:?} could take more than {ROOM_MAX} bytes of memory", self.text));
        }
        let found = jmespath::interpret(scope.root(), &self.ast, &mut Context::new(&self.text, &RUNTIME));
        plain(&found.map_err(|error| format!("{:?} cannot be evaluated: {}", self.text, error.reason))?)
    }

    /// Adds all names that it looks for anywhere. False: it may look at all there is.
    pub fn names(&self, found: &mut BTreeSet<String>) -> bool {
        walk(&self.ast, &mut |ast| {
            if let Ast::Field { name, .. } = ast {
                found.insert(name.clone());
            }
        });
        !begins_whole(&self.ast)
    }
}

/// Whether it takes hold of the whole scope, and not of a name in it.
fn begins_whole(ast: &Ast) -> bool {
    match ast {
        Ast::Field { .. } | Ast::Literal { .. } => false,
        Ast::Subexpr { lhs, .. } | Ast::Projection { lhs, .. } => begins_whole(lhs),
        Ast::Flatten { node, .. } | Ast::ObjectValues { node, .. } | Ast::Not { node, .. } => begins_whole(node),
        Ast::Comparison { lhs, rhs, .. } | Ast::And { lhs, rhs, .. } | Ast::Or { lhs, rhs, .. } => {
            begins_whole(lhs) || begins_whole(rhs)
        }
        Ast::Condition { predicate, then, .. } => begins_whole(predicate) || begins_whole(then),
        Ast::Function { args, .. } | Ast::MultiList { elements: args, .. } => args.iter().any(begins_whole),
        Ast::MultiHash { elements, .. } => elements.iter().any(|pair| begins_whole(&pair.value)),
        // What is handed to a function is applied to another of its arguments.
        Ast::Expref { .. } => false,
        Ast::Identity { .. } | Ast::Index { .. } | Ast::Slice { .. } => true,
    }
}

fn walk(ast: &Ast, see: &mut dyn FnMut(&Ast)) {
    see(ast);
    match ast {
        Ast::Subexpr { lhs, rhs, .. }
        | Ast::Projection { lhs, rhs, .. }
        | Ast::Comparison { lhs, rhs, .. }
        | Ast::And { lhs, rhs, .. }
        | Ast::Or { lhs, rhs, .. } => {
            walk(lhs, see);
            walk(rhs, see);
        }
        Ast::Condition { predicate, then, .. } => {
            walk(predicate, see);
            walk(then, see);
        }
        Ast::Flatten { node, .. } | Ast::ObjectValues { node, .. } | Ast::Not { node, .. } => walk(node, see),
        Ast::Expref { ast, .. } => walk(ast, see),
        Ast::Function { args, .. } | Ast::MultiList { elements: args, .. } => {
            args.iter().for_each(|arg| walk(arg, see));
        }
        Ast::MultiHash { elements, .. } => elements.iter().for_each(|pair| walk(&pair.value, see)),
        Ast::Identity { .. } | Ast::Field { .. } | Ast::Index { .. } | Ast::Literal { .. } | Ast::Slice { .. } => {}
    }
}

/// Looks over the text as the library's reader would, without recursion.
fn check(text: &str) -> Result<(), String> {
    if text.len() > EXPRESSION_BYTES_MAX {
        return Err(format!("an expression has {} bytes; at most {EXPRESSION_BYTES_MAX}", text.len()));
    }
    let (mut depth, mut links) = (0_usize, 0_usize);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\'' | b'"' | b'`' => skip_quoted(&mut bytes, byte),
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        links += usize::from(b".|[({&!*,<>=".contains(&byte));
        if depth > DEPTH_MAX {
            return Err(format!("an expression nests deeper than {DEPTH_MAX}"));
        }
        if links > LINKS_MAX {
            return Err(format!("an expression has more than {LINKS_MAX} parts"));
        }
    }
    Ok(())
}

pub(super) fn skip_quoted(bytes: &mut impl Iterator<Item = u8>, quote: u8) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            _ if byte == quote => return,
            _ => {}
        }
    }
}

/// How many copies of what it is given can be in what it gives.
fn growth(ast: &Ast) -> u64 {
    let sum = |all: &mut dyn Iterator<Item = &Ast>| all.fold(0_u64, |sum, ast| sum.saturating_add(growth(ast)));
    match ast {
        Ast::Identity { .. } | Ast::Field { .. } | Ast::Index { .. } | Ast::Slice { .. } | Ast::Literal { .. } => 1,
        Ast::Expref { ast, .. } => growth(ast),
        Ast::Flatten { node, .. } | Ast::ObjectValues { node, .. } | Ast::Not { node, .. } => growth(node),
        Ast::Subexpr { lhs, rhs, .. } | Ast::Projection { lhs, rhs, .. } => growth(lhs).saturating_mul(growth(rhs)),
        Ast::Comparison { lhs, rhs, .. } | Ast::And { lhs, rhs, .. } | Ast::Or { lhs, rhs, .. } => {
            growth(lhs).saturating_add(growth(rhs))
        }
        Ast::Condition { predicate, then, .. } => growth(predicate).saturating_add(growth(then)),
        Ast::MultiList { elements, .. } => sum(&mut elements.iter()).max(1),
        Ast::MultiHash { elements, .. } => sum(&mut elements.iter().map(|pair| &pair.value)).max(1),
        Ast::Function { args, .. } => {
            let applied = args.iter().filter(|arg| matches!(arg, Ast::Expref { .. }));
            let applied = applied.fold(1_u64, |all, arg| all.saturating_mul(growth(arg)));
            let given = sum(&mut args.iter().filter(|arg| !matches!(arg, Ast::Expref { .. })));
            applied.saturating_mul(given).max(1)
        }
    }
}

fn plain(found: &Rcvar) -> Result<Value, String> {
    Ok(match &**found {
        Variable::Null => Value::Null,
        Variable::Bool(value) => Value::Bool(*value),
        Variable::Number(value) => Value::Number(value.clone()),
        Variable::String(value) => Value::String(value.clone()),
        Variable::Array(items) => Value::Array(items.iter().map(plain).collect::<Result<_, _>>()?),
        Variable::Object(fields) => {
            let field = |(name, value): (&String, &Rcvar)| Ok::<_, String>((name.clone(), plain(value)?));
            Value::Object(fields.iter().map(field).collect::<Result<_, _>>()?)
        }
        Variable::Expref(_) => return Err("an expression after '&' is for functions only".into()),
    })
}
