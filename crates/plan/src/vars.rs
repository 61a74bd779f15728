//! The values behind the names that expressions may use.

use cel::{
    common::{
        types::{CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString},
        value::{CowVal, Val},
    },
    context::VariableResolver,
};
use serde_json::Value;
use std::collections::HashMap;

#[derive(Debug, Default)]
pub struct Vars {
    /// Each as JSON, and as expressions take it: they borrow that, so that ten thousand expressions do not copy it as often.
    values: Vec<(&'static str, Value, Box<dyn Val>)>,
}

impl Vars {
    pub fn set(&mut self, name: &'static str, value: Value) {
        self.take(name);
        let shared = shared(&value);
        self.values.push((name, value, shared));
    }

    pub fn take(&mut self, name: &str) -> Value {
        let found = self.values.iter().position(|(known, ..)| *known == name);
        found.map_or(Value::Null, |at| self.values.swap_remove(at).1)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.values.iter().find(|(known, ..)| *known == name).map(|(_, value, _)| value)
    }
}

impl VariableResolver for Vars {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        let found = self.values.iter().find(|(known, ..)| *known == variable);
        found.map(|(.., shared)| CowVal::Borrowed(&**shared))
    }
}

/// Whole numbers are signed ones, however JSON keeps them: CEL does not mix the two.
fn shared(value: &Value) -> Box<dyn Val> {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(value) => Box::new(CelBool::from(*value)),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Box::new(CelInt::from(whole)),
            None => Box::new(CelDouble::from(number.as_f64().unwrap_or_default())),
        },
        Value::String(text) => Box::new(CelString::from(text.clone())),
        Value::Array(items) => Box::new(CelList::from(items.iter().map(shared).collect::<Vec<_>>())),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| (CelMapKey::from(name.clone()), shared(value));
            Box::new(CelMap::from(fields.iter().map(field).collect::<HashMap<_, _>>()))
        }
    }
}
