//! When the leases of held jobs run out.
//!
//! Kept in memory, because nearly every lease ends by a report long before its time: an index on disk would be written
//! twice for each job and almost never read. It follows from the held jobs, which are found again when the store is
//! opened; jobs that nobody holds have their times in the index `jobs_due`.

use super::{failure::Result, rows};
use parking_lot::Mutex;
use rusqlite::Connection;
use std::collections::BTreeSet;
use windlass_core::{Job, JobChange, JobKey, Timestamp, commands::due::Due};

#[derive(Default)]
pub(super) struct Leases {
    by_time: Mutex<BTreeSet<(Timestamp, JobKey)>>,
}

pub(super) const HELD_DUE: &str = include_str!("sql/held_due.sql");

/// What is kept about a job, if anything.
fn entry(job: &Job) -> Option<(Timestamp, JobKey)> {
    job.due.filter(|_| job.state.is_held()).map(|due| (due, job.key.clone()))
}

impl Leases {
    pub(super) fn open(connection: &Connection) -> Result<Self> {
        let mut statement = connection.prepare(HELD_DUE)?;
        let mut rows = statement.query([])?;
        let mut by_time = BTreeSet::new();
        while let Some(row) = rows.next()? {
            let key = JobKey::new(&rows::to_namespace(rows::text(row, 1)?)?, rows::blob_id(row, 2)?);
            by_time.insert((Timestamp(row.get(0)?), key));
        }
        Ok(Self { by_time: Mutex::new(by_time) })
    }

    /// After the commit.
    pub(super) fn learn(&self, changes: &[JobChange]) {
        let mut by_time = self.by_time.lock();
        for change in changes {
            let (old, new) = (change.old.as_ref().and_then(entry), change.new.as_ref().and_then(entry));
            if old == new {
                continue;
            }
            if let Some(old) = old {
                by_time.remove(&old);
            }
            by_time.extend(new);
        }
    }

    /// The first so many, and no more than one that is not yet due.
    pub(super) fn first(&self, count: usize, now: Timestamp) -> Vec<(Timestamp, Due)> {
        let by_time = self.by_time.lock();
        let mut found = Vec::new();
        for (at, key) in by_time.iter().take(count) {
            found.push((*at, Due::Job(key.clone())));
            if *at > now {
                break;
            }
        }
        found
    }
}
