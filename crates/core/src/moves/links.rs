//! What follows when a worker's links go: a definition that retires is deleted with its last link, once no job waits for it.

use crate::{
    desk::{Desk, Stop},
    model::{
        definition::{Definition, DefinitionHead},
        event::What,
        job::Spec,
        keys::RecordKey,
        link::{Link, TIED, lane_of, linked},
        name::{Namespace, WorkerId},
        record::{Kind, key_of},
    },
};
use std::sync::Arc;

/// Deletes all that belongs to a worker: its links, and the records tied to it. Each is told by name.
pub(crate) fn remove_all(desk: &mut Desk, namespace: &Namespace, worker: &WorkerId) -> Result<(), Stop> {
    let links = desk.siblings(namespace, Link::KIND, worker.as_str());
    let tied = desk.siblings(namespace, TIED, worker.as_str());
    let (links, tied) = (links?, tied?);
    let names: Vec<Arc<str>> = links.iter().filter_map(|key| linked(worker, &key.key)).map(Arc::from).collect();
    want_all(desk, namespace, &names, links.iter().chain(&tied))?;
    for key in &links {
        desk.delete_record(key)?;
    }
    for key in &tied {
        desk.delete_record(key)?;
        desk.tell(namespace, What::RecordDeleted { kind: key.kind.clone(), key: key.key.clone() });
    }
    for name in &names {
        unlink(desk, namespace, name, worker)?;
    }
    desk.for_all(&names, |desk, name| retire(desk, namespace, name))
}

/// Asks for all of them at once, so that a worker with a thousand links costs as many loads as one with two.
fn want_all<'a>(
    desk: &mut Desk,
    namespace: &Namespace,
    names: &[Arc<str>],
    records: impl Iterator<Item = &'a RecordKey>,
) -> Result<(), Stop> {
    let heads = names.iter().map(|name| key_of::<DefinitionHead>(namespace, name));
    let mut missing = false;
    for key in heads.chain(records.cloned()) {
        missing |= desk.lacks_record(key);
    }
    if missing { Err(Stop::Need) } else { Ok(()) }
}

fn unlink(desk: &mut Desk, namespace: &Namespace, name: &Arc<str>, worker: &WorkerId) -> Result<(), Stop> {
    if let Some(mut head) = desk.get::<DefinitionHead>(namespace, name)? {
        head.links = head.links.saturating_sub(1);
        desk.put(namespace, name, &head)?;
    }
    desk.tell(namespace, What::Unlinked { definition: name.clone(), worker: worker.clone() });
    Ok(())
}

/// One of the jobs of a definition has ended. `gather` in `life.rs` has asked for the row before.
pub(crate) fn job_ended(desk: &mut Desk, namespace: &Namespace, spec: &Spec) -> Result<(), Stop> {
    let Some(name) = spec.served_by_links() else { return Ok(()) };
    match desk.share::<DefinitionHead>(namespace, name)? {
        Some(head) if head.is_left() => retire(desk, namespace, name),
        _ => Ok(()),
    }
}

/// Deletes the definition if it retires, has no link left and no job waits for it. The row is locked before the lane is
/// looked at: of two who end the last two jobs, the second sees what the first did.
fn retire(desk: &mut Desk, namespace: &Namespace, name: &Arc<str>) -> Result<(), Stop> {
    let Some(mut head) = desk.get::<DefinitionHead>(namespace, name)?.filter(DefinitionHead::is_left) else {
        return Ok(());
    };
    if !desk.lane_waits(namespace, lane_of(namespace, name))? {
        head.deleted_at = Some(desk.now());
        head.forget_at = Some(desk.now() + desk.limits().retention);
        desk.put(namespace, name, &head)?;
        desk.tell(namespace, What::DefinitionDeleted { name: name.clone() });
    }
    Ok(())
}

/// A definition that retired long ago goes with all its versions: names that are made up for an hour's use would pile up for
/// ever.
pub(crate) fn forget(desk: &mut Desk, namespace: &Namespace, name: &str) -> Result<(), Stop> {
    let head = desk.get::<DefinitionHead>(namespace, name)?;
    if head.is_none_or(|head| head.forget_at.is_none_or(|at| at > desk.now())) {
        return Ok(());
    }
    for key in desk.siblings(namespace, Definition::KIND, name)? {
        desk.delete_record(&key)?;
    }
    desk.delete_record(&key_of::<DefinitionHead>(namespace, name))
}
