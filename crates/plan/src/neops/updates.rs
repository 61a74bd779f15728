//! What execute jobs change about entities: at once in the context of later steps, and for good when the run completes.

use super::{
    entity::{self, KEPT, camel, field_fault, id_of, list_of},
    read::{Fault, Fields, Reader},
    reference::EntityType,
};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Updates of one result.
pub const UPDATES_MAX: usize = 10_000;

#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    pub entity: EntityType,
    pub id: u64,
    pub change: Change,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A field, spelt as in a context, and its whole new value.
    Patch {
        field: String,
        value: Value,
    },
    /// The id is made up by the worker, and replaced when the entity is kept.
    Create {
        data: Map<String, Value>,
        identifiers: Vec<String>,
        unless_there: bool,
    },
    Delete,
}

impl Update {
    /// All updates of a result: `{"updates": […]}`.
    pub fn read_all(value: &Value, place: &str) -> Result<Vec<Self>, Vec<Fault>> {
        let mut reader = Reader::default();
        let all = reader.object(value, place.to_owned()).map(|at| {
            let list = reader.list(&at, "updates", UPDATES_MAX);
            list.into_iter().filter_map(|(place, value)| update(&mut reader, value, place)).collect()
        });
        reader.done(all)
    }
}

fn update(reader: &mut Reader, value: &Value, place: String) -> Option<Update> {
    let at = reader.object(value, place)?;
    let entity = reader.must_entity(&at, "entity");
    let id = id_of(value);
    if id.is_none() {
        reader.fault(at.place("id"), format!("must be a whole number from 1 to {}", entity::ID_MAX));
    }
    let change = change(reader, &at, entity)?;
    Some(Update { entity, id: id?, change })
}

fn change(reader: &mut Reader, at: &Fields<'_>, entity: EntityType) -> Option<Change> {
    match reader.must_text(at, "operation") {
        "patch" => patch(reader, at, entity),
        "create" => create(reader, at, entity),
        "delete" => Some(Change::Delete),
        other => {
            reader.fault(at.place("operation"), format!("must be patch, create or delete; it is {other:?}"));
            None
        }
    }
}

fn patch(reader: &mut Reader, at: &Fields<'_>, entity: EntityType) -> Option<Change> {
    let field = camel(reader.must_text(at, "path"));
    if field.is_empty() || field == "id" {
        reader.fault(at.place("path"), "must be the name of a field other than id");
    }
    let value = reader.value(at, "value");
    if let Some(fault) = field_fault(entity, &field, &value) {
        reader.fault(at.place("value"), format!("{fault}, since it becomes {field}"));
    }
    Some(Change::Patch { field, value })
}

fn create(reader: &mut Reader, at: &Fields<'_>, entity: EntityType) -> Option<Change> {
    reader.must(at, "data");
    let sent = reader.map(at, "data").unwrap_or_default();
    // All fields are sent, also those nobody set.
    let set = sent.into_iter().filter(|(field, value)| !value.is_null() && field != "id");
    let data: Map<String, Value> = set.map(|(field, value)| (camel(&field), value)).collect();
    for (field, value) in &data {
        if let Some(fault) = field_fault(entity, field, value) {
            reader.fault(format!("{}.{field}", at.place("data")), fault);
        }
    }
    let names = reader.list(at, "identifierFields", 100);
    let identifiers = names.into_iter().filter_map(|(_, name)| name.as_str().map(camel)).collect();
    let unless_there = reader.flag(at, "skipIfIdentifierExists").unwrap_or_default();
    Some(Change::Create { data, identifiers, unless_there })
}

/// Changes a context, so that later steps see it. Created entities have the ids their worker made up.
pub fn apply(context: &mut Value, updates: &[Update]) {
    for (entity, name) in KEPT {
        let mine: Vec<&Update> = updates.iter().filter(|update| update.entity == entity).collect();
        if let Some(list) = context.get_mut(name).and_then(Value::as_array_mut).filter(|_| !mine.is_empty()) {
            apply_to(list, &mine);
        }
    }
}

/// Each entity is looked up by its id: there may be thousands, and as many changes.
fn apply_to(list: &mut Vec<Value>, updates: &[&Update]) {
    let (mut places, mut gone) = (HashMap::new(), HashSet::new());
    for (at, entity) in list.iter().enumerate() {
        id_of(entity).map(|id| places.entry(id).or_insert(at));
    }
    for Update { id, change, .. } in updates {
        match (change, places.get(id).copied()) {
            (Change::Patch { field, value }, Some(at)) => list[at][field.as_str()] = value.clone(),
            (Change::Create { data, .. }, None) => {
                places.insert(*id, list.len());
                list.push(made(data, *id));
            }
            (Change::Delete, Some(at)) => {
                places.remove(id);
                gone.insert(at);
            }
            _ => {}
        }
    }
    let mut at = 0;
    list.retain(|_| {
        at += 1;
        !gone.contains(&(at - 1))
    });
}

fn made(data: &Map<String, Value>, id: u64) -> Value {
    let mut made = data.clone();
    made.insert("id".into(), json!(id));
    Value::Object(made)
}

/// An entity by type and id.
pub type Key = (EntityType, u64);

/// Whether an entity has the values by which one that is to be created would be known.
pub fn is_known_by(entity: &Value, data: &Map<String, Value>, identifiers: &[String]) -> bool {
    let same = |field: &String| data.get(field).is_some_and(|value| entity.get(field) == Some(value));
    !identifiers.is_empty() && identifiers.iter().all(same)
}

/// What is kept from now on.
#[derive(Debug, Default, PartialEq)]
pub struct Resolved {
    pub put: BTreeMap<Key, Value>,
    pub deleted: BTreeSet<Key>,
    /// The next free ids.
    pub next: BTreeMap<EntityType, u64>,
}

/// What a run's updates come to. `there`: the entities they are about, as far as there are any; `known`: by the position of an
/// update that creates something, what is there already under its identifiers; `next`: the first free id of each type.
pub fn resolve(
    updates: &[Update],
    mut there: BTreeMap<Key, Value>,
    known: &BTreeMap<usize, u64>,
    next: BTreeMap<EntityType, u64>,
) -> Resolved {
    let mut resolved = Resolved { next, ..Resolved::default() };
    let ids = new_ids(updates, known, &mut resolved.next);
    let mut names = HashMap::new();
    for ((_, made_up), id) in &ids {
        names.entry(*made_up).or_insert(*id);
    }
    for (at, update) in updates.iter().enumerate().filter(|(_, update)| list_of(update.entity).is_some()) {
        let key = (update.entity, ids.get(&(update.entity, update.id)).copied().unwrap_or(update.id));
        match &update.change {
            Change::Patch { field, value } => {
                let entity = there.entry(key).or_insert_with(|| json!({"id": key.1}));
                entity[field.as_str()] = renamed(value, &names);
            }
            Change::Create { .. } if known.contains_key(&at) || there.contains_key(&key) => continue,
            Change::Create { data, .. } => {
                there.insert(key, renamed(&made(data, key.1), &names));
            }
            Change::Delete => {
                there.remove(&key);
                resolved.put.remove(&key);
                resolved.deleted.insert(key);
                continue;
            }
        }
        resolved.deleted.remove(&key);
        resolved.put.insert(key, there[&key].clone());
    }
    resolved
}

/// Ids in place of those that workers made up.
fn new_ids(
    updates: &[Update],
    known: &BTreeMap<usize, u64>,
    next: &mut BTreeMap<EntityType, u64>,
) -> BTreeMap<Key, u64> {
    let mut ids = BTreeMap::new();
    let mut twins = Twins::default();
    for (at, update) in updates.iter().enumerate() {
        let Change::Create { data, identifiers, unless_there } = &update.change else { continue };
        let twin = || unless_there.then(|| twins.find(update.entity, data, identifiers)).flatten();
        let id = known.get(&at).copied().or_else(twin);
        let id = id.unwrap_or_else(|| {
            let next = next.entry(update.entity).or_insert(1);
            *next += 1;
            *next - 1
        });
        twins.made.push((data, (update.entity, id)));
        ids.insert((update.entity, update.id), id);
    }
    ids
}

/// What was created so far, by what it is known by: two steps may find the same new device.
#[derive(Default)]
struct Twins<'a> {
    made: Vec<(&'a Map<String, Value>, Key)>,
    /// By the fields that are looked at.
    by: HashMap<&'a [String], Values>,
}

/// Who has which values, and how many of those that were made are among them.
#[derive(Default)]
struct Values {
    known: HashMap<(EntityType, String), u64>,
    count: usize,
}

impl<'a> Twins<'a> {
    fn find(&mut self, entity: EntityType, data: &Map<String, Value>, fields: &'a [String]) -> Option<u64> {
        let values = |data: &Map<String, Value>| -> Option<String> {
            let found: Option<Vec<&Value>> = fields.iter().map(|field| data.get(field)).collect();
            found.filter(|found| !found.is_empty()).map(|found| json!(found).to_string())
        };
        let Values { known, count } = self.by.entry(fields).or_default();
        for (other, (entity, id)) in &self.made[*count..] {
            values(other).map(|values| known.entry((*entity, values)).or_insert(*id));
        }
        *count = self.made.len();
        known.get(&(entity, values(data)?)).copied()
    }
}

/// References to made-up ids. They are random and large, so a number of another meaning is not mistaken for one: only `id` counts.
fn renamed(value: &Value, ids: &HashMap<u64, u64>) -> Value {
    match value {
        Value::Array(list) => Value::Array(list.iter().map(|value| renamed(value, ids)).collect()),
        Value::Object(fields) => {
            let rename = |(field, value): (&String, &Value)| {
                let old = value.as_u64().filter(|_| field == "id");
                let new = old.and_then(|old| ids.get(&old).copied());
                (field.clone(), new.map_or_else(|| renamed(value, ids), |new| json!(new)))
            };
            Value::Object(fields.iter().map(rename).collect())
        }
        other => other.clone(),
    }
}
