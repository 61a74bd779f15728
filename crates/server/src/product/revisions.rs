//! Revisions: a history that only grows, and what its growth sets off.

use super::{
    items,
    store::{self, Change, Of},
};
use crate::{
    app::App,
    auth::Caller,
    dialects::silo::trigger::{self, Fired},
    problem::Problem,
};
use serde_json::{Map, Value, json};
use windlass_core::product::{
    item::{Item, Revision},
    trigger::Trigger,
};
use windlass_engine::ids;

const COMMENT_BYTES_MAX: usize = 64 << 10;

pub fn key(part: &str, number: u32) -> String {
    format!("{part}/{number:010}")
}

/// The revision of an item by number.
pub async fn find(app: &App, item: &Item, number: u32) -> Result<Revision, Problem> {
    let found = store::get::<Revision>(app, store::REVISION, &key(&item.part_number, number)).await?;
    Ok(found.ok_or_else(|| Problem::not_found("revision", format!("{number} of {}", item.part_number)))?.value)
}

/// The newest at most `limit` revisions up to `newest`, newest first. They are numbered without gaps.
pub async fn page(app: &App, item: &Item, newest: u32, limit: usize) -> Result<Vec<Revision>, Problem> {
    let newest = newest.min(item.current_revision);
    let before = newest.saturating_sub(u32::try_from(limit).unwrap_or(u32::MAX));
    let count = (newest - before) as usize;
    if count == 0 {
        return Ok(Vec::new());
    }
    let (part, after) = (&item.part_number, key(&item.part_number, before));
    let found = store::page::<Revision>(app, store::REVISION, Of::Under(part), Some(after.into()), count).await?;
    let mut found: Vec<Revision> = found.into_iter().map(|kept| kept.value).collect();
    found.reverse();
    Ok(found)
}

/// A revision to be.
#[derive(Clone, Debug, Default)]
pub struct NewRevision {
    pub comment: Option<String>,
    pub properties: Option<Map<String, Value>>,
    /// Sets off no jobs: what is brought in from elsewhere was computed there.
    pub quiet: bool,
}

/// A revision that was made, the item as it is since, and the jobs it set off.
pub struct Revised {
    pub item: Item,
    pub revision: Revision,
    pub fired: Vec<Fired>,
}

pub async fn create(app: &App, caller: &Caller, part: &str, new: &NewRevision) -> Result<Revised, Problem> {
    if new.comment.as_ref().is_some_and(|comment| comment.len() > COMMENT_BYTES_MAX) {
        return Err(Problem::invalid("comment", format!("may have {COMMENT_BYTES_MAX} bytes")));
    }
    store::settle!(app, Problem, {
        let kept = items::find(app, part).await?;
        let now = app.engine.now().await?;
        let item = Item {
            current_revision: kept.value.current_revision + 1,
            updated_at: now,
            updated_by: caller.name.to_string(),
            ..kept.value.clone()
        };
        let revision = Revision {
            id: ids::job_id().0,
            number: item.current_revision,
            comment: new.comment.clone().unwrap_or_default(),
            properties: new.properties.clone().unwrap_or_default(),
            created_at: now,
            created_by: caller.name.to_string(),
        };
        let comment: String = revision.comment.chars().take(1_000).collect();
        let told =
            json!({"item_id": item.id, "part_number": part, "revision_number": revision.number, "comment": comment});
        let mut commands = vec![
            items::put(&item, kept.unchanged())?,
            items::put_revision(&item, &revision)?,
            store::tell("revision.created", &told),
        ];
        let made = match new.quiet {
            true => Vec::new(),
            false => trigger::fire(app, Trigger::RevisionCreated, &item, &caller.name).await?,
        };
        let fired = trigger::told(&made);
        commands.extend(made.into_iter().map(|made| made.submit()));
        Ok(Change { commands, answer: Revised { item, revision, fired } })
    })
}
