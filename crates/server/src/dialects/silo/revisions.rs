//! Revisions: a history that only grows, and what its growth sets off.

use super::{
    body::{Json, Listed, Params, Path, Raw, Who, created, ok, page, time},
    error::No,
    items, jobs,
    store::{self, Change, Of},
    trigger::{self, Trigger},
};
use crate::app::App;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use windlass_core::product::item::{Item, Revision};
use windlass_engine::ids;

const COMMENT_BYTES_MAX: usize = 64 << 10;

fn show(item: &Item, revision: &Revision) -> Value {
    json!({
        "id": revision.id,
        "item_id": item.id,
        "part_number": item.part_number,
        "revision_number": revision.number,
        "comment": revision.comment,
        "properties": revision.properties,
        "created_at": time(revision.created_at),
        "created_by": revision.created_by,
    })
}

/// The revision of an item by number.
pub async fn find(app: &App, item: &Item, number: u32) -> Result<Revision, No> {
    let key = format!("{}/{number:010}", item.part_number);
    let found = store::get::<Revision>(app, store::REVISION, &key).await?;
    Ok(found.ok_or_else(|| No::missing("revision", format!("{number} of {}", item.part_number)))?.value)
}

#[derive(Deserialize)]
struct Create {
    comment: Option<String>,
    properties: Option<Map<String, Value>>,
}

pub async fn create(
    State(app): State<App>,
    Who(caller): Who,
    Path(part): Path<String>,
    raw: Raw,
) -> Result<Json<Value>, No> {
    items::find(&app, &part).await?;
    let body: Create = raw.parse()?;
    if body.comment.as_ref().is_some_and(|comment| comment.len() > COMMENT_BYTES_MAX) {
        return Err(No::invalid(format!("comment: may have {COMMENT_BYTES_MAX} bytes")));
    }
    let made = store::settle!(&app, {
        let kept = items::find(&app, &part).await?;
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
            comment: body.comment.clone().unwrap_or_default(),
            properties: body.properties.clone().unwrap_or_default(),
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
        let fired = trigger::fire(&app, Trigger::RevisionCreated, &item, &caller.name).await?;
        let mut shown = show(&item, &revision);
        shown["triggered_jobs"] = jobs::triggered(&fired);
        commands.extend(fired.into_iter().map(|made| made.submit()));
        Ok(Change { commands, answer: shown })
    })?;
    Ok(created(made))
}

pub async fn list(State(app): State<App>, Path(part): Path<String>, params: Params) -> Result<Listed<Value>, No> {
    let item = items::find(&app, &part).await?.value;
    let paging = params.page()?;
    let mut found = store::list::<Revision>(&app, store::REVISION, Of::Under(&part)).await?;
    found.reverse();
    let Listed(found, total) = page(found, paging);
    Ok(Listed(found.iter().map(|kept| show(&item, &kept.value)).collect(), total))
}

pub async fn one(State(app): State<App>, Path((part, number)): Path<(String, String)>) -> Result<Json<Value>, No> {
    let item = items::find(&app, &part).await?.value;
    let number = number.parse().map_err(|_| No::missing("revision", &number))?;
    Ok(ok(show(&item, &find(&app, &item, number).await?)))
}
