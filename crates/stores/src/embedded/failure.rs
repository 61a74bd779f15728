//! What can go wrong, named by what the caller should do about it.

use rusqlite::ErrorCode;
use std::{io, path::PathBuf};
use thiserror::Error;
use windlass_engine::StoreError;

/// Why the store could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    #[error(
        "{} is in use by another windlass server{}; stop that one first, or give this one a data folder of its own",
        folder.display(),
        holder.as_ref().map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    Locked { folder: PathBuf, holder: Option<String> },
    #[error(
        "{} has schema version {version}, and this windlass knows versions up to {ours}; \
         use the newer windlass that wrote it, or restore a backup made before the upgrade",
        file.display()
    )]
    Newer { file: PathBuf, version: i64, ours: i64 },
    #[error("{} is damaged: {what}; restore it from a backup, and keep the damaged file for inspection", file.display())]
    Corrupt { file: PathBuf, what: String },
    #[error("{} is a database of another program; give windlass a data folder of its own", file.display())]
    Foreign { file: PathBuf },
    #[error("{} cannot be written; make the folder and its files writable for this user", path.display())]
    ReadOnly { path: PathBuf },
    #[error("there is no room left for {}; free some space on that disk", path.display())]
    Full { path: PathBuf },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: {source}", file.display())]
    Sqlite { file: PathBuf, source: rusqlite::Error },
}

impl OpenError {
    pub(super) fn io(path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => OpenError::ReadOnly { path },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => OpenError::Full { path },
            _ => OpenError::Io { path, source },
        }
    }

    pub(super) fn sqlite(file: impl Into<PathBuf>, source: rusqlite::Error) -> Self {
        let file = file.into();
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                OpenError::Corrupt { file, what: source.to_string() }
            }
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => OpenError::ReadOnly { path: file },
            Some(ErrorCode::DiskFull) => OpenError::Full { path: file },
            _ => OpenError::Sqlite { file, source },
        }
    }

    pub(super) fn failure(file: impl Into<PathBuf>, failure: Failure) -> Self {
        match failure {
            Failure::Sql(source) => OpenError::sqlite(file, source),
            Failure::Damaged(what) => OpenError::Corrupt { file: file.into(), what },
        }
    }
}

/// Inside the store: SQLite said no, or a row cannot be right.
#[derive(Debug)]
pub(super) enum Failure {
    Sql(rusqlite::Error),
    Damaged(String),
}

pub(super) type Result<T> = std::result::Result<T, Failure>;

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Failure::Sql(error)
    }
}

impl Failure {
    pub(super) fn damaged(what: impl Into<String>) -> Self {
        Failure::Damaged(what.into())
    }

    /// There was no room for it.
    pub(super) fn is_full(&self) -> bool {
        matches!(self, Failure::Sql(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull))
    }

    /// After such a failure nothing more may be acknowledged: it is not known what reached the disk. A failed sync in
    /// particular may not be repeated, because the system may have dropped the pages it could not write.
    pub(super) fn is_fatal(&self) -> bool {
        let Failure::Sql(error) = self else { return false };
        matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::SystemIoFailure | ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
        )
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        let error = match failure {
            Failure::Damaged(what) => return StoreError::Corrupt(what),
            Failure::Sql(error) => error,
        };
        let text = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::Full(text),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Conflict(text),
            Some(ErrorCode::SystemIoFailure) => {
                StoreError::Corrupt(format!("{text}; stop the server and look at the disk"))
            }
            Some(
                ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::OutOfMemory | ErrorCode::PermissionDenied,
            ) => StoreError::Unavailable(text),
            // Anything else is a row or a statement that cannot be right.
            _ => StoreError::Corrupt(text),
        }
    }
}
