//! Rows to values and back, with a checksum on each row.

use super::failure::{Failure, Result};
use rusqlite::{Connection, OptionalExtension, Row};
use std::sync::Arc;
use windlass_core::{
    Facet, Job, JobId, JobKey, Lane, Namespace, Payload, Record, RecordKey, State, Timestamp, keys::decode_job_columns,
};

/// Against flipped bits, not against people: fast, and any single changed byte changes it.
pub(super) struct Sum(u64);

impl Sum {
    pub(super) fn of(namespace: &Namespace, id: &[u8]) -> Self {
        Sum(0x77_69_6e_64_6c_61_73_73).bytes(namespace.as_str().as_bytes()).bytes(id)
    }

    pub(super) fn int(self, value: i64) -> Self {
        let mixed = (self.0 ^ value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Sum(mixed ^ (mixed >> 29))
    }

    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<8>();
        let mut sum = words.iter().fold(self.int(bytes.len() as i64), |sum, word| sum.int(i64::from_le_bytes(*word)));
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            sum = sum.int(i64::from_le_bytes(last));
        }
        sum
    }

    pub(super) fn time(self, at: Option<Timestamp>) -> Self {
        self.int(at.map_or(i64::MIN, |at| at.0))
    }

    pub(super) fn text(self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.bytes(text.as_bytes()),
            None => self.int(-1),
        }
    }

    pub(super) fn get(self) -> i64 {
        self.0 as i64
    }

    pub(super) fn check(self, stored: i64, what: impl FnOnce() -> String) -> Result<()> {
        if self.get() == stored {
            Ok(())
        } else {
            Err(Failure::Damaged(format!("{} does not match its checksum", what())))
        }
    }
}

pub(super) fn lane_bytes(lane: Lane) -> [u8; 16] {
    lane.0.to_be_bytes()
}

pub(super) fn to_lane(bytes: &[u8]) -> Result<Lane> {
    let bytes = bytes.try_into().map_err(|_| Failure::damaged("a lane is not 16 bytes long"))?;
    Ok(Lane(u128::from_be_bytes(bytes)))
}

pub(super) fn to_namespace(text: &str) -> Result<Namespace> {
    Namespace::new(text).map_err(|_| Failure::Damaged(format!("{text:?} is not a namespace")))
}

pub(super) fn blob_id(row: &Row<'_>, column: usize) -> Result<JobId> {
    let bytes = row.get_ref(column)?.as_blob().map_err(rusqlite::Error::from)?;
    let bytes = bytes.try_into().map_err(|_| Failure::damaged("a job id is not 16 bytes long"))?;
    Ok(JobId::from_u128(u128::from_be_bytes(bytes)))
}

pub(super) fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str> {
    Ok(row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?)
}

/// The JSON column of a job, and the checksum over its row.
pub(super) fn job_columns(job: &Job) -> (String, i64) {
    let live = serde_json::to_string(&job.live).expect("plain data with string keys");
    let sum = job_sum(&job.key, job.lane, job.priority, job.seq, job.state.code(), job.due, &live);
    (live, sum)
}

fn job_sum(key: &JobKey, lane: Lane, priority: i32, seq: i64, state: i16, due: Option<Timestamp>, live: &str) -> i64 {
    let sum = Sum::of(&key.namespace, key.id.as_bytes()).bytes(&lane_bytes(lane));
    sum.int(priority.into()).int(seq).int(state.into()).time(due).bytes(live.as_bytes()).get()
}

pub(super) fn body_sum(key: &JobKey, body: &[u8]) -> Sum {
    Sum::of(&key.namespace, key.id.as_bytes()).bytes(body)
}

pub(super) const JOB_LOAD: &str = include_str!("sql/job_load.sql");

pub(super) fn load_job(connection: &Connection, key: &JobKey) -> Result<Option<Job>> {
    let mut statement = connection.prepare_cached(JOB_LOAD)?;
    let mut rows = statement.query((key.namespace.as_str(), key.id.as_bytes()))?;
    match rows.next()? {
        Some(row) => to_job(key, row).map(Some),
        None => Ok(None),
    }
}

pub(super) const HEAD_LOAD: &str = include_str!("sql/head_load.sql");

/// A job that is about to be claimed, with its payload: one look into each table.
pub(super) fn load_head(connection: &Connection, key: &JobKey) -> Result<Option<(Job, Payload)>> {
    let mut statement = connection.prepare_cached(HEAD_LOAD)?;
    let mut rows = statement.query((key.namespace.as_str(), key.id.as_bytes()))?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some((to_job(key, row)?, to_body(key, row, 9)?)))
}

fn to_job(key: &JobKey, row: &Row<'_>) -> Result<Job> {
    let lane = to_lane(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?)?;
    let (priority, seq, code): (i32, i64, i16) = (row.get(1)?, row.get(2)?, row.get(3)?);
    let due = row.get::<_, Option<i64>>(4)?.map(Timestamp);
    let live = text(row, 5)?;
    let name = || format!("job {}/{}", key.namespace, key.id);
    if job_sum(key, lane, priority, seq, code, due, live) != row.get::<_, i64>(6)? {
        return Err(Failure::Damaged(format!("{} does not match its checksum", name())));
    }
    let Some(spec) = row.get_ref(7)?.as_str_or_null().map_err(rusqlite::Error::from)? else {
        return Err(Failure::Damaged(format!("{} has lost what was submitted", name())));
    };
    body_sum(key, spec.as_bytes()).check(row.get(8)?, || format!("what was submitted as {}", name()))?;
    let state = State::from_code(code).ok_or_else(|| Failure::Damaged(format!("{} is in state {code}", name())))?;
    let (spec, live) =
        decode_job_columns(spec, live).map_err(|error| Failure::Damaged(format!("{}: {error}", name())))?;
    Ok(Job { key: key.clone(), lane, priority, seq, state, due, spec, live })
}

pub(super) const PAYLOAD: &str = include_str!("sql/payload.sql");

pub(super) fn load_payload(connection: &Connection, key: &JobKey) -> Result<Option<Payload>> {
    load_blob(connection, PAYLOAD, key)
}

/// A statement that answers with a body and its checksum.
pub(super) fn load_blob(connection: &Connection, sql: &str, key: &JobKey) -> Result<Option<Payload>> {
    load_blob_by(connection, sql, key, (key.namespace.as_str(), key.id.as_bytes()))
}

pub(super) fn load_blob_by(
    connection: &Connection,
    sql: &str,
    key: &JobKey,
    params: impl rusqlite::Params,
) -> Result<Option<Payload>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    rows.next()?.map(|row| to_body(key, row, 0)).transpose()
}

/// A body, and its checksum in the column after it.
fn to_body(key: &JobKey, row: &Row<'_>, column: usize) -> Result<Payload> {
    let body = row.get_ref(column)?.as_blob().map_err(rusqlite::Error::from)?;
    let name = || format!("the payload or result of job {}/{}", key.namespace, key.id);
    body_sum(key, body).check(row.get(column + 1)?, name)?;
    Ok(Payload::from(body))
}

/// Facets as stored: none is NULL, so that the many records without any stay short.
pub(super) fn facets_column(facets: &[Facet]) -> Option<String> {
    (!facets.is_empty()).then(|| serde_json::to_string(facets).expect("plain data with string keys"))
}

pub(super) fn record_sum(record: &Record, facets: Option<&str>) -> i64 {
    let key = &record.key;
    let sum = Sum::of(&key.namespace, key.kind.as_bytes()).bytes(key.key.as_bytes()).int(record.version as i64);
    sum.text(record.parent.as_deref()).time(record.due).text(facets).bytes(record.value.as_bytes()).get()
}

pub(super) const RECORD_LOAD: &str = include_str!("sql/record_load.sql");

pub(super) fn load_record(connection: &Connection, key: &RecordKey) -> Result<Option<Record>> {
    let mut statement = connection.prepare_cached(RECORD_LOAD)?;
    let found = statement.query_row((key.namespace.as_str(), &*key.kind, &*key.key), |row| Ok(to_record(key, row)));
    found.optional()?.transpose()
}

fn to_record(key: &RecordKey, row: &Row<'_>) -> Result<Record> {
    let facets = row.get_ref(3)?.as_str_or_null().map_err(rusqlite::Error::from)?;
    let decoded = facets.map(serde_json::from_str::<Vec<Facet>>).transpose();
    let record = Record {
        key: key.clone(),
        version: row.get::<_, i64>(0)? as u64,
        parent: row.get::<_, Option<Arc<str>>>(1)?,
        due: row.get::<_, Option<i64>>(2)?.map(Timestamp),
        facets: decoded.map_err(|error| Failure::Damaged(format!("record {key:?}: {error}")))?.unwrap_or_default(),
        value: Arc::from(text(row, 4)?),
        decoded: Default::default(),
    };
    if record_sum(&record, facets) != row.get::<_, i64>(5)? {
        return Err(Failure::Damaged(format!("record {key:?} does not match its checksum")));
    }
    Ok(record)
}

pub(super) const MARK: &str = include_str!("sql/mark.sql");
pub(super) const MARK_LOAD: &str = "SELECT value, sum FROM meta WHERE name = ?1";

fn mark_sum(name: &str, value: i64) -> Sum {
    Sum::of(&Namespace::default(), name.as_bytes()).int(value)
}

pub(super) fn save_mark(connection: &Connection, name: &str, value: i64) -> std::result::Result<(), rusqlite::Error> {
    connection.prepare_cached(MARK)?.execute((name, value, mark_sum(name, value).get()))?;
    Ok(())
}

pub(super) fn load_mark(connection: &Connection, name: &str) -> Result<Option<i64>> {
    let mut statement = connection.prepare_cached(MARK_LOAD)?;
    let found = statement.query_row([name], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((value, sum)) = found else { return Ok(None) };
    mark_sum(name, value).check(sum, || format!("the mark {name}"))?;
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_changes_the_sum() {
        let sum = |bytes: &[u8]| Sum::of(&Namespace::default(), b"id").bytes(bytes).get();
        let text = b"a text of some length, not a multiple of eight".to_vec();
        for bit in 0..text.len() * 8 {
            let mut flipped = text.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(sum(&flipped), sum(&text), "bit {bit}");
        }
        assert_ne!(sum(b""), sum(b"\0"));
    }
}
