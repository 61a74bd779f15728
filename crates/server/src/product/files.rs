//! Files of an item's revisions, as they are kept.

use super::{
    namespace,
    store::{self, Kept, Of},
};
use crate::{app::App, auth::hex, content, problem::Problem};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use windlass_api::Uuid;
use windlass_core::{Command, Facet, Namespace, Record, Timestamp, commands::records::Expect, product::item::Item};
use windlass_engine::store::RecordQuery;

const PAGE: usize = 500;

/// A file of a revision.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct File {
    pub name: String,
    /// Of the item; another item may have had its part number before.
    pub item: Uuid,
    pub content: Uuid,
    pub size: u64,
    pub sha256: String,
    pub content_type: Option<String>,
    pub created_at: Timestamp,
    pub created_by: String,
}

pub fn of_revision(item: &Item, number: u32) -> String {
    format!("{}/{number:010}", item.part_number)
}

/// Names may be longer than a key, so their digest stands for them.
pub fn key(item: &Item, number: u32, name: &str) -> String {
    let digest = hex(&Sha256::digest(name));
    format!("{}/{}", of_revision(item, number), &digest[..32])
}

pub async fn find(app: &App, item: &Item, number: u32, name: &str) -> Result<Option<Kept<File>>, Problem> {
    let found = store::get::<File>(app, store::FILE, &key(item, number, name)).await?;
    Ok(found.filter(|file| file.value.item == item.id))
}

/// By name.
pub async fn all(app: &App, item: &Item, number: u32) -> Result<Vec<File>, Problem> {
    let found = store::list::<File>(app, store::FILE, Of::Under(&of_revision(item, number))).await?;
    let mut files: Vec<File> = found.into_iter().map(|kept| kept.value).filter(|file| file.item == item.id).collect();
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

/// Whether this content is a file of a revision.
pub async fn knows(app: &App, content: Uuid) -> Result<bool, Problem> {
    let facet = Some(Facet::new("content", &content.to_string()));
    let query =
        RecordQuery { namespace: namespace(), kind: store::FILE.into(), parent: None, facet, after: None, limit: 1 };
    Ok(!app.engine.store().records(&query).await?.is_empty())
}

/// Bytes and number of all files of a namespace.
pub async fn total(app: &App, of: &Namespace) -> Result<(u64, u64), Problem> {
    if *of != namespace() {
        return Ok((0, 0));
    }
    content::total(app, namespace(), store::FILE, None, |file: &File| file.size).await
}

/// What forgets all files of an item, and their content, to be removed once it is done.
pub async fn forget(app: &App, part: &str) -> Result<(Vec<Command>, Vec<Uuid>), Problem> {
    let found = store::list::<File>(app, store::FILE, Of::With("part", part)).await?;
    let commands = found.iter().map(|file| store::delete(store::FILE, &file.key, file.unchanged())).collect();
    Ok((commands, found.into_iter().map(|file| file.value.content).collect()))
}

pub async fn remove(app: &App, contents: Vec<Uuid>) {
    for id in contents {
        content::remove(app, id).await;
    }
}

/// Files whose item went while they came in. How many went.
pub async fn sweep(app: &App) -> Result<usize, Problem> {
    let kind = store::FILE.into();
    let mut query = RecordQuery { namespace: namespace(), kind, parent: None, facet: None, after: None, limit: PAGE };
    let mut gone = 0;
    loop {
        let found = app.engine.store().records(&query).await?;
        for record in &found {
            match sweep_one(app, record).await {
                Err(problem) if problem.0.code() == "store-full" => {}
                swept => gone += usize::from(swept?),
            }
        }
        match found.last() {
            Some(last) if found.len() == PAGE => query.after = Some(last.key.key.clone()),
            _ => return Ok(gone),
        }
    }
}

async fn sweep_one(app: &App, record: &Record) -> Result<bool, Problem> {
    let Ok(file) = serde_json::from_str::<File>(&record.value) else { return Ok(false) };
    let part = record.key.key.split('/').next().unwrap_or_default();
    let item = store::get::<Item>(app, store::ITEM, part).await?;
    if item.is_some_and(|item| item.value.id == file.item) {
        return Ok(false);
    }
    // The bytes first: this may be what makes room on a full disk.
    content::remove(app, file.content).await;
    let delete = store::delete(store::FILE, &record.key.key, Expect::Version(record.version));
    Ok(store::commit(app, vec![delete]).await?.is_some())
}
