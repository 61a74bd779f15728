//! Reads JSON field by field. All faults are collected, each with its place; what is missing is read as if it were empty, so that
//! the faults after it are found too.

use super::reference::{EntityType, Reference};
use serde_json::{Map, Value};
use std::fmt;

/// Faults told at once.
const FAULTS_MAX: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A field is missing, or is not what it has to be.
    Shape,
    /// A label is used twice.
    Twice,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Such as `steps[1].label`.
    pub place: String,
    pub text: String,
    pub kind: FaultKind,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.is_empty() { f.write_str(&self.text) } else { write!(f, "{} {}", self.place, self.text) }
    }
}

/// An object, and where it is.
pub struct Fields<'v> {
    map: &'v Map<String, Value>,
    place: String,
}

impl Fields<'_> {
    pub fn place(&self, field: &str) -> String {
        if self.place.is_empty() { field.to_owned() } else { format!("{}.{field}", self.place) }
    }
}

#[derive(Default)]
pub struct Reader {
    faults: Vec<Fault>,
}

impl Reader {
    pub fn fault(&mut self, place: String, text: impl Into<String>) {
        self.add(Fault { place, text: text.into(), kind: FaultKind::Shape });
    }

    pub fn add(&mut self, fault: Fault) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(fault);
        }
    }

    pub fn done<T>(self, made: Option<T>) -> Result<T, Vec<Fault>> {
        match made {
            Some(made) if self.faults.is_empty() => Ok(made),
            _ => Err(self.faults),
        }
    }

    pub fn object<'v>(&mut self, value: &'v Value, place: String) -> Option<Fields<'v>> {
        match value.as_object() {
            Some(map) => Some(Fields { map, place }),
            None => {
                self.fault(place, "must be an object");
                None
            }
        }
    }

    /// None: the field is not there. Null says the same.
    fn find<'v>(&self, at: &Fields<'v>, field: &str) -> Option<&'v Value> {
        at.map.get(field).filter(|value| !value.is_null())
    }

    pub fn must<'v>(&mut self, at: &Fields<'v>, field: &str) -> Option<&'v Value> {
        let found = self.find(at, field);
        if found.is_none() {
            self.fault(at.place(field), "is missing");
        }
        found
    }

    /// Whatever is there; null too.
    pub fn value(&self, at: &Fields<'_>, field: &str) -> Value {
        at.map.get(field).cloned().unwrap_or_default()
    }

    pub fn has(&self, at: &Fields<'_>, field: &str) -> bool {
        self.find(at, field).is_some()
    }

    pub fn inner<'v>(&mut self, at: &Fields<'v>, field: &str) -> Option<Fields<'v>> {
        let found = self.find(at, field)?;
        self.object(found, at.place(field))
    }

    fn typed<'v, T>(
        &mut self,
        at: &Fields<'v>,
        field: &str,
        found: &'v Value,
        read: fn(&'v Value) -> Option<T>,
        must: &str,
    ) -> Option<T> {
        let made = read(found);
        if made.is_none() {
            self.fault(at.place(field), format!("must be {must}"));
        }
        made
    }

    pub fn text<'v>(&mut self, at: &Fields<'v>, field: &str) -> Option<&'v str> {
        let found = self.find(at, field)?;
        self.typed(at, field, found, Value::as_str, "a string")
    }

    pub fn must_text<'v>(&mut self, at: &Fields<'v>, field: &str) -> &'v str {
        let Some(found) = self.must(at, field) else { return "" };
        self.typed(at, field, found, Value::as_str, "a string").unwrap_or_default()
    }

    /// A string of this many characters.
    pub fn sized<'v>(&mut self, at: &Fields<'v>, field: &str, min: usize, max: usize) -> Option<&'v str> {
        let text = self.text(at, field)?;
        if !(min..=max).contains(&text.chars().count()) {
            self.fault(at.place(field), format!("must have {min} to {max} characters"));
        }
        Some(text)
    }

    pub fn must_sized<'v>(&mut self, at: &Fields<'v>, field: &str, min: usize, max: usize) -> &'v str {
        self.must(at, field);
        self.sized(at, field, min, max).unwrap_or_default()
    }

    pub fn flag(&mut self, at: &Fields<'_>, field: &str) -> Option<bool> {
        let found = self.find(at, field)?;
        self.typed(at, field, found, Value::as_bool, "true or false")
    }

    pub fn must_flag(&mut self, at: &Fields<'_>, field: &str) -> bool {
        self.must(at, field);
        self.flag(at, field).unwrap_or_default()
    }

    pub fn number(&mut self, at: &Fields<'_>, field: &str, min: f64, max: f64) -> Option<f64> {
        let found = self.find(at, field)?;
        let number = self.typed(at, field, found, Value::as_f64, "a number")?;
        if !(min..=max).contains(&number) {
            self.fault(at.place(field), format!("must be between {min} and {max}"));
        }
        Some(number)
    }

    /// A part of a version.
    pub fn must_count(&mut self, at: &Fields<'_>, field: &str) -> u32 {
        let Some(found) = self.must(at, field) else { return 0 };
        let whole =
            found.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(number));
        if whole.is_none() {
            self.fault(at.place(field), format!("must be a whole number between 0 and {}", u32::MAX));
        }
        whole.unwrap_or_default() as u32
    }

    pub fn map(&mut self, at: &Fields<'_>, field: &str) -> Option<Map<String, Value>> {
        let found = self.find(at, field)?;
        self.typed(at, field, found, Value::as_object, "an object").cloned()
    }

    /// A list's values, each with its place.
    pub fn list<'v>(&mut self, at: &Fields<'v>, field: &str, max: usize) -> Vec<(String, &'v Value)> {
        let Some(found) = self.find(at, field) else { return Vec::new() };
        let Some(list) = self.typed(at, field, found, Value::as_array, "a list") else { return Vec::new() };
        if list.len() > max {
            self.fault(at.place(field), format!("must have at most {max} entries; it has {}", list.len()));
            return Vec::new();
        }
        list.iter().enumerate().map(|(index, value)| (format!("{}[{index}]", at.place(field)), value)).collect()
    }

    pub fn entity(&mut self, at: &Fields<'_>, field: &str) -> Option<EntityType> {
        let text = self.text(at, field)?;
        let found = EntityType::parse(text);
        if found.is_none() {
            let all = EntityType::ALL.map(EntityType::as_str).join(", ");
            self.fault(at.place(field), format!("must be one of {all}; it is {text:?}"));
        }
        found
    }

    pub fn must_entity(&mut self, at: &Fields<'_>, field: &str) -> EntityType {
        self.must(at, field);
        self.entity(at, field).unwrap_or(EntityType::Global)
    }

    pub fn must_reference(&mut self, at: &Fields<'_>, field: &str) -> Option<Reference> {
        let text = self.must(at, field).and(self.text(at, field))?;
        let found = Reference::parse(text);
        if found.is_none() {
            self.fault(at.place(field), format!("must look like package/name:1, :1.2 or :1.2.3; it is {text:?}"));
        }
        found
    }
}
