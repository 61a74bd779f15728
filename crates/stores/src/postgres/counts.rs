//! How many jobs there are in each state, and how many bytes a namespace keeps: see the migration that made the table, and `sql/number_events.sql`.

use super::{
    Inner,
    failure::Failure,
    open::OpenError,
    statements::{Sql, in_schema},
};
use serde::Deserialize;
use std::collections::BTreeMap;
use tokio_postgres::{
    Client, Error, Row,
    types::{ToSql, Type},
};
use uuid::Uuid;
use windlass_core::{Namespace, StateCounts, counts::Counted, job::DefinitionRef};
use windlass_engine::StoreError;

const SLICE: &str = include_str!("sql/count_slice.sql");
const BYTES_SLICE: &str = include_str!("sql/bytes_slice.sql");
/// What stands in the row of a finished job.
const OWN_PARTS: &str = "coalesce(octet_length(j.result), 0) + coalesce(octet_length(j.attempt), 0)";
/// What is being counted, and how far that is.
const JOBS_BEGUN: &str = "windlass.job_counts_begun";
const BYTES_BEGUN: &str = "windlass.job_bytes_begun";
const ADD: &str = include_str!("sql/add_counts.sql");
/// Jobs counted in one transaction, while those from before there were counts are.
const SLICE_JOBS: i64 = 5_000;

impl Inner {
    pub async fn job_counts(&self, namespace: &Namespace, definition: Option<&str>) -> Result<StateCounts, StoreError> {
        self.read(async |reader| {
            // Added up first, so that what is left of it is little even where nobody reads the feed.
            self.numbered(&reader).await?;
            let params: [&(dyn ToSql + Sync); 2] = [&namespace.as_str(), &definition.unwrap_or_default()];
            let mut counts = StateCounts::default();
            for row in reader.query(Sql::ReadCounts, &params).await? {
                let code: i16 = row.try_get(0)?;
                let counted = Counted::from_code(code);
                let counted = counted.ok_or_else(|| Failure::corrupt(format!("there is a number of {code}")))?;
                counts.add(counted, row.try_get(1)?);
            }
            Ok(counts)
        })
        .await
    }
}

/// Counts the jobs that were there before there were counts: slice by slice, each a transaction of its own, so that one who is
/// killed meanwhile goes on where he was, and several who start together share the work. No server writes until it is done: those
/// that could not count are refused by the schema, and the others wait here. `may` false only looks; false: something is left.
pub async fn count_all(client: &Client, schema: &str, lock: i64, may: bool, name: &str) -> Result<bool, OpenError> {
    let mut done = true;
    for begun in [JOBS_BEGUN, BYTES_BEGUN] {
        done &= count(client, (schema, begun), lock, may, name).await?;
    }
    Ok(done)
}

async fn count(
    client: &Client,
    (schema, begun): (&str, &str),
    lock: i64,
    may: bool,
    name: &str,
) -> Result<bool, OpenError> {
    let failed = |error| OpenError::migration(name, error);
    let left = format!("SELECT part, namespace, id FROM {begun} WHERE NOT done ORDER BY part LIMIT 1");
    let left = in_schema(&left, schema);
    let mut told = false;
    loop {
        if client.query_typed(&left, &[]).await.map_err(failed)?.is_empty() {
            return Ok(true);
        }
        if !may {
            return Ok(false);
        }
        if !std::mem::replace(&mut told, true) {
            tracing::info!(name, "counting what is stored already; this is done once");
        }
        count_slice(client, (schema, begun), &left, lock).await.map_err(failed)?;
    }
}

async fn count_slice(client: &Client, (schema, begun): (&str, &str), left: &str, lock: i64) -> Result<(), Error> {
    let begin = format!(
        "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SELECT pg_advisory_xact_lock({lock})"
    );
    client.batch_execute(&begin).await?;
    // Looked at again, since another server may have been at it while this one waited.
    if let Some(row) = client.query_typed(left, &[]).await?.first() {
        let (part, namespace, id): (String, String, Uuid) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let text = if begun == JOBS_BEGUN { SLICE } else { BYTES_SLICE };
        let own = if part == "jobs" { "0" } else { OWN_PARTS };
        let text = text.replace("windlass.part ", &format!("windlass.{part} ")).replace("windlass.own", own);
        let slice = in_schema(&text, schema);
        let params: [(&(dyn ToSql + Sync), Type); 3] =
            [(&namespace, Type::TEXT), (&id, Type::UUID), (&SLICE_JOBS, Type::INT8)];
        let jobs = client.query_typed(&slice, &params).await?;
        if begun == JOBS_BEGUN {
            add(client, schema, &jobs).await?;
        }
        let last = jobs.last().map(|row| Ok::<_, Error>((row.try_get(0)?, row.try_get(1)?))).transpose()?;
        let done = last.is_none();
        let (namespace, id) = last.unwrap_or((namespace, id));
        let moved = format!("UPDATE {begun} SET namespace = $2, id = $3, done = $4 WHERE part = $1");
        let params: [(&(dyn ToSql + Sync), Type); 4] =
            [(&part, Type::TEXT), (&namespace, Type::TEXT), (&id, Type::UUID), (&done, Type::BOOL)];
        client.execute_typed(&in_schema(&moved, schema), &params).await?;
    }
    client.batch_execute("COMMIT").await
}

#[derive(Default, Deserialize)]
struct Named {
    definition: Option<DefinitionRef>,
}

/// Adds jobs to what is counted. One that cannot be read counts as one without a definition; `check` names it.
async fn add(client: &Client, schema: &str, jobs: &[Row]) -> Result<(), Error> {
    let mut sums: BTreeMap<(String, String, i16), i64> = BTreeMap::new();
    for row in jobs {
        let (namespace, state): (String, i16) = (row.try_get(0)?, row.try_get(2)?);
        let spec: Named = serde_json::from_str(row.try_get(3)?).unwrap_or_default();
        let definition = spec.definition.map(|definition| definition.name.to_string());
        for whose in definition.into_iter().chain([String::new()]) {
            *sums.entry((namespace.clone(), whose, state)).or_default() += 1;
        }
    }
    let namespaces: Vec<&str> = sums.keys().map(|(namespace, _, _)| &**namespace).collect();
    let definitions: Vec<&str> = sums.keys().map(|(_, definition, _)| &**definition).collect();
    let states: Vec<i16> = sums.keys().map(|(_, _, state)| *state).collect();
    let counts: Vec<i64> = sums.values().copied().collect();
    let params: [(&(dyn ToSql + Sync), Type); 4] = [
        (&namespaces, Type::TEXT_ARRAY),
        (&definitions, Type::TEXT_ARRAY),
        (&states, Type::INT2_ARRAY),
        (&counts, Type::INT8_ARRAY),
    ];
    client.execute_typed(&in_schema(ADD, schema), &params).await.map(drop)
}
