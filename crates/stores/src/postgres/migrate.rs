//! Brings the schema forward. Servers that start together wait for each other; the first one migrates.

use super::{counts::count_all, open::OpenError, statements::in_schema};
use tokio_postgres::{Client, types::Type};

/// The texts of all versions, in order; the first is version 1.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001.sql"),
    include_str!("migrations/0002.sql"),
    include_str!("migrations/0003.sql"),
    include_str!("migrations/0004.sql"),
    include_str!("migrations/0005.sql"),
    include_str!("migrations/0006.sql"),
    include_str!("migrations/0007.sql"),
];
/// The schema this program writes.
pub const VERSION: i64 = MIGRATIONS.len() as i64;
/// The oldest program, by the version it writes, that can still work with the schema as of [`VERSION`]. Before 3 they did
/// not lower marks, before 4 they took revoked tokens for valid ones, before 5 they did not count jobs, before 6 they did not see
/// payloads in the jobs' rows, before 7 they did not count bytes.
const MIN_READER: i64 = 7;

/// `lock` keeps others out meanwhile; `migrate` false only looks.
pub async fn migrate(client: &Client, schema: &str, lock: i64, migrate: bool, name: &str) -> Result<(), OpenError> {
    bring_forward(client, schema, lock, migrate, name).await?;
    match count_all(client, schema, lock, migrate, name).await? {
        true => Ok(()),
        false => Err(OpenError::OldSchema { name: name.to_owned(), found: VERSION - 1, wanted: VERSION }),
    }
}

async fn bring_forward(client: &Client, schema: &str, lock: i64, migrate: bool, name: &str) -> Result<(), OpenError> {
    let failed = |error| OpenError::migration(name, error);
    let found = version(client, schema).await.map_err(failed)?;
    if up_to_date(found, name)? {
        return Ok(());
    }
    if !migrate {
        return Err(OpenError::OldSchema {
            name: name.to_owned(),
            found: found.map_or(0, |found| found.0),
            wanted: VERSION,
        });
    }
    let begin = format!(
        "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SELECT pg_advisory_xact_lock({lock})"
    );
    client.batch_execute(&begin).await.map_err(failed)?;
    // Looked at again, since another server may have migrated while this one waited.
    let found = version(client, schema).await.map_err(failed)?;
    if !up_to_date(found, name)? {
        let done = found.map_or(0, |found| found.0);
        apply(client, schema, done as usize).await.map_err(failed)?;
        tracing::info!(from = done, to = VERSION, name, "upgraded the database schema");
    }
    client.batch_execute("COMMIT").await.map_err(failed)
}

async fn apply(client: &Client, schema: &str, done: usize) -> Result<(), tokio_postgres::Error> {
    client.batch_execute(&format!("CREATE SCHEMA IF NOT EXISTS \"{schema}\"")).await?;
    for text in &MIGRATIONS[done..] {
        client.batch_execute(&in_schema(text, schema)).await?;
    }
    let text = format!(
        "INSERT INTO windlass.meta VALUES ('schema_version', {VERSION}), ('min_reader', {MIN_READER}) \
         ON CONFLICT (name) DO UPDATE SET value = excluded.value"
    );
    client.batch_execute(&in_schema(&text, schema)).await
}

/// (version, oldest program that may use it); none where there is no schema yet.
async fn version(client: &Client, schema: &str) -> Result<Option<(i64, i64)>, tokio_postgres::Error> {
    // Read as a table and not with to_regclass, whose cached answer may be older than the lock that was waited for.
    let text = "SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                WHERE n.nspname = $1 AND c.relname = 'meta')";
    let there = client.query_typed_one(text, &[(&schema, Type::TEXT)]).await?;
    if !there.try_get::<_, bool>(0)? {
        return Ok(None);
    }
    let text = "SELECT (SELECT value FROM windlass.meta WHERE name = 'schema_version'), \
                       (SELECT value FROM windlass.meta WHERE name = 'min_reader')";
    let row = client.query_typed_one(&in_schema(text, schema), &[]).await?;
    Ok(Some((row.try_get::<_, Option<i64>>(0)?.unwrap_or(0), row.try_get::<_, Option<i64>>(1)?.unwrap_or(0))))
}

/// A newer schema is fine as long as it says that this program can read it.
fn up_to_date(found: Option<(i64, i64)>, name: &str) -> Result<bool, OpenError> {
    match found {
        Some((found, min_reader)) if min_reader > VERSION => {
            Err(OpenError::NewerSchema { name: name.to_owned(), found, supported: VERSION })
        }
        Some((found, _)) => Ok(found >= VERSION),
        None => Ok(false),
    }
}
