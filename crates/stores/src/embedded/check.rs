//! Looks for damage: in the file, in the rows, and between the rows.

use super::{
    counts,
    failure::{Failure, Result},
    reads, rows,
};
use rusqlite::Connection;
use windlass_core::{JobKey, RecordKey};

/// Enough to see what kind of damage it is.
const PROBLEMS_MAX: usize = 100;

/// Rules that must hold between rows; each statement answers with the offenders.
const RULES: [(&str, &str); 4] = [
    ("has nothing to wait for and nobody to run it", include_str!("sql/check_stuck.sql")),
    ("is held by a worker that does not exist and will not time out", include_str!("sql/check_holder.sql")),
    ("is a concurrency key whose count does not match its jobs", include_str!("sql/check_concurrency.sql")),
    ("is a gap or an overlap in the numbers of events", include_str!("sql/check_events.sql")),
];

/// SQLite's own checks: `quick_check` or `integrity_check`. They answer one row saying "ok", or what they found.
pub(super) fn pragma(connection: &Connection, name: &str) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    connection.pragma(None, name, PROBLEMS_MAX as i64, |row| {
        problems.push(row.get::<_, String>(0)?);
        Ok(())
    })?;
    problems.retain(|problem| problem != "ok");
    Ok(problems)
}

/// Everything that can be said of the file without knowing the rules: pages, indexes, checksums, rows that come in pairs.
pub(super) fn rows(connection: &Connection) -> Result<Vec<String>> {
    let mut problems = pragma(connection, "integrity_check")?;
    if problems.is_empty() {
        let alone = offenders(connection, include_str!("sql/check_inputs.sql"))?;
        problems.extend(alone.into_iter().map(|name| format!("{name} is there only by half")));
        sums(connection, &mut problems)?;
    }
    Ok(problems)
}

pub(super) fn all(connection: &Connection) -> Result<Vec<String>> {
    let mut problems = rows(connection)?;
    if problems.is_empty() {
        for (what, sql) in RULES {
            problems.extend(offenders(connection, sql)?.into_iter().map(|name| format!("{name} {what}")));
        }
        let wrong = counts::wrong(connection)?;
        problems.extend(wrong.into_iter().map(|name| format!("{name} has another number of jobs than is kept")));
    }
    problems.truncate(PROBLEMS_MAX);
    Ok(problems)
}

fn offenders(connection: &Connection, sql: &str) -> Result<Vec<String>> {
    let mut statement = connection.prepare(sql)?;
    let found = statement.query_map([PROBLEMS_MAX as i64], |row| row.get(0))?;
    Ok(found.collect::<std::result::Result<_, _>>()?)
}

/// Reads a job with all that belongs to it.
fn whole(connection: &Connection, key: &JobKey) -> Result<()> {
    let Some(job) = rows::load_job(connection, key)? else { return Ok(()) };
    let body = reads::body(connection, key)?.unwrap_or_default();
    let pieces = reads::read_log(connection, key, 0, usize::MAX)?.len() as u64;
    if body.result.is_some() != job.live.has_result || pieces != job.live.log.kept_pieces() {
        return Err(Failure::Damaged(format!(
            "job {}/{} has lost its result or a piece of its log",
            key.namespace, key.id
        )));
    }
    Ok(())
}

/// Reads every row that has a checksum.
fn sums(connection: &Connection, problems: &mut Vec<String>) -> Result<()> {
    let mut note = |outcome: Result<()>| match outcome {
        Ok(()) => Ok(()),
        Err(Failure::Damaged(what)) => {
            problems.push(what);
            Ok(())
        }
        Err(other) => Err(other),
    };
    let mut jobs = connection.prepare("SELECT namespace, id FROM jobs")?;
    let mut found = jobs.query([])?;
    while let Some(row) = found.next()? {
        let key = JobKey::new(&rows::to_namespace(rows::text(row, 0)?)?, rows::blob_id(row, 1)?);
        note(whole(connection, &key))?;
    }
    let mut records = connection.prepare("SELECT namespace, kind, key FROM records")?;
    let mut found = records.query([])?;
    while let Some(row) = found.next()? {
        let namespace = rows::to_namespace(rows::text(row, 0)?)?;
        let key = RecordKey { namespace, kind: row.get(1)?, key: row.get(2)? };
        note(rows::load_record(connection, &key).map(drop))?;
    }
    for mark in ["min_reader", "last_event", "next_seq", "last_now", counts::MARK] {
        note(rows::load_mark(connection, mark).map(drop))?;
    }
    let mut events = connection.prepare(reads::EVENTS_FROM)?;
    let mut found = events.query([0])?;
    while let Some(row) = found.next()? {
        note(reads::batch_events(row).map(drop))?;
    }
    Ok(())
}
