//! What the desk holds: rows as they were loaded and as the batch changed them, and the queues those are in.

use crate::model::{
    counts,
    job::{Job, State},
    keys::{Access, JobKey},
    name::Namespace,
    record::Record,
    select,
};
use foldhash::HashMap;
use std::{collections::BTreeMap, sync::Arc};

pub(super) struct JobSlot {
    pub(super) current: Option<Job>,
    /// The row as loaded, once it was changed.
    pub(super) original: Option<Option<Job>>,
}

impl JobSlot {
    /// The job as this batch made it, if it did.
    pub(super) fn changed(&self) -> Option<&Job> {
        self.current.as_ref().filter(|_| self.original.is_some())
    }

    /// Whether it waited to be claimed before this batch changed it.
    pub(super) fn was_pending(&self) -> bool {
        matches!(&self.original, Some(Some(old)) if old.state == State::Pending)
    }
}

pub(super) struct RecordSlot {
    pub(super) current: Option<Record>,
    /// The row as loaded, once it was changed.
    pub(super) original: Option<Option<LoadedRecord>>,
    pub(super) access: Access,
}

/// What is remembered of a record that was changed.
#[derive(Clone, Copy)]
pub(super) struct LoadedRecord {
    pub(super) version: u64,
    pub(super) bytes: i64,
}

impl LoadedRecord {
    pub(super) fn of(record: &Record) -> Self {
        Self { version: record.version, bytes: counts::record_bytes(record) }
    }
}

pub(super) type KeyAt = (Namespace, Arc<str>);

/// Jobs changed by this batch that wait in a queue now, in its order. Rows as loaded are in [`Queue`].
#[derive(Default)]
pub(super) struct Fresh {
    pub(super) pending: BTreeMap<(i32, i64), JobKey>,
    /// By concurrency key.
    pub(super) waiting: HashMap<KeyAt, BTreeMap<(i32, i64), JobKey>>,
}

impl Fresh {
    pub(super) fn remove(&mut self, slot: &JobSlot) {
        let Some(job) = slot.changed() else { return };
        if job.state == State::Pending {
            self.pending.remove(&select::order(job));
        } else if let Some(key) = job.waits_for_key() {
            let queue = self.waiting.get_mut(&(job.key.namespace.clone(), key.clone()));
            queue.expect("it was entered there").remove(&select::order(job));
        }
    }

    pub(super) fn insert(&mut self, slot: &JobSlot) {
        let Some(job) = slot.changed() else { return };
        if job.state == State::Pending {
            self.pending.insert(select::order(job), job.key.clone());
        } else if let Some(key) = job.waits_for_key() {
            let queue = self.waiting.entry((job.key.namespace.clone(), key.clone())).or_default();
            queue.insert(select::order(job), job.key.clone());
        }
    }
}

#[derive(Default)]
pub(super) struct Queue {
    /// How many were asked for; fewer found means there are no more.
    pub(super) asked: usize,
    pub(super) jobs: Vec<JobKey>,
    /// Everything before this is taken.
    pub(super) next: usize,
}
