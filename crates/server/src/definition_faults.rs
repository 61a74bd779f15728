//! Everything that is wrong with a definition file, at once: whoever writes one should not have to run a check for each mistake.
//!
//! Only read when the file cannot be used. Its settings are then tried one by one, each with the place it stands at.

use crate::{native::definitions as native, problem::Problem};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value, json};
use serde_saphyr::{Location, Spanned};
use std::fmt;
use windlass_api::definition::DefinitionBody;
use windlass_core::Limits;

/// Nobody reads more of them at a time.
pub const FAULTS_MAX: usize = 20;

/// Line and column, from 1, and what is wrong.
pub type Misread = (Option<(u64, u64)>, String);

/// What is wrong with the settings of a file. Empty where each of them alone would do.
pub fn of_settings(settings: &Settings, limits: &Limits) -> Vec<Misread> {
    let mut faults = Vec::new();
    for (name, value) in &settings.0 {
        if name.value != "name" {
            setting(name, value, limits, &mut faults);
        }
    }
    faults.truncate(FAULTS_MAX);
    faults
}

fn setting(name: &Spanned<String>, value: &Spanned<Node>, limits: &Limits, faults: &mut Vec<Misread>) {
    let alone = |value: Value| -> Result<DefinitionBody, serde_json::Error> {
        serde_json::from_value(json!({ &name.value: value }))
    };
    match alone(value.value.json()) {
        Ok(body) => faults.extend(native::check("x", &body, limits).err().map(|problem| at(name, problem))),
        Err(error) => {
            let before = faults.len();
            if let Node::Map(members) = &value.value {
                for (member, inner) in members {
                    let one = json!({ &member.value: inner.value.json() });
                    let wrong = alone(one).err().map(|error| (place(&member.referenced), said(&name.value, &error)));
                    faults.extend(wrong);
                }
            }
            if faults.len() == before {
                faults.push((place(&name.referenced), said(&name.value, &error)));
            }
        }
    }
}

fn said(name: &str, error: &serde_json::Error) -> String {
    format!("{name}: {error}")
}

fn at(name: &Spanned<String>, problem: Problem) -> Misread {
    (place(&name.referenced), problem.0.to_string())
}

fn place(location: &Location) -> Option<(u64, u64)> {
    Some((location.line(), location.column()))
}

/// Where the setting that a problem names stands.
pub fn place_of(settings: &Settings, problem: &Problem) -> Option<(u64, u64)> {
    let field = problem.0.field.as_deref()?;
    let first = field.split(['.', '[', '/']).next()?;
    let (name, _) = settings.0.iter().find(|(name, _)| name.value == first)?;
    place(&name.referenced)
}

/// What a file says, with the places it says it at.
#[derive(Default)]
pub struct Settings(Vec<(Spanned<String>, Spanned<Node>)>);

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Node::deserialize(deserializer)? {
            Node::Map(members) => Ok(Self(members)),
            _ => Err(serde::de::Error::custom("a definition is a map of settings")),
        }
    }
}

pub enum Node {
    Map(Vec<(Spanned<String>, Spanned<Node>)>),
    List(Vec<Node>),
    Plain(Value),
}

impl Node {
    fn json(&self) -> Value {
        match self {
            Node::Map(members) => {
                let member =
                    |(name, value): &(Spanned<String>, Spanned<Node>)| (name.value.clone(), value.value.json());
                Value::Object(members.iter().map(member).collect::<Map<_, _>>())
            }
            Node::List(items) => Value::Array(items.iter().map(Node::json).collect()),
            Node::Plain(value) => value.clone(),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Node;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_unit<E>(self) -> Result<Node, E> {
                Ok(Node::Plain(Value::Null))
            }
            fn visit_none<E>(self) -> Result<Node, E> {
                Ok(Node::Plain(Value::Null))
            }
            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
                Node::deserialize(deserializer)
            }
            fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
                Ok(Node::Plain(value.into()))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
                Ok(Node::Plain(value.into()))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
                Ok(Node::Plain(value.into()))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
                Ok(Node::Plain(value.into()))
            }
            fn visit_str<E>(self, value: &str) -> Result<Node, E> {
                Ok(Node::Plain(value.into()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
                let mut found = Vec::new();
                while let Some(item) = items.next_element()? {
                    found.push(item);
                }
                Ok(Node::List(found))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Node, A::Error> {
                let mut found = Vec::new();
                while let Some(name) = members.next_key()? {
                    found.push((name, members.next_value()?));
                }
                Ok(Node::Map(found))
            }
        }
        deserializer.deserialize_any(Any)
    }
}
