//! Identities. All of them are drawn by the caller (the engine), never in here.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};
use uuid::Uuid;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            pub const fn from_u128(bits: u128) -> Self {
                Self(Uuid::from_u128(bits))
            }
            pub fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }
    };
}

uuid_id!(
    /// One job. Time-ordered (UUIDv7), so that neighbours in time are neighbours on disk.
    JobId
);
uuid_id!(
    /// One execution of a graph of jobs.
    RunId
);

/// The fencing token of one claim: the job it is for, and a secret drawn fresh for each claim.
///
/// Carrying the job's id means that a report finds its job by primary key; there is no index of leases to keep.
/// The secret is 122 random bits, so that knowing the job's id (which is listed) is of no use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId {
    pub job: JobId,
    pub secret: Uuid,
}

impl LeaseId {
    pub fn new(job: JobId, secret: Uuid) -> Self {
        Self { job, secret }
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.job.0.simple(), self.secret.simple())
    }
}

/// The secret half stays out of logs, also when somebody prints a whole command.
impl fmt::Debug for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeaseId({}, REDACTED)", self.job)
    }
}

impl FromStr for LeaseId {
    type Err = uuid::Error;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (job, secret) = text.split_at_checked(32).unwrap_or((text, ""));
        Ok(Self { job: JobId(Uuid::parse_str(job)?), secret: Uuid::parse_str(secret)? })
    }
}
