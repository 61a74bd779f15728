//! Settings as they are read once they were checked.

use super::{Effective, Origin, table::Setting, value};
use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc, time::Duration};
use windlass_core::Millis;

/// What was set, by name. What is missing has its default. Reading panics at a value that does not fit its kind: all were
/// checked. Shows itself to nobody: there are secrets in it.
#[derive(Clone, Default)]
pub struct Values(Arc<BTreeMap<&'static str, Value>>);

#[derive(Clone)]
struct Value {
    text: String,
    /// Somebody said so, as opposed to the table.
    chosen: bool,
    /// For people to see, and where it comes from.
    shown: String,
    origin: String,
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} settings", self.0.len())
    }
}

impl Values {
    pub fn new(effective: &[Effective]) -> Self {
        let value = |one: &Effective| Value {
            text: one.text.clone(),
            chosen: one.origin != Origin::Default,
            shown: one.shown().to_owned(),
            origin: one.source(),
        };
        Self(Arc::new(effective.iter().map(|one| (one.setting.name, value(one))).collect()))
    }

    /// With one that somebody chose, as it would stand in a file.
    pub fn with(mut self, setting: Setting, text: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.0).insert(
            setting.name,
            Value { text: text.into(), chosen: true, shown: String::new(), origin: String::new() },
        );
        self
    }

    /// Names, values without secrets, and origins.
    pub fn shown(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.shown.as_str(), value.origin.as_str()))
    }

    pub fn text(&self, setting: Setting) -> &str {
        self.0.get(setting.name).map_or(setting.default, |value| &value.text)
    }
    /// Where it comes from.
    pub fn origin(&self, setting: Setting) -> &str {
        self.0.get(setting.name).map_or("default", |value| &value.origin)
    }
    /// Whether somebody said so.
    pub fn is_chosen(&self, setting: Setting) -> bool {
        self.0.get(setting.name).is_some_and(|value| value.chosen)
    }
    pub fn some(&self, setting: Setting) -> Option<&str> {
        Some(self.text(setting)).filter(|text| !text.is_empty())
    }
    pub fn path(&self, setting: Setting) -> Option<PathBuf> {
        self.some(setting).map(PathBuf::from)
    }
    pub fn flag(&self, setting: Setting) -> bool {
        value::flag(self.text(setting)).expect("values were checked")
    }
    pub fn count(&self, setting: Setting) -> usize {
        value::count(self.text(setting)).expect("values were checked") as usize
    }
    pub fn whole(&self, setting: Setting) -> i32 {
        value::whole(self.text(setting)).expect("values were checked")
    }
    pub fn bytes(&self, setting: Setting) -> usize {
        value::bytes(self.text(setting)).expect("values were checked") as usize
    }
    pub fn time(&self, setting: Setting) -> Duration {
        value::time(self.text(setting)).expect("values were checked")
    }
    pub fn millis(&self, setting: Setting) -> Millis {
        Millis(i64::try_from(self.time(setting).as_millis()).unwrap_or(i64::MAX))
    }
}
