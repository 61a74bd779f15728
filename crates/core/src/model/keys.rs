//! The seam towards the stores, inward half: what a decision needs to see, and what was found.

use crate::model::{
    id::{JobId, RunId},
    job::{Job, Spec},
    name::{Lane, Namespace, Tags, WorkerId},
    payload::Payload,
    record::Record,
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobKey {
    pub namespace: Namespace,
    pub id: JobId,
}

impl JobKey {
    pub fn new(namespace: &Namespace, id: JobId) -> Self {
        Self { namespace: namespace.clone(), id }
    }
}

/// Jobs that wait for `parent`, in the order of their ids, from `first` on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChildrenFrom {
    pub parent: JobKey,
    pub first: JobId,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerKey {
    pub namespace: Namespace,
    pub worker: WorkerId,
}

impl WorkerKey {
    /// Short, and the same in every build: servers name workers to each other by it. That two share one costs a look.
    pub fn hint(&self) -> u64 {
        let bytes = self.namespace.as_str().bytes().chain([b'\n']).chain(self.worker.as_str().bytes());
        // FNV-1a.
        bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordKey {
    pub namespace: Namespace,
    pub kind: Arc<str>,
    pub key: Arc<str>,
}

/// The jobs at the front of every lane this offer can serve.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeadQuery {
    pub namespace: Namespace,
    pub offered: Tags,
}

/// What is done with a record that is asked for. Stores that lock do so accordingly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    #[default]
    Look,
    /// Nobody else may write it before this batch is committed; others may share it.
    Share,
    Write,
}

/// Rows to load, as sets: a batch costs a few round trips, however many commands it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// Locked for writing by stores that lock.
    pub jobs: BTreeSet<JobKey>,
    /// Ids that are about to be given to new jobs. A store may take them as free without looking, if it finds out at the
    /// latest when it writes, and sees to it that whoever is not written after all was decided on a real look.
    pub new_jobs: BTreeSet<JobKey>,
    pub payloads: BTreeSet<JobKey>,
    /// The first so many of these.
    pub children: BTreeMap<ChildrenFrom, usize>,
    /// Jobs a worker holds.
    pub held: BTreeSet<WorkerKey>,
    /// Unfinished jobs of a run.
    pub run_jobs: BTreeSet<(Namespace, RunId)>,
    /// The first so many jobs that wait for a concurrency key, by (priority, seq).
    pub key_queue: BTreeMap<(Namespace, Arc<str>), usize>,
    /// The first so many pending jobs that fit an offer, by (priority, seq), with their payloads.
    pub heads: BTreeMap<HeadQuery, usize>,
    /// Of those, where the batch has work for whoever asks: what others have locked need not be waited for.
    pub glances: BTreeSet<HeadQuery>,
    /// The ids of the first so many pending jobs of a lane, by (priority, seq): neither locked nor loaded.
    pub lane_fronts: BTreeMap<(Namespace, Lane), usize>,
    pub records: BTreeMap<RecordKey, Access>,
    /// Records of one kind under one parent.
    pub siblings: BTreeSet<(Namespace, Arc<str>, Arc<str>)>,
}

impl Keys {
    pub fn is_empty(&self) -> bool {
        let Keys {
            jobs,
            new_jobs,
            payloads,
            children,
            held,
            run_jobs,
            key_queue,
            heads,
            glances,
            lane_fronts,
            records,
            siblings,
        } = self;
        let jobs = jobs.is_empty() && new_jobs.is_empty() && payloads.is_empty() && children.is_empty();
        let queues = key_queue.is_empty() && heads.is_empty() && glances.is_empty() && lane_fronts.is_empty();
        jobs && queues && held.is_empty() && run_jobs.is_empty() && records.is_empty() && siblings.is_empty()
    }

    /// `lock`: it is to be written.
    pub fn want_record(&mut self, key: RecordKey, lock: bool) {
        self.want_access(key, if lock { Access::Write } else { Access::Look });
    }

    pub fn want_access(&mut self, key: RecordKey, access: Access) {
        let wanted = self.records.entry(key).or_default();
        *wanted = access.max(*wanted);
    }

    /// Claims in one batch that offer the same are served together.
    pub fn want_heads(&mut self, query: HeadQuery, count: usize) {
        *self.heads.entry(query).or_default() += count;
    }
}

#[derive(Clone, Debug)]
pub struct Head {
    pub job: Job,
    pub payload: Payload,
}

/// What the store found. A key that was asked for and is absent here does not exist.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    pub jobs: Vec<Job>,
    pub payloads: HashMap<JobKey, Payload>,
    /// Job rows of all these come along in `jobs`.
    pub children: HashMap<ChildrenFrom, Vec<JobKey>>,
    pub held: HashMap<WorkerKey, Vec<JobKey>>,
    pub run_jobs: HashMap<(Namespace, RunId), Vec<JobKey>>,
    pub key_queue: HashMap<(Namespace, Arc<str>), Vec<JobKey>>,
    pub heads: HashMap<HeadQuery, Vec<Head>>,
    pub lane_fronts: HashMap<(Namespace, Lane), Vec<JobKey>>,
    pub records: Vec<Record>,
    pub siblings: HashMap<(Namespace, Arc<str>, Arc<str>), Vec<RecordKey>>,
    /// Nobody else can write while this batch runs: every row counts as locked, and rows that nobody asked for yet may come
    /// along, to spare the batch another look.
    pub exclusive: bool,
}

/// Decodes the two JSON columns of a stored job. Shared by the stores, so that they cannot read differently.
pub fn decode_job_columns(spec: &str, live: &str) -> Result<(Arc<Spec>, crate::model::job::Live), serde_json::Error> {
    Ok((Arc::new(serde_json::from_str(spec)?), serde_json::from_str(live)?))
}
