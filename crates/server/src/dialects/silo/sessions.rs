//! Edit locks over HTTP.

use super::{
    Silo,
    body::{Here, Json, Listed, Params, Path, Raw, ok, time},
    error::{HttpError, Result},
};
use crate::{app::App, auth::Caller};
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_api::Uuid;
use windlass_core::principal::Role;
use windlass_product::{
    Products,
    edits::{self, Acquired, Session, Wanted},
    items,
    records::{Change, Kept},
    rules::features::{
        NODES_MAX,
        locks::{Editor, Level},
    },
    write_change,
};

const NAME_CHARS_MAX: usize = 255;

fn show(session: &Session) -> Value {
    json!({
        "session_id": session.id,
        "part_number": session.part_number,
        "user": session.editor.user,
        "workstation_id": session.editor.workstation,
        "context_level": session.context.level,
        "object_id": session.context.object,
        "dependency_cone": session.context.cone,
        "acquired_at": time(session.acquired_at),
        "expires_at": time(session.expires_at),
    })
}

#[derive(Deserialize)]
struct Acquire {
    workstation_id: String,
    context_level: Level,
    object_id: String,
    dependency_cone: Option<Vec<Arc<str>>>,
}

impl Acquire {
    fn check(&self) -> Result<()> {
        for (field, text) in [("workstation_id", &self.workstation_id), ("object_id", &self.object_id)] {
            if !(1..=NAME_CHARS_MAX).contains(&text.chars().count()) {
                return Err(HttpError::invalid(format!("{field}: must have 1 to {NAME_CHARS_MAX} characters")));
            }
        }
        let cone = self.dependency_cone.as_deref().unwrap_or_default();
        if cone.len() > NODES_MAX || cone.iter().any(|key| key.chars().count() > NAME_CHARS_MAX) {
            return Err(HttpError::invalid(format!(
                "dependency_cone: at most {NODES_MAX} keys of {NAME_CHARS_MAX} characters"
            )));
        }
        Ok(())
    }
}

pub async fn acquire(
    State(app): State<Silo>,
    Here(products): Here,
    caller: Caller,
    Path(part): Path<String>,
    raw: Raw,
) -> Result<Json<Value>> {
    items::find(&products, &part).await?;
    let body: Acquire = raw.parse(&app).await?;
    body.check()?;
    let editor = Editor { user: caller.name.clone(), workstation: body.workstation_id.as_str().into() };
    let (level, object) = (body.context_level, body.object_id.as_str().into());
    let wanted = Wanted { level, object, cone: body.dependency_cone, timeout: app.own.settings.lock_timeout };
    match edits::acquire(&products, &part, &editor, &wanted).await? {
        Acquired::Yes { session, overlaps } => Ok(ok(acquired(&session, &overlaps))),
        Acquired::HeldBy(holder) => {
            let message = format!("{} is being edited by {}", holder.context.object, holder.editor.user);
            Err(HttpError::held(message, held_by(&holder)))
        }
    }
}

fn held_by(session: &Session) -> Value {
    json!({
        "user": session.editor.user,
        "workstation_id": session.editor.workstation,
        "context_level": session.context.level,
        "object_id": session.context.object,
        "acquired_at": time(session.acquired_at),
    })
}

fn conflict(other: &Session, shared: &[Arc<str>]) -> Value {
    json!({
        "session_id": other.id,
        "user": other.editor.user,
        "workstation_id": other.editor.workstation,
        "object_id": other.context.object,
        "context_level": other.context.level,
        "shared": shared,
    })
}

fn acquired(session: &Session, overlaps: &[(Session, Vec<Arc<str>>)]) -> Value {
    let conflicts: Vec<Value> = overlaps.iter().map(|(other, shared)| conflict(other, shared)).collect();
    json!({
        "session_id": session.id,
        "interference": if conflicts.is_empty() { "none" } else { "soft" },
        "conflicts": conflicts,
        "dependency_cone": session.context.cone,
        "acquired_at": time(session.acquired_at),
        "expires_at": time(session.expires_at),
    })
}

pub async fn of_item(Here(products): Here, Path(part): Path<String>) -> Result<Listed<Value>> {
    items::find(&products, &part).await?;
    let found = edits::open(&products, &part).await?;
    let total = found.len();
    Ok(Listed(found.iter().map(|kept| show(&kept.value)).collect(), total))
}

pub async fn own(Here(products): Here, caller: Caller, params: Params) -> Result<Listed<Value>> {
    let paging = params.page()?;
    let Listed(found, total) = super::body::page(edits::of_user(&products, &caller.name).await?, paging);
    Ok(Listed(found.iter().map(|kept| show(&kept.value)).collect(), total))
}

async fn find(products: &Products, part: &str, id: &str) -> Result<Kept<Session>> {
    let missing = || HttpError::missing("edit session", id);
    items::find(products, part).await?;
    let parsed = Uuid::parse_str(id).map_err(|_| missing())?;
    edits::find(products, part, parsed).await?.ok_or_else(missing)
}

pub async fn heartbeat(
    State(app): State<Silo>,
    Here(products): Here,
    caller: Caller,
    Path((part, id)): Path<(String, String)>,
) -> Result<Json<Value>> {
    let session = write_change!(&products, HttpError, {
        let kept = find(&products, &part, &id).await?;
        if kept.value.editor.user != caller.name {
            return Err(HttpError::forbidden("only its holder keeps a lock"));
        }
        Ok(edits::keep(&products, &kept, app.own.settings.lock_timeout).await?)
    })?;
    Ok(ok(show(&session)))
}

pub async fn release(
    Here(products): Here,
    caller: Caller,
    Path((part, id)): Path<(String, String)>,
) -> Result<StatusCode> {
    write_change!(&products, HttpError, {
        let kept = find(&products, &part, &id).await?;
        if kept.value.editor.user != caller.name && caller.role != Role::Admin {
            return Err(HttpError::forbidden("only its holder, or an admin, releases a lock"));
        }
        Ok(Change { commands: edits::release(&products, &kept).await?, answer: () })
    })?;
    Ok(StatusCode::NO_CONTENT)
}

/// Releases what has expired. How many.
pub async fn sweep(app: &App) -> Result<usize> {
    Ok(edits::sweep(&super::products(app)).await?)
}
