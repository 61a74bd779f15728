//! The embedded store: one SQLite file in a data folder, one server at a time.
//!
//! One connection writes. The engine calls [`Store::run`] on the thread of its batcher, and the work is done right
//! there, because a hop to another thread costs more than the statements. A few more connections read, and never wait
//! for the writer (write-ahead log). A batch is one transaction; the engine syncs it before it acknowledges a promise ([`disk`]).
//!
//! What is promised: a written batch survives a crash of the process, and a synced one a crash of the machine; after a failed
//! sync or a damaged page nothing more is acknowledged; a full disk refuses what does not fit and goes on once there is room, and keeps
//! some back for what frees it ([`reserve`]).
//! SQLite keeps no checksums, so each row carries one of its own: a flipped bit in a row ends in an error. A flipped
//! bit in a key or an index may hide a row until [`Store::check`], or the check at the start after an unclean stop, finds
//! it; the latter reads small databases through, larger ones only as far as a quick start allows.

mod bytes;
mod check;
mod checkpoint;
mod counts;
mod disk;
mod failure;
mod lanes;
mod leases;
mod listing;
mod load;
mod open;
mod reads;
mod reserve;
mod rows;
mod trim;
mod write;
mod writer;

#[cfg(test)]
mod plans;

use async_trait::async_trait;
use disk::Disk;
use failure::Result as Found;
use leases::Leases;
use open::Folder;
use parking_lot::{Mutex, MutexGuard};
use reserve::Reserve;
use rusqlite::Connection;
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use windlass_core::{Job, JobKey, LogAppend, Namespace, Payload, Record, RecordKey, StateCounts, Timestamp};
use windlass_engine::{
    Bulk, StoreError,
    aside::{Aside, Pool, Yields},
    bulk,
    clock::Clock,
    store::{Batch, Committed, DuePage, EventPage, JobBody, JobQuery, RecordQuery, Store, Trim},
};
use writer::Writer;

pub use failure::OpenError;
pub use open::SCHEMA_VERSION;
pub use reserve::disk_bytes;

/// Until then a read ends that is at work when the store is closed, or the store recovers at the next start.
const READS_END: Duration = Duration::from_secs(2);
/// Threads that read at the same time, each with a connection, and half of them for one namespace at most. More would only
/// wait for the disk together.
const READERS: usize = 6;
/// They yield to those that answer requests and write: whoever reads much slows nobody down but himself.
const YIELDS: Yields = Yields::By(10);

#[derive(Clone)]
pub struct Options {
    pub clock: Arc<dyn Clock>,
    pub sync: Sync,
    /// How much of the database the writer keeps in memory.
    pub cache_bytes: usize,
    /// The write-ahead log is moved into the database whenever it holds so many pages.
    pub checkpoint_pages: u32,
    /// The database may not grow beyond so many pages of 4 KiB; a write that would is refused as full.
    pub pages_max: u32,
    /// Bytes of disk that only reports, renewals, cancels and deletes may use, at most a tenth of the disk. None: what is kept back
    /// already stays.
    pub reserve: Option<u64>,
}

/// The system's clock, synced, for good.
impl Default for Options {
    fn default() -> Self {
        Self::new(Arc::new(windlass_engine::clock::System::default()))
    }
}

impl Options {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            sync: Sync::Full,
            // Larger costs more than it saves: SQLite walks its whole cache at the end of many transactions.
            cache_bytes: 8 << 20,
            checkpoint_pages: 4_096,
            // SQLite's own limit.
            pages_max: u32::MAX - 1,
            reserve: None,
        }
    }
}

/// When a promise counts as kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// When the disk says so.
    Full,
    /// At once. A power cut may lose acknowledged work and damage the file: for tests and throw-away servers.
    Off,
}

/// What the writer has done since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub batches: u64,
    /// Batches that wrote something.
    pub commits: u64,
    pub wal_bytes: u64,
    /// Waits for the disk: at most one a commit, a few more for each checkpoint.
    pub syncs: u64,
    pub checkpoints: u64,
    /// Pages of the log that were moved into the database while the writer went on.
    pub pages_beside: u64,
    /// Lanes that may hold a pending job.
    pub lanes: usize,
    /// All that is kept in memory to find them.
    pub lane_entries: usize,
}

pub struct Embedded {
    inner: Arc<Inner>,
    readers: Aside,
    /// To wait for the disk after a read.
    turn: Arc<Semaphore>,
}

/// Connections go before the folder, whose lock must outlive them.
struct Inner {
    writer: Mutex<Writer>,
    readers: Mutex<Vec<Connection>>,
    disk: Arc<Disk>,
    reserve: Arc<Reserve>,
    leases: Arc<Leases>,
    lanes: Arc<lanes::Weights>,
    counts: Arc<counts::Shown>,
    clock: Arc<dyn Clock>,
    /// The time of the last batch, for those who do not hold the writer.
    last_now: AtomicI64,
    folder: Folder,
}

impl Embedded {
    /// Opens the data folder, and makes it if it is not there.
    pub fn open(folder: &Path, options: Options) -> Result<Embedded, OpenError> {
        let folder = Folder::open(folder)?;
        folder.ensure_database()?;
        let file = folder.database();
        let connection = folder.open_writer(&options)?;
        let disk = Arc::new(folder.open_disk(options.sync)?);
        let beside = folder.open_checkpointer(options.sync)?;
        let unused = writer::unused(&connection).unwrap_or(0);
        let reserve = Arc::new(folder.open_reserve(options.reserve, unused));
        let writer = Writer::open(connection, (options.checkpoint_pages, beside), disk.clone(), reserve.clone());
        let writer = writer.map_err(|failure| OpenError::failure(&file, failure))?;
        let readers = (0..READERS).map(|_| folder.open_reader()).collect::<Result<Vec<_>, _>>();
        let readers = readers.map_err(|error| OpenError::sqlite(&file, error))?;
        options.clock.not_before(writer.last_now());
        let last_now = AtomicI64::new(writer.last_now().0);
        let (leases, lanes, counts) = (writer.leases(), writer.lanes(), writer.counts());
        let (writer, readers) = (Mutex::new(writer), Mutex::new(readers));
        let clock = options.clock;
        let inner = Inner { writer, readers, disk, reserve, leases, lanes, counts, clock, last_now, folder };
        let pool = Pool { name: "windlass-read", threads: READERS, yields: YIELDS, waiting_max: usize::MAX };
        Ok(Self { inner: Arc::new(inner), readers: Aside::new(pool), turn: Arc::new(Semaphore::new(1)) })
    }

    pub fn stats(&self) -> Stats {
        self.inner.writer().stats()
    }

    /// Changes how large the database may grow (see [`Options::pages_max`]).
    pub fn set_pages_max(&self, pages_max: u32) -> Result<(), StoreError> {
        let writer = self.inner.writer();
        let set = writer.connection().pragma_update(None, "max_page_count", pages_max);
        set.map_err(|error| failure::Failure::from(error).into())
    }

    /// Runs `read` where it may block, on a connection nobody else uses meanwhile. What it shows is safe.
    async fn read<T: Send + 'static>(
        &self,
        namespace: Option<&Namespace>,
        read: impl FnOnce(&Connection) -> Found<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.read_and(namespace, read, Disk::promised).await
    }

    /// `needs`: the last commit that has to be on disk, asked for after the read.
    async fn read_and<T: Send + 'static>(
        &self,
        namespace: Option<&Namespace>,
        read: impl FnOnce(&Connection) -> Found<T> + Send + 'static,
        needs: fn(&Disk) -> u64,
    ) -> Result<T, StoreError> {
        let inner = self.inner.clone();
        let done = self.readers.run(namespace, move || {
            let reader = inner.take_reader()?;
            let found = read(&reader).map_err(StoreError::from);
            lock(&inner.readers).push(reader);
            Ok::<_, StoreError>((found, needs(&inner.disk)))
        });
        let (found, needed) = done.await.map_err(|_| StoreError::Unavailable("a read did not end".into()))??;
        self.wait_for(needed).await?;
        found
    }

    /// One at a time goes to the disk, and those behind it mostly find that done: a thread for each would cost more memory
    /// than all that they read.
    async fn wait_for(&self, commit: u64) -> Result<(), StoreError> {
        if self.inner.disk.is_safe(commit) {
            return Ok(());
        }
        let turn = permit(&self.turn).await?;
        if self.inner.disk.is_safe(commit) {
            return Ok(());
        }
        let inner = self.inner.clone();
        let waited = spawn(move || Ok((inner.disk.wait_for(commit), turn))).await?;
        waited.0
    }
}

async fn permit(semaphore: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, StoreError> {
    let permit = semaphore.clone().acquire_owned().await;
    permit.map_err(|_| StoreError::Unavailable("the store is closed".into()))
}

async fn spawn<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(StoreError::Unavailable(format!("a read did not end: {error}"))))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

impl Inner {
    fn writer(&self) -> MutexGuard<'_, Writer> {
        lock(&self.writer)
    }

    /// There is one for each permit, unless the read it was lent to panicked.
    fn take_reader(&self) -> Result<Connection, StoreError> {
        let kept = lock(&self.readers).pop();
        kept.map_or_else(|| self.folder.open_reader(), Ok).map_err(|error| failure::Failure::from(error).into())
    }

    fn now(&self) -> Timestamp {
        self.clock.now().max(Timestamp(self.last_now.load(Ordering::Acquire)))
    }
}

/// A read that nobody waits for any more may still be at work, on a thread that nobody waits for when the program ends. The store is
/// closed when it has finished.
impl Drop for Embedded {
    fn drop(&mut self) {
        let begun = Instant::now();
        while Arc::strong_count(&self.inner) > 1 && begun.elapsed() < READS_END {
            thread::park_timeout(Duration::from_millis(1));
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Readers first: the log can only be moved whole when nobody reads from it.
        lock(&self.readers).clear();
        let complete = self.writer().close();
        if complete {
            self.folder.note_clean();
        }
    }
}

#[async_trait]
impl Store for Embedded {
    async fn run(&self, batch: Batch) -> Result<Committed, StoreError> {
        let committed = self.inner.writer().run(&batch, &*self.inner.clock)?;
        self.inner.last_now.fetch_max(committed.now.0, Ordering::AcqRel);
        Ok(committed)
    }

    fn crowded(&self, max: usize) -> Vec<Namespace> {
        self.inner.lanes.above(max)
    }

    fn reserve_left(&self) -> Option<u64> {
        self.inner.reserve.left()
    }

    fn unsynced(&self) -> bool {
        self.inner.disk.is_behind()
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.inner.disk.sync()
    }

    async fn job(&self, key: &JobKey) -> Result<Option<Job>, StoreError> {
        let (namespace, key) = (key.namespace.clone(), key.clone());
        self.read(Some(&namespace), move |connection| rows::load_job(connection, &key)).await
    }

    async fn jobs_named(&self, keys: &[JobKey]) -> Result<Vec<Job>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let (namespace, keys) = (keys[0].namespace.clone(), keys.to_vec());
        self.read(Some(&namespace), move |connection| reads::jobs_named(connection, &keys)).await
    }

    async fn results(&self, keys: &[JobKey]) -> Result<Vec<(JobKey, Payload)>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let (namespace, keys) = (keys[0].namespace.clone(), keys.to_vec());
        self.read(Some(&namespace), move |connection| reads::results(connection, keys)).await
    }

    async fn small_payloads(&self, keys: &[JobKey], bytes_max: usize) -> Result<Vec<(JobKey, Payload)>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let (namespace, keys) = (keys[0].namespace.clone(), keys.to_vec());
        self.read(Some(&namespace), move |connection| reads::small_payloads(connection, keys, bytes_max)).await
    }

    async fn jobs(&self, query: &JobQuery) -> Result<Vec<Job>, StoreError> {
        let (namespace, query) = (query.namespace.clone(), query.clone());
        self.read(namespace.as_ref(), move |connection| listing::jobs(connection, &query)).await
    }

    async fn count(&self, query: &JobQuery, max: usize) -> Result<usize, StoreError> {
        let (namespace, query) = (query.namespace.clone(), query.clone());
        self.read(namespace.as_ref(), move |connection| listing::count(connection, &query, max)).await
    }

    async fn job_counts(&self, namespace: &Namespace, definition: Option<&str>) -> Result<StateCounts, StoreError> {
        let counts = self.inner.counts.of(namespace, definition);
        // Asked for after the look: what was seen is then among what has to be on disk.
        self.wait_for(self.inner.disk.promised()).await?;
        Ok(counts)
    }

    async fn stored_bytes(&self, namespace: &Namespace) -> Result<u64, StoreError> {
        Ok(self.inner.counts.of(namespace, None).bytes())
    }

    async fn ahead(&self, job: &Job, max: usize) -> Result<usize, StoreError> {
        let (namespace, job) = (job.key.namespace.clone(), job.clone());
        // A place in a queue changes all the time and is no promise: it need not be on disk.
        self.read_and(Some(&namespace), move |connection| listing::ahead(connection, &job, max), |_| 0).await
    }

    async fn oldest_pending(&self) -> Result<Option<Job>, StoreError> {
        self.read(None, listing::oldest_pending).await
    }

    async fn queue_heads(&self, namespace: &Namespace, limit: usize) -> Result<Vec<Job>, StoreError> {
        let of = namespace.clone();
        self.read(Some(namespace), move |connection| listing::queue_heads(connection, &of, limit)).await
    }

    async fn namespaces(&self, limit: usize) -> Result<Vec<Namespace>, StoreError> {
        self.read(None, move |connection| reads::namespaces(connection, limit)).await
    }

    async fn body(&self, key: &JobKey) -> Result<Option<JobBody>, StoreError> {
        let (namespace, key) = (key.namespace.clone(), key.clone());
        self.read(Some(&namespace), move |connection| reads::body(connection, &key)).await
    }

    async fn record(&self, key: &RecordKey) -> Result<Option<Record>, StoreError> {
        let (namespace, key) = (key.namespace.clone(), key.clone());
        self.read(Some(&namespace), move |connection| rows::load_record(connection, &key)).await
    }

    async fn records(&self, query: &RecordQuery) -> Result<Vec<Record>, StoreError> {
        let (namespace, query) = (query.namespace.clone(), query.clone());
        self.read(Some(&namespace), move |connection| reads::records(connection, &query)).await
    }

    async fn count_records(&self, query: &RecordQuery) -> Result<usize, StoreError> {
        let (namespace, query) = (query.namespace.clone(), query.clone());
        self.read(Some(&namespace), move |connection| reads::count_records(connection, &query)).await
    }

    async fn read_log(&self, key: &JobKey, after: u64, bytes_max: usize) -> Result<Vec<LogAppend>, StoreError> {
        let (namespace, key) = (key.namespace.clone(), key.clone());
        self.read(Some(&namespace), move |connection| reads::read_log(connection, &key, after, bytes_max)).await
    }

    async fn events_after(&self, after: u64, limit: usize) -> Result<EventPage, StoreError> {
        self.read_and(None, move |connection| reads::events_after(connection, after, limit), Disk::begun).await
    }

    async fn due(&self, limit: usize) -> Result<DuePage, StoreError> {
        let (leases, times) = (self.inner.leases.clone(), (self.inner.now(), self.inner.clock.wall()));
        if limit == 0 {
            let (now, wall) = times;
            return Ok(DuePage { now, wall, steps: 0, due: Vec::new(), next: None });
        }
        self.read_and(None, move |connection| reads::due(connection, &leases, limit, times), |_| 0).await
    }

    async fn trim(&self, trim: Trim) -> Result<usize, StoreError> {
        let inner = self.inner.clone();
        spawn(move || {
            let mut writer = inner.writer();
            writer.trim_lanes()?;
            if !trim::is_due(writer.connection(), trim)? {
                return Ok(0);
            }
            writer.trim_events(trim)
        })
        .await
    }

    async fn check(&self) -> Result<Vec<String>, StoreError> {
        self.read_and(None, check::all, |_| 0).await
    }
}

#[async_trait]
impl Bulk for Embedded {
    async fn all_records(&self, after: Option<&RecordKey>, limit: usize) -> Result<Vec<Record>, StoreError> {
        let after = after.cloned();
        self.read(None, move |connection| reads::all_records(connection, after.as_ref(), limit)).await
    }

    async fn insert(&self, rows: bulk::Rows) -> Result<(), StoreError> {
        let inner = self.inner.clone();
        spawn(move || {
            inner.writer().insert(rows)?;
            inner.disk.sync()
        })
        .await
    }
}
