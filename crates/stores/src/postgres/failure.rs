//! What went wrong, named by what the store does about it.

use tokio_postgres::error::SqlState;
use windlass_engine::StoreError;

#[derive(Debug)]
pub enum Failure {
    /// Somebody else was faster; nothing was written. Decide again.
    Conflict(String),
    /// The connection is of no more use.
    Lost(String),
    /// The database's clock was set. Agree on the time, then decide again.
    Clock,
    /// The server took the statement and said no, for a reason that repeating does not cure.
    Refused(StoreError),
}

impl Failure {
    pub fn corrupt(why: impl Into<String>) -> Self {
        Failure::Refused(StoreError::Corrupt(why.into()))
    }

    /// What a caller of a single read is told.
    pub fn into_store_error(self) -> StoreError {
        match self {
            Failure::Conflict(why) => StoreError::Conflict(why),
            Failure::Lost(why) => StoreError::Unavailable(why),
            Failure::Clock => StoreError::Conflict("the database's clock was set".into()),
            Failure::Refused(error) => error,
        }
    }
}

/// Raised by our own checks of row counts.
const ROW_COUNT: &str = "WL001";

const POOLER: &str = "; if a pooler gives every transaction another session, say so with ?pooled=true in the address";

/// A prepared statement that is not there, or of which there are two: somebody hands out sessions in between.
fn names_pooler(code: &SqlState) -> bool {
    ["26000", "42P05"].contains(&code.code())
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(db) = error.as_db_error() else { return Failure::Lost(describe(&error)) };
        let why = format!("{} (SQLSTATE {})", db.message(), db.code().code());
        let code = db.code();
        if [&SqlState::T_R_SERIALIZATION_FAILURE, &SqlState::T_R_DEADLOCK_DETECTED].contains(&code)
            || [&SqlState::LOCK_NOT_AVAILABLE, &SqlState::UNIQUE_VIOLATION].contains(&code)
            || code.code() == ROW_COUNT
        {
            return Failure::Conflict(why);
        }
        match (&code.code()[..2], code.code()) {
            (_, "53100") => Failure::Refused(StoreError::Full(why)),
            // A statement that ran too long, or was cancelled by somebody.
            (_, "57014") => Failure::Refused(StoreError::Unavailable(why)),
            _ if names_pooler(code) => Failure::Lost(why + POOLER),
            // Shutting down, out of connections or memory, a standby.
            ("57" | "08" | "53", _) | (_, "25006" | "25P02" | "25P03" | "0A000") => Failure::Lost(why),
            // A value PostgreSQL cannot hold, such as a NUL character in a text.
            ("22", _) => Failure::Refused(StoreError::Conflict(why)),
            ("58", _) => Failure::Refused(StoreError::Unavailable(why)),
            _ => Failure::corrupt(why),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Failure::corrupt(format!("a stored value cannot be read: {error}"))
    }
}

/// The error with its causes; tokio-postgres keeps the telling part in the source.
pub fn describe(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    if error.code().is_some_and(names_pooler) {
        text += POOLER;
    }
    text
}
