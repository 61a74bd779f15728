//! Opens the data folder: lock, database file, version, health.
//!
//! | file | what |
//! |---|---|
//! | `windlass.lock` | held locked while a server runs; the lock dies with the process |
//! | `windlass.db`, `-wal`, `-shm` | the database, its write-ahead log, and the index into that |
//! | `windlass.reserve` | disk space kept back for reports, cancels and deletes (see `reserve.rs`) |
//! | `windlass.clean` | there after a clean stop, with the size of the database at that time |

use super::{
    Options, Sync, bytes, check,
    checkpoint::Checkpointer,
    counts,
    disk::Disk,
    failure::{Failure, OpenError},
    reserve::{self, Reserve},
    writer::PAGE,
};
use rusqlite::{Connection, OpenFlags, config::DbConfig};
use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

/// "Wdls", so that `file` and SQLite's own tools can tell whose database it is.
const APPLICATION_ID: i32 = 0x5764_6c73;

/// Each with the oldest schema version whose programs can still use a file it was applied to.
const MIGRATIONS: [(i64, &str); 5] = [
    (1, include_str!("migrations/0001_first.sql")),
    (1, include_str!("migrations/0002_log_streams.sql")),
    (3, include_str!("migrations/0003_newer_rows.sql")),
    (4, include_str!("migrations/0004_counts.sql")),
    (5, include_str!("migrations/0005_bytes.sql")),
];

/// The schema version this program writes.
pub const SCHEMA_VERSION: i64 = MIGRATIONS.len() as i64;

/// How closely a file is looked at after a crash depends on its size, so that a server is back within seconds: up to the
/// first size every row is read, up to the second SQLite checks its pages. Larger ones are not read through at all
/// then; `check` does that while the server runs.
const EVERY_ROW_BYTES_MAX: u64 = 32 << 20;
const EVERY_PAGE_BYTES_MAX: u64 = 2 << 30;

type Opened<T> = Result<T, OpenError>;

/// The paths in a data folder.
pub(super) struct Folder {
    path: PathBuf,
    /// Held, not read: the lock is on it.
    _lock: File,
}

impl Folder {
    pub(super) fn open(path: &Path) -> Opened<Self> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|error| OpenError::io(path, error))?;
        let lock = lock(path)?;
        reserve::make_way(path);
        Ok(Self { path: path.into(), _lock: lock })
    }

    pub(super) fn database(&self) -> PathBuf {
        self.path.join("windlass.db")
    }

    fn log(&self) -> PathBuf {
        self.path.join("windlass.db-wal")
    }

    fn clean(&self) -> PathBuf {
        self.path.join("windlass.clean")
    }

    /// Creates the database if there is none. It is made under another name first, so that a database of this name is
    /// always a whole one, and an empty file is known to be damage and not a beginning.
    pub(super) fn ensure_database(&self) -> Opened<()> {
        let file = self.database();
        if file.exists() {
            return Ok(());
        }
        if has_bytes(&self.log()) || self.clean().exists() {
            let what = "the file is missing, but other files of the same database are there".to_string();
            return Err(OpenError::Corrupt { file, what });
        }
        let new = self.path.join("windlass.db.new");
        for left_over in ["windlass.db.new", "windlass.db.new-wal", "windlass.db.new-shm", "windlass.db.new-journal"] {
            let _ = fs::remove_file(self.path.join(left_over));
        }
        // Lease secrets are in here, so the file is for its owner alone, whatever the folder allows.
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new);
        made.map_err(|error| OpenError::io(&new, error))?;
        create(&new).map_err(|error| OpenError::sqlite(&new, error))?;
        fs::rename(&new, &file).map_err(|error| OpenError::io(&file, error))?;
        self.sync()
    }

    fn sync(&self) -> Opened<()> {
        let synced = File::open(&self.path).and_then(|folder| folder.sync_all());
        synced.map_err(|error| OpenError::io(&self.path, error))
    }

    /// Opens the database for writing: checked, and brought up to this program's schema version.
    pub(super) fn open_writer(&self, options: &Options) -> Opened<Connection> {
        let file = self.database();
        check_header(&file, has_bytes(&self.log()))?;
        let connection = connect(&file, OpenFlags::SQLITE_OPEN_READ_WRITE);
        let connection = connection.map_err(|error| OpenError::sqlite(&file, error))?;
        set_up_writer(&connection, options).map_err(|error| OpenError::sqlite(&file, error))?;
        check_version(&connection, &file)?;
        if !self.was_closed_cleanly() {
            check_file(&connection, &file)?;
        }
        migrate(&connection).map_err(|error| OpenError::sqlite(&file, error))?;
        let counted = counts::count_all(&connection).and_then(|()| bytes::count_all(&connection));
        counted.map_err(|failure| OpenError::failure(&file, failure))?;
        self.forget_clean()?;
        Ok(connection)
    }

    /// After the writer is open, which has made what was missing.
    pub(super) fn open_checkpointer(&self, sync: Sync) -> Opened<Checkpointer> {
        let file = self.database();
        let connection = connect(&file, OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(|connection| {
            connection.pragma_update(None, "synchronous", synchronous(sync))?;
            connection.pragma_update(None, "wal_autocheckpoint", 0)?;
            Ok(connection)
        });
        let connection = connection.map_err(|error| OpenError::sqlite(&file, error))?;
        Checkpointer::start(connection).map_err(|error| OpenError::io(&file, error))
    }

    /// After the writer is open, so that the log is there; its entry in the folder is safe from here on.
    pub(super) fn open_disk(&self, sync: Sync) -> Opened<Disk> {
        let disk = Disk::open(self.log(), sync)?;
        self.sync()?;
        Ok(disk)
    }

    pub(super) fn open_reserve(&self, wanted: Option<u64>, unused: u64) -> Reserve {
        Reserve::open(&self.path, self.log(), wanted, unused)
    }

    pub(super) fn open_reader(&self) -> Result<Connection, rusqlite::Error> {
        let connection = connect(&self.database(), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        // In KiB. Every commit makes it worthless, and the system keeps the file's pages as well.
        connection.pragma_update(None, "cache_size", -1_024)?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(connection)
    }

    fn was_closed_cleanly(&self) -> bool {
        let size = fs::metadata(self.database()).map(|found| found.len()).unwrap_or(0);
        let noted = fs::read_to_string(self.clean()).ok().and_then(|text| text.trim().parse::<u64>().ok());
        noted == Some(size) && !has_bytes(&self.log())
    }

    fn forget_clean(&self) -> Opened<()> {
        match fs::remove_file(self.clean()) {
            Ok(()) => self.sync(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(OpenError::io(self.clean(), error)),
        }
    }

    /// Notes a clean stop. Failing to is harmless: the next start looks closer, that is all.
    pub(super) fn note_clean(&self) {
        let size = fs::metadata(self.database()).map(|found| found.len());
        let noted = size.and_then(|size| fs::write(self.clean(), size.to_string()));
        if let Err(error) = noted {
            tracing::warn!(%error, "a clean stop could not be noted");
        }
    }
}

fn has_bytes(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.len() > 0)
}

fn lock(folder: &Path) -> Opened<File> {
    let path = folder.join("windlass.lock");
    let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
    let mut file = opened.map_err(|error| OpenError::io(&path, error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            let _ = file.read_to_string(&mut holder);
            let holder = Some(holder.trim().to_string()).filter(|pid| !pid.is_empty());
            return Err(OpenError::Locked { folder: folder.into(), holder });
        }
        Err(TryLockError::Error(error)) => return Err(OpenError::io(&path, error)),
    }
    // For the person who reads the refusal; the lock itself is what counts, also on a full disk.
    match file.set_len(0).and_then(|()| write!(file, "{}", std::process::id())) {
        Err(error) if error.kind() != std::io::ErrorKind::StorageFull => Err(OpenError::io(&path, error)),
        Ok(()) | Err(_) => Ok(file),
    }
}

/// Looks at the file itself: SQLite would take an empty file for a new database.
fn check_header(file: &Path, log_has_more: bool) -> Opened<()> {
    let corrupt = |what: String| Err(OpenError::Corrupt { file: file.into(), what });
    let mut opened = File::open(file).map_err(|error| OpenError::io(file, error))?;
    let size = opened.metadata().map_err(|error| OpenError::io(file, error))?.len();
    let mut header = [0; 100];
    if opened.read_exact(&mut header).is_err() {
        return corrupt(format!("it is only {size} bytes long"));
    }
    if &header[..16] != b"SQLite format 3\0" {
        return corrupt("it is not a database".into());
    }
    let number =
        |at: usize| u64::from(u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]));
    let pages = number(28);
    // With a log beside it the header may be ahead of the file.
    if !log_has_more && size < pages * PAGE {
        return corrupt(format!("it is cut off: {size} bytes of {}", pages * PAGE));
    }
    Ok(())
}

fn connect(file: &Path, flags: OpenFlags) -> Result<Connection, rusqlite::Error> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    // Without this a statement near a partial index is planned anew whenever other values are bound to it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    Ok(connection)
}

fn synchronous(sync: Sync) -> &'static str {
    match sync {
        // Promises are synced by us, once for many commits: see `disk`.
        Sync::Full => "normal",
        Sync::Off => "off",
    }
}

fn set_up_writer(connection: &Connection, options: &Options) -> Result<(), rusqlite::Error> {
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    debug_assert_eq!(mode, "wal");
    if options.sync == Sync::Off {
        tracing::warn!("fsync is off: a power cut can lose acknowledged work and damage the database");
    }
    connection.pragma_update(None, "synchronous", synchronous(options.sync))?;
    connection.pragma_update(None, "cache_size", -((options.cache_bytes / 1_024) as i64))?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "max_page_count", options.pages_max)?;
    Ok(())
}

fn create(file: &Path) -> Result<(), rusqlite::Error> {
    let connection = connect(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "page_size", PAGE as i64)?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "synchronous", "full")?;
    migrate(&connection)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.close().map_err(|(_, error)| error)
}

/// Applies what is missing, all of it or none.
pub(super) fn migrate(connection: &Connection) -> Result<(), rusqlite::Error> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version >= SCHEMA_VERSION {
        return Ok(());
    }
    let transaction = connection.unchecked_transaction()?;
    for (min_reader, sql) in MIGRATIONS.iter().skip(version as usize) {
        transaction.execute_batch(sql)?;
        super::rows::save_mark(&transaction, "min_reader", *min_reader)?;
    }
    transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    transaction.commit()
}

fn check_version(connection: &Connection, file: &Path) -> Opened<()> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let failed = |error| OpenError::sqlite(file, error);
    if pragma("application_id").map_err(failed)? != i64::from(APPLICATION_ID) {
        return Err(OpenError::Foreign { file: file.into() });
    }
    let version = pragma("user_version").map_err(failed)?;
    if version <= SCHEMA_VERSION {
        return Ok(());
    }
    // A newer program may have left the file such that older ones can go on using it.
    let sql = "SELECT value FROM meta WHERE name = 'min_reader'";
    let min_reader: i64 = connection.query_row(sql, [], |row| row.get(0)).map_err(failed)?;
    if min_reader <= SCHEMA_VERSION {
        return Ok(());
    }
    Err(OpenError::Newer { file: file.into(), version, ours: SCHEMA_VERSION })
}

/// After anything but a clean stop: SQLite recovers from a crash by itself, but a disk that lost or reordered writes is
/// better noticed now than in the middle of the night.
fn check_file(connection: &Connection, file: &Path) -> Opened<()> {
    let size = fs::metadata(file).map(|found| found.len()).unwrap_or(0);
    let problems = if size <= EVERY_ROW_BYTES_MAX {
        check::rows(connection)
    } else if size <= EVERY_PAGE_BYTES_MAX {
        check::pragma(connection, "quick_check")
    } else {
        tracing::warn!(
            bytes = size,
            "the last stop was not clean, and the database is too large to check at startup; check it with `windlass doctor`"
        );
        Ok(Vec::new())
    };
    let problems = problems.map_err(|failure| OpenError::failure(file, failure))?;
    match problems.into_iter().next() {
        Some(problem) => Err(OpenError::failure(file, Failure::Damaged(problem))),
        None => Ok(()),
    }
}
