//! Writes what a batch came to. Each kind of change has a statement that names only the columns it changes, because
//! SQLite rewrites the entry of every index that has a named column.

use super::{
    counts::Change,
    failure::{Failure, Result},
    load::Memo,
    rows,
};
use rusqlite::{CachedStatement, Connection, params};
use windlass_core::{
    Decision, Event, Facet, Job, JobChange, JobKey, LogForm, Namespace, Record, RecordChange, RecordKey, Timestamp,
    What,
};

pub(super) const JOB_INSERT: &str = include_str!("sql/job_insert.sql");
pub(super) const JOB_TOUCH: &str = include_str!("sql/job_touch.sql");
pub(super) const JOB_STEP: &str = include_str!("sql/job_step.sql");
pub(super) const JOB_DUE: &str = include_str!("sql/job_due.sql");
pub(super) const JOB_MOVE: &str = include_str!("sql/job_move.sql");
pub(super) const JOB_REQUEUE: &str = include_str!("sql/job_requeue.sql");
pub(super) const INPUT_INSERT: &str = include_str!("sql/input_insert.sql");
pub(super) const PAYLOAD_SET: &str = include_str!("sql/payload_set.sql");
pub(super) const RECORD_INSERT: &str = include_str!("sql/record_insert.sql");
pub(super) const RECORD_TOUCH: &str = include_str!("sql/record_touch.sql");
pub(super) const RECORD_UPDATE: &str = include_str!("sql/record_update.sql");
pub(super) const EVENT_INSERT: &str = include_str!("sql/event_insert.sql");
pub(super) const RESULT_INSERT: &str = "INSERT INTO results (namespace, id, sum, result) VALUES (?1, ?2, ?3, ?4)";
const ATTEMPT_INSERT: &str = "INSERT INTO attempts (namespace, job, body, sum) VALUES (?1, ?2, ?3, ?4)";
const EDGE_INSERT: &str = "INSERT OR IGNORE INTO edges (namespace, parent, child) VALUES (?1, ?2, ?3)";
const LOG_INSERT: &str =
    "INSERT INTO logs (namespace, job, piece, attempt, at, sum, data, stream) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
const JOB_FACET_INSERT: &str = "INSERT OR IGNORE INTO job_facets (namespace, name, value, id) VALUES (?1, ?2, ?3, ?4)";
pub(super) const JOB_FACET_DELETE: &str =
    "DELETE FROM job_facets WHERE namespace = ?1 AND name = ?2 AND value = ?3 AND id = ?4";
const RECORD_FACET_INSERT: &str =
    "INSERT OR IGNORE INTO record_facets (namespace, kind, name, value, key) VALUES (?1, ?2, ?3, ?4, ?5)";
pub(super) const RECORD_FACET_DELETE: &str =
    "DELETE FROM record_facets WHERE namespace = ?1 AND kind = ?2 AND name = ?3 AND value = ?4 AND key = ?5";
pub(super) const RECORD_DELETE: &str =
    "DELETE FROM records WHERE namespace = ?1 AND kind = ?2 AND key = ?3 AND version = ?4";
pub(super) const JOB_DELETE: &str = "DELETE FROM jobs WHERE namespace = ?1 AND id = ?2";
pub(super) const INPUT_DELETE: &str = "DELETE FROM inputs WHERE namespace = ?1 AND id = ?2";
pub(super) const RESULT_DELETE: &str = "DELETE FROM results WHERE namespace = ?1 AND id = ?2";
pub(super) const ATTEMPT_DELETE: &str = "DELETE FROM attempts WHERE namespace = ?1 AND job = ?2";
pub(super) const EDGE_DELETE: &str = "DELETE FROM edges WHERE namespace = ?1 AND parent = ?2";
pub(super) const LOG_DELETE: &str = "DELETE FROM logs WHERE namespace = ?1 AND job = ?2";
pub(super) const LOG_DROP: &str = "DELETE FROM logs WHERE namespace = ?1 AND job = ?2 AND piece BETWEEN ?3 AND ?4";

/// How much of a row changes, in the order in which the changes are written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shape {
    Delete,
    Touch,
    Step,
    Due,
    Move,
    Requeue,
    Insert,
}

impl Shape {
    fn of(change: &JobChange) -> Shape {
        let (old, new) = match (&change.old, &change.new) {
            (Some(old), Some(new)) => (old, new),
            (None, _) => return Shape::Insert,
            (_, None) => return Shape::Delete,
        };
        let in_place = old.seq == new.seq && old.priority == new.priority && old.waits_for_key() == new.waits_for_key();
        let same_state = old.state == new.state;
        match (old.due == new.due, old.holder() == new.holder()) {
            _ if !in_place => Shape::Requeue,
            (true, true) if same_state => Shape::Touch,
            (true, true) => Shape::Step,
            (false, true) if same_state => Shape::Due,
            _ => Shape::Move,
        }
    }

    fn sql(self) -> &'static str {
        match self {
            Shape::Delete => JOB_DELETE,
            Shape::Touch => JOB_TOUCH,
            Shape::Step => JOB_STEP,
            Shape::Due => JOB_DUE,
            Shape::Move => JOB_MOVE,
            Shape::Requeue => JOB_REQUEUE,
            Shape::Insert => JOB_INSERT,
        }
    }
}

/// Everything of a decision but its events and marks.
pub(super) fn write(connection: &Connection, memo: &mut Memo, decision: &Decision) -> Result<()> {
    write_jobs(connection, &decision.jobs)?;
    write_inputs(connection, decision)?;
    write_bodies(connection, decision)?;
    for change in &decision.records {
        write_record(connection, memo, change)?;
    }
    Ok(())
}

fn write_jobs(connection: &Connection, changes: &[JobChange]) -> Result<()> {
    let mut by_shape: Vec<(Shape, &JobChange)> = changes.iter().map(|change| (Shape::of(change), change)).collect();
    by_shape.sort_by_key(|(shape, _)| *shape);
    for group in by_shape.chunk_by(|a, b| a.0 == b.0) {
        let shape = group[0].0;
        let mut statement = connection.prepare_cached(shape.sql())?;
        for (_, change) in group {
            let written = write_job(&mut statement, shape, change)?;
            if written != 1 {
                let key = change.key();
                return Err(Failure::Damaged(format!("{written} rows changed for job {}/{}", key.namespace, key.id)));
            }
        }
    }
    let gone = by_shape.iter().take_while(|(shape, _)| *shape == Shape::Delete);
    gone.filter_map(|(_, change)| change.old.as_ref()).try_for_each(|job| delete_parts(connection, job))
}

fn write_job(statement: &mut CachedStatement<'_>, shape: Shape, change: &JobChange) -> Result<usize> {
    let key = change.key();
    let (namespace, id) = (key.namespace.as_str(), key.id.as_bytes());
    let Some(job) = &change.new else { return Ok(statement.execute((namespace, id))?) };
    let (live, sum) = rows::job_columns(job);
    let (state, due) = (job.state.code(), job.due.map(|due| due.0));
    let worker = job.holder().map(|worker| worker.as_str());
    let wait_key = job.waits_for_key().map(|key| &**key);
    let written = match shape {
        Shape::Delete => 0,
        Shape::Touch => statement.execute(params![namespace, id, live, sum])?,
        Shape::Step => statement.execute(params![namespace, id, live, sum, state])?,
        Shape::Due => statement.execute(params![namespace, id, live, sum, due])?,
        Shape::Move => statement.execute(params![namespace, id, live, sum, state, due, worker])?,
        Shape::Requeue => {
            statement.execute(params![namespace, id, live, sum, state, due, worker, job.priority, job.seq, wait_key])?
        }
        Shape::Insert => {
            let (lane, run) = (rows::lane_bytes(job.lane), job.run());
            let run = run.as_ref().map(|run| run.as_bytes());
            statement.execute(params![
                namespace,
                id,
                lane,
                job.priority,
                job.seq,
                state,
                due,
                worker,
                wait_key,
                run,
                live,
                sum
            ])?
        }
    };
    Ok(written)
}

/// What was submitted, for each new job. A job without a payload row of its own in the decision has an empty one.
fn write_inputs(connection: &Connection, decision: &Decision) -> Result<()> {
    if decision.payloads.is_empty() && decision.jobs.iter().all(|change| change.old.is_some()) {
        return Ok(());
    }
    let new = || decision.jobs.iter().filter(|change| change.old.is_none()).filter_map(|change| change.new.as_ref());
    let mut payloads: foldhash::HashMap<&JobKey, &[u8]> =
        decision.payloads.iter().map(|(key, payload)| (key, payload.as_bytes())).collect();
    let mut statement = connection.prepare_cached(INPUT_INSERT)?;
    for job in new() {
        let key = &job.key;
        let spec = serde_json::to_string(&job.spec).expect("plain data with string keys");
        let payload = payloads.remove(key).unwrap_or_default();
        let spec_sum = rows::body_sum(key, spec.as_bytes()).get();
        let payload_sum = rows::body_sum(key, payload).get();
        statement.execute(params![key.namespace.as_str(), key.id.as_bytes(), spec_sum, spec, payload_sum, payload])?;
        for facet in job.spec.index() {
            job_facet(connection, JOB_FACET_INSERT, key, facet)?;
        }
    }
    // What is left belongs to jobs that were submitted before, to be planned later.
    for (key, payload) in payloads {
        let sum = rows::body_sum(key, payload).get();
        let params = params![key.namespace.as_str(), key.id.as_bytes(), sum, payload];
        connection.prepare_cached(PAYLOAD_SET)?.execute(params)?;
    }
    Ok(())
}

fn job_facet(connection: &Connection, sql: &str, key: &JobKey, (name, value): (&str, &str)) -> Result<()> {
    let params = (key.namespace.as_str(), name, value, key.id.as_bytes());
    connection.prepare_cached(sql)?.execute(params)?;
    Ok(())
}

fn write_bodies(connection: &Connection, decision: &Decision) -> Result<()> {
    if !decision.results.is_empty() {
        let mut statement = connection.prepare_cached(RESULT_INSERT)?;
        for (key, result) in &decision.results {
            let sum = rows::body_sum(key, result.as_bytes()).get();
            statement.execute(params![key.namespace.as_str(), key.id.as_bytes(), sum, result.as_bytes()])?;
        }
    }
    for (key, attempt) in &decision.attempts {
        let body = serde_json::to_string(attempt).expect("plain data with string keys");
        let sum = rows::body_sum(key, body.as_bytes()).get();
        let mut statement = connection.prepare_cached(ATTEMPT_INSERT)?;
        statement.execute(params![key.namespace.as_str(), key.id.as_bytes(), body, sum])?;
    }
    for (parent, child) in &decision.edges {
        let params = (parent.namespace.as_str(), parent.id.as_bytes(), child.id.as_bytes());
        connection.prepare_cached(EDGE_INSERT)?.execute(params)?;
    }
    for log in &decision.logs {
        let (key, piece, at) = (&log.job, log.piece as i64, log.at.0);
        let sum = log_sum(key, log.data.as_bytes(), piece, log.attempt, at, log.form).get();
        let mut statement = connection.prepare_cached(LOG_INSERT)?;
        let (namespace, id) = (key.namespace.as_str(), key.id.as_bytes());
        let (data, stream) = (log.data.as_bytes(), log.form.code());
        statement.execute(params![namespace, id, piece, log.attempt, at, sum, data, stream])?;
    }
    for gone in &decision.log_drops {
        let (namespace, id) = (gone.job.namespace.as_str(), gone.job.id.as_bytes());
        let range = (namespace, id, gone.first as i64, gone.last as i64);
        connection.prepare_cached(LOG_DROP)?.execute(range)?;
    }
    Ok(())
}

/// Ordinary pieces sum up as they did before there were streams, so that older files still check.
pub(super) fn log_sum(key: &JobKey, data: &[u8], piece: i64, attempt: u32, at: i64, form: LogForm) -> rows::Sum {
    let sum = rows::body_sum(key, data).int(piece).int(attempt.into()).int(at);
    if form == LogForm::default() { sum } else { sum.int(form.code().into()) }
}

/// All that belongs to a job. What the row says is not there is not looked for.
fn delete_parts(connection: &Connection, job: &Job) -> Result<()> {
    let parts = [
        (INPUT_DELETE, true),
        (RESULT_DELETE, job.live.has_result),
        (ATTEMPT_DELETE, job.live.attempt > 0),
        (EDGE_DELETE, job.live.dependents),
        (LOG_DELETE, job.live.log.pieces > 0),
    ];
    for (sql, _) in parts.into_iter().filter(|(_, there)| *there) {
        connection.prepare_cached(sql)?.execute((job.key.namespace.as_str(), job.key.id.as_bytes()))?;
    }
    job.spec.index().try_for_each(|facet| job_facet(connection, JOB_FACET_DELETE, &job.key, facet))
}

fn write_record(connection: &Connection, memo: &mut Memo, change: &RecordChange) -> Result<()> {
    let key = &change.key;
    let old = memo.record(connection, key)?;
    if old.as_ref().map(|old| old.version) != change.old_version {
        return Err(Failure::Damaged(format!("record {key:?} changed behind its decision")));
    }
    let (kept, written) = match (&old, &change.new) {
        (None, None) => return Ok(()),
        (Some(old), None) => (&[] as &[Facet], record_execute(connection, RECORD_DELETE, key, None, Some(old))?),
        (None, Some(new)) => (&new.facets[..], record_execute(connection, RECORD_INSERT, key, Some(new), None)?),
        (Some(old), Some(new)) => {
            let touch = old.parent == new.parent && old.due == new.due && old.facets == new.facets;
            let sql = if touch { RECORD_TOUCH } else { RECORD_UPDATE };
            (&new.facets[..], record_execute(connection, sql, key, Some(new), Some(old))?)
        }
    };
    if written != 1 {
        return Err(Failure::Damaged(format!("{written} rows changed for record {key:?}")));
    }
    let before = old.as_ref().map_or(&[] as &[Facet], |old| &old.facets);
    for (sql, facets) in [(RECORD_FACET_DELETE, before), (RECORD_FACET_INSERT, kept)] {
        if before != kept {
            record_facets(connection, sql, key, facets)?;
        }
    }
    Ok(())
}

fn record_execute(
    connection: &Connection,
    sql: &str,
    key: &RecordKey,
    new: Option<&Record>,
    old: Option<&Record>,
) -> Result<usize> {
    let mut statement = connection.prepare_cached(sql)?;
    let (namespace, kind, name) = (key.namespace.as_str(), &*key.kind, &*key.key);
    let version = |record: &Record| record.version as i64;
    let Some(new) = new else {
        return Ok(statement.execute(params![namespace, kind, name, old.map(version)])?);
    };
    let facets = rows::facets_column(&new.facets);
    let sum = rows::record_sum(new, facets.as_deref());
    let (value, parent, due) = (&*new.value, new.parent.as_deref(), new.due.map(|due| due.0));
    let written = match old {
        None => statement.execute(params![namespace, kind, name, version(new), value, sum, parent, due, facets])?,
        Some(old) if sql == RECORD_TOUCH => {
            statement.execute(params![namespace, kind, name, version(new), value, sum, version(old)])?
        }
        Some(old) => statement.execute(params![
            namespace,
            kind,
            name,
            version(new),
            value,
            sum,
            version(old),
            parent,
            due,
            facets
        ])?,
    };
    Ok(written)
}

fn record_facets(connection: &Connection, sql: &str, key: &RecordKey, facets: &[Facet]) -> Result<()> {
    let mut statement = connection.prepare_cached(sql)?;
    for facet in facets {
        statement.execute((key.namespace.as_str(), &*key.kind, &*facet.name, &*facet.value, &*key.key))?;
    }
    Ok(())
}

/// The checksum over a row of events.
pub(super) fn event_sum(first_no: u64, at: Timestamp, next_seq: i64, body: &str) -> rows::Sum {
    rows::Sum::of(&Namespace::default(), b"events").int(first_no as i64).int(at.0).int(next_seq).bytes(body.as_bytes())
}

/// One row for the events of a batch: runs of what happened in one namespace, all at the same time.
pub(super) fn write_events(
    connection: &Connection,
    first_no: u64,
    events: &[Event],
    next_seq: i64,
    counted: Option<&Change>,
) -> Result<()> {
    let Some(first) = events.first() else { return Ok(()) };
    let runs = events.chunk_by(|a, b| a.namespace == b.namespace);
    let runs: Vec<(&Namespace, Vec<&What>)> =
        runs.map(|run| (&run[0].namespace, run.iter().map(|event| &event.what).collect())).collect();
    let body = serde_json::to_string(&runs).expect("plain data with string keys");
    let sum = event_sum(first_no, first.at, next_seq, &body).get();
    let mut statement = connection.prepare_cached(EVENT_INSERT)?;
    let (counts, counts_sum) = counted.and_then(|change| change.text(first_no)).unzip();
    let (first_no, count) = (first_no as i64, events.len() as i64);
    statement.execute(params![first_no, count, first.at.0, next_seq, sum, body, counts, counts_sum])?;
    Ok(())
}
