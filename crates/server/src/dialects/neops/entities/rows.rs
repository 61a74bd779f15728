//! Entities as records: by id, interfaces below their device, found by what they are known by.

use super::{super::namespace, unknown};
use crate::{
    app::App,
    problem::{Code, Problem},
    records::Records,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use windlass_core::{
    Command, Facet, Refusal,
    commands::{
        all::All,
        records::{Expect, PutRecord},
    },
};
use windlass_engine::{Error, records::Kept, store::RecordQuery};
use windlass_plan::neops::{entity::id_of, reference::EntityType, secrets, updates::is_known_by};

const DEVICE: Records<Value> = Records::new("neops_device", namespace);
const INTERFACE: Records<Value> = Records::new("neops_interface", namespace);
const GROUP: Records<Value> = Records::new("neops_group", namespace);
/// One record: which ids are free.
const IDS: Records<Ids> = Records::new("neops_ids", namespace);
const IDS_KEY: &str = "next";
/// Ids that were given by callers stay below the free ones; moved on in steps, so that it is not written for every entity.
const STEP: u64 = 1_000;
/// How often a write is tried that others were faster than.
const TRIES: usize = 20;
/// Fields that entities can be found by.
const FACETS: [&str; 5] = ["hostname", "ip", "serial", "externalReference", "name"];
const FACET_BYTES_MAX: usize = 250;
/// Entities that are looked at for one with given fields, if no facet tells.
const SCAN_MAX: usize = 20_000;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ids {
    pub device: u64,
    pub interface: u64,
    pub group: u64,
}

impl Ids {
    pub fn of(&mut self, entity: EntityType) -> &mut u64 {
        match entity {
            EntityType::Interface => &mut self.interface,
            EntityType::Group => &mut self.group,
            EntityType::Device | EntityType::Global | EntityType::Client => &mut self.device,
        }
    }
}

pub async fn ids(app: &App) -> Result<(Ids, Expect), Problem> {
    let found = IDS.find(app, IDS_KEY).await?;
    Ok(found.map_or((Ids::default(), Expect::Nothing), |kept| (kept.value.clone(), kept.unchanged())))
}

pub fn put_ids(ids: &Ids, expect: Expect) -> Command {
    IDS.put(IDS_KEY, ids, expect).into()
}

fn kind(entity: EntityType) -> &'static Records<Value> {
    match entity {
        EntityType::Interface => &INTERFACE,
        EntityType::Group => &GROUP,
        EntityType::Device | EntityType::Global | EntityType::Client => &DEVICE,
    }
}

/// As wide as ids get, so that keys sort like numbers.
fn key(id: u64) -> String {
    format!("{id:016}")
}

pub async fn find(app: &App, entity: EntityType, id: u64) -> Result<Option<Kept<Value>>, Problem> {
    kind(entity).find(app, &key(id)).await
}

pub async fn page(app: &App, entity: EntityType, after: Option<u64>, limit: usize) -> Result<Vec<Value>, Problem> {
    let after = after.map(|id| key(id).into());
    let query = RecordQuery { after, limit, ..kind(entity).query() };
    let found = app.engine.records(&query).await?;
    found.iter().map(|record| Ok(kind(entity).read(record)?.value)).collect()
}

/// What is known of each, with everything; nothing but the id of those that nobody knows.
pub async fn get_many(app: &App, entity: EntityType, ids: &[u64]) -> Result<BTreeMap<u64, Value>, Problem> {
    let mut all = BTreeMap::new();
    for id in ids {
        let found = find(app, entity, *id).await?;
        all.insert(*id, found.map_or_else(|| json!({"id": id}), |kept| kept.value));
    }
    Ok(all)
}

/// Entities of another type that belong to these, such as the interfaces of devices.
pub async fn expand(app: &App, from: EntityType, ids: &[u64], to: EntityType) -> Result<BTreeSet<u64>, Problem> {
    use EntityType::{Device, Group, Interface};
    if from == to {
        return Ok(ids.iter().copied().collect());
    }
    let mut found = BTreeSet::new();
    match (from, to) {
        (Device, Interface) => {
            for id in ids {
                let parent = key(*id);
                INTERFACE
                    .each(app, Some(&parent), |kept| {
                        found.extend(id_of(&kept.value));
                        true
                    })
                    .await?;
            }
        }
        (Device, Group) | (Group, Device) | (Interface, Device) => {
            let field = match (from, to) {
                (Device, _) => "groups",
                (Group, _) => "devices",
                _ => "device",
            };
            for entity in get_many(app, from, ids).await?.values() {
                found.extend(links(entity.get(field)));
            }
        }
        (Group, Interface) | (Interface, Group) => {
            let devices: Vec<u64> = Box::pin(expand(app, from, ids, Device)).await?.into_iter().collect();
            found = Box::pin(expand(app, Device, &devices, to)).await?;
        }
        _ => {}
    }
    Ok(found)
}

/// The ids in a link, or in a list of links.
fn links(value: Option<&Value>) -> Vec<u64> {
    match value {
        Some(Value::Array(list)) => list.iter().filter_map(id_of).collect(),
        Some(one) => id_of(one).into_iter().collect(),
        None => Vec::new(),
    }
}

/// The one that has these values, if there is one.
pub async fn known_by(
    app: &App,
    entity: EntityType,
    data: &serde_json::Map<String, Value>,
    identifiers: &[String],
) -> Result<Option<u64>, Problem> {
    let facet = facets_of(&Value::Object(data.clone()))
        .into_iter()
        .find(|facet| identifiers.iter().any(|name| *name == *facet.name));
    let (mut known, mut seen) = (None, 0);
    let look = |kept: Kept<Value>| {
        known = is_known_by(&kept.value, data, identifiers).then(|| id_of(&kept.value)).flatten();
        seen += 1;
        known.is_none() && seen < SCAN_MAX
    };
    app.engine.each_record(RecordQuery { facet, ..kind(entity).query() }, look).await?;
    Ok(known)
}

fn facets_of(value: &Value) -> Vec<Facet> {
    let facet = |name: &&str| {
        let text = value.get(*name)?.as_str()?;
        (!text.is_empty() && text.len() <= FACET_BYTES_MAX).then(|| Facet::new(name, text))
    };
    FACETS.iter().filter_map(facet).collect()
}

pub fn put(entity: EntityType, id: u64, value: &Value, expect: Expect) -> Command {
    let device = value.get("device").and_then(id_of).filter(|_| entity == EntityType::Interface);
    let put = kind(entity).put(&key(id), value, expect);
    PutRecord { parent: device.map(|device| key(device).into()), facets: facets_of(value), ..put }.into()
}

pub fn gone(entity: EntityType, id: u64, expect: Expect) -> Command {
    kind(entity).delete(&key(id), expect).into()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrote {
    Created,
    Updated,
    Nothing,
}

/// Replaces what is known of one. A password that is left out stays; null removes it.
pub async fn write(app: &App, entity: EntityType, id: u64, value: Value) -> Result<Wrote, Problem> {
    for _ in 0..TRIES {
        let before = find(app, entity, id).await?;
        let mut value = value.clone();
        if let Some(before) = &before {
            secrets::keep(&before.value, &mut value);
        }
        if before.as_ref().is_some_and(|kept| kept.value == value) {
            return Ok(Wrote::Nothing);
        }
        let expect = before.as_ref().map_or(Expect::Nothing, Kept::unchanged);
        let mut commands = vec![put(entity, id, &value, expect)];
        commands.extend(claimed(app, entity, id).await?);
        match app.engine.run(All { commands }).await {
            Ok(_) => return Ok(if before.is_some() { Wrote::Updated } else { Wrote::Created }),
            Err(Error::Refused(Refusal::VersionMismatch { .. } | Refusal::Exists { .. })) => {}
            Err(other) => return Err(other.into()),
        }
    }
    Err(Problem::new(Code::Unavailable, "others keep changing this entity; try again").retry_after(100))
}

/// Keeps the ids that are given out above those that callers chose.
async fn claimed(app: &App, entity: EntityType, id: u64) -> Result<Option<Command>, Problem> {
    let (mut next, expect) = ids(app).await?;
    if id < *next.of(entity) {
        return Ok(None);
    }
    *next.of(entity) = (id / STEP + 1) * STEP;
    Ok(Some(put_ids(&next, expect)))
}

pub async fn delete(app: &App, entity: EntityType, id: u64) -> Result<(), Problem> {
    match app.engine.run(All { commands: vec![gone(entity, id, Expect::Anything)] }).await {
        Err(Error::Refused(Refusal::NotFound { .. })) => Err(unknown(entity, id)),
        done => done.map(drop).map_err(Into::into),
    }
}
