//! What expressions see: names, each with a value. Parts are shared, so that a thousand devices are not copied for each of them.

use super::secrets;
use crate::meter::Meter;
use jmespath::{Rcvar, Variable};
use serde_json::Value;
use std::collections::BTreeMap;

/// A value that scopes share.
#[derive(Clone, Debug)]
pub struct Part {
    value: Rcvar,
    room: u64,
}

impl Part {
    pub fn new(value: &Value) -> Self {
        // Plain JSON is always a value of the language.
        Self { value: Rcvar::new(Variable::try_from(value).unwrap_or(Variable::Null)), room: room_of(value) }
    }

    /// A device, an interface or a group, whose passwords expressions do not see.
    pub fn entity(value: &Value) -> Self {
        Self { value: secrets::for_expressions(value), room: room_of(value) }
    }

    pub fn object(fields: impl IntoIterator<Item = (String, Part)>) -> Self {
        let mut room = 0_u64;
        let fields: BTreeMap<String, Rcvar> = fields
            .into_iter()
            .map(|(name, part)| {
                room = room.saturating_add(part.room);
                (name, part.value)
            })
            .collect();
        Self { value: Rcvar::new(Variable::Object(fields)), room }
    }

    pub fn list(items: impl IntoIterator<Item = Part>) -> Self {
        let mut room = 0_u64;
        let items = items.into_iter().map(|part| {
            room = room.saturating_add(part.room);
            part.value
        });
        let items = items.collect();
        Self { value: Rcvar::new(Variable::Array(items)), room }
    }

    pub fn room(&self) -> usize {
        usize::try_from(self.room).unwrap_or(usize::MAX)
    }

    pub fn json(&self) -> Value {
        serde_json::to_value(&*self.value).unwrap_or_default()
    }

    pub fn null() -> Self {
        Self { value: Rcvar::new(Variable::Null), room: 1 }
    }
}

fn room_of(value: &Value) -> u64 {
    Meter::default().weigh(value).unwrap_or(u64::MAX)
}

#[derive(Clone, Debug)]
pub struct Scope(Part);

impl Scope {
    pub fn new(fields: impl IntoIterator<Item = (String, Part)>) -> Self {
        Self(Part::object(fields))
    }

    pub fn of<'a>(fields: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        Self::new(fields.into_iter().map(|(name, value)| (name.to_owned(), Part::new(&value))))
    }

    /// One value as all there is.
    pub fn only(part: Part) -> Self {
        Self(part)
    }

    pub(super) fn root(&self) -> &Rcvar {
        &self.0.value
    }
}
