//! Edit locks: who is at which object of an item, and who may get in whose way.

use crate::{
    Error, Products, graphs, item_rows,
    records::{self, Change, Kept, Kind, Of, Put},
    rules::{
        features::{
            graph::Direction,
            locks::{self, Context, Editor, Interference, Level},
        },
        item::Item,
    },
    write_change,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::{fmt::Write, sync::Arc};
use uuid::Uuid;
use windlass_core::{Command, Millis, Timestamp, commands::records::Expect};
use windlass_engine::ids;

pub const SESSION: Kind<Session> = Kind::new("silo_session");

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Session {
    pub id: Uuid,
    pub part_number: String,
    pub item_id: Uuid,
    pub editor: Editor,
    pub context: Context,
    pub acquired_at: Timestamp,
    pub expires_at: Timestamp,
}

/// Unique by item, level and object, whatever an object is called.
fn key(part: &str, context: &Context) -> String {
    let mut key = format!("{part}/");
    for byte in Sha256::digest(format!("{}\n{}", context.level.name(), context.object)) {
        write!(key, "{byte:02x}").expect("a string takes everything");
    }
    key
}

fn put(products: &Products, session: &Session, expect: Expect) -> Result<Command, Error> {
    let (key, id) = (key(&session.part_number, &session.context), session.id.to_string());
    let put = Put::new(products, SESSION, &key, expect).under(&session.part_number);
    put.facet("id", &id).facet("user", &session.editor.user).value(session)
}

fn news(products: &Products, topic: &str, session: &Session) -> Command {
    let told = json!({
        "item_id": session.item_id,
        "part_number": session.part_number,
        "session_id": session.id,
        "user": session.editor.user,
        "context_level": session.context.level,
        "object_id": session.context.object,
    });
    records::tell(products, topic, &told)
}

async fn unexpired(products: &Products, of: Of<'_>) -> Result<Vec<Kept<Session>>, Error> {
    let now = products.engine().now().await?;
    let mut found = records::list(products, SESSION, of).await?;
    found.retain(|kept| kept.value.expires_at > now);
    Ok(found)
}

/// The locks on an item that have not expired, whether or not a sweep has removed the others.
pub async fn open(products: &Products, part: &str) -> Result<Vec<Kept<Session>>, Error> {
    unexpired(products, Of::Under(part)).await
}

/// The unexpired locks of a user, on all items.
pub async fn of_user(products: &Products, user: &str) -> Result<Vec<Kept<Session>>, Error> {
    unexpired(products, Of::With("user", user)).await
}

/// An unexpired lock on an item, by its id.
pub async fn find(products: &Products, part: &str, id: Uuid) -> Result<Option<Kept<Session>>, Error> {
    let found = unexpired(products, Of::With("id", &id.to_string())).await?.pop();
    Ok(found.filter(|kept| kept.value.part_number == part))
}

/// What somebody wants to edit.
pub struct Wanted {
    pub level: Level,
    pub object: Arc<str>,
    /// What the edit may change; None: everything that depends on the object.
    pub cone: Option<Vec<Arc<str>>>,
    /// How long the lock is kept without a sign of life.
    pub timeout: Millis,
}

/// What became of it.
pub enum Acquired {
    /// With the locks of others that touch the same nodes, and those nodes.
    Yes { session: Session, overlaps: Vec<(Session, Vec<Arc<str>>)> },
    /// Somebody else edits this very object.
    HeldBy(Session),
}

pub async fn acquire(products: &Products, part: &str, editor: &Editor, wanted: &Wanted) -> Result<Acquired, Error> {
    write_change!(products, Error, {
        let item = item_rows::find(products, part).await?;
        let cone = match &wanted.cone {
            Some(cone) => cone.clone(),
            None => forward_cone(products, part, &wanted.object).await?,
        };
        let context = Context { level: wanted.level, object: wanted.object.clone(), cone };
        take(products, &item, editor, context, wanted.timeout).await
    })
}

/// What an edit of a node may change: everything that depends on it.
async fn forward_cone(products: &Products, part: &str, object: &str) -> Result<Vec<Arc<str>>, Error> {
    let Some((_, loaded)) = graphs::live_graph(products, part).await? else { return Ok(Vec::new()) };
    let Some(start) = loaded.graph.find(object) else { return Ok(Vec::new()) };
    let cone = loaded.graph.cone(start, Direction::Forward, None);
    Ok(cone.into_iter().map(|(at, _)| loaded.graph.node(at).key.clone()).collect())
}

async fn take(
    products: &Products,
    item: &Kept<Item>,
    editor: &Editor,
    context: Context,
    timeout: Millis,
) -> Result<Change<Acquired>, Error> {
    let (part, now) = (&item.value.part_number, products.engine().now().await?);
    let others: Vec<Session> = open(products, part).await?.into_iter().map(|kept| kept.value).collect();
    let listed: Vec<(&Editor, &Context)> = others.iter().map(|other| (&other.editor, &other.context)).collect();
    let nothing = |answer| Ok(Change { commands: Vec::new(), answer });
    let overlaps = match locks::interference(&listed, editor, &context) {
        Interference::Hard(at) => return nothing(Acquired::HeldBy(others[at].clone())),
        Interference::Own(at) => {
            let session = others[at].clone();
            let overlaps = touching(&session, &others);
            return nothing(Acquired::Yes { session, overlaps });
        }
        Interference::Soft(overlaps) => overlaps.into_iter().map(|(at, shared)| (others[at].clone(), shared)).collect(),
        Interference::None => Vec::new(),
    };
    let session = Session {
        id: ids::job_id().0,
        part_number: part.clone(),
        item_id: item.value.id,
        editor: editor.clone(),
        context,
        acquired_at: now,
        expires_at: now + timeout,
    };
    // One that expired and was not swept yet lies in the way of the new one.
    let stale = records::get(products, SESSION, &key(part, &session.context)).await?;
    let mut commands = vec![item_rows::put(products, &item.value, item.unchanged())?];
    commands.extend(stale.as_ref().map(|stale| news(products, "edit.session_released", &stale.value)));
    commands.push(put(products, &session, records::as_found(stale.as_ref()))?);
    commands.push(news(products, "edit.session_acquired", &session));
    Ok(Change { commands, answer: Acquired::Yes { session, overlaps } })
}

/// The locks of other editors that touch the same nodes, and those nodes.
fn touching(session: &Session, others: &[Session]) -> Vec<(Session, Vec<Arc<str>>)> {
    let foreign = others.iter().filter(|other| other.editor != session.editor);
    let shared = foreign.map(|other| (other.clone(), session.context.shared(&other.context)));
    shared.filter(|(_, shared)| !shared.is_empty()).collect()
}

/// What keeps a lock, and the lock as it is then.
pub async fn keep(products: &Products, kept: &Kept<Session>, timeout: Millis) -> Result<Change<Session>, Error> {
    let session = Session { expires_at: products.engine().now().await? + timeout, ..kept.value.clone() };
    Ok(Change { commands: vec![put(products, &session, kept.unchanged())?], answer: session })
}

/// What releases a lock; those it was in the way of are told.
pub async fn release(products: &Products, kept: &Kept<Session>) -> Result<Vec<Command>, Error> {
    let gone = &kept.value;
    let mut commands = vec![
        records::delete(products, SESSION, &kept.key, kept.unchanged()),
        news(products, "edit.session_released", gone),
    ];
    let others = open(products, &gone.part_number).await?;
    for other in others.iter().map(|kept| &kept.value).filter(|other| other.editor != gone.editor) {
        let shared = gone.context.shared(&other.context);
        if other.id != gone.id && !shared.is_empty() {
            let told = json!({
                "item_id": other.item_id,
                "part_number": other.part_number,
                "session_id": other.id,
                "shared": shared,
            });
            commands.push(records::tell(products, "edit.interference_resolved", &told));
        }
    }
    Ok(commands)
}

/// Releases what has expired. How many.
pub async fn sweep(products: &Products) -> Result<usize, Error> {
    let now = products.engine().now().await?;
    let mut gone = 0;
    for kept in records::list(products, SESSION, Of::All).await? {
        if kept.value.expires_at > now {
            continue;
        }
        // Where somebody else was faster, it is released or kept alive; either is right.
        let released = release(products, &kept).await?;
        gone += usize::from(records::commit(products, released).await?.is_some());
    }
    Ok(gone)
}
