//! Files of an item's revisions: their records. The bytes are kept elsewhere, by whoever serves them.

use crate::{
    Error, Products,
    records::{self, Kept, Kind, Of, Put},
    rules::item::Item,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use uuid::Uuid;
use windlass_core::{Command, Facet, Namespace, Record, Timestamp, commands::records::Expect};
use windlass_engine::{Engine, store::RecordQuery};

/// Files of revisions: listed under the revision.
pub const FILE: Kind<File> = Kind::new("silo_file");

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

fn of_revision(item: &Item, number: u32) -> String {
    format!("{}/{number:010}", item.part_number)
}

/// Names may be longer than a key, so their digest stands for them.
fn key(item: &Item, number: u32, name: &str) -> String {
    let mut key = of_revision(item, number) + "/";
    for byte in &Sha256::digest(name)[..16] {
        write!(key, "{byte:02x}").expect("a string takes everything");
    }
    key
}

/// A file of this name, also one of another item that had the part number before.
pub async fn at(products: &Products, item: &Item, number: u32, name: &str) -> Result<Option<Kept<File>>, Error> {
    records::get(products, FILE, &key(item, number, name)).await
}

pub async fn find(products: &Products, item: &Item, number: u32, name: &str) -> Result<Option<Kept<File>>, Error> {
    Ok(at(products, item, number, name).await?.filter(|file| file.value.item == item.id))
}

pub fn put(products: &Products, (item, number): (&Item, u32), file: &File, expect: Expect) -> Result<Command, Error> {
    let (parent, content) = (of_revision(item, number), file.content.to_string());
    let put = Put::new(products, FILE, &key(item, number, &file.name), expect).under(&parent);
    put.facet("part", &item.part_number).facet("content", &content).value(file)
}

/// By name.
pub async fn all(products: &Products, item: &Item, number: u32) -> Result<Vec<File>, Error> {
    let found = records::list(products, FILE, Of::Under(&of_revision(item, number))).await?;
    let mut files: Vec<File> = found.into_iter().map(|kept| kept.value).filter(|file| file.item == item.id).collect();
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

/// Whether this content is a file of a revision.
pub async fn knows(engine: &Engine, namespace: &Namespace, content: Uuid) -> Result<bool, Error> {
    let facet = Some(Facet::new("content", &content.to_string()));
    let found = engine.store().records(&RecordQuery { facet, limit: 1, ..FILE.query(namespace) }).await?;
    Ok(!found.is_empty())
}

/// What forgets all files of an item, and their contents.
pub async fn forget(products: &Products, part: &str) -> Result<(Vec<Command>, Vec<Uuid>), Error> {
    let found = records::list(products, FILE, Of::With("part", part)).await?;
    let delete = |file: &Kept<File>| records::delete(products, FILE, &file.key, file.unchanged());
    Ok((found.iter().map(delete).collect(), found.iter().map(|file| file.value.content).collect()))
}

/// The contents of an item's files.
pub async fn contents(products: &Products, part: &str) -> Result<Vec<Uuid>, Error> {
    Ok(forget(products, part).await?.1)
}

/// The content of a file whose item is gone or is another one by now. None: the file has its item.
pub async fn stray(products: &Products, record: &Record) -> Result<Option<Uuid>, Error> {
    let Ok(file) = serde_json::from_str::<File>(&record.value) else { return Ok(None) };
    let part = record.key.key.split('/').next().unwrap_or_default();
    let item = records::get(products, records::ITEM, part).await?;
    let is_there = item.is_some_and(|item| item.value.id == file.item);
    Ok((!is_there).then_some(file.content))
}

/// Forgets a file as it was found. False: somebody changed it meanwhile.
pub async fn forget_one(products: &Products, record: &Record) -> Result<bool, Error> {
    let delete = records::delete(products, FILE, &record.key.key, Expect::Version(record.version));
    Ok(records::commit(products, vec![delete]).await?.is_some())
}
