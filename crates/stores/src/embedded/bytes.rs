//! How many bytes there are, read from the rows: once for those from before bytes were counted, and to check the numbers.

use super::{
    counts::{Position, Sums, Whose, add_row, read_written},
    failure::Result,
    reads, rows,
    write::JOB_TOUCH,
};
use rusqlite::Connection;
use windlass_core::{
    Job, JobKey, Namespace,
    counts::{self, Counted},
};

/// Jobs in one transaction.
const SLICE: usize = 1_000;
const KEYS_AFTER: &str =
    "SELECT namespace, id FROM jobs WHERE (namespace, id) > (?1, ?2) ORDER BY namespace, id LIMIT ?3";

/// Charges namespaces with what is there already, in slices, as `counts::count_all` does. Jobs are told what they count with, so
/// that it can be taken off when they go.
pub(super) fn count_all(connection: &Connection) -> Result<()> {
    while let Some(after) = begun(connection)? {
        let transaction = connection.unchecked_transaction()?;
        let mut sums = Sums::new();
        if after.0.is_empty() {
            tracing::info!("counting the bytes that are stored; this is done once");
            sums = records(&transaction)?;
        }
        let keys = keys_after(&transaction, &after, SLICE)?;
        for key in &keys {
            if let Some(job) = charged(&transaction, key)? {
                add(&mut sums, &key.namespace, counts::job_bytes(&job));
            }
        }
        for ((whose, counted), by) in sums {
            add_row(&transaction, &whose, counted, by)?;
        }
        match keys.last() {
            Some(last) => transaction.execute(
                "UPDATE job_bytes_begun SET namespace = ?1, id = ?2",
                (last.namespace.as_str(), last.id.as_bytes()),
            )?,
            None => transaction.execute("DELETE FROM job_bytes_begun", [])?,
        };
        transaction.commit()?;
    }
    Ok(())
}

fn begun(connection: &Connection) -> Result<Option<Position>> {
    let mut statement = connection.prepare("SELECT namespace, id FROM job_bytes_begun")?;
    let mut rows = statement.query([])?;
    rows.next()?.map(|row| Ok((row.get(0)?, row.get(1)?))).transpose()
}

fn keys_after(connection: &Connection, after: &Position, limit: usize) -> Result<Vec<JobKey>> {
    let mut statement = connection.prepare_cached(KEYS_AFTER)?;
    let mut rows = statement.query((&after.0, &after.1, i64::try_from(limit).unwrap_or(i64::MAX)))?;
    let mut keys = Vec::new();
    while let Some(row) = rows.next()? {
        keys.push(JobKey::new(&rows::to_namespace(rows::text(row, 0)?)?, rows::blob_id(row, 1)?));
    }
    Ok(keys)
}

/// The job with what it is charged, which is written if it was not there yet.
fn charged(connection: &Connection, key: &JobKey) -> Result<Option<Job>> {
    let Some(mut job) = rows::load_job(connection, key)? else { return Ok(None) };
    if job.live.bytes != Default::default() {
        return Ok(Some(job));
    }
    let body = reads::body(connection, key)?.unwrap_or_default();
    let attempts: usize = body.attempts.iter().map(|attempt| 256 + attempt.outcome.message.len()).sum();
    let parts = body.payload.len() + body.result.map_or(0, |result| result.len()) + attempts;
    job.live.bytes = counts::older_job_bytes(&job, parts as u64);
    let (live, sum) = rows::job_columns(&job);
    let row = (key.namespace.as_str(), key.id.as_bytes(), live, sum);
    connection.prepare_cached(JOB_TOUCH)?.execute(row)?;
    Ok(Some(job))
}

fn add(sums: &mut Sums, namespace: &Namespace, by: i64) {
    *sums.entry((whole(namespace), Counted::Bytes)).or_default() += by;
}

fn whole(namespace: &Namespace) -> Whose {
    (namespace.clone(), "".into())
}

fn records(connection: &Connection) -> Result<Sums> {
    let mut sums = Sums::new();
    let mut after = None;
    loop {
        let found = reads::all_records(connection, after.as_ref(), SLICE)?;
        found.iter().for_each(|record| add(&mut sums, &record.key.namespace, counts::record_bytes(record)));
        match found.into_iter().last() {
            Some(last) => after = Some(last.key),
            None => return Ok(sums),
        }
    }
}

/// What the rows come to.
pub(super) fn stored(connection: &Connection) -> Result<Sums> {
    let mut sums = records(connection)?;
    for key in keys_after(connection, &Default::default(), usize::MAX)? {
        if let Some(job) = rows::load_job(connection, &key)? {
            add(&mut sums, &key.namespace, counts::job_bytes(&job));
        }
    }
    let mut statement =
        connection.prepare("SELECT first_no, counts, counts_sum FROM events WHERE counts IS NOT NULL")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        for (namespace, _, code, by) in read_written(row)? {
            if code == Counted::EventBytes.code() {
                *sums.entry((whole(&rows::to_namespace(&namespace)?), Counted::EventBytes)).or_default() += by;
            }
        }
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::{Embedded, Options, counts::wrong};
    use windlass_core::{
        Command, JobId, Limits, Timestamp,
        commands::{
            definitions::PutDefinition,
            submit::{NewJob, Submit},
        },
        decider::Item,
    };
    use windlass_engine::store::{Batch, Store, Trim};

    /// As the version before left it.
    const OLDER: &str = "DELETE FROM job_counts WHERE state >= 100;
        INSERT INTO job_bytes_begun VALUES ('', x'')";

    #[tokio::test]
    async fn the_bytes_of_an_older_folder_are_counted_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::open(folder.path(), Options::default()).unwrap();
        let namespace = Namespace::default();
        let put = PutDefinition { namespace: namespace.clone(), name: "d".into(), body: "{}".into() };
        let submit = |id| {
            let payload = "x".repeat(10_000).as_str().into();
            Submit { namespace: Namespace::default(), job: NewJob { payload, ..NewJob::new(JobId::from_u128(id)) } }
        };
        let commands = (1..=1_500).map(|id| Command::from(submit(id))).chain([put.into()]);
        let items = commands.map(|command| Item { command, seed: 1, by: None }).collect();
        store.run(Batch::new(items, Limits::default())).await.unwrap();
        let before = store.job_counts(&namespace, None).await.unwrap().get(Counted::Bytes);
        assert!(before > 15_000_000);
        // With its events, what was counted with them is in the table.
        store.trim(Trim { events_before: Timestamp(i64::MAX), limit: usize::MAX }).await.unwrap();
        drop(store);
        let connection = Connection::open(folder.path().join("windlass.db")).unwrap();
        for key in keys_after(&connection, &Default::default(), usize::MAX).unwrap() {
            let mut job = rows::load_job(&connection, &key).unwrap().unwrap();
            job.live.bytes = Default::default();
            let (live, sum) = rows::job_columns(&job);
            connection.execute(JOB_TOUCH, (key.namespace.as_str(), key.id.as_bytes(), live, sum)).unwrap();
        }
        connection.execute_batch(OLDER).unwrap();
        drop(connection);
        let store = Embedded::open(folder.path(), Options::default()).unwrap();
        assert_eq!(store.job_counts(&namespace, None).await.unwrap().get(Counted::Bytes), before);
        drop(store);
        let connection = Connection::open(folder.path().join("windlass.db")).unwrap();
        assert_eq!(wrong(&connection).unwrap(), Vec::<String>::new());
    }
}
