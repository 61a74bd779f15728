//! The mark of an import that has not ended well. A store that bears it is not served, not exported and not imported into.

use super::Place;
use anyhow::ensure;
use windlass_core::{
    Limits, Record, RecordKey,
    commands::records::{DeleteRecord, Expect},
    decider::Item,
};
use windlass_engine::{Bulk, Store, StoreError, bulk::Rows, store::Batch};

pub fn key() -> RecordKey {
    RecordKey { namespace: windlass_server::auth::home(), kind: "import".into(), key: "unfinished".into() }
}

/// Before the first row.
pub async fn mark(store: &dyn Bulk) -> Result<(), StoreError> {
    let record = Record { key: key(), version: 1, parent: None, value: "{}".into(), facets: Vec::new(), due: None };
    store.insert(Rows { records: vec![record], ..Rows::default() }).await
}

/// After everything was read back and compared. Without an engine, which would begin to do what is due.
pub async fn clear(store: &dyn Bulk) -> anyhow::Result<()> {
    let command = DeleteRecord { key: key(), expect: Expect::Anything }.into();
    let batch = Batch { items: vec![Item { command, seed: 0 }], limits: Limits::default() };
    for reply in store.run(batch).await?.replies {
        reply?;
    }
    Ok(())
}

/// Refuses a store whose import was not finished, and says what to do.
pub async fn check(store: &dyn Store, place: &Place) -> anyhow::Result<()> {
    ensure!(store.record(&key()).await?.is_none(), "{}", advice(place));
    Ok(())
}

pub fn advice(place: &Place) -> String {
    let what = match &place.database {
        Some(_) => "drop its schema (DROP SCHEMA windlass CASCADE)".to_owned(),
        None => format!("remove {}", place.folder().join("windlass.*").display()),
    };
    format!("the import into {} is not complete, and what is there is of no use: {what} and import again", place.name())
}
