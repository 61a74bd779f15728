//! Settings as they are read once they were checked.

use super::{
    Effective, Origin,
    table::{SETTINGS, Setting},
    value,
};
use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc, time::Duration};
use windlass_core::Millis;

/// What was set, by name. What is missing has its default. Shows itself to nobody: there are secrets in it.
#[derive(Clone, Default)]
pub struct Values(Arc<BTreeMap<&'static str, Value>>);

#[derive(Clone)]
struct Value {
    text: String,
    /// Somebody said so, as opposed to the table.
    chosen: bool,
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} settings", self.0.len())
    }
}

impl Values {
    pub fn new(effective: &[Effective]) -> Self {
        let value = |one: &Effective| Value { text: one.text.clone(), chosen: one.origin != Origin::Default };
        Self(Arc::new(effective.iter().map(|one| (one.setting.name, value(one))).collect()))
    }

    /// With one that somebody chose, as it would stand in a file.
    pub fn with(mut self, name: &'static str, text: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.0).insert(name, Value { text: text.into(), chosen: true });
        self
    }

    /// For whoever has these settings beside the server's own.
    pub fn reader(&self, own: &'static [Setting]) -> Reader<'_> {
        Reader { values: self, own }
    }
}

/// Typed reading. Panics at a name that is in no table, and at a value that does not fit its kind: both were checked.
pub struct Reader<'a> {
    values: &'a Values,
    own: &'static [Setting],
}

impl<'a> Reader<'a> {
    pub fn text(&self, name: &str) -> &'a str {
        if let Some(value) = self.values.0.get(name) {
            return &value.text;
        }
        let found = self.own.iter().chain(SETTINGS).find(|setting| setting.name == name);
        found.expect("the table has every setting that is read").default
    }
    /// Whether somebody said so.
    pub fn is_chosen(&self, name: &str) -> bool {
        self.values.0.get(name).is_some_and(|value| value.chosen)
    }
    pub fn some(&self, name: &str) -> Option<&'a str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.some(name).map(PathBuf::from)
    }
    pub fn flag(&self, name: &str) -> bool {
        value::flag(self.text(name)).expect("values were checked")
    }
    pub fn count(&self, name: &str) -> usize {
        value::count(self.text(name)).expect("values were checked") as usize
    }
    pub fn whole(&self, name: &str) -> i32 {
        value::whole(self.text(name)).expect("values were checked")
    }
    pub fn bytes(&self, name: &str) -> usize {
        value::bytes(self.text(name)).expect("values were checked") as usize
    }
    pub fn time(&self, name: &str) -> Duration {
        value::time(self.text(name)).expect("values were checked")
    }
    pub fn millis(&self, name: &str) -> Millis {
        Millis(i64::try_from(self.time(name).as_millis()).unwrap_or(i64::MAX))
    }
}
