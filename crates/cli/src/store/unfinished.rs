//! The mark of an import that has not ended well. A store that bears it is not served, not exported and not imported into.

use super::StoreAddress;
use anyhow::ensure;
use windlass_core::{Record, RecordKey};
use windlass_engine::{Bulk, Store, StoreError, bulk::Rows};

pub fn key() -> RecordKey {
    RecordKey { namespace: windlass_server::auth::system_namespace(), kind: "import".into(), key: "unfinished".into() }
}

/// Before the first row.
pub async fn mark(store: &dyn Bulk) -> Result<(), StoreError> {
    let record = Record {
        key: key(),
        version: 1,
        parent: None,
        value: "{}".into(),
        facets: Vec::new(),
        due: None,
        decoded: Default::default(),
    };
    store.insert(Rows { records: vec![record], ..Rows::default() }).await
}

/// After everything was read back and compared. Not as a command, which would leave an event among those that were moved.
pub async fn clear(store: &dyn Bulk) -> Result<(), StoreError> {
    store.insert(Rows { gone: vec![key()], ..Rows::default() }).await
}

/// Refuses a store whose import was not finished, and says what to do.
pub async fn check(store: &dyn Store, place: &StoreAddress) -> anyhow::Result<()> {
    ensure!(store.record(&key()).await?.is_none(), "{}", advice(place));
    Ok(())
}

pub fn advice(place: &StoreAddress) -> String {
    let what = match &place.database {
        Some(_) => "drop its schema (DROP SCHEMA windlass CASCADE)".to_owned(),
        None => format!("remove {}", place.folder().join("windlass.*").display()),
    };
    format!("the import into {} was not completed, and its data cannot be used: {what} and import again", place.name())
}
