//! Loads the rows a decision asks for, from memory where they were used lately.

use super::{
    failure::Result,
    lanes::{Lanes, missing},
    rows,
};
use crate::weight;
use foldhash::{HashMap, HashMapExt};
use rusqlite::{Connection, OptionalExtension, Params};
use std::{collections::BTreeSet, sync::Arc};
use windlass_core::{
    Decision, Head, Job, JobChange, JobId, JobKey, Keys, Namespace, Payload, Record, RecordKey, Rows, State,
    cache::Cache, run,
};

/// Rows with more bytes than this are read again rather than remembered.
const REMEMBERED_BYTES_MAX: usize = 2_048;
const JOBS_REMEMBERED: usize = 16_384;
const RECORDS_REMEMBERED: usize = 4_096;
/// What jobs may take that are remembered, in each of two generations; and records, whose facets are all that varies.
const JOBS_REMEMBERED_BYTES: usize = 48 << 20;
const RECORDS_REMEMBERED_BYTES: usize = 16 << 20;
/// Namespaces whose newest job is remembered.
const NEWEST_MAX: usize = 10_000;

/// What the writer knows without asking the database. All of it follows from committed rows.
pub(super) struct Memo {
    jobs: Cache<JobKey, Arc<Known>>,
    records: Cache<RecordKey, Record>,
    pub(super) lanes: Lanes,
    /// No job of the namespace has a higher id.
    newest: HashMap<Namespace, JobId>,
}

struct Known {
    job: Job,
    /// None: too large, or not seen since the start.
    payload: Option<Payload>,
}

impl Known {
    /// What it takes in memory, about.
    fn bytes(&self) -> usize {
        weight::of_job(&self.job) + self.payload.as_ref().map_or(0, Payload::len)
    }
}

fn bytes(record: &Record) -> usize {
    // Once as text, and once as it is read.
    let facets: usize = record.facets.iter().map(|facet| facet.name.len() + facet.value.len() + 64).sum();
    256 + 2 * record.value.len() + facets
}

pub(super) const JOB_NEWEST: &str = include_str!("sql/job_newest.sql");
pub(super) const JOB_HELD: &str = include_str!("sql/job_held.sql");
pub(super) const JOB_RUN_OPEN: &str = include_str!("sql/job_run_open.sql");
pub(super) const JOB_KEY_QUEUE: &str = include_str!("sql/job_key_queue.sql");
pub(super) const LANE_FRONT: &str = include_str!("sql/lane_front.sql");
pub(super) const CHILDREN: &str = include_str!("sql/children.sql");
pub(super) const RECORD_SIBLINGS: &str = include_str!("sql/record_siblings.sql");

impl Memo {
    pub(super) fn open(connection: &Connection) -> Result<Self> {
        Ok(Self {
            jobs: Cache::new(JOBS_REMEMBERED, JOBS_REMEMBERED_BYTES),
            records: Cache::new(RECORDS_REMEMBERED, RECORDS_REMEMBERED_BYTES),
            lanes: Lanes::open(connection)?,
            newest: HashMap::new(),
        })
    }

    /// After anything went wrong: only what is on disk counts. Lanes may stay, too many of them do no harm.
    pub(super) fn clear(&mut self) {
        self.jobs.clear();
        self.records.clear();
        self.newest.clear();
        self.lanes.rolled_back();
    }

    pub(super) fn load(&mut self, connection: &Connection, keys: &Keys) -> Result<Rows> {
        let mut rows = Rows { exclusive: true, ..Rows::default() };
        let mut wanted: BTreeSet<JobKey> = BTreeSet::new();
        for key in &keys.payloads {
            rows.payloads.extend(self.payload(connection, key)?.map(|payload| (key.clone(), payload)));
        }
        for (at, &count) in &keys.children {
            let (namespace, limit) = (&at.parent.namespace, i64::try_from(count).unwrap_or(i64::MAX));
            let params = (namespace.as_str(), at.parent.id.as_bytes(), at.first.as_bytes(), limit);
            let found = ids(connection, CHILDREN, namespace, params)?;
            wanted.extend(found.iter().cloned());
            rows.children.insert(at.clone(), found);
        }
        for at in &keys.held {
            let found = ids(connection, JOB_HELD, &at.namespace, (at.namespace.as_str(), at.worker.as_str()))?;
            wanted.extend(found.iter().cloned());
            rows.held.insert(at.clone(), found);
        }
        for at in &keys.run_jobs {
            let found = ids(connection, JOB_RUN_OPEN, &at.0, (at.0.as_str(), at.1.as_bytes()))?;
            wanted.extend(found.iter().cloned());
            rows.run_jobs.insert(at.clone(), found);
        }
        for (at, &count) in &keys.key_queue {
            let limit = i64::try_from(count).unwrap_or(i64::MAX);
            let found = ids(connection, JOB_KEY_QUEUE, &at.0, (at.0.as_str(), &*at.1, limit))?;
            wanted.extend(found.iter().cloned());
            rows.key_queue.insert(at.clone(), found);
        }
        for (query, &count) in &keys.heads {
            let found = self.lanes.heads(connection, query, count)?;
            let heads = found.iter().map(|key| self.head(connection, key)).collect::<Result<_>>()?;
            rows.heads.insert(query.clone(), heads);
        }
        for (at, &count) in &keys.lane_fronts {
            let limit = i64::try_from(count).unwrap_or(i64::MAX);
            let found = ids(connection, LANE_FRONT, &at.0, (at.0.as_str(), rows::lane_bytes(at.1), limit))?;
            rows.lane_fronts.insert(at.clone(), found);
        }
        for key in keys.records.keys() {
            rows.records.extend(self.record(connection, key)?);
        }
        for at in &keys.siblings {
            rows.siblings.insert(at.clone(), siblings(connection, at)?);
        }
        self.load_jobs(connection, keys, wanted, &mut rows)?;
        Ok(rows)
    }

    /// A held job that is asked for is most likely about to end, and its run is then written too.
    fn load_jobs(
        &mut self,
        connection: &Connection,
        keys: &Keys,
        wanted: BTreeSet<JobKey>,
        rows: &mut Rows,
    ) -> Result<()> {
        let mut runs = BTreeSet::new();
        for key in &keys.jobs {
            let job = self.job(connection, key)?;
            runs.extend(job.as_ref().filter(|job| job.state.is_held()).and_then(run::key_for));
            rows.jobs.extend(job);
        }
        let new = keys.new_jobs.iter().filter(|key| !wanted.contains(*key) && !keys.jobs.contains(*key));
        for key in wanted.difference(&keys.jobs).chain(new) {
            rows.jobs.extend(self.job(connection, key)?);
        }
        for key in runs.iter().filter(|key| !keys.records.contains_key(*key)) {
            rows.records.extend(self.record(connection, key)?);
        }
        Ok(())
    }

    fn job(&mut self, connection: &Connection, key: &JobKey) -> Result<Option<Job>> {
        if self.is_above_newest(connection, key)? {
            return Ok(None);
        }
        match self.jobs.get(key) {
            Some(known) => Ok(Some(known.job.clone())),
            None => rows::load_job(connection, key),
        }
    }

    /// Ids are drawn in growing order, so that a new job's id is nearly always known to be free without a look.
    fn is_above_newest(&mut self, connection: &Connection, key: &JobKey) -> Result<bool> {
        if let Some(newest) = self.newest.get(&key.namespace) {
            return Ok(key.id > *newest);
        }
        let mut statement = connection.prepare_cached(JOB_NEWEST)?;
        let newest = statement.query_row([key.namespace.as_str()], |row| Ok(rows::blob_id(row, 0))).optional()?;
        let newest = newest.transpose()?.unwrap_or(JobId::from_u128(0));
        if self.newest.len() >= NEWEST_MAX {
            self.newest.clear();
        }
        // An id of all zeros is below nothing, and therefore looked up.
        self.newest.insert(key.namespace.clone(), newest);
        Ok(key.id > newest)
    }

    fn head(&mut self, connection: &Connection, key: &JobKey) -> Result<Head> {
        let found = match self.jobs.get(key) {
            Some(known) => {
                let payload = match &known.payload {
                    Some(payload) => payload.clone(),
                    None => rows::load_payload(connection, key)?.unwrap_or_default(),
                };
                Some((known.job.clone(), payload))
            }
            None => rows::load_head(connection, key)?,
        };
        let found = found.filter(|(job, _)| job.state == State::Pending);
        found.map(|(job, payload)| Head { job, payload }).ok_or_else(|| missing(key))
    }

    fn payload(&mut self, connection: &Connection, key: &JobKey) -> Result<Option<Payload>> {
        match self.jobs.get(key).and_then(|known| known.payload.clone()) {
            Some(payload) => Ok(Some(payload)),
            None => rows::load_payload(connection, key),
        }
    }

    pub(super) fn record(&mut self, connection: &Connection, key: &RecordKey) -> Result<Option<Record>> {
        if let Some(record) = self.records.get(key) {
            return Ok(Some(record));
        }
        let found = rows::load_record(connection, key)?;
        if let Some(record) = found.as_ref().filter(|record| record.value.len() <= REMEMBERED_BYTES_MAX) {
            self.records.put(key.clone(), record.clone(), bytes(record));
        }
        Ok(found)
    }

    /// Before the commit, because too much of this does no harm and too little would.
    pub(super) fn expect(&mut self, decision: &Decision) {
        for change in &decision.jobs {
            let Some(job) = &change.new else { continue };
            if job.state == State::Pending {
                self.lanes.add(job);
            }
            if let (None, Some(newest)) = (&change.old, self.newest.get_mut(&job.key.namespace)) {
                *newest = job.key.id.max(*newest);
            }
        }
    }

    /// After the commit: remembers what will be asked for again.
    pub(super) fn learn(&mut self, decision: &mut Decision) {
        let mut payloads: HashMap<JobKey, Payload> = decision.payloads.drain(..).collect();
        self.lanes.committed();
        for change in decision.jobs.drain(..) {
            self.lanes.count(&change);
            self.learn_job(change, &mut payloads);
        }
        for change in decision.records.drain(..) {
            match change.new.filter(|record| record.value.len() <= REMEMBERED_BYTES_MAX) {
                Some(record) => {
                    let bytes = bytes(&record);
                    self.records.put(change.key, record, bytes);
                }
                None => self.records.forget(&change.key),
            }
        }
    }

    /// Forgets lanes that are gone. The batch is committed and answered whatever comes of it.
    pub(super) fn forget_gone_lanes(&mut self, connection: &Connection) {
        if let Err(error) = self.lanes.clear_doubts(connection) {
            tracing::warn!(?error, "a lane could not be looked into");
        }
    }

    fn learn_job(&mut self, change: JobChange, payloads: &mut HashMap<JobKey, Payload>) {
        if change.new.as_ref().is_none_or(|job| job.state.is_final()) {
            // Nobody asks for a job that has ended, but for a repeated report.
            self.jobs.forget(change.key());
            return;
        }
        let Some(job) = change.new else { return };
        let known = match change.old {
            None => payloads.remove(&job.key),
            Some(_) => {
                payloads.remove(&job.key).or_else(|| self.jobs.get(&job.key).and_then(|known| known.payload.clone()))
            }
        };
        let payload = known.filter(|payload| payload.len() <= REMEMBERED_BYTES_MAX);
        let known = Known { job, payload };
        let bytes = known.bytes();
        self.jobs.put(known.job.key.clone(), Arc::new(known), bytes);
    }
}

fn ids(connection: &Connection, sql: &str, namespace: &Namespace, params: impl Params) -> Result<Vec<JobKey>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(JobKey::new(namespace, rows::blob_id(row, 0)?));
    }
    Ok(found)
}

fn siblings(connection: &Connection, at: &(Namespace, Arc<str>, Arc<str>)) -> Result<Vec<RecordKey>> {
    let mut statement = connection.prepare_cached(RECORD_SIBLINGS)?;
    let mut rows = statement.query((at.0.as_str(), &*at.1, &*at.2))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let key = Arc::from(rows::text(row, 0)?);
        found.push(RecordKey { namespace: at.0.clone(), kind: at.1.clone(), key });
    }
    Ok(found)
}
