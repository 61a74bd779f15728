//! All prepared statements, one file each, by name.

use super::{
    columns::filled,
    connection::{Params, Target},
    failure::Failure,
    pipe::send,
};
use std::sync::Arc;
use tokio::sync::OnceCell;
use tokio_postgres::{
    Client, Row, Statement,
    types::{ToSql, Type},
};

macro_rules! statements {
    ($($name:ident = $file:literal),* $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Sql { $($name),* }

        /// Name and text of each, in the order of [`Sql`]; columns of jobs are placeholders.
        pub const TEXTS: &[(&str, &str)] = &[$(($file, include_str!(concat!("sql/", $file, ".sql")))),*];
    };
}

statements! {
    NowAndPlace = "now_and_place",
    Clock = "clock",
    SetClock = "set_clock",
    LockRecords = "lock_records",
    ShareRecords = "share_records",
    PeekRecords = "peek_records",
    Siblings = "siblings",
    LockJobs = "lock_jobs",
    LockDone = "lock_done",
    Payloads = "payloads",
    Children = "children",
    Held = "held",
    RunJobs = "run_jobs",
    KeyQueue = "key_queue",
    LaneFronts = "lane_fronts",
    HeadsOne = "heads_one",
    Heads = "heads",
    ReadAhead = "read_ahead",
    ClaimKnownOne = "claim_known_one",
    ClaimKnown = "claim_known",
    WaitForHead = "wait_for_head",
    BusyLanes = "busy_lanes",
    ReadLanes = "read_lanes",
    Horizon = "horizon",
    ConfirmLanes = "confirm_lanes",
    LockMarks = "lock_marks",
    LowerMarks = "lower_marks",
    ProposeMark = "propose_mark",
    RaiseMark = "raise_mark",
    JobWriters = "job_writers",
    InsertJobs = "insert_jobs",
    CheckNotDone = "check_not_done",
    AddJobs = "add_jobs",
    CheckAdded = "check_added",
    CheckNothingWaits = "check_nothing_waits",
    UpdateJobs = "update_jobs",
    UpdateAndTell = "update_and_tell",
    TouchJobs = "touch_jobs",
    FinishJobs = "finish_jobs",
    FinishKnown = "finish_known",
    UpdateDone = "update_done",
    RemoveJobs = "remove_jobs",
    InsertJobFacets = "insert_job_facets",
    DeleteJobFacets = "delete_job_facets",
    InsertPayloads = "insert_payloads",
    InsertAttempts = "insert_attempts",
    InsertEdges = "insert_edges",
    InsertLogs = "insert_logs",
    DropLogs = "drop_logs",
    InsertRecords = "insert_records",
    UpdateRecords = "update_records",
    DeleteRecords = "delete_records",
    InsertRecordFacets = "insert_record_facets",
    DeleteRecordFacets = "delete_record_facets",
    InsertEvents = "insert_events",
    AddCounts = "add_counts",
    ReadCounts = "read_counts",
    TrimCounts = "trim_counts",
    Fence = "fence",
    FindBatch = "find_batch",
    ReadJob = "read_job",
    ReadJobs = "read_jobs",
    ReadResults = "read_results",
    ReadSmallPayloads = "read_small_payloads",
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

/// The last of those that batches are made of: they are sent together, so all of them are prepared beforehand.
const LAST_OF_BATCHES: Sql = Sql::FindBatch;

/// How a connection runs its statements.
pub enum Statements {
    /// Prepared once: parsed and planned once.
    Prepared(Prepared),
    /// Sent whole every time, because the next transaction may find itself in another session.
    Unnamed(Arc<Vec<Typed>>),
}

/// A statement's text and the types of its parameters, which the server would otherwise be asked for.
pub struct Typed {
    text: String,
    types: Vec<Type>,
}

/// Most connections need a few of the statements, so the database parses no others for them.
pub struct Prepared {
    made: Vec<OnceCell<Statement>>,
    /// What those are prepared from that are not yet. None: they may not be.
    later: Option<Arc<Vec<String>>>,
}

impl Prepared {
    async fn statement(&self, client: &Client, sql: Sql) -> Result<&Statement, Failure> {
        let made = &self.made[sql as usize];
        match &self.later {
            Some(texts) => Ok(made.get_or_try_init(|| client.prepare(&texts[sql as usize])).await?),
            None => made.get().ok_or_else(|| Failure::corrupt(format!("{sql:?} is not prepared for batches"))),
        }
    }
}

impl Statements {
    /// For a connection that sends statements together. One that had to be prepared first would leave behind the COMMIT, so none is.
    pub async fn for_batches(client: &Client, texts: &[String]) -> Result<Self, Failure> {
        let known = prepare(client, &texts[..=LAST_OF_BATCHES as usize]).await?;
        let mut made: Vec<_> = known.into_iter().map(|statement| OnceCell::new_with(Some(statement))).collect();
        made.resize_with(texts.len(), OnceCell::new);
        Ok(Self::Prepared(Prepared { made, later: None }))
    }

    /// Each when it is first needed.
    pub fn as_needed(texts: Arc<Vec<String>>) -> Self {
        let made = texts.iter().map(|_| OnceCell::new()).collect();
        Self::Prepared(Prepared { made, later: Some(texts) })
    }

    /// Prepares a statement that is about to be sent behind others.
    pub async fn make_ready(&self, client: &Client, sql: Sql) -> Result<(), Failure> {
        if let Self::Prepared(prepared) = self {
            prepared.statement(client, sql).await?;
        }
        Ok(())
    }

    pub fn keep_plans(&self) -> bool {
        matches!(self, Self::Prepared(_))
    }

    pub async fn query(&self, client: &Client, sql: Sql, params: Params<'_>) -> Result<Vec<Row>, Failure> {
        match self {
            Self::Prepared(prepared) => Ok(client.query(prepared.statement(client, sql).await?, params).await?),
            Self::Unnamed(typed) => {
                let typed = &typed[sql as usize];
                Ok(client.query_typed(&typed.text, &typed.with(params)).await?)
            }
        }
    }

    pub async fn execute(&self, client: &Client, sql: Sql, params: Params<'_>) -> Result<u64, Failure> {
        match self {
            Self::Prepared(prepared) => Ok(client.execute(prepared.statement(client, sql).await?, params).await?),
            Self::Unnamed(typed) => {
                let typed = &typed[sql as usize];
                Ok(client.execute_typed(&typed.text, &typed.with(params)).await?)
            }
        }
    }
}

impl Typed {
    fn with<'a>(&self, params: Params<'a>) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
        params.iter().copied().zip(self.types.iter().cloned()).collect()
    }
}

impl Target {
    /// Learns the types once, in a transaction that leaves no prepared statement behind: within it the session is ours.
    pub async fn typed(&self, client: &Client) -> Result<Arc<Vec<Typed>>, Failure> {
        let learn = async || {
            client.batch_execute("BEGIN READ ONLY").await?;
            deallocate_left_over(client).await?;
            let types: Vec<Vec<Type>> =
                prepare(client, &self.texts).await?.iter().map(|statement| statement.params().to_vec()).collect();
            client.batch_execute("COMMIT").await?;
            let typed = self.texts.iter().cloned().zip(types).map(|(text, types)| Typed { text, types });
            Ok::<_, Failure>(Arc::new(typed.collect()))
        };
        self.typed.get_or_try_init(learn).await.cloned()
    }
}

/// Names that our driver gives prepared statements, one after the other in each process.
const OUR_NAMES: &str = "SELECT name FROM pg_prepared_statements WHERE name ~ '^s[0-9]+$'";

/// A session of a pooler may still have statements of a program that took it for its own, under the names that come next.
async fn deallocate_left_over(client: &Client) -> Result<(), Failure> {
    for row in client.query_typed(OUR_NAMES, &[]).await? {
        client.batch_execute(&format!("DEALLOCATE {}", row.try_get::<_, String>(0)?)).await?;
    }
    Ok(())
}

/// All of them, for this schema.
pub fn texts(schema: &str) -> Vec<String> {
    TEXTS.iter().map(|(_, text)| in_schema(&filled(text), schema)).collect()
}

/// Prepares them all in one round trip.
async fn prepare(client: &Client, texts: &[String]) -> Result<Vec<Statement>, Failure> {
    let sent: Vec<_> = texts.iter().map(|text| send(client.prepare(text))).collect();
    let mut statements = Vec::with_capacity(sent.len());
    for statement in sent {
        statements.push(statement.await?);
    }
    Ok(statements)
}
