//! What a run changed, written when it completes.

use super::rows::{find, gone, ids, known_by, put, put_ids};
use crate::{app::App, problem::Problem};
use std::collections::BTreeMap;
use windlass_core::{Command, commands::records::Expect};
use windlass_plan::neops::{
    entity::KEPT,
    updates::{Change, Key, Update, resolve},
};

/// To be part of the transaction that completes the run. If somebody else changed one of the entities meanwhile, that is refused
/// with `VersionMismatch` or `Exists`: read and decide again.
pub async fn apply(app: &App, updates: &[Update]) -> Result<Vec<Command>, Problem> {
    if updates.is_empty() {
        return Ok(Vec::new());
    }
    let (mut there, mut versions) = (BTreeMap::new(), BTreeMap::new());
    let (mut known, bytes_max) = (BTreeMap::new(), app.engine.settings().limits.record_bytes_max);
    for (at, update) in updates.iter().enumerate() {
        let mut key: Key = (update.entity, update.id);
        if let Change::Create { data, identifiers, unless_there } = &update.change {
            let found = if *unless_there { known_by(app, update.entity, data, identifiers).await? } else { None };
            let Some(id) = found else { continue };
            known.insert(at, id);
            key.1 = id;
        }
        if let Some(kept) = find(app, key.0, key.1).await? {
            versions.insert(key, kept.unchanged());
            there.insert(key, kept.value);
        }
    }
    let (mut free, free_as_read) = ids(app).await?;
    let next = KEPT.into_iter().map(|(entity, _)| (entity, (*free.of(entity)).max(1))).collect();
    let resolved = resolve(updates, there, &known, next);
    let expect = |key: &Key| versions.get(key).copied().unwrap_or(Expect::Nothing);
    let mut commands = Vec::new();
    for (key, value) in &resolved.put {
        if value.to_string().len() > bytes_max {
            tracing::warn!(
                entity = key.0.as_str(),
                id = key.1,
                bytes_max,
                "an update is left out: the entity would be too large"
            );
            continue;
        }
        commands.push(put(key.0, key.1, value, expect(key)));
    }
    let there_still = resolved.deleted.iter().filter(|key| versions.contains_key(key));
    commands.extend(there_still.map(|key| gone(key.0, key.1, expect(key))));
    let before = free.clone();
    resolved.next.iter().for_each(|(entity, next)| *free.of(*entity) = *next);
    if updates.iter().any(|update| matches!(update.change, Change::Create { .. })) && free != before {
        commands.push(put_ids(&free, free_as_read));
    }
    Ok(commands)
}
