//! Devices, interfaces and groups: what is known about each, and the types its fields must have.
//!
//! Workers read them into typed models, so a field of the wrong type would fail every job that sees it.

use super::{
    read::{Fault, FaultKind},
    reference::EntityType,
    secrets,
};
use serde_json::Value;

/// Ids are numbers that JSON keeps exactly.
pub const ID_MAX: u64 = 1 << 53;

/// Types that are kept, each with the name of its list in a context.
pub const KEPT: [(EntityType, &str); 3] =
    [(EntityType::Device, "devices"), (EntityType::Interface, "interfaces"), (EntityType::Group, "deviceGroups")];

/// The list of a context that entities of a type are in. None: there is none.
pub fn list_of(entity: EntityType) -> Option<&'static str> {
    KEPT.into_iter().find(|(kept, _)| *kept == entity).map(|(_, list)| list)
}

#[derive(Clone, Copy)]
enum Shape {
    Text,
    Number,
    Flag,
    Object,
    OneOf(&'static [&'static str]),
    /// An object with an id.
    Link,
    Links,
    Objects,
    Texts,
}

const TIMES: &[&str] = &["createdAt", "updatedAt", "deletedAt", "firstSeenAt", "inventoryUpdatedAt"];
const DEVICE_TEXTS: &[&str] = &[
    "hostname",
    "ip",
    "username",
    "password",
    "model",
    "serial",
    "vendor",
    "softwareRelease",
    "externalReference",
    "checks",
    "connectionOptions",
    "currentConfiguration",
    "lastConfiguration",
];
const DEVICE_LISTS: &[&str] = &[
    "interfaces",
    "groups",
    "devices",
    "checkElements",
    "factElements",
    "configVersions",
    "deviceExecution",
    "deviceExecutionResults",
];
const DEVICE_NUMBERS: &[&str] = &["groupCount", "interfaceCount", "activeLockCounts", "permission"];
const INTERFACE_TEXTS: &[&str] = &["name", "description", "currentConfiguration", "lastConfiguration", "nameSorting"];
const INTERFACE_OBJECTS: &[&str] = &["facts", "checks", "checkElements", "neighborForDeletion"];
const INTERFACE_LISTS: &[&str] = &["factElements", "configVersions", "interfaceExecutionResults"];

/// None: the field may be anything.
fn shape(entity: EntityType, field: &str) -> Option<Shape> {
    let among = |list: &[&str]| list.contains(&field);
    if among(TIMES) {
        return Some(Shape::Text);
    }
    if field == "permissionFlags" {
        return Some(Shape::Texts);
    }
    match entity {
        EntityType::Device => match field {
            "connectionState" => Some(Shape::OneOf(&["NEW", "UNREACHABLE", "NOSSH", "AUTHFAILURE", "OK"])),
            "facts" => Some(Shape::Object),
            "platform" | "controller" => Some(Shape::Link),
            "isReadLocked" | "isWriteLocked" => Some(Shape::Flag),
            _ if among(DEVICE_TEXTS) => Some(Shape::Text),
            _ if among(DEVICE_LISTS) => Some(Shape::Links),
            _ if among(DEVICE_NUMBERS) => Some(Shape::Number),
            _ => None,
        },
        EntityType::Interface => match field {
            "state" => Some(Shape::OneOf(&["UP", "DOWN", "ADMINISTRATIVE_SHUTDOWN", "ERROR_DISABLED"])),
            "device" | "interface" => Some(Shape::Link),
            "clients" => Some(Shape::Links),
            "ifindex" | "clientCount" | "permission" => Some(Shape::Number),
            _ if among(INTERFACE_TEXTS) => Some(Shape::Text),
            _ if among(INTERFACE_OBJECTS) => Some(Shape::Object),
            _ if among(INTERFACE_LISTS) => Some(Shape::Objects),
            _ => None,
        },
        EntityType::Group => match field {
            "name" | "title" | "description" => Some(Shape::Text),
            "devices" => Some(Shape::Links),
            "facts" | "checks" | "location" => Some(Shape::Object),
            "deviceCount" | "permission" => Some(Shape::Number),
            _ => None,
        },
        EntityType::Global | EntityType::Client => None,
    }
}

impl Shape {
    /// What is wrong with a value, if anything.
    fn fault(self, value: &Value) -> Option<String> {
        let all = |test: fn(&Value) -> bool| value.as_array().is_some_and(|list| list.iter().all(test));
        let (fits, must) = match self {
            Self::Text => (value.is_string(), "a string"),
            Self::Number => (value.is_number(), "a number"),
            Self::Flag => (value.is_boolean(), "true or false"),
            Self::Object => (value.is_object(), "an object"),
            Self::Link => (is_link(value), "an object with an id"),
            Self::Links => (all(is_link), "a list of objects with ids"),
            Self::Objects => (all(Value::is_object), "a list of objects"),
            Self::Texts => (all(Value::is_string), "a list of strings"),
            Self::OneOf(allowed) => {
                let fits = value.as_str().is_some_and(|text| allowed.contains(&text));
                return (!fits).then(|| format!("must be one of {}", allowed.join(", ")));
            }
        };
        (!fits).then(|| format!("must be {must}"))
    }
}

/// The id of an entity, or of what refers to one.
pub fn id_of(value: &Value) -> Option<u64> {
    let id = value.get("id")?;
    let whole = id.as_u64().or_else(|| id.as_f64().filter(|id| id.fract() == 0.0 && *id >= 0.0).map(|id| id as u64))?;
    (1..=ID_MAX).contains(&whole).then_some(whole)
}

fn is_link(value: &Value) -> bool {
    value.get("id").is_some_and(|id| id.is_number() || id.is_string())
}

/// What is wrong with an entity; the places begin with `place`.
pub fn check(entity: EntityType, value: &Value, place: &str) -> Result<u64, Vec<Fault>> {
    let fault = |place: String, text: String| Fault { place, text, kind: FaultKind::Shape };
    let Some(fields) = value.as_object() else { return Err(vec![fault(place.into(), "must be an object".into())]) };
    let below = |field: &str| if place.is_empty() { field.to_owned() } else { format!("{place}.{field}") };
    let mut faults: Vec<Fault> = fields
        .iter()
        .filter_map(|(field, value)| Some(fault(below(field), field_fault(entity, field, value)?)))
        .collect();
    match id_of(value) {
        Some(id) if faults.is_empty() => Ok(id),
        Some(_) => Err(faults),
        None => {
            faults.insert(0, fault(below("id"), format!("must be a whole number from 1 to {ID_MAX}")));
            Err(faults)
        }
    }
}

/// What is wrong with one field. Null is allowed everywhere: nothing is known.
pub fn field_fault(entity: EntityType, field: &str, value: &Value) -> Option<String> {
    shape(entity, field).filter(|_| !value.is_null()).and_then(|shape| shape.fault(value))
}

/// `software_release` as `softwareRelease`.
pub fn camel(field: &str) -> String {
    let mut words = field.split('_').filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |camel, word| {
        let mut letters = word.chars();
        let upper = letters.next().map(|first| first.to_ascii_uppercase()).into_iter();
        camel + &upper.chain(letters).collect::<String>()
    })
}

/// What people may see: everything but passwords.
pub fn without_secrets(value: &Value) -> Value {
    let mut shown = value.clone();
    secrets::strip(&mut shown);
    shown
}
