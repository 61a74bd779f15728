//! `windlass migrate`: brings the schema forward.

use super::StoreAddress;
use crate::{
    commands::{Context, Done},
    fail::code,
};
use clap::Args;

/// Upgrade the data to this program's schema version.
///
/// A server does this itself when it starts. Run this command first if several servers share a database, so that they are down only
/// briefly, or to test the upgrade. It cannot be undone: make a backup first.
#[derive(Args)]
pub struct Migrate {
    #[command(flatten)]
    place: StoreAddress,
}

#[derive(serde::Serialize)]
struct Migrated {
    store: &'static str,
    from: Option<i64>,
    to: i64,
}

impl Migrate {
    pub async fn run(self, context: &Context) -> Done {
        if self.place.database.is_none() {
            self.place.must_exist()?;
        }
        let from = self.place.version().await?;
        drop(self.place.open(true).await?);
        let to = self.place.version().await?.unwrap_or_default();
        let done = Migrated { store: self.place.kind(), from, to };
        context.format.one(&done, || match from {
            Some(from) if from >= to => format!("{} is at schema version {from}; nothing to do", self.place.name()),
            Some(from) => format!("{} was upgraded from schema version {from} to {to}", self.place.name()),
            None => format!("created the schema in {}, version {to}", self.place.name()),
        })?;
        Ok(code::OK)
    }
}

impl StoreAddress {
    /// The schema version of what is there; none where there is nothing yet.
    pub async fn version(&self) -> anyhow::Result<Option<i64>> {
        match &self.database {
            Some(url) => {
                let client = windlass_stores::postgres::session(url).await?;
                let there = "SELECT to_regclass('windlass.meta') IS NOT NULL";
                if !client.query_typed_one(there, &[]).await?.get::<_, bool>(0) {
                    return Ok(None);
                }
                let version = "SELECT value FROM windlass.meta WHERE name = 'schema_version'";
                Ok(client.query_typed_opt(version, &[]).await?.map(|row| row.get(0)))
            }
            None => Ok(Some(read_only(&self.folder())?.pragma_query_value(None, "user_version", |row| row.get(0))?)),
        }
    }
}

/// The embedded database beside whoever else uses it.
pub fn read_only(folder: &std::path::Path) -> anyhow::Result<rusqlite::Connection> {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY | rusqlite::OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = rusqlite::Connection::open_with_flags(folder.join("windlass.db"), flags)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    Ok(connection)
}
