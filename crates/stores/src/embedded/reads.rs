//! What is read without the writer: each on a connection of its own, as of the last commit.

use super::{
    failure::{Failure, Result},
    leases::Leases,
    listing::NAMESPACE_NEXT,
    rows, write,
};
use rusqlite::{Connection, OptionalExtension, Row};
use std::sync::Arc;
use windlass_core::{
    Attempt, Event, Job, JobId, JobKey, LogAppend, LogForm, Namespace, Payload, Record, RecordKey, Timestamp, What,
    commands::due::Due,
};
use windlass_engine::store::{DuePage, EventPage, JobBody, RecordQuery};

pub(super) const JOB_DUE_LIST: &str = include_str!("sql/job_due_list.sql");
pub(super) const RECORD_DUE_LIST: &str = include_str!("sql/record_due_list.sql");
pub(super) const LOG_READ: &str = include_str!("sql/log_read.sql");
pub(super) const EVENTS_FROM: &str = include_str!("sql/events_from.sql");
pub(super) const RECORDS_ALL: &str = include_str!("sql/records_all.sql");
pub(super) const RECORDS_EVERY: &str = include_str!("sql/records_every.sql");
pub(super) const RECORD_NAMESPACE_NEXT: &str = include_str!("sql/record_namespace_next.sql");
pub(super) const RECORDS_UNDER: &str = include_str!("sql/records_under.sql");
pub(super) const RECORDS_FACET: &str = include_str!("sql/records_facet.sql");
pub(super) const RESULT: &str = "SELECT result, sum FROM results WHERE namespace = ?1 AND id = ?2";
pub(super) const SMALL_PAYLOAD: &str =
    "SELECT payload, payload_sum FROM inputs WHERE namespace = ?1 AND id = ?2 AND length(payload) BETWEEN 1 AND ?3";
pub(super) const ATTEMPTS: &str = "SELECT body, sum FROM attempts WHERE namespace = ?1 AND job = ?2 ORDER BY no";

pub(super) fn namespaces(connection: &Connection, limit: usize) -> Result<Vec<Namespace>> {
    let mut found: Vec<Namespace> = Vec::new();
    while found.len() < limit {
        let last = found.last().map_or("", Namespace::as_str);
        let of_records = namespace_after(connection, RECORD_NAMESPACE_NEXT, last)?;
        let of_jobs = namespace_after(connection, NAMESPACE_NEXT, last)?;
        let Some(next) = of_records.into_iter().chain(of_jobs).min() else { break };
        found.push(next);
    }
    Ok(found)
}

fn namespace_after(connection: &Connection, statement: &str, last: &str) -> Result<Option<Namespace>> {
    let mut statement = connection.prepare_cached(statement)?;
    let mut rows = statement.query([last])?;
    rows.next()?.map(|row| rows::to_namespace(rows::text(row, 0)?)).transpose()
}

fn clamp(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) fn body(connection: &Connection, key: &JobKey) -> Result<Option<JobBody>> {
    let Some(payload) = rows::load_payload(connection, key)? else {
        // Reading the job finds out whether only its other half is gone.
        return rows::load_job(connection, key).map(|_| None);
    };
    Ok(Some(JobBody {
        payload,
        result: rows::load_blob(connection, RESULT, key)?,
        attempts: attempts(connection, key)?,
        children: children(connection, key)?,
    }))
}

pub(super) fn jobs_named(connection: &Connection, keys: &[JobKey]) -> Result<Vec<Job>> {
    keys.iter().filter_map(|key| rows::load_job(connection, key).transpose()).collect()
}

pub(super) fn results(connection: &Connection, keys: Vec<JobKey>) -> Result<Vec<(JobKey, Payload)>> {
    let result = |key: JobKey| {
        let found = rows::load_blob(connection, RESULT, &key).transpose()?;
        Some(found.map(|result| (key, result)))
    };
    keys.into_iter().filter_map(result).collect()
}

pub(super) fn small_payloads(
    connection: &Connection,
    keys: Vec<JobKey>,
    bytes_max: usize,
) -> Result<Vec<(JobKey, Payload)>> {
    let payload = |key: JobKey| {
        let params = (key.namespace.as_str(), key.id.as_bytes(), clamp(bytes_max));
        let found = rows::load_blob_by(connection, SMALL_PAYLOAD, &key, params).transpose()?;
        Some(found.map(|payload| (key, payload)))
    };
    keys.into_iter().filter_map(payload).collect()
}

fn attempts(connection: &Connection, key: &JobKey) -> Result<Vec<Attempt>> {
    let mut statement = connection.prepare_cached(ATTEMPTS)?;
    let mut rows = statement.query((key.namespace.as_str(), key.id.as_bytes()))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let body = rows::text(row, 0)?;
        rows::body_sum(key, body.as_bytes()).check(row.get(1)?, || format!("an attempt of job {}", key.id))?;
        found.push(serde_json::from_str(body).map_err(unreadable)?);
    }
    Ok(found)
}

fn children(connection: &Connection, key: &JobKey) -> Result<Vec<JobId>> {
    let mut statement = connection.prepare_cached(super::load::CHILDREN)?;
    let first = JobId::from_u128(0);
    let mut rows = statement.query((key.namespace.as_str(), key.id.as_bytes(), first.as_bytes(), i64::MAX))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(rows::blob_id(row, 0)?);
    }
    Ok(found)
}

fn unreadable(error: serde_json::Error) -> Failure {
    Failure::Damaged(format!("a row cannot be read: {error}"))
}

pub(super) fn records(connection: &Connection, query: &RecordQuery) -> Result<Vec<Record>> {
    let mut found = Vec::new();
    each_record_key(connection, query, query.limit, |key| {
        let key = RecordKey { namespace: query.namespace.clone(), kind: query.kind.clone(), key: Arc::from(key) };
        found.extend(rows::load_record(connection, &key)?);
        Ok(())
    })?;
    Ok(found)
}

/// Counts along the same indexes, without reading the records.
pub(super) fn count_records(connection: &Connection, query: &RecordQuery) -> Result<usize> {
    let mut count = 0;
    each_record_key(connection, query, usize::MAX, |_| {
        count += 1;
        Ok(())
    })?;
    Ok(count)
}

fn each_record_key(
    connection: &Connection,
    query: &RecordQuery,
    limit: usize,
    mut each: impl FnMut(&str) -> Result<()>,
) -> Result<()> {
    let (namespace, kind) = (query.namespace.as_str(), &*query.kind);
    let (after, limit) = (query.after.as_deref().unwrap_or(""), clamp(limit));
    let parent = query.parent.as_deref();
    let sql = match (&query.facet, parent) {
        (Some(_), _) => RECORDS_FACET,
        (None, Some(_)) => RECORDS_UNDER,
        (None, None) => RECORDS_ALL,
    };
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = match (&query.facet, parent) {
        (Some(facet), _) => statement.query((namespace, kind, after, limit, parent, &*facet.name, &*facet.value))?,
        (None, Some(parent)) => statement.query((namespace, kind, after, limit, parent))?,
        (None, None) => statement.query((namespace, kind, after, limit))?,
    };
    while let Some(row) = rows.next()? {
        each(rows::text(row, 0)?)?;
    }
    Ok(())
}

pub(super) fn all_records(connection: &Connection, after: Option<&RecordKey>, limit: usize) -> Result<Vec<Record>> {
    let mut statement = connection.prepare_cached(RECORDS_EVERY)?;
    let (namespace, kind, key) =
        after.map_or(("", "", ""), |after| (after.namespace.as_str(), &*after.kind, &*after.key));
    let mut rows = statement.query((namespace, kind, key, clamp(limit)))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let namespace = rows::to_namespace(rows::text(row, 0)?)?;
        let key = RecordKey { namespace, kind: row.get(1)?, key: row.get(2)? };
        found.extend(rows::load_record(connection, &key)?);
    }
    Ok(found)
}

pub(super) fn read_log(connection: &Connection, key: &JobKey, after: u64, bytes_max: usize) -> Result<Vec<LogAppend>> {
    let mut statement = connection.prepare_cached(LOG_READ)?;
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let mut rows = statement.query((key.namespace.as_str(), key.id.as_bytes(), after))?;
    let (mut found, mut bytes) = (Vec::new(), 0usize);
    while let Some(row) = rows.next()? {
        let (piece, attempt, at): (i64, u32, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let data = row.get_ref(4)?.as_blob().map_err(rusqlite::Error::from)?;
        bytes = bytes.saturating_add(data.len());
        if bytes > bytes_max && !found.is_empty() {
            break;
        }
        let form = LogForm::from_code(row.get(5)?);
        let sum = write::log_sum(key, data, piece, attempt, at, form);
        sum.check(row.get(3)?, || format!("piece {piece} of the log of job {}", key.id))?;
        let data = Payload::from(data);
        found.push(LogAppend { job: key.clone(), piece: piece as u64, attempt, at: Timestamp(at), form, data });
    }
    Ok(found)
}

/// The events of one row: first number, count, time, next place in the queue, checksum and body, in this order.
pub(super) fn batch_events(row: &Row<'_>) -> Result<(u64, Vec<Event>)> {
    let (first_no, count, at, next_seq): (i64, u32, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
    let (first_no, at, body) = (first_no as u64, Timestamp(at), rows::text(row, 5)?);
    let sum = write::event_sum(first_no, at, next_seq, body);
    sum.check(row.get(4)?, || format!("the batch of events from {first_no}"))?;
    let runs: Vec<(Namespace, Vec<What>)> = serde_json::from_str(body).map_err(unreadable)?;
    let of_run = |(namespace, run): (Namespace, Vec<What>)| {
        run.into_iter().map(move |what| Event { namespace: namespace.clone(), at, what })
    };
    let events: Vec<Event> = runs.into_iter().flat_map(of_run).collect();
    if events.len() != count as usize {
        return Err(Failure::Damaged(format!("{} of {count} events are there from {first_no}", events.len())));
    }
    Ok((first_no, events))
}

pub(super) fn events_after(connection: &Connection, after: u64, limit: usize) -> Result<EventPage> {
    // All three from one snapshot, so that they agree.
    let snapshot = connection.unchecked_transaction()?;
    let (oldest, last) = event_range(&snapshot)?;
    let mut page = EventPage { events: Vec::new(), oldest, last };
    let from = i64::try_from(after.saturating_add(1)).unwrap_or(i64::MAX);
    let mut statement = snapshot.prepare_cached(EVENTS_FROM)?;
    let mut rows = statement.query([from])?;
    while page.events.len() < limit {
        let Some(row) = rows.next()? else { break };
        let (first_no, events) = batch_events(row)?;
        let numbered = (first_no..).zip(events).filter(|(number, _)| *number > after);
        page.events.extend(numbered.take(limit - page.events.len()));
    }
    Ok(page)
}

/// The lowest number kept and the highest given.
fn event_range(connection: &Connection) -> Result<(u64, u64)> {
    let mark = rows::load_mark(connection, "last_event")?;
    let last = "SELECT first_no + count - 1 FROM events ORDER BY first_no DESC LIMIT 1";
    let last: Option<i64> = connection.prepare_cached(last)?.query_row([], |row| row.get(0)).optional()?;
    let last = last.max(mark).unwrap_or(0);
    let oldest = "SELECT first_no FROM events ORDER BY first_no LIMIT 1";
    let oldest: Option<i64> = connection.prepare_cached(oldest)?.query_row([], |row| row.get(0)).optional()?;
    Ok((oldest.unwrap_or(last + 1) as u64, last as u64))
}

pub(super) fn due(
    connection: &Connection,
    leases: &Leases,
    limit: usize,
    (now, wall): (Timestamp, Timestamp),
) -> Result<DuePage> {
    let snapshot = connection.unchecked_transaction()?;
    // One more than asked for, from each: it tells when to look again.
    let ask = clamp(limit).saturating_add(1);
    let mut all: Vec<(Timestamp, Due)> = Vec::new();
    let mut statement = snapshot.prepare_cached(JOB_DUE_LIST)?;
    let mut rows = statement.query([ask, i64::MIN])?;
    while let Some(row) = rows.next()? {
        let key = JobKey::new(&rows::to_namespace(rows::text(row, 1)?)?, rows::blob_id(row, 2)?);
        all.push((Timestamp(row.get(0)?), Due::Job(key)));
        if all.last().is_some_and(|(at, _)| *at > now) {
            break;
        }
    }
    let mut statement = snapshot.prepare_cached(RECORD_DUE_LIST)?;
    let mut rows = statement.query([ask, i64::MIN])?;
    while let Some(row) = rows.next()? {
        let namespace = rows::to_namespace(rows::text(row, 1)?)?;
        let at = Timestamp(row.get(0)?);
        all.push((at, Due::Record(RecordKey { namespace, kind: row.get(2)?, key: row.get(3)? })));
        if at > now {
            break;
        }
    }
    // After the rows, so that a job claimed meanwhile is seen twice rather than not at all.
    all.extend(leases.first(limit.saturating_add(1), now));
    all.sort();
    all.dedup();
    let count = all.iter().take_while(|(at, _)| *at <= now).count().min(limit);
    let next = all.get(count).map(|(at, _)| *at);
    Ok(DuePage { now, wall, steps: 0, due: all.into_iter().take(count).map(|(_, due)| due).collect(), next })
}
