//! All prepared statements, one file each, by name.

use tokio_postgres::{Client, Statement};

use super::{failure::Failure, pipe::send};

macro_rules! statements {
    ($($name:ident = $file:literal),* $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Sql { $($name),* }

        /// Name and text of each, in the order of [`Sql`].
        pub const TEXTS: &[(&str, &str)] = &[$(($file, include_str!(concat!("sql/", $file, ".sql")))),*];
    };
}

statements! {
    NowAndPlace = "now_and_place",
    LockRecords = "lock_records",
    PeekRecords = "peek_records",
    Siblings = "siblings",
    LockJobs = "lock_jobs",
    LockDone = "lock_done",
    Payloads = "payloads",
    Children = "children",
    Held = "held",
    RunJobs = "run_jobs",
    KeyQueue = "key_queue",
    HeadsOne = "heads_one",
    Heads = "heads",
    WaitForHead = "wait_for_head",
    BusyLanes = "busy_lanes",
    ReadLanes = "read_lanes",
    Horizon = "horizon",
    ConfirmLanes = "confirm_lanes",
    InsertJobs = "insert_jobs",
    CheckNotDone = "check_not_done",
    UpdateJobs = "update_jobs",
    TouchJobs = "touch_jobs",
    FinishJobs = "finish_jobs",
    UpdateDone = "update_done",
    RemoveJobs = "remove_jobs",
    InsertJobFacets = "insert_job_facets",
    DeleteJobFacets = "delete_job_facets",
    InsertPayloads = "insert_payloads",
    InsertAttempts = "insert_attempts",
    InsertEdges = "insert_edges",
    InsertLogs = "insert_logs",
    InsertRecords = "insert_records",
    UpdateRecords = "update_records",
    DeleteRecords = "delete_records",
    InsertRecordFacets = "insert_record_facets",
    DeleteRecordFacets = "delete_record_facets",
    InsertEvents = "insert_events",
    Fence = "fence",
    FindBatch = "find_batch",
    ReadJob = "read_job",
    ReadBody = "read_body",
    ReadLog = "read_log",
    DueJobs = "due_jobs",
    DueDone = "due_done",
    DueRecords = "due_records",
    Namespaces = "namespaces",
    NumberEvents = "number_events",
    EventBounds = "event_bounds",
    ReadEvents = "read_events",
    TrimEvents = "trim_events",
    TrimMarks = "trim_marks",
    TrimLanes = "trim_lanes",
}

/// The statement files name the schema as it is called by default. Names are written out instead of left to a search
/// path, because a pooler in between does not keep session settings.
pub fn in_schema(text: &str, schema: &str) -> String {
    if schema == "windlass" { text.to_owned() } else { text.replace("windlass.", &format!("\"{schema}\".")) }
}

/// Prepares them all in one round trip.
pub async fn prepare(client: &Client, schema: &str) -> Result<Vec<Statement>, Failure> {
    let texts: Vec<String> = TEXTS.iter().map(|(_, text)| in_schema(text, schema)).collect();
    let sent: Vec<_> = texts.iter().map(|text| send(client.prepare(text))).collect();
    let mut statements = Vec::with_capacity(sent.len());
    for statement in sent {
        statements.push(statement.await?);
    }
    Ok(statements)
}
