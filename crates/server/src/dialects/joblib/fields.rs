//! The fields of a JSON body, read one by one, so that all that is wrong is told at once. What is kept as it was sent is not
//! taken apart.

use super::{
    body::no_object,
    error::{HttpError, Result},
    fault::{self, Fault},
};
use serde_json::{Value, value::RawValue};
use std::collections::BTreeMap;
use windlass_api::Uuid;

#[derive(Debug, Default)]
pub struct Fields {
    sent: BTreeMap<String, Box<RawValue>>,
    faults: Vec<Fault>,
    /// There are secrets among them, so no fault repeats anything.
    hidden: bool,
}

impl Fields {
    pub fn read(bytes: &[u8]) -> Result<Self, Fault> {
        match serde_json::from_slice(bytes) {
            Ok(sent) => Ok(Self { sent, ..Self::default() }),
            Err(error) if error.is_data() => Err(no_object()),
            Err(error) => Err(Fault::json(error.column().saturating_sub(1), error.to_string())),
        }
    }

    pub fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// Whether a field was sent, null included.
    pub fn has(&self, name: &str) -> bool {
        self.sent.contains_key(name)
    }

    pub fn fault(&mut self, fault: Fault) {
        self.faults.push(if self.hidden { fault.hidden() } else { fault });
    }

    /// The text of a field that has to be there. Empty where it is not: [`Fields::done`] tells.
    pub fn text(&mut self, name: &str) -> String {
        match self.sent.get(name) {
            Some(raw) => self.string(name, raw.get().to_owned()).unwrap_or_default(),
            None => {
                let all = self.shown();
                self.fault(Fault::missing(&["body", name], all));
                String::new()
            }
        }
    }

    /// None where it was not sent, or null.
    pub fn maybe_text(&mut self, name: &str) -> Option<String> {
        let raw = self.unless_null(name)?;
        self.string(name, raw)
    }

    pub fn id(&mut self, name: &str) -> Uuid {
        if self.has(name) && self.unless_null(name).is_none() {
            self.fault(no_id(name, Value::Null));
        } else if !self.has(name) {
            let all = self.shown();
            self.fault(Fault::missing(&["body", name], all));
        }
        self.maybe_id(name).unwrap_or_default()
    }

    /// None where it was not sent, or null.
    pub fn maybe_id(&mut self, name: &str) -> Option<Uuid> {
        let raw = self.unless_null(name)?;
        let read = match serde_json::from_str::<String>(&raw) {
            Ok(text) => fault::uuid(&["body", name], &text),
            Err(_) => Err(no_id(name, value(&raw))),
        };
        read.map_err(|fault| self.fault(fault)).ok()
    }

    /// An object as it was sent, under the first of these names. None where it was not sent; null is none.
    pub fn object(&mut self, names: &[&str]) -> Option<Box<RawValue>> {
        let (name, raw) = names.iter().find_map(|name| Some((*name, self.sent.get(*name)?.clone())))?;
        if raw.get().starts_with('{') {
            return Some(raw);
        }
        let msg = "Input should be a valid dictionary";
        self.fault(Fault::new("dict_type", &["body", name], msg, value(raw.get())));
        None
    }

    /// One of a few words, which has to be there.
    pub fn word(&mut self, name: &str, words: &[&'static str]) -> Option<&'static str> {
        let Some(raw) = self.sent.get(name).map(|raw| raw.get().to_owned()) else {
            let all = self.shown();
            self.fault(Fault::missing(&["body", name], all));
            return None;
        };
        let sent = value(&raw);
        let found = words.iter().copied().find(|word| sent == *word);
        if found.is_none() {
            self.fault(Fault::word(&["body", name], words, sent));
        }
        found
    }

    /// None where it was not sent, or null.
    pub fn flag(&mut self, name: &str) -> Option<bool> {
        let raw = self.unless_null(name)?;
        let read = serde_json::from_str::<bool>(&raw);
        let msg = "Input should be a valid boolean";
        read.map_err(|_| self.fault(Fault::new("bool_type", &["body", name], msg, value(&raw)))).ok()
    }

    /// After all fields were read: tells what was wrong with them.
    pub fn done(self) -> Result<()> {
        if self.faults.is_empty() { Ok(()) } else { Err(HttpError::Invalid(self.faults)) }
    }

    fn unless_null(&self, name: &str) -> Option<String> {
        self.sent.get(name).map(|raw| raw.get().to_owned()).filter(|raw| raw != "null")
    }

    fn string(&mut self, name: &str, raw: String) -> Option<String> {
        let read = serde_json::from_str::<String>(&raw);
        let msg = "Input should be a valid string";
        read.map_err(|_| self.fault(Fault::new("string_type", &["body", name], msg, value(&raw)))).ok()
    }

    fn shown(&self) -> Value {
        let long: usize = self.sent.iter().map(|(name, raw)| name.len() + raw.get().len()).sum();
        if self.hidden || long > 1_000 { Value::Null } else { serde_json::to_value(&self.sent).unwrap_or_default() }
    }
}

fn no_id(name: &str, input: Value) -> Fault {
    Fault::new("uuid_type", &["body", name], "UUID input should be a string, bytes or UUID object", input)
}

fn value(raw: &str) -> Value {
    if raw.len() > 1_000 { Value::Null } else { serde_json::from_str(raw).unwrap_or_default() }
}
