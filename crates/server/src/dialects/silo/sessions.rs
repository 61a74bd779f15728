//! Edit locks: who is at which object of an item, and who may get into whose way.

use super::{
    Silo,
    body::{Json, Listed, Params, Path, Raw, Who, ok, time},
    error::No,
    items,
};
use crate::{
    app::App,
    auth,
    product::{
        graphs,
        store::{self, Change, Kept, Of, Put},
    },
};
use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_api::Uuid;
use windlass_core::{
    Command, Timestamp,
    commands::records::Expect,
    features::{
        NODES_MAX,
        graph::Direction,
        locks::{self, Context, Editor, Interference, Level},
    },
    principal::Role,
    product::item::Item,
};
use windlass_engine::ids;

const NAME_CHARS_MAX: usize = 255;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Session {
    id: Uuid,
    part_number: String,
    item_id: Uuid,
    editor: Editor,
    context: Context,
    acquired_at: Timestamp,
    expires_at: Timestamp,
}

/// Unique by item, level and object, whatever an object is called.
fn key(part: &str, context: &Context) -> String {
    format!("{part}/{}", auth::hash(&format!("{}\n{}", context.level.name(), context.object)))
}

fn put(session: &Session, expect: Expect) -> Result<Command, crate::problem::Problem> {
    let (key, id) = (key(&session.part_number, &session.context), session.id.to_string());
    let put = Put::new(store::SESSION, &key, expect).under(&session.part_number);
    put.facet("id", &id).facet("user", &session.editor.user).value(session)
}

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

fn news(topic: &str, session: &Session) -> Command {
    let told = json!({
        "item_id": session.item_id,
        "part_number": session.part_number,
        "session_id": session.id,
        "user": session.editor.user,
        "context_level": session.context.level,
        "object_id": session.context.object,
    });
    store::tell(topic, &told)
}

/// What is locked of an item now; what has expired does not count, whether or not it was swept.
async fn open(app: &App, part: &str, now: Timestamp) -> Result<Vec<Kept<Session>>, No> {
    let mut found = store::list::<Session>(app, store::SESSION, Of::Under(part)).await?;
    found.retain(|kept| kept.value.expires_at > now);
    Ok(found)
}

#[derive(Deserialize)]
struct Acquire {
    workstation_id: String,
    context_level: Level,
    object_id: String,
    dependency_cone: Option<Vec<Arc<str>>>,
}

impl Acquire {
    fn check(&self) -> Result<(), No> {
        for (field, text) in [("workstation_id", &self.workstation_id), ("object_id", &self.object_id)] {
            if !(1..=NAME_CHARS_MAX).contains(&text.chars().count()) {
                return Err(No::invalid(format!("{field}: must have 1 to {NAME_CHARS_MAX} characters")));
            }
        }
        let cone = self.dependency_cone.as_deref().unwrap_or_default();
        if cone.len() > NODES_MAX || cone.iter().any(|key| key.chars().count() > NAME_CHARS_MAX) {
            return Err(No::invalid(format!(
                "dependency_cone: at most {NODES_MAX} keys of {NAME_CHARS_MAX} characters"
            )));
        }
        Ok(())
    }
}

/// What an edit of a node may change: everything that depends on it.
async fn forward_cone(app: &App, part: &str, object: &str) -> Result<Vec<Arc<str>>, No> {
    let Some((_, loaded)) = graphs::live_graph(app, part).await? else { return Ok(Vec::new()) };
    let Some(start) = loaded.graph.find(object) else { return Ok(Vec::new()) };
    let cone = loaded.graph.cone(start, Direction::Forward, None);
    Ok(cone.into_iter().map(|(at, _)| loaded.graph.node(at).key.clone()).collect())
}

pub async fn acquire(
    State(app): State<Silo>,
    Who(caller): Who,
    Path(part): Path<String>,
    raw: Raw,
) -> Result<Json<Value>, No> {
    items::find(&app, &part).await?;
    let body: Acquire = raw.parse()?;
    body.check()?;
    let editor = Editor { user: caller.name, workstation: body.workstation_id.as_str().into() };
    let answer = store::settle!(&app, No, {
        let item = items::find(&app, &part).await?;
        let cone = match &body.dependency_cone {
            Some(cone) => cone.clone(),
            None => forward_cone(&app, &part, &body.object_id).await?,
        };
        let context = Context { level: body.context_level, object: body.object_id.as_str().into(), cone };
        take(&app, &item, &editor, context).await
    })?;
    Ok(ok(answer))
}

async fn take(app: &Silo, item: &Kept<Item>, editor: &Editor, context: Context) -> Result<Change<Value>, No> {
    let (part, now) = (&item.value.part_number, app.engine.now().await?);
    let others = open(app, part, now).await?;
    let listed: Vec<(&Editor, &Context)> =
        others.iter().map(|kept| (&kept.value.editor, &kept.value.context)).collect();
    let mut shown = Vec::new();
    match locks::interference(&listed, editor, &context) {
        Interference::Hard(at) => {
            let holder = &others[at].value;
            let message = format!("{} is being edited by {}", holder.context.object, holder.editor.user);
            return Err(No::held(message, held_by(holder)));
        }
        Interference::Own(at) => {
            let own = &others[at].value;
            let rest: Vec<&Session> =
                others.iter().map(|kept| &kept.value).filter(|other| other.id != own.id).collect();
            return Ok(Change { commands: Vec::new(), answer: acquired(own, &overlaps(own, &rest)) });
        }
        Interference::Soft(overlaps) => {
            shown.extend(overlaps.iter().map(|(at, shared)| conflict(&others[*at].value, shared)));
        }
        Interference::None => {}
    }
    let session = Session {
        id: ids::job_id().0,
        part_number: part.clone(),
        item_id: item.value.id,
        editor: editor.clone(),
        context,
        acquired_at: now,
        expires_at: now + app.own.settings.lock_timeout,
    };
    // One that expired and was not swept yet lies in the way of the new one.
    let stale = store::get::<Session>(app, store::SESSION, &key(part, &session.context)).await?;
    let mut commands = vec![items::put(&item.value, item.unchanged())?];
    commands.extend(stale.as_ref().map(|stale| news("edit.session_released", &stale.value)));
    commands.extend([put(&session, store::as_found(stale.as_ref()))?, news("edit.session_acquired", &session)]);
    Ok(Change { commands, answer: acquired(&session, &shown) })
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

fn overlaps(session: &Session, others: &[&Session]) -> Vec<Value> {
    let foreign = others.iter().filter(|other| other.editor != session.editor);
    let shared = foreign.map(|other| (other, session.context.shared(&other.context)));
    shared.filter(|(_, shared)| !shared.is_empty()).map(|(other, shared)| conflict(other, &shared)).collect()
}

fn acquired(session: &Session, conflicts: &[Value]) -> Value {
    json!({
        "session_id": session.id,
        "interference": if conflicts.is_empty() { "none" } else { "soft" },
        "conflicts": conflicts,
        "dependency_cone": session.context.cone,
        "acquired_at": time(session.acquired_at),
        "expires_at": time(session.expires_at),
    })
}

pub async fn of_item(State(app): State<App>, Path(part): Path<String>) -> Result<Listed<Value>, No> {
    items::find(&app, &part).await?;
    let found = open(&app, &part, app.engine.now().await?).await?;
    let total = found.len();
    Ok(Listed(found.iter().map(|kept| show(&kept.value)).collect(), total))
}

pub async fn own(State(app): State<App>, Who(caller): Who, params: Params) -> Result<Listed<Value>, No> {
    let paging = params.page()?;
    let now = app.engine.now().await?;
    let mut found = store::list::<Session>(&app, store::SESSION, Of::With("user", &caller.name)).await?;
    found.retain(|kept| kept.value.expires_at > now);
    let Listed(found, total) = super::body::page(found, paging);
    Ok(Listed(found.iter().map(|kept| show(&kept.value)).collect(), total))
}

async fn find(app: &App, part: &str, id: &str) -> Result<Kept<Session>, No> {
    let missing = || No::missing("edit session", id);
    items::find(app, part).await?;
    let id = Uuid::parse_str(id).map_err(|_| missing())?.to_string();
    let found = store::list::<Session>(app, store::SESSION, Of::With("id", &id)).await?.pop();
    let now = app.engine.now().await?;
    let here = |kept: &Kept<Session>| kept.value.part_number == part && kept.value.expires_at > now;
    found.filter(here).ok_or_else(missing)
}

pub async fn heartbeat(
    State(app): State<Silo>,
    Who(caller): Who,
    Path((part, id)): Path<(String, String)>,
) -> Result<Json<Value>, No> {
    let session = store::settle!(&app, No, {
        let kept = find(&app, &part, &id).await?;
        if kept.value.editor.user != caller.name {
            return Err(No::forbidden("only its holder keeps a lock"));
        }
        let expires_at = app.engine.now().await? + app.own.settings.lock_timeout;
        let session = Session { expires_at, ..kept.value.clone() };
        Ok(Change { commands: vec![put(&session, kept.unchanged())?], answer: session })
    })?;
    Ok(ok(show(&session)))
}

pub async fn release(
    State(app): State<App>,
    Who(caller): Who,
    Path((part, id)): Path<(String, String)>,
) -> Result<StatusCode, No> {
    store::settle!(&app, No, {
        let kept = find(&app, &part, &id).await?;
        if kept.value.editor.user != caller.name && caller.role != Role::Admin {
            return Err(No::forbidden("only its holder, or an admin, releases a lock"));
        }
        let others = open(&app, &part, app.engine.now().await?).await?;
        Ok(Change { commands: released(&kept, &others), answer: () })
    })?;
    Ok(StatusCode::NO_CONTENT)
}

/// The lock goes; those it was in the way of are told.
fn released(kept: &Kept<Session>, others: &[Kept<Session>]) -> Vec<Command> {
    let gone = &kept.value;
    let mut commands =
        vec![store::delete(store::SESSION, &kept.key, kept.unchanged()), news("edit.session_released", gone)];
    for other in others.iter().map(|kept| &kept.value).filter(|other| other.editor != gone.editor) {
        let shared = gone.context.shared(&other.context);
        if other.id != gone.id && !shared.is_empty() {
            let told = json!({
                "item_id": other.item_id,
                "part_number": other.part_number,
                "session_id": other.id,
                "shared": shared,
            });
            commands.push(store::tell("edit.interference_resolved", &told));
        }
    }
    commands
}

/// Releases what has expired. How many.
pub async fn sweep(app: &App) -> Result<usize, No> {
    let now = app.engine.now().await?;
    let mut gone = 0;
    for kept in store::list::<Session>(app, store::SESSION, Of::All).await? {
        if kept.value.expires_at > now {
            continue;
        }
        let others = open(app, &kept.value.part_number, now).await?;
        // Where somebody else was faster, it is released or kept alive; either is right.
        gone += usize::from(store::commit(app, released(&kept, &others)).await?.is_some());
    }
    Ok(gone)
}
