//! The sync of the write-ahead log, apart from the commits that write it.
//!
//! SQLite commits with `synchronous=NORMAL`: a commit writes its frames and waits for nothing. It still syncs what its own
//! order needs: the log before a checkpoint copies from it, the database before the log starts over, and the log's new header
//! before frames follow it. What is left to us is the sync that a promise waits for, on a descriptor of our own for the same
//! file: one sync makes every commit before it safe, whoever made it. The frames are chained by checksums, so that after a
//! power cut the log ends at the first frame that is not whole, which can only lie behind the last sync.
//!
//! After a failed sync nothing may be taken for safe any more, and it is not tried again: the system may have dropped the
//! pages it could not write and report success the next time.

use super::failure::OpenError;
use parking_lot::Mutex;
use std::{
    fs::File,
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};
use windlass_engine::StoreError;

/// How long a reader sleeps while the commit it may have seen is still being written.
const NAP: Duration = Duration::from_micros(50);

pub(super) struct Disk {
    /// None: nothing is ever waited for.
    log: Option<File>,
    path: PathBuf,
    /// Commits that have begun: readers may see them at any moment.
    begun: AtomicU64,
    /// The last of those that holds promises.
    promised: AtomicU64,
    /// Commits whose frames are all in the log.
    written: AtomicU64,
    synced: AtomicU64,
    syncs: AtomicU64,
    /// Whoever holds it is at the disk; those who wait for it mostly find their work done.
    turn: Mutex<()>,
    failed: OnceLock<String>,
}

impl Disk {
    /// `path`: the write-ahead log, which is there as soon as a connection has read the database, and stays the same file while
    /// one is open.
    pub(super) fn open(path: PathBuf, sync: super::Sync) -> Result<Self, OpenError> {
        let log = match sync {
            super::Sync::Off => None,
            super::Sync::Full => Some(File::open(&path).map_err(|error| OpenError::io(&path, error))?),
        };
        Ok(Self {
            log,
            path,
            begun: AtomicU64::new(0),
            promised: AtomicU64::new(0),
            written: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            turn: Mutex::default(),
            failed: OnceLock::new(),
        })
    }

    /// Before a commit.
    pub(super) fn begin(&self, promises: bool) {
        let number = self.begun.fetch_add(1, Ordering::AcqRel) + 1;
        if promises {
            self.promised.store(number, Ordering::Release);
        }
    }

    /// After a commit, also one that failed: there is nothing of it to wait for.
    pub(super) fn wrote(&self) {
        self.written.store(self.begun.load(Ordering::Acquire), Ordering::Release);
    }

    pub(super) fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Why nothing is safe any more.
    pub(super) fn failure(&self) -> Option<&String> {
        self.failed.get()
    }

    pub(super) fn is_behind(&self) -> bool {
        self.log.is_some() && self.synced.load(Ordering::Acquire) < self.written.load(Ordering::Acquire)
    }

    /// Makes every commit that was written before this call safe.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        self.sync_up_to(self.written.load(Ordering::Acquire))
    }

    /// What one who has read waits for, so that nothing is shown that a power cut could take back, except leases and the like.
    pub(super) fn promised(&self) -> u64 {
        self.promised.load(Ordering::Acquire)
    }

    /// The same without exception: a number that was shown must never be given to another event.
    pub(super) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Acquire)
    }

    pub(super) fn is_safe(&self, number: u64) -> bool {
        self.log.is_none() || self.synced.load(Ordering::Acquire) >= number
    }

    pub(super) fn wait_for(&self, number: u64) -> Result<(), StoreError> {
        while self.log.is_some() && self.written.load(Ordering::Acquire) < number {
            thread::sleep(NAP);
        }
        self.sync_up_to(number)
    }

    fn sync_up_to(&self, number: u64) -> Result<(), StoreError> {
        let Some(log) = &self.log else { return Ok(()) };
        if self.is_safe(number) {
            return Ok(());
        }
        let _turn = self.turn.lock();
        if let Some(why) = self.failed.get() {
            return Err(StoreError::Corrupt(why.clone()));
        }
        if self.is_safe(number) {
            return Ok(());
        }
        let written = self.written.load(Ordering::Acquire);
        if let Err(error) = sync(log, &self.path) {
            let why =
                format!("{} could not be synced: {error}; stop the server and look at the disk", self.path.display());
            tracing::error!("{why}");
            return Err(StoreError::Corrupt(self.failed.get_or_init(|| why).clone()));
        }
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.synced.store(written, Ordering::Release);
        Ok(())
    }
}

fn sync(log: &File, path: &Path) -> io::Result<()> {
    // Somebody removed the file while it was in use: what goes into it is lost, however well it is synced.
    if log.metadata()?.nlink() == 0 {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("{} was removed", path.display())));
    }
    log.sync_data()
}
