//! The store a bench runs on, and what can be read off it from outside.

use crate::bench::{StoreArgs, StoreKind};
use anyhow::{Context, ensure};
use std::{fs, path::PathBuf, sync::Arc, time::Duration};
use tempfile::TempDir;
use windlass_engine::{Settings, Store, clock::System, memory::Memory};
use windlass_stores::{
    embedded::{self, Embedded},
    postgres::{self, Postgres},
    testing::Cluster,
};

pub struct Target {
    pub kind: StoreKind,
    pub store: Arc<dyn Store>,
    pub settings: Settings,
    /// Where raw loops may put files of their own.
    pub folder: PathBuf,
    /// Of the database, for raw loops beside it.
    pub url: Option<String>,
    pub cluster: Option<Cluster>,
    _temporary: Option<TempDir>,
}

/// Bytes written and syncs made so far.
#[derive(Clone, Copy, Default)]
pub struct Written {
    pub bytes: u64,
    pub syncs: u64,
}

impl Target {
    pub async fn open(args: &StoreArgs) -> anyhow::Result<Self> {
        ensure!(args.database.is_none() || args.store == StoreKind::Postgres, "--database goes with --store postgres");
        ensure!(args.data.is_none() || args.store == StoreKind::Embedded, "--data goes with --store embedded");
        let (folder, temporary) = match &args.data {
            Some(data) => (data.clone(), None),
            None => {
                let temporary = TempDir::with_prefix("windlass-bench-").context("no room for a temporary folder")?;
                (temporary.path().join("data"), Some(temporary))
            }
        };
        let mut target = Self {
            kind: args.store,
            store: Arc::new(Memory::new(Arc::new(System::default()))),
            settings: Settings::default(),
            folder,
            url: None,
            cluster: None,
            _temporary: temporary,
        };
        match args.store {
            StoreKind::Memory => fs::create_dir_all(&target.folder)?,
            StoreKind::Embedded => {
                let store = Embedded::open(&target.folder, embedded::Options::default())?;
                target.store = Arc::new(store);
            }
            StoreKind::Postgres => target.connect(args).await?,
        }
        Ok(target)
    }

    async fn connect(&mut self, args: &StoreArgs) -> anyhow::Result<()> {
        let url = match &args.database {
            Some(url) => url.clone(),
            None => {
                let cluster = Cluster::start();
                let url = cluster.fresh_database();
                self.cluster = Some(cluster);
                url
            }
        };
        let mut options = postgres::Options::new(&url);
        options.in_flight = args.in_flight.unwrap_or(options.in_flight);
        self.store = Arc::new(Postgres::connect(options).await?);
        self.settings = Settings::shared();
        self.url = Some(url);
        Ok(())
    }

    /// Lets the database finish with what was filled in, so that its housekeeping is not measured as ours.
    pub async fn finish_housekeeping(&self) -> anyhow::Result<()> {
        let Some(url) = &self.url else { return Ok(()) };
        let client = postgres::session(url).await?;
        client.execute("VACUUM (ANALYZE)", &[]).await?;
        client.execute("CHECKPOINT", &[]).await?;
        Ok(())
    }

    /// How long to leave the store to its own housekeeping after the last write. What PostgreSQL still logs after that is
    /// counted.
    pub fn housekeeping_time(&self) -> Duration {
        Duration::from_secs(if self.url.is_some() { 20 } else { 3 })
    }

    /// Processor time used so far: by this process, and by the database where the bench started it.
    pub fn cpu_time(&self) -> (Duration, Option<Duration>) {
        (own_cpu_time(), self.cluster.as_ref().map(Cluster::cpu_time))
    }

    pub async fn written(&self) -> anyhow::Result<Written> {
        match &self.url {
            Some(url) => wal_of(url).await,
            None => own_writes(),
        }
    }
}

fn own_cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may hold blanks; what follows it does not. Then state, parent, …
    let fields: Vec<&str> = stat.rsplit_once(") ").map_or(Vec::new(), |(_, rest)| rest.split(' ').collect());
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

/// What this process gave to the disk, by the kernel's own count.
fn own_writes() -> anyhow::Result<Written> {
    let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let bytes =
        io.lines().find_map(|line| line.strip_prefix("write_bytes: ")).and_then(|text| text.trim().parse().ok());
    Ok(Written { bytes: bytes.unwrap_or(0), syncs: 0 })
}

async fn wal_of(url: &str) -> anyhow::Result<Written> {
    let client = postgres::session(url).await?;
    let sql = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint, (SELECT wal_sync FROM pg_stat_wal)::bigint";
    let row = client.query_one(sql, &[]).await?;
    Ok(Written { bytes: row.get::<_, i64>(0) as u64, syncs: row.get::<_, i64>(1) as u64 })
}
