//! Nothing on the way of a submit, claim, report, heartbeat or sweep may cost more because the tables have grown.

use super::{counts, lanes, listing, load, reads, rows, write};
use rusqlite::{Connection, Params, StatementStatus};
use windlass_core::Lane;

/// Statements on the paths whose cost must not grow.
const BOUNDED: [(&str, &str); 58] = [
    ("mark load", rows::MARK_LOAD),
    ("job load", rows::JOB_LOAD),
    ("head load", rows::HEAD_LOAD),
    ("payload", rows::PAYLOAD),
    ("small payload", reads::SMALL_PAYLOAD),
    ("record load", rows::RECORD_LOAD),
    ("lane heads", lanes::LANE_HEADS),
    ("lane next", lanes::LANE_NEXT),
    ("ahead in a lane", listing::LANE_AHEAD),
    ("queue next", listing::QUEUE_NEXT),
    ("namespace with records next", reads::RECORD_NAMESPACE_NEXT),
    ("namespace with jobs next", listing::NAMESPACE_NEXT),
    ("newest", load::JOB_NEWEST),
    ("held", load::JOB_HELD),
    ("open jobs of a run", load::JOB_RUN_OPEN),
    ("key queue", load::JOB_KEY_QUEUE),
    ("lane front", load::LANE_FRONT),
    ("children", load::CHILDREN),
    ("siblings", load::RECORD_SIBLINGS),
    ("job insert", write::JOB_INSERT),
    ("job touch", write::JOB_TOUCH),
    ("job step", write::JOB_STEP),
    ("job due", write::JOB_DUE),
    ("job move", write::JOB_MOVE),
    ("job requeue", write::JOB_REQUEUE),
    ("job delete", write::JOB_DELETE),
    ("input insert", write::INPUT_INSERT),
    ("payload set", write::PAYLOAD_SET),
    ("input delete", write::INPUT_DELETE),
    ("result insert", write::RESULT_INSERT),
    ("result delete", write::RESULT_DELETE),
    ("attempt delete", write::ATTEMPT_DELETE),
    ("edge delete", write::EDGE_DELETE),
    ("log delete", write::LOG_DELETE),
    ("log drop", write::LOG_DROP),
    ("record insert", write::RECORD_INSERT),
    ("record touch", write::RECORD_TOUCH),
    ("record update", write::RECORD_UPDATE),
    ("record delete", write::RECORD_DELETE),
    ("job facet delete", write::JOB_FACET_DELETE),
    ("record facet delete", write::RECORD_FACET_DELETE),
    ("event insert", write::EVENT_INSERT),
    ("count set", counts::COUNT_SET),
    ("count delete", counts::COUNT_DELETE),
    ("mark", rows::MARK),
    ("due jobs", reads::JOB_DUE_LIST),
    ("due records", reads::RECORD_DUE_LIST),
    ("log", reads::LOG_READ),
    ("events", reads::EVENTS_FROM),
    ("result", reads::RESULT),
    ("attempts", reads::ATTEMPTS),
    ("records under", reads::RECORDS_UNDER),
    ("records with facet", reads::RECORDS_FACET),
    ("jobs of a run", listing::LIST_RUN),
    ("jobs of a worker", listing::LIST_HOLDER),
    ("jobs with facet", listing::LIST_FACET),
    ("jobs by name", listing::LIST_NAME),
    ("jobs in a rare state", listing::LIST_RARE),
];

fn database() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    super::open::migrate(&connection).unwrap();
    connection
}

/// With nothing bound: a plan does not depend on it.
fn column(connection: &Connection, sql: &str, at: usize) -> Vec<String> {
    let mut statement = connection.prepare(sql).unwrap();
    statement.raw_query().mapped(|row| row.get(at)).map(Result::unwrap).collect()
}

#[test]
fn no_statement_scans_sorts_or_builds_a_table() {
    let connection = database();
    for (name, sql) in BOUNDED {
        let plan = column(&connection, &format!("EXPLAIN QUERY PLAN {sql}"), 3);
        for step in &plan {
            let bad = step.starts_with("SCAN") || step.contains("TEMP B-TREE") || step.contains("AUTOMATIC");
            assert!(!bad, "{name}: {plan:?}");
        }
        let codes = column(&connection, &format!("EXPLAIN {sql}"), 1);
        assert!(!codes.iter().any(|code| code == "OpenEphemeral"), "{name} builds a table each time it runs");
    }
}

#[test]
fn the_test_would_notice_a_scan() {
    let connection = database();
    let sql = "EXPLAIN QUERY PLAN SELECT id FROM jobs WHERE priority = 1";
    let step: String = connection.query_row(sql, [], |row| row.get(3)).unwrap();
    assert!(step.starts_with("SCAN"), "{step}");
}

/// So many pending jobs, three of four in one lane and the rest in the next, and as many finished ones.
fn filled(jobs: u128) -> Connection {
    let connection = database();
    connection.execute_batch("BEGIN").unwrap();
    for id in 0..2 * jobs {
        let (state, due) = if id % 2 == 0 { (2, None) } else { (5, Some(1)) };
        let lane = rows::lane_bytes(if id % 8 == 0 { SECOND } else { FIRST });
        let mut insert = connection.prepare_cached(write::JOB_INSERT).unwrap();
        let none = None::<&str>;
        let columns =
            rusqlite::params!["default", id.to_be_bytes(), lane, 1, id as i64, state, due, none, none, none, "{}", 0];
        insert.execute(columns).unwrap();
    }
    connection
}

const FIRST: Lane = Lane(1);
const SECOND: Lane = Lane(7);

/// Steps of SQLite's machine, and how many rows they gave.
fn steps(connection: &Connection, sql: &str, params: impl Params) -> (i32, usize) {
    let mut statement = connection.prepare(sql).unwrap();
    let mut rows = statement.query(params).unwrap();
    let mut found = 0;
    while rows.next().unwrap().is_some() {
        found += 1;
    }
    drop(rows);
    (statement.get_status(StatementStatus::VmStep), found)
}

/// With few jobs and with many, and with as many rows as expected.
fn assert_flat(sql: &str, expected: usize, params: impl Params + Clone) {
    let of = |jobs| steps(&filled(jobs), sql, params.clone());
    let (few, many) = (of(100), of(10_000));
    assert_eq!((few.1, many), (expected, few), "{sql}");
}

#[test]
fn a_claim_costs_the_same_however_many_jobs_there_are() {
    assert_flat(lanes::LANE_HEADS, 3, ("default", rows::lane_bytes(SECOND), 3));
}

#[test]
fn the_next_lane_is_found_at_the_same_cost_however_many_jobs_one_holds() {
    assert_flat(lanes::LANE_NEXT, 1, ("", Vec::<u8>::new()));
    assert_flat(lanes::LANE_NEXT, 1, ("default", lanes::after(&rows::lane_bytes(FIRST))));
    assert_flat(lanes::LANE_NEXT, 0, ("default", lanes::after(&rows::lane_bytes(SECOND))));
}

#[test]
fn the_next_queue_is_found_at_the_same_cost_however_many_jobs_one_holds() {
    assert_flat(listing::QUEUE_NEXT, 1, ("default", Vec::<u8>::new(), i64::MIN));
    assert_flat(listing::QUEUE_NEXT, 1, ("default", rows::lane_bytes(FIRST).to_vec(), listing::after(1)));
    assert_flat(listing::QUEUE_NEXT, 0, ("default", rows::lane_bytes(SECOND).to_vec(), listing::after(1)));
}
