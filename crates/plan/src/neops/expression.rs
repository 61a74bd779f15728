//! JMESPath expressions: read within limits, and evaluated within a budget ([`super::evaluate`]).
//!
//! The library reads by recursion and knows no limit of depth, so what could nest too deep is refused before it sees it.

use super::{document::EXPRESSION_BYTES_MAX, evaluate::Evaluator, scope::Scope};
use crate::meter::{Budget, Meter};
use jmespath::ast::Ast;
use serde_json::Value;
use std::{collections::BTreeSet, sync::Arc};

/// How deep parentheses and brackets may lie in each other.
const DEPTH_MAX: usize = 32;
/// Parts of one expression; each is a level of recursion for the library.
const LINKS_MAX: usize = 200;
/// Items that a slice may leave out at a time.
const SLICE_STEP_MAX: i32 = 1_000_000;
/// Characters of an expression that an error tells.
const TOLD_MAX: usize = 300;

/// What the expressions of one planning step may cost together.
pub fn budget() -> Budget {
    Budget { work: 50_000_000, room: 128 << 20, ..Budget::default() }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    text: Arc<str>,
    ast: Arc<Ast>,
}

impl Expression {
    pub fn new(text: &str) -> Result<Self, String> {
        check(text)?;
        let ast =
            jmespath::parse(text).map_err(|error| format!("{:?} is no expression: {}", told(text), error.reason))?;
        let mut odd = None;
        walk(&ast, &mut |ast| {
            if let Ast::Slice { step, .. } = ast
                && (*step == 0 || !(-SLICE_STEP_MAX..=SLICE_STEP_MAX).contains(step))
            {
                odd = Some(*step);
            }
        });
        match odd {
            Some(step) => Err(format!(
                "{:?} has a slice with the step {step}; it must be from -{SLICE_STEP_MAX} to {SLICE_STEP_MAX}, and not 0",
                told(text)
            )),
            None => Ok(Self { text: text.into(), ast: Arc::new(ast) }),
        }
    }

    /// The value, null where a path leads nowhere. What it takes is charged; what the value takes stays charged.
    pub fn search(&self, scope: &Scope, meter: &Meter) -> Result<Value, String> {
        let evaluator = Evaluator { text: &self.text, meter };
        let evaluated = || {
            let before = meter.mark();
            let found = evaluator.value(scope.root(), &self.ast)?;
            let made = meter.mark();
            let value = evaluator.json(&found)?;
            meter.back_to(before + (meter.mark() - made));
            Ok::<_, String>(value)
        };
        evaluated().map_err(|why| format!("{:?} cannot be evaluated: {why}", told(&self.text)))
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

fn told(text: &str) -> &str {
    text.char_indices().nth(TOLD_MAX).map_or(text, |(at, _)| &text[..at])
}
