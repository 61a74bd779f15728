//! Nothing on the way of a submit, claim, report, heartbeat or sweep may cost more because the tables have grown.

use super::{counts, lanes, listing, load, reads, rows, write};
use rusqlite::{Connection, StatementStatus};
use windlass_core::{Lane, Namespace};

/// Statements on the paths whose cost must not grow.
const BOUNDED: [(&str, &str); 56] = [
    ("mark load", rows::MARK_LOAD),
    ("job load", rows::JOB_LOAD),
    ("payload", rows::PAYLOAD),
    ("small payload", reads::SMALL_PAYLOAD),
    ("record load", rows::RECORD_LOAD),
    ("lane heads", lanes::LANE_HEADS),
    ("lane next", lanes::LANE_NEXT),
    ("ahead in a lane", listing::LANE_AHEAD),
    ("queue next", listing::QUEUE_NEXT),
    ("namespace with records next", reads::RECORD_NAMESPACE_NEXT),
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

/// Steps of SQLite's machine to find the heads of one lane among so many pending jobs, and as many finished ones.
fn steps_to_claim(jobs: u128) -> i32 {
    let connection = database();
    connection.execute_batch("BEGIN").unwrap();
    let lane = rows::lane_bytes(Lane(7));
    for id in 0..2 * jobs {
        let (state, due) = if id % 2 == 0 { (2, None) } else { (5, Some(1)) };
        let other = rows::lane_bytes(Lane(if id % 8 == 0 { 7 } else { 1 }));
        let mut insert = connection.prepare_cached(write::JOB_INSERT).unwrap();
        let none = None::<&str>;
        let columns =
            rusqlite::params!["default", id.to_be_bytes(), other, 1, id as i64, state, due, none, none, none, "{}", 0];
        insert.execute(columns).unwrap();
    }
    let mut statement = connection.prepare(lanes::LANE_HEADS).unwrap();
    let mut rows = statement.query((Namespace::default().as_str(), lane, 3)).unwrap();
    let mut found = 0;
    while rows.next().unwrap().is_some() {
        found += 1;
    }
    drop(rows);
    assert_eq!(found, 3);
    statement.get_status(StatementStatus::VmStep)
}

#[test]
fn a_claim_costs_the_same_however_many_jobs_there_are() {
    assert_eq!(steps_to_claim(100), steps_to_claim(10_000));
}
