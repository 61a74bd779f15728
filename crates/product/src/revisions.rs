//! Revisions: a history that only grows, and what its growth sets off.

use crate::{
    Error, Fired, Products,
    item_rows::{self, revision_key},
    records::{self, Change, Of},
    rules::{
        item::{Item, Revision},
        trigger::Trigger,
    },
    write_change,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use windlass_engine::ids;

const COMMENT_BYTES_MAX: usize = 64 << 10;

/// The revision of an item by number.
pub async fn find(products: &Products, item: &Item, number: u32) -> Result<Revision, Error> {
    let found = records::get(products, records::REVISION, &revision_key(&item.part_number, number)).await?;
    Ok(found.ok_or_else(|| Error::not_found("revision", format!("{number} of {}", item.part_number)))?.value)
}

/// The newest at most `limit` revisions up to `newest`, newest first. They are numbered without gaps.
pub async fn page(products: &Products, item: &Item, newest: u32, limit: usize) -> Result<Vec<Revision>, Error> {
    let newest = newest.min(item.current_revision);
    let before = newest.saturating_sub(u32::try_from(limit).unwrap_or(u32::MAX));
    let count = (newest - before) as usize;
    if count == 0 {
        return Ok(Vec::new());
    }
    let (part, after) = (&item.part_number, revision_key(&item.part_number, before));
    let found = records::page(products, records::REVISION, Of::Under(part), Some(after.into()), count).await?;
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

pub async fn create(products: &Products, by: &Arc<str>, part: &str, new: &NewRevision) -> Result<Revised, Error> {
    if new.comment.as_ref().is_some_and(|comment| comment.len() > COMMENT_BYTES_MAX) {
        return Err(Error::invalid("comment", format!("may have {COMMENT_BYTES_MAX} bytes")));
    }
    write_change!(products, Error, {
        let kept = item_rows::find(products, part).await?;
        let now = products.engine().now().await?;
        let item = Item {
            current_revision: kept.value.current_revision + 1,
            updated_at: now,
            updated_by: by.to_string(),
            ..kept.value.clone()
        };
        let revision = Revision {
            id: ids::job_id().0,
            number: item.current_revision,
            comment: new.comment.clone().unwrap_or_default(),
            properties: new.properties.clone().unwrap_or_default(),
            created_at: now,
            created_by: by.to_string(),
        };
        let comment: String = revision.comment.chars().take(1_000).collect();
        let told =
            json!({"item_id": item.id, "part_number": part, "revision_number": revision.number, "comment": comment});
        let mut commands = vec![
            item_rows::put(products, &item, kept.unchanged())?,
            item_rows::put_revision(products, &item, &revision)?,
            records::tell(products, "revision.created", &told),
        ];
        let (jobs, fired) = match new.quiet {
            true => Default::default(),
            false => products.fire(Trigger::RevisionCreated, &item, by).await?,
        };
        commands.extend(jobs);
        Ok(Change { commands, answer: Revised { item, revision, fired } })
    })
}
