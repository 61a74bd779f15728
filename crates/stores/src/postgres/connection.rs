//! Connections, and the small pools they wait in.
//!
//! A connection goes back to its pool only when whoever used it says that its transaction has ended. One that is simply
//! dropped, because a task was cancelled or panicked or the server went away, is closed: the server then rolls back.

use super::{
    address::Address,
    failure::{Failure, describe},
    statements::{Sql, Statements, Typed, texts},
};
use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{MutexGuard, OnceCell, OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout_at},
};
use tokio_postgres::{Client, Row, types::ToSql};
use uuid::Uuid;
use windlass_engine::StoreError;

pub type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// How to reach the database, shared by all pools.
pub struct Target {
    pub address: Address,
    pub schema: String,
    pub statement_timeout: Duration,
    /// Host and database, for messages. Never the password.
    pub name: String,
    pub(super) texts: Arc<Vec<String>>,
    pub(super) typed: OnceCell<Arc<Vec<Typed>>>,
    /// Why no connection could be made the last time; none if one was.
    away: Mutex<Option<String>>,
    /// While the database is away connections are tried one at a time, so that each can be tried often.
    turn: tokio::sync::Mutex<()>,
}

impl Target {
    pub fn new(address: Address, schema: &str, statement_timeout: Duration, name: String) -> Self {
        let texts = Arc::new(texts(schema));
        Self {
            address,
            schema: schema.to_owned(),
            statement_timeout,
            name,
            texts,
            typed: OnceCell::new(),
            away: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// Opens a session and sets it up. A pooler's sessions belong to everybody and are left as they are.
    pub async fn connect(&self, settings: &[&str]) -> Result<Client, tokio_postgres::Error> {
        let client = self.open().await?;
        if !self.address.pooled {
            client.batch_execute(&self.set(FOR_GOOD, settings)).await?;
        }
        Ok(client)
    }

    /// Opens a session and leaves it as it is.
    pub async fn open(&self) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = self.address.connect().await?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error = describe(&error), "a database connection ended");
            }
        });
        Ok(client)
    }

    /// What begins a transaction, where sessions cannot be set up beforehand with all that holds in it.
    fn begin(&self, settings: &[&str]) -> Begin {
        let promised = match self.address.pooled {
            true => format!("{BEGIN}; {}", self.set(LOCALLY, settings)),
            false => BEGIN.to_owned(),
        };
        Begin { unpromised: format!("{promised}; {BEGIN_UNPROMISED}"), promised }
    }

    fn set(&self, set: &str, settings: &[&str]) -> String {
        let local = set == LOCALLY;
        let first = format!(
            "SELECT set_config('synchronous_commit', 'on', {local}) WHERE current_setting('synchronous_commit') = 'off'; \
             {set} statement_timeout = {}",
            self.statement_timeout.as_millis()
        );
        settings.iter().fold(first, |text, setting| format!("{text}; {set} {setting}"))
    }
}

/// How transactions begin whose outcome outlives a power cut once it is told, and those whose need not.
struct Begin {
    promised: String,
    unpromised: String,
}

const FOR_GOOD: &str = "SET";
const LOCALLY: &str = "SET LOCAL";
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
/// For batches that promise nothing: their COMMIT is answered before the log is flushed. It is flushed in order, so whatever
/// is promised later on the strength of such a batch takes it along.
const BEGIN_UNPROMISED: &str = "SET LOCAL synchronous_commit = off";

/// Every statement of a batch finds its rows by key. Plans are made once and kept, so they must not be made for tables that
/// happened to be small: a scan that was right for ten rows would be kept for a million.
pub const WRITER_SETTINGS: &[&str] = &[
    "jit = off",
    "plan_cache_mode = force_generic_plan",
    "enable_seqscan = off",
    "enable_hashjoin = off",
    "enable_mergejoin = off",
    "enable_bitmapscan = off",
    "enable_memoize = off",
    "idle_in_transaction_session_timeout = '60s'",
    "lock_timeout = '10s'",
    "client_connection_check_interval = '2s'",
    // For what is run without BEGIN, which says so itself.
    "default_transaction_isolation = 'read committed'",
    "default_transaction_read_only = off",
];
pub const READER_SETTINGS: &[&str] = &["jit = off"];

/// What a pool's connections are for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Batches,
    Reads,
}

impl Purpose {
    fn settings(self) -> &'static [&'static str] {
        match self {
            Purpose::Batches => WRITER_SETTINGS,
            Purpose::Reads => READER_SETTINGS,
        }
    }
}

/// How often a connection is tried while the database is away: it is to be found soon after it is back.
const TRY_EVERY: Duration = Duration::from_millis(100);
/// Kept plans are thrown away after so many uses of a connection, or after so long, so that none outlives by far the sizes
/// of the tables it was made for. What is on every batch's way has its plan fixed by how it is written; this is for the rest.
const PLANS_USED_MAX: u32 = 1_000;
const PLANS_KEPT_MAX: Duration = Duration::from_secs(60);

pub struct Connection {
    client: Client,
    statements: Statements,
    begin: Arc<Begin>,
    plans_used: u32,
    plans_made: Instant,
}

impl Connection {
    pub async fn query(&self, sql: Sql, params: Params<'_>) -> Result<Vec<Row>, Failure> {
        self.statements.query(&self.client, sql, params).await
    }

    pub async fn execute(&self, sql: Sql, params: Params<'_>) -> Result<u64, Failure> {
        self.statements.execute(&self.client, sql, params).await
    }

    pub async fn batch(&self, text: &str) -> Result<(), Failure> {
        Ok(self.client.batch_execute(text).await?)
    }

    pub async fn begin(&self, promises: bool) -> Result<(), Failure> {
        self.batch(if promises { &self.begin.promised } else { &self.begin.unpromised }).await
    }

    /// Begins a transaction for one batch, which statements that are sent along can make sure of.
    pub async fn begin_for(&self, batch: Uuid) -> Result<(), Failure> {
        self.batch(&format!("{}; SET LOCAL windlass.batch = '{batch}'", self.begin.promised)).await
    }

    /// Whether a statement alone would not be run as in a batch: by a session that is not ours.
    pub fn needs_begin(&self) -> bool {
        !self.statements.keep_plans()
    }

    /// Prepares a statement that is about to be sent behind others.
    pub async fn make_ready(&self, sql: Sql) -> Result<(), Failure> {
        self.statements.make_ready(&self.client, sql).await
    }

    async fn refresh_plans(&mut self) -> Result<(), Failure> {
        self.plans_used += 1;
        if !self.statements.keep_plans() {
            return Ok(());
        }
        if self.plans_used > PLANS_USED_MAX || self.plans_made.elapsed() > PLANS_KEPT_MAX {
            self.batch("DISCARD PLANS").await?;
            (self.plans_used, self.plans_made) = (0, Instant::now());
        }
        Ok(())
    }

    pub fn client(&self) -> &Client {
        &self.client
    }
}

pub struct Pool {
    target: Arc<Target>,
    purpose: Purpose,
    begin: Arc<Begin>,
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
    /// How long to try before saying that the database is away.
    patience: Duration,
}

/// A connection in use.
pub struct Lent {
    connection: Option<Connection>,
    pool: Arc<Pool>,
    /// Made for this use: what was known from earlier ones may not hold on the server now answering.
    pub fresh: bool,
    _permit: OwnedSemaphorePermit,
}

impl Lent {
    /// Gives the connection back. Only for one that is in no transaction.
    pub fn give_back(mut self) {
        let connection = self.connection.take().filter(|connection| !connection.client.is_closed());
        self.pool.idle().extend(connection);
    }
}

impl std::ops::Deref for Lent {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("taken out only when given back")
    }
}

impl Pool {
    pub fn new(target: Arc<Target>, purpose: Purpose, size: usize, patience: Duration) -> Arc<Self> {
        Arc::new(Self {
            begin: Arc::new(target.begin(purpose.settings())),
            target,
            purpose,
            idle: Mutex::default(),
            permits: Arc::new(Semaphore::new(size.max(1))),
            patience,
        })
    }

    fn idle(&self) -> parking_lot::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock()
    }

    /// Waits for a free connection, and tries for a while to make one where the database does not answer.
    pub async fn take(self: &Arc<Self>) -> Result<Lent, StoreError> {
        let permit = self.permits.clone().acquire_owned().await.expect("the semaphore is never closed");
        let kept = {
            let mut idle = self.idle();
            idle.retain(|connection| !connection.client.is_closed());
            idle.pop()
        };
        let kept = match kept {
            // One that fails at this is of no more use.
            Some(mut connection) => {
                let refreshed = tokio::time::timeout(self.patience, connection.refresh_plans()).await;
                matches!(refreshed, Ok(Ok(()))).then_some(connection)
            }
            None => None,
        };
        let fresh = kept.is_none();
        let connection = match kept {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        Ok(Lent { connection: Some(connection), pool: self.clone(), fresh, _permit: permit })
    }

    /// Keeps a session that was opened for something else, with the settings of the pool.
    pub async fn adopt(&self, client: Client) -> Result<(), Failure> {
        let connection = self.ready(client).await?;
        self.idle().push(connection);
        Ok(())
    }

    /// After trouble every kept connection is suspect; what is idle is made anew.
    pub fn forget_idle(&self) {
        self.idle().clear();
    }

    async fn connect(&self) -> Result<Connection, StoreError> {
        let deadline = Instant::now() + self.patience;
        while let Some(_turn) = self.turn(deadline).await {
            let failure = match tokio::time::timeout(self.patience, self.try_connect()).await {
                Ok(Ok(connection)) => {
                    *self.target.away.lock() = None;
                    return Ok(connection);
                }
                Ok(Err(Failure::Refused(error))) => return Err(error),
                Ok(Err(Failure::Lost(why) | Failure::Conflict(why))) => why,
                Ok(Err(Failure::Clock)) => "the database's clock was set".to_owned(),
                Err(_) => "no answer".to_owned(),
            };
            *self.target.away.lock() = Some(failure);
            if Instant::now() + TRY_EVERY >= deadline {
                break;
            }
            sleep(TRY_EVERY).await;
        }
        let failure = self.target.away.lock().clone().unwrap_or_default();
        Err(StoreError::Unavailable(format!("{}: {failure}", self.target.name)))
    }

    /// Leave to try: at once where the database answers, else when no other tries. None: the time is up.
    async fn turn(&self, deadline: Instant) -> Option<Option<MutexGuard<'_, ()>>> {
        let is_away = || self.target.away.lock().is_some();
        if !is_away() {
            return Some(None);
        }
        let turn = timeout_at(deadline, self.target.turn.lock()).await.ok()?;
        Some(is_away().then_some(turn))
    }

    async fn try_connect(&self) -> Result<Connection, Failure> {
        let client = self.target.connect(self.purpose.settings()).await?;
        self.ready(client).await
    }

    /// For a session with the settings of the pool.
    async fn ready(&self, client: Client) -> Result<Connection, Failure> {
        let statements = match (self.target.address.pooled, self.purpose) {
            (true, _) => Statements::Unnamed(self.target.typed(&client).await?),
            (false, Purpose::Batches) => Statements::for_batches(&client, &self.target.texts).await?,
            (false, Purpose::Reads) => Statements::as_needed(self.target.texts.clone()),
        };
        Ok(Connection { client, statements, begin: self.begin.clone(), plans_used: 0, plans_made: Instant::now() })
    }
}
