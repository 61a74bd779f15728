//! Items and revisions as records: how one is found and written.

use crate::{
    Error, Products,
    records::{self, Kept, Of, Put},
    rules::item::{Item, Revision},
};
use windlass_core::{Command, commands::records::Expect};

pub async fn find(products: &Products, part: &str) -> Result<Kept<Item>, Error> {
    records::get(products, records::ITEM, part).await?.ok_or_else(|| Error::not_found("item", part))
}

/// By part number or by id.
pub async fn find_any(products: &Products, name: &str) -> Result<Option<Kept<Item>>, Error> {
    match records::get(products, records::ITEM, name).await? {
        Some(found) => Ok(Some(found)),
        None => by_id(products, &name.to_lowercase()).await,
    }
}

pub async fn by_id(products: &Products, id: &str) -> Result<Option<Kept<Item>>, Error> {
    Ok(records::list(products, records::ITEM, Of::With("id", id)).await?.pop())
}

pub fn put(products: &Products, item: &Item, expect: Expect) -> Result<Command, Error> {
    let id = item.id.to_string();
    let put = Put::new(products, records::ITEM, &item.part_number, expect).facet("id", &id);
    put.facet("type", &item.item_type).facet("schema", &item.schema).value(item)
}

pub fn revision_key(part: &str, number: u32) -> String {
    format!("{part}/{number:010}")
}

pub fn put_revision(products: &Products, item: &Item, revision: &Revision) -> Result<Command, Error> {
    let key = revision_key(&item.part_number, revision.number);
    Put::new(products, records::REVISION, &key, Expect::Nothing).under(&item.part_number).value(revision)
}
