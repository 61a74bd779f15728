//! Throws old events away, oldest first.

use super::{
    counts::{Written, read_written},
    failure::Result,
    reads, write,
};
use rusqlite::{Connection, OptionalExtension};
use windlass_engine::store::Trim;

/// Whether there is anything to throw away. An idle server writes nothing, marks included.
pub(super) fn is_due(connection: &Connection, trim: Trim) -> Result<bool> {
    let sql = "SELECT at FROM events ORDER BY first_no LIMIT 1";
    let oldest: Option<i64> = connection.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?;
    Ok(trim.limit > 0 && oldest.is_some_and(|at| at < trim.events_before.0))
}

/// The writer has written the marks and the counts before in the same transaction, so that numbers never go back when all are gone.
/// How many went, and what their batches had counted.
pub(super) fn events(connection: &Connection, trim: Trim) -> Result<(usize, Vec<Written>)> {
    let (mut removed, mut counted) = (0, Vec::new());
    while removed < trim.limit {
        let went = first_batch(connection, trim, trim.limit - removed, &mut counted)?;
        if went == 0 {
            break;
        }
        removed += went;
    }
    Ok((removed, counted))
}

/// Removes the oldest batch if it is old enough; the front of it if it is longer than `max`.
fn first_batch(connection: &Connection, trim: Trim, max: usize, counted: &mut Vec<Written>) -> Result<usize> {
    let sql = "SELECT first_no, count, at, next_seq, sum, body FROM events ORDER BY first_no LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let Some(row) = rows.next()? else { return Ok(0) };
    let (first_no, count, at): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
    if at >= trim.events_before.0 {
        return Ok(0);
    }
    let rest = if count as usize > max { Some((reads::batch_events(row)?.1, row.get(3)?)) } else { None };
    drop(rows);
    let sql = "SELECT first_no, counts, counts_sum FROM events WHERE first_no = ?1 AND counts IS NOT NULL";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([first_no])?;
    if let Some(row) = rows.next()? {
        counted.extend(read_written(row)?);
    }
    drop(rows);
    connection.prepare_cached("DELETE FROM events WHERE first_no = ?1")?.execute([first_no])?;
    if let Some((events, next_seq)) = rest {
        write::write_events(connection, first_no as u64 + max as u64, &events[max..], next_seq, None)?;
    }
    Ok(max.min(count as usize))
}
