//! What checking a value against a schema costs at most, found out before it is begun, because nothing can stop it later.
//!
//! The schema is walked over the value as the check would, but nothing is decided: every alternative counts. Inside of
//! alternatives each part counts as often as it may be looked at again when none of them fits, so that all can be told.

use super::fits::{Fit, REFERENCES};
use serde_json::{Map, Value};
use windlass_plan::pattern;

/// References inside of references, alternatives and parts.
const DEPTH_MAX: usize = 200;
/// Bytes that count as one step.
const BYTES_PER_STEP: u64 = 32;
/// Steps a byte costs whose pattern is not known to the walk.
const PRICE_UNKNOWN: u64 = 64;

/// Too much, and where in the value.
pub struct Over {
    pub pointer: String,
    deep: bool,
}

impl Over {
    pub fn why(&self, most: u64) -> String {
        match self.deep {
            true => format!("the schema leads back to itself or is nested more than {DEPTH_MAX} levels deep here"),
            false => format!(
                "checking this against its schema would take more than {most} steps, the most that a check may take; \
                 nest less, send less at once, or let the schema have fewer alternatives"
            ),
        }
    }
}

/// What a check takes at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    pub steps: u64,
    /// How often something may be found wrong inside of alternatives. Each is told with a copy of the value it is about.
    pub copies: u64,
}

/// The cost, if it is at most so many steps.
pub fn of(fit: &Fit, value: &Value, most: u64) -> Result<Cost, Over> {
    let mut walk =
        Walk { fit, most, spent: 0, copies: 0, alternatives: 0, depth: 0, chain: 0, longest: 0, path: Vec::new() };
    walk.visit(&fit.root, value)?;
    Ok(Cost { steps: walk.spent, copies: walk.copies })
}

enum Step<'v> {
    Name(&'v str),
    At(usize),
}

struct Walk<'a, 'v> {
    fit: &'a Fit,
    most: u64,
    spent: u64,
    copies: u64,
    /// Alternatives inside of alternatives.
    alternatives: u64,
    depth: usize,
    /// Schemas inside of schemas that look at the same value, and the longest such chain.
    chain: u64,
    longest: u64,
    path: Vec<Step<'v>>,
}

impl<'a, 'v> Walk<'a, 'v> {
    fn over<T>(&self) -> Result<T, Over> {
        let step = |step: &Step| match step {
            Step::Name(name) => format!("/{}", name.replace('~', "~0").replace('/', "~1")),
            Step::At(at) => format!("/{at}"),
        };
        Err(Over { pointer: self.path.iter().map(step).collect(), deep: self.depth == DEPTH_MAX })
    }

    fn spend(&mut self, steps: u64) -> Result<(), Over> {
        self.spent = self.spent.saturating_add(steps.saturating_mul(1 + self.alternatives));
        if self.spent > self.most { self.over() } else { Ok(()) }
    }

    fn visit(&mut self, schema: &'a Value, value: &'v Value) -> Result<(), Over> {
        self.spend(1)?;
        let Value::Object(keywords) = schema else { return Ok(()) };
        if self.depth == DEPTH_MAX {
            return self.over();
        }
        self.depth += 1;
        self.chain += 1;
        let (before, longest) = (self.spent, std::mem::replace(&mut self.longest, self.chain));
        for (name, sub) in keywords {
            self.spend(1)?;
            self.copies += self.alternatives.min(1);
            self.keyword(keywords, name, sub, value)?;
        }
        self.unevaluated(keywords, value, before)?;
        self.longest = self.longest.max(longest);
        self.chain -= 1;
        self.depth -= 1;
        Ok(())
    }

    fn keyword(
        &mut self,
        keywords: &'a Map<String, Value>,
        name: &str,
        sub: &'a Value,
        value: &'v Value,
    ) -> Result<(), Over> {
        match (name, value) {
            (name, _) if REFERENCES.contains(&name) => self.reference(sub, value),
            ("allOf", _) => self.each(sub, value),
            ("anyOf" | "oneOf", _) => {
                self.alternatives += 1;
                self.each(sub, value)?;
                self.alternatives -= 1;
                Ok(())
            }
            // What must not be is told as it is written.
            ("not", _) => {
                if self.alternatives > 0 {
                    let parts = parts(sub);
                    self.copies += parts;
                    self.spend(parts)?;
                }
                self.visit(sub, value)
            }
            ("if" | "then" | "else", _) => self.visit(sub, value),
            ("enum", _) => self.size(value, sub.as_array().map_or(1, |options| options.len() as u64)),
            ("const", _) => self.size(value, 1),
            ("uniqueItems", Value::Array(items)) => self.size(value, 16u64.min(items.len() as u64)),
            ("format", Value::String(text)) if sub == "regex" => {
                self.spend(text.len().min(pattern::LENGTH_MAX) as u64 * pattern::COMPILE_PRICE + text.len() as u64)
            }
            ("minLength" | "maxLength" | "format" | "contentEncoding" | "contentMediaType", Value::String(text)) => {
                self.spend(text.len() as u64 / 4)
            }
            ("pattern", Value::String(text)) => self.matches(sub.as_str().unwrap_or(""), text).map(drop),
            ("items" | "prefixItems" | "additionalItems" | "contains", Value::Array(items)) => self.items(sub, items),
            (_, Value::Object(fields)) => self.fields(keywords, name, sub, value, fields),
            _ => Ok(()),
        }
    }

    fn reference(&mut self, sub: &Value, value: &'v Value) -> Result<(), Over> {
        let target = sub.as_str().and_then(|name| self.fit.targets.get(name));
        match target.and_then(|pointer| self.fit.root.pointer(pointer)) {
            Some(schema) => self.visit(schema, value),
            None => Ok(()),
        }
    }

    fn each(&mut self, schemas: &'a Value, value: &'v Value) -> Result<(), Over> {
        schemas.as_array().into_iter().flatten().try_for_each(|schema| self.visit(schema, value))
    }

    fn items(&mut self, sub: &'a Value, items: &'v [Value]) -> Result<(), Over> {
        for (at, item) in items.iter().enumerate() {
            // A list of schemas goes by position; one schema is for all.
            let Some(schema) = sub.as_array().map_or(Some(sub), |list| list.get(at)) else { return Ok(()) };
            self.inside(Step::At(at), schema, item)?;
        }
        Ok(())
    }

    fn inside(&mut self, step: Step<'v>, schema: &'a Value, value: &'v Value) -> Result<(), Over> {
        self.path.push(step);
        let chain = std::mem::take(&mut self.chain);
        let longest = std::mem::take(&mut self.longest);
        self.visit(schema, value)?;
        (self.chain, self.longest) = (chain, longest);
        self.path.pop();
        Ok(())
    }

    fn fields(
        &mut self,
        keywords: &'a Map<String, Value>,
        name: &str,
        sub: &'a Value,
        value: &'v Value,
        fields: &'v Map<String, Value>,
    ) -> Result<(), Over> {
        let named = |of: &'a Value| of.as_object().into_iter().flatten();
        match name {
            "properties" => {
                for (name, schema) in named(sub) {
                    self.spend(1)?;
                    if let Some((name, value)) = fields.get_key_value(name) {
                        self.inside(Step::Name(name), schema, value)?;
                    }
                }
            }
            "patternProperties" => {
                for (pattern, schema) in named(sub) {
                    for (name, value) in fields {
                        if self.matches(pattern, name)? {
                            self.inside(Step::Name(name), schema, value)?;
                        }
                    }
                }
            }
            "additionalProperties" => {
                let known = keywords.get("properties").and_then(Value::as_object);
                for (name, value) in fields {
                    self.spend(1)?;
                    if known.is_none_or(|known| !known.contains_key(name)) {
                        self.inside(Step::Name(name), sub, value)?;
                    }
                }
            }
            "propertyNames" => {
                for name in fields.keys() {
                    self.name(sub, name)?;
                }
            }
            "dependentSchemas" | "dependencies" => {
                for (name, schema) in named(sub) {
                    self.spend(1)?;
                    if fields.contains_key(name) {
                        self.visit(schema, value)?;
                        self.names(schema)?;
                    }
                }
            }
            "dependentRequired" => {
                for (name, required) in named(sub) {
                    self.spend(1)?;
                    if fields.contains_key(name) {
                        self.names(required)?;
                    }
                }
            }
            "required" => self.names(sub)?,
            _ => {}
        }
        Ok(())
    }

    /// Names that are looked for, each of which may be told to be missing.
    fn names(&mut self, list: &Value) -> Result<(), Over> {
        let count = list.as_array().map_or(0, |names| names.len() as u64);
        self.copies += self.alternatives.min(1) * count;
        self.spend(count)
    }

    /// A name is a value of its own, which nothing outlives: it is counted as if it were walked alone.
    fn name(&mut self, schema: &'a Value, name: &str) -> Result<(), Over> {
        let value = Value::String(name.to_owned());
        let most = (self.most - self.spent.min(self.most)) / (1 + self.alternatives);
        let mut walk = Walk {
            fit: self.fit,
            most,
            spent: 0,
            copies: 0,
            alternatives: self.alternatives,
            depth: self.depth,
            chain: 0,
            longest: 0,
            path: Vec::new(),
        };
        match walk.visit(schema, &value) {
            Ok(()) => {
                self.spent = self.spent.saturating_add(walk.spent);
                self.copies += walk.copies;
                self.spend(1)
            }
            Err(_) => self.over(),
        }
    }

    /// To know what was looked at already, all of that is looked at once more, by each schema of the chain: `before` is what
    /// was spent before it was looked at for the first time.
    fn unevaluated(&mut self, keywords: &'a Map<String, Value>, value: &'v Value, before: u64) -> Result<(), Over> {
        match (keywords.get("unevaluatedProperties"), keywords.get("unevaluatedItems"), value) {
            (Some(sub), _, Value::Object(fields)) => {
                fields.iter().try_for_each(|(name, value)| self.inside(Step::Name(name), sub, value))?;
            }
            (_, Some(sub), Value::Array(items)) => self.items(sub, items)?,
            _ => return Ok(()),
        }
        let levels = 1 + self.longest - self.chain;
        self.spent = self.spent.saturating_add((self.spent - before).saturating_mul(levels));
        self.spend(1)
    }

    /// Looking at all of a value so many times.
    fn size(&mut self, value: &Value, times: u64) -> Result<(), Over> {
        self.spend(times)?;
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.size(item, times)),
            Value::Object(fields) => fields.iter().try_for_each(|(name, value)| {
                self.spend(times.saturating_mul(name.len() as u64 / BYTES_PER_STEP))?;
                self.size(value, times)
            }),
            Value::String(text) => self.spend(times.saturating_mul(text.len() as u64 / BYTES_PER_STEP)),
            _ => Ok(()),
        }
    }

    fn matches(&mut self, wanted: &str, text: &str) -> Result<bool, Over> {
        let made = self.fit.patterns.get(wanted).and_then(Option::as_ref);
        let price = made.map_or(PRICE_UNKNOWN, |made| made.price());
        self.spend(1 + price.saturating_mul(text.len() as u64))?;
        // What could match counts as if it did.
        Ok(made.is_none_or(|made| made.is_match(text)))
    }
}

/// Values inside of a value, and itself.
fn parts(value: &Value) -> u64 {
    1 + match value {
        Value::Array(items) => items.iter().map(parts).sum(),
        Value::Object(fields) => fields.values().map(parts).sum(),
        _ => 0,
    }
}
