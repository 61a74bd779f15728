//! Opening: what has to hold before the first batch, and clear words where it does not.

use super::{
    Inner, Options, Postgres,
    address::Address,
    ahead::Ahead,
    connection::{Pool, Purpose, READER_SETTINGS, Target},
    doorbell::Doorbell,
    failure::describe,
    heads,
    known::Known,
    lanes::Lanes,
    marks::Marks,
    migrate, pooler,
    time::Time,
};
use parking_lot::Mutex;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64},
    },
    time::Duration,
};
use thiserror::Error;
use tokio_postgres::{
    Client, Config,
    config::{Host, TargetSessionAttrs},
    error::SqlState,
};

const VERSION_MIN: i32 = 150_000;

/// Named by what whoever starts the server should do. `name` is host and database, never the password.
#[derive(Debug, Error)]
pub enum OpenError {
    #[error("the database address cannot be read: {why}; write it as postgres://user:password@host:5432/database")]
    Address { why: String },
    #[error("{name} cannot be reached: {why}; is the server running, and is the address right?")]
    Unreachable { name: String, why: String },
    #[error("{name} refused the login: {why}; check user and password, and pg_hba.conf on the server")]
    Login { name: String, why: String },
    #[error("there is no such database: {name}; create it first (createdb)")]
    NoDatabase { name: String },
    #[error("{name} runs PostgreSQL {found}; at least 15 is needed")]
    TooOld { name: String, found: String },
    #[error("{name} stores text as {found}; create the database with ENCODING 'UTF8'")]
    Encoding { name: String, found: String },
    #[error(
        "{name} runs with fsync = off and can lose everything at a power cut; switch it on, or say explicitly that unsafe settings are allowed"
    )]
    Unsafe { name: String },
    #[error("{name} is a read-only standby; name the primary, or all hosts, in the address")]
    ReadOnly { name: String },
    #[error("{name} holds schema version {found}, written by a newer program; this one knows {supported}: upgrade it")]
    NewerSchema { name: String, found: i64, supported: i64 },
    #[error("{name} holds schema version {found}, but {wanted} is needed; run `windlass migrate`")]
    OldSchema { name: String, found: i64, wanted: i64 },
    #[error("the schema in {name} could not be prepared: {why}")]
    Migration { name: String, why: String },
    #[error("{0:?} is not a schema name: use lower-case letters, digits and '_', starting with a letter, at most 40")]
    SchemaName(String),
}

impl OpenError {
    pub fn migration(name: &str, error: tokio_postgres::Error) -> Self {
        OpenError::Migration { name: name.to_owned(), why: describe(&error) }
    }

    fn connecting(name: &str, error: &tokio_postgres::Error) -> Self {
        let (name, why) = (name.to_owned(), describe(error));
        match error.code() {
            Some(&SqlState::INVALID_CATALOG_NAME) => OpenError::NoDatabase { name },
            Some(&SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => {
                OpenError::Login { name, why }
            }
            _ => OpenError::Unreachable { name, why },
        }
    }
}

pub async fn open(options: Options) -> Result<Postgres, OpenError> {
    let mut target = target(&options)?;
    if !target.address.pooled && pooler::is_between(&target).await {
        tracing::info!(
            name = target.name,
            "there is a pooler that gives every transaction another session (pooled=true)"
        );
        target.address.pooled = true;
    }
    let target = Arc::new(target);
    let client = target.connect(READER_SETTINGS).await.map_err(|error| OpenError::connecting(&target.name, &error))?;
    check_server(&client, &target.name, options.allow_unsafe).await?;
    let others =
        !target.address.pooled && others(&client).await.map_err(|error| OpenError::connecting(&target.name, &error))?;
    let lock = lock_key(&options.schema, "migrate");
    migrate::migrate(&client, &options.schema, lock, options.migrate, &target.name).await?;

    let lanes = Arc::new(Lanes::default());
    let pool = |purpose, size| Pool::new(target.clone(), purpose, size, options.patience);
    // A notification goes to a session, and behind a pooler none is ours.
    let (doorbell, bells) = match options.notify && !target.address.pooled {
        true => {
            let (doorbell, bells) = Doorbell::start(target.clone(), lanes.clone());
            (Some(doorbell), Some(bells))
        }
        false => (None, None),
    };
    let marks = Marks::start(pool(Purpose::Reads, 1), options.mark_every);
    let inner = Inner {
        writers: pool(Purpose::Batches, options.in_flight),
        readers: pool(Purpose::Reads, options.readers),
        readers_for_numbers: pool(Purpose::Reads, 1),
        numbering: tokio::sync::Mutex::default(),
        target,
        lanes,
        clock: options.clock,
        time: Time::default(),
        wary_for: AtomicU32::new(0),
        patience: options.patience,
        attempt_max: options.statement_timeout * 2 + Duration::from_secs(5),
        in_flight: options.in_flight.max(1),
        doorbell,
        marks,
        known: Known::default(),
        ahead: Ahead::default(),
        flights: AtomicU64::new(0),
        others,
    };
    inner.warm_up(client).await?;
    Ok(Postgres { inner: Arc::new(inner), bells: Mutex::new(bells) })
}

/// Whether other servers use this database. A pooler's sessions say nothing about that.
async fn others(client: &Client) -> Result<bool, tokio_postgres::Error> {
    let others = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() \
                  AND pid <> pg_backend_pid() AND application_name = current_setting('application_name'))";
    client.query_one(others, &[]).await?.try_get(0)
}

impl Inner {
    /// The first connections and the lanes, so that the first claim does not pay for them.
    async fn warm_up(&self, reader: Client) -> Result<(), OpenError> {
        let failed = |why: String| OpenError::Migration { name: self.target.name.clone(), why };
        let adopted = self.readers.adopt(reader).await;
        adopted.map_err(|failure| failed(failure.into_store_error().to_string()))?;
        let taken = self.writers.take().await.map_err(|error| failed(error.to_string()))?;
        heads::refresh(&taken, &self.lanes).await.map_err(|failure| failed(failure.into_store_error().to_string()))?;
        taken.give_back();
        self.set_clock().await.map_err(|error| failed(error.to_string()))
    }

    /// Keys of advisory locks, apart for every schema.
    pub fn lock_key(&self, what: &str) -> i64 {
        lock_key(&self.target.schema, what)
    }
}

fn lock_key(schema: &str, what: &str) -> i64 {
    let text = format!("windlass/{schema}/{what}");
    // FNV-1a: must come out the same in every build.
    text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
        as i64
}

fn target(options: &Options) -> Result<Target, OpenError> {
    let mut address = Address::parse(&options.url)?;
    let config = &mut address.config;
    let narrow = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    let fits = (1..=40).contains(&options.schema.len()) && options.schema.bytes().all(narrow);
    if !fits || !options.schema.as_bytes()[0].is_ascii_lowercase() {
        return Err(OpenError::SchemaName(options.schema.clone()));
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(5));
    }
    if config.get_application_name().is_none() {
        config.application_name("windlass");
    }
    if config.get_hosts().len() > 1 {
        // Of several hosts the one that takes writes.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    // A server that vanished without a word is noticed in seconds, not in the two hours of the system's default.
    config.keepalives_idle(Duration::from_secs(15)).keepalives_interval(Duration::from_secs(5)).keepalives_retries(3);
    config.tcp_user_timeout(Duration::from_secs(30));
    let name = name_of(config);
    Ok(Target::new(address, &options.schema, options.statement_timeout, name))
}

/// A session of one's own, reached as the store reaches its own. Only simple and typed queries work behind a pooler.
pub async fn session(url: &str) -> Result<Client, OpenError> {
    let address = Address::parse(url)?;
    let name = name_of(&address.config);
    let opened = address.config.connect(address.tls.clone()).await;
    let (client, connection) = opened.map_err(|error| OpenError::connecting(&name, &error))?;
    tokio::spawn(connection);
    Ok(client)
}

/// Host and database of an address, for people: never user or password.
pub fn name_of_url(url: &str) -> String {
    Address::parse(url).map_or_else(|_| "the database".to_owned(), |address| name_of(&address.config))
}

fn name_of(config: &Config) -> String {
    let ports = config.get_ports();
    let host = |(at, host): (usize, &Host)| {
        let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            Host::Unix(path) => format!("{}:{port}", path.display()),
        }
    };
    let hosts: Vec<String> = config.get_hosts().iter().enumerate().map(host).collect();
    format!("database {:?} on {}", config.get_dbname().unwrap_or_default(), hosts.join(", "))
}

async fn check_server(client: &Client, name: &str, allow_unsafe: bool) -> Result<(), OpenError> {
    let unreachable =
        |error: tokio_postgres::Error| OpenError::Unreachable { name: name.to_owned(), why: describe(&error) };
    let text = "SELECT current_setting('server_version_num')::integer, current_setting('server_version'), \
                current_setting('server_encoding'), current_setting('fsync'), current_setting('full_page_writes'), \
                current_setting('synchronous_commit'), pg_is_in_recovery()";
    let row = client.query_typed_one(text, &[]).await.map_err(unreachable)?;
    let name = name.to_owned();
    let text = |at: usize| row.get::<_, String>(at);
    if row.get::<_, i32>(0) < VERSION_MIN {
        return Err(OpenError::TooOld { name, found: text(1) });
    }
    if text(2) != "UTF8" {
        return Err(OpenError::Encoding { name, found: text(2) });
    }
    if row.get(6) {
        return Err(OpenError::ReadOnly { name });
    }
    if text(3) == "off" {
        if !allow_unsafe {
            return Err(OpenError::Unsafe { name });
        }
        tracing::warn!(name, "fsync is off: a power cut can lose everything");
    }
    if text(4) == "off" {
        tracing::warn!(name, "full_page_writes is off: a power cut can damage the database");
    }
    if text(5) == "off" {
        tracing::warn!(
            name,
            "synchronous_commit is off for this user; it is switched on for the server's own sessions"
        );
    }
    Ok(())
}
