//! The seam towards the stores, outward half: what to write, all of it in one transaction.

use crate::model::{
    event::Event,
    job::{Attempt, Job},
    keys::{JobKey, RecordKey, WorkerKey},
    log::{self, Chunks, LogForm},
    name::{Lane, Namespace, Tags},
    payload::Payload,
    record::Record,
    refusal::Refusal,
    reply::Reply,
    time::Timestamp,
};
use std::borrow::Cow;

/// What a batch came to. Stores write it whole or not at all, then hand out the replies.
#[derive(Debug, Default)]
pub struct Decision {
    pub jobs: Vec<JobChange>,
    pub payloads: Vec<(JobKey, Payload)>,
    pub results: Vec<(JobKey, Payload)>,
    pub attempts: Vec<(JobKey, Attempt)>,
    /// (parent, child)
    pub edges: Vec<(JobKey, JobKey)>,
    pub records: Vec<RecordChange>,
    pub logs: Vec<LogAppend>,
    /// Pieces that go, some of them perhaps just written.
    pub log_drops: Vec<LogDrop>,
    pub events: Vec<Event>,
    /// One per command, in the order of the commands.
    pub replies: Vec<Result<Reply, Refusal>>,
    /// One per job that can be claimed since this batch.
    pub wakes: Vec<Wake>,
    /// Workers that should ask what became of what they hold, or of themselves: somebody else changed it.
    pub notices: Vec<WorkerKey>,
    /// The earliest due time among the rows written.
    pub next_due: Option<Timestamp>,
}

impl Decision {
    pub fn writes_nothing(&self) -> bool {
        self.jobs.is_empty() && self.records.is_empty() && self.logs.is_empty() && self.events.is_empty()
    }
}

/// `old` is the row as loaded (none: insert), `new` the row to be (none: remove it with all that belongs to it).
#[derive(Debug)]
pub struct JobChange {
    pub old: Option<Job>,
    pub new: Option<Job>,
}

impl JobChange {
    pub fn key(&self) -> &JobKey {
        let either = self.new.as_ref().or(self.old.as_ref());
        &either.expect("a change has at least one side").key
    }
    /// True when nothing that stores index has changed: renewals, progress, log counters.
    pub fn is_touch(&self) -> bool {
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => {
                old.state == new.state
                    && old.seq == new.seq
                    && old.priority == new.priority
                    && old.due == new.due
                    && old.holder() == new.holder()
                    && old.waits_for_key() == new.waits_for_key()
            }
            _ => false,
        }
    }
}

/// `old_version` is the version loaded (none: insert, and somebody else's insert in between is a conflict).
#[derive(Debug)]
pub struct RecordChange {
    pub key: RecordKey,
    pub old_version: Option<u64>,
    /// What the record counted with (see `counts::record_bytes`); 0: nothing.
    pub old_bytes: i64,
    pub new: Option<Record>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LogAppend {
    pub job: JobKey,
    /// Counts from 1 within the job.
    pub piece: u64,
    pub attempt: u32,
    pub at: Timestamp,
    pub form: LogForm,
    pub data: Payload,
}

impl LogAppend {
    pub fn chunks(&self) -> Chunks<'_> {
        log::chunks(self.form, self.data.as_bytes())
    }

    /// All of its text.
    pub fn text(&self) -> Cow<'_, [u8]> {
        match self.form {
            LogForm::Text(_) => Cow::Borrowed(self.data.as_bytes()),
            LogForm::Chunks => Cow::Owned(self.chunks().flat_map(|chunk| chunk.data).copied().collect()),
        }
    }
}

/// Neighbouring pieces of a job's log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogDrop {
    pub job: JobKey,
    pub first: u64,
    pub last: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Wake {
    pub namespace: Namespace,
    pub lane: Lane,
    pub tags: Tags,
}
