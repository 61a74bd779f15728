//! Disk space that is kept back for reports, cancels and deletes: without it a full disk could never become less full.
//!
//! It is a file of zeros beside the database. When a write finds no room, the file is removed and the write is tried again; from
//! then on [`Reserve::left`] says that only the reserve is left, until there is room for both the file and other writes. Space that
//! deleted rows leave inside the database counts as room too, because SQLite uses it before it lets the file grow.
//!
//! The same is said before the disk is full, so that the reserve is seldom needed for what was already accepted.

use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use std::{
    fs::{self, OpenOptions},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

const NAME: &str = "windlass.reserve";
/// The reserve is never more than one part in so many of the disk.
const DISK_SHARE: u64 = 10;
/// How much may be written between two looks at the disk. A small reserve has an eighth of its size as margin.
const MARGIN: u64 = 8 << 20;
const LOOK_EVERY: Duration = Duration::from_millis(10);

pub(super) struct Reserve {
    folder: PathBuf,
    log: PathBuf,
    /// 0: none is kept.
    bytes: u64,
    margin: u64,
    /// Bytes of pages in the database that nothing uses.
    unused: AtomicU64,
    /// Only the reserve is left.
    short: AtomicBool,
    /// This file system cannot keep space back. Then as much is left free instead.
    unsupported: AtomicBool,
    looked: Mutex<Instant>,
}

/// Before the database is opened on a disk that is full: what opening it writes goes where the reserve was.
pub(super) fn make_way(folder: &Path) {
    if free(folder).is_some_and(|(free, _)| free < MARGIN) {
        remove(folder);
    }
}

impl Reserve {
    /// Keeps `wanted` bytes back, or less on a small disk; none: leaves everything as it is. Only for the program that holds the
    /// folder's lock.
    pub(super) fn open(folder: &Path, log: PathBuf, wanted: Option<u64>, unused: u64) -> Self {
        let bytes = free(folder).map_or(0, |(_, total)| wanted.unwrap_or(0).min(total / DISK_SHARE));
        let reserve = Self {
            folder: folder.into(),
            log,
            bytes,
            margin: MARGIN.min(bytes / 8),
            unused: AtomicU64::new(unused),
            short: AtomicBool::new(false),
            unsupported: AtomicBool::new(false),
            looked: Mutex::new(Instant::now()),
        };
        if bytes > 0 {
            reserve.look();
        } else if wanted.is_some() {
            remove(folder);
        }
        reserve
    }

    /// How large the reserve is, while nothing else is left.
    pub(super) fn left(&self) -> Option<u64> {
        if self.bytes == 0 || !self.short.load(Relaxed) {
            return None;
        }
        self.look_if_due();
        self.short.load(Relaxed).then_some(self.bytes)
    }

    /// After a commit. `unused` is asked only when it is time to look.
    pub(super) fn wrote(&self, unused: impl FnOnce() -> Option<u64>) {
        if self.bytes == 0 {
            return;
        }
        let Some(mut looked) = self.looked.try_lock() else { return };
        if looked.elapsed() >= LOOK_EVERY {
            self.unused.store(unused().unwrap_or(0), Relaxed);
            self.look();
            *looked = Instant::now();
        }
    }

    /// A write found no room. True: there is some now, try it again.
    pub(super) fn spend(&self) -> bool {
        if self.bytes == 0 {
            return false;
        }
        let mut looked = self.looked.lock();
        let held = self.is_held() && remove(&self.folder);
        if !self.short.swap(true, Relaxed) || held {
            tracing::warn!(
                folder = %self.folder.display(),
                "the disk is full: until there is room, only reports, renewals, cancels and deletes are accepted"
            );
        }
        *looked = Instant::now();
        held
    }

    fn look_if_due(&self) {
        if let Some(mut looked) = self.looked.try_lock()
            && looked.elapsed() >= LOOK_EVERY
        {
            self.look();
            *looked = Instant::now();
        }
    }

    fn look(&self) {
        let Some((free, _)) = free(&self.folder) else { return };
        let held = self.is_held() || (free >= 2 * self.bytes + self.margin && self.take());
        let short = self.is_short(free, held);
        if short != self.short.swap(short, Relaxed) {
            match short {
                true => tracing::warn!(
                    folder = %self.folder.display(), free,
                    "the disk is nearly full: until there is room, only reports, renewals, cancels and deletes are accepted"
                ),
                false => tracing::info!("there is room on the disk again: everything is accepted"),
            }
        }
    }

    /// Where the file is kept, it is the reserve and all else may be used. Otherwise as much must stay free, partly outside the
    /// database for its log. To begin again takes more room than to go on, so that one write more does not end it.
    fn is_short(&self, free: u64, held: bool) -> bool {
        let room = free + self.unused.load(Relaxed);
        let more = if self.short.load(Relaxed) { self.margin / 2 } else { 0 };
        if held {
            return room < self.margin + more;
        }
        let log = fs::metadata(&self.log).map_or(0, |log| log.len());
        room < self.bytes + self.margin + more || free + log < self.bytes / 2
    }

    fn is_held(&self) -> bool {
        fs::metadata(self.folder.join(NAME)).is_ok_and(|file| file.blocks() * 512 >= self.bytes)
    }

    /// False: there was no room after all, or this file system cannot keep any back.
    fn take(&self) -> bool {
        if self.unsupported.load(Relaxed) {
            return false;
        }
        let taken = allocate(&self.folder.join(NAME), self.bytes);
        if let Err(error) = &taken {
            remove(&self.folder);
            self.unsupported.store(error.kind() != io::ErrorKind::StorageFull, Relaxed);
        }
        taken.is_ok()
    }
}

fn allocate(path: &Path, bytes: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    Ok(fallocate(&file, FallocateFlags::empty(), 0, bytes)?)
}

fn remove(folder: &Path) -> bool {
    fs::remove_file(folder.join(NAME)).is_ok()
}

/// Size of the disk that a folder is on. None: the system does not say.
pub fn disk_bytes(folder: &Path) -> Option<u64> {
    free(folder).map(|(_, total)| total)
}

/// Bytes that are free for this user, and all bytes of the disk. None: the system does not say.
fn free(folder: &Path) -> Option<(u64, u64)> {
    let found = statvfs(folder).ok()?;
    Some((found.f_bavail.saturating_mul(found.f_frsize), found.f_blocks.saturating_mul(found.f_frsize)))
}
