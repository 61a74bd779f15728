//! Locks on entities: one run at a time has an entity. A run takes all its locks or none, in one order for everybody.

use crate::{app::App, problem::Problem};
use crate::{dialects::neops::namespace, records::Records};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use windlass_api::Uuid;
use windlass_core::{Command, commands::records::Expect};
use windlass_plan::neops::updates::Key;

/// By `device/5`.
const LOCK: Records<Lock> = Records::new("neops_lock", namespace);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Lock {
    run: Uuid,
}

fn name((entity, id): Key) -> String {
    format!("{}/{id}", entity.as_str())
}

/// To be part of one transaction: refused as a whole, with `Exists`, if any of them is taken.
pub fn take(run: Uuid, keys: &[Key]) -> Vec<Command> {
    let taken = |name: String| LOCK.put(&name, &Lock { run }, Expect::Nothing).into();
    in_order(keys).into_iter().map(taken).collect()
}

/// Of locks that are held.
pub fn release(keys: &[Key]) -> Vec<Command> {
    in_order(keys).into_iter().map(|name| LOCK.delete(&name, Expect::Anything).into()).collect()
}

fn in_order(keys: &[Key]) -> BTreeSet<String> {
    keys.iter().copied().map(name).collect()
}

/// The first of these that another run holds, and that run.
pub async fn held(app: &App, run: Uuid, keys: &[Key]) -> Result<Option<(String, Uuid)>, Problem> {
    for name in in_order(keys) {
        if let Some(lock) = LOCK.find(app, &name).await?.filter(|lock| lock.value.run != run) {
            return Ok(Some((name, lock.value.run)));
        }
    }
    Ok(None)
}
