//! Jobs that workers hold, as this server wrote them last, and what it last saw of the workers that claim.
//!
//! A hint and never the truth: whoever decides by it has the database compare every row with it while it writes, and decides
//! again by what is there where one differs.

use crate::weight;
use parking_lot::Mutex;
use windlass_core::{Decision, Job, JobKey, Record, RecordKey, cache::Cache};

const JOBS_MAX: usize = 16_384;
/// What they may take, in each of two generations.
const BYTES_MAX: usize = 16 << 20;
/// Jobs with more bytes than this are read again rather than remembered.
const JOB_BYTES_MAX: usize = 16 << 10;

const RECORDS_MAX: usize = 4_096;
const RECORDS_BYTES_MAX: usize = 4 << 20;

pub struct Known {
    jobs: Mutex<Cache<JobKey, Job>>,
    records: Mutex<Cache<RecordKey, Record>>,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            jobs: Mutex::new(Cache::new(JOBS_MAX, BYTES_MAX)),
            records: Mutex::new(Cache::new(RECORDS_MAX, RECORDS_BYTES_MAX)),
        }
    }
}

impl Known {
    /// All of these jobs, or none if one of them is not known.
    pub fn all<'a>(&self, keys: impl Iterator<Item = &'a JobKey>) -> Option<Vec<Job>> {
        let mut known = self.jobs.lock();
        keys.map(|key| known.get(key)).collect()
    }

    pub fn holds(&self, key: &JobKey) -> bool {
        self.jobs.lock().get(key).is_some()
    }

    /// What was just committed. Only what somebody holds is reported on next.
    pub fn learn(&self, decision: &mut Decision) {
        let mut records = self.records.lock();
        for change in std::mem::take(&mut decision.records) {
            match change.new {
                Some(record) if records.get(&change.key).is_some() => put(&mut records, record),
                _ => records.forget(&change.key),
            }
        }
        let mut known = self.jobs.lock();
        for change in std::mem::take(&mut decision.jobs) {
            match change.new {
                Some(job) if job.state.is_held() && weight::of_job(&job) <= JOB_BYTES_MAX => {
                    let bytes = weight::of_job(&job);
                    known.put(job.key.clone(), job, bytes);
                }
                _ => known.forget(change.key()),
            }
        }
    }

    pub fn forget<'a>(&self, keys: impl Iterator<Item = &'a JobKey>) {
        let mut known = self.jobs.lock();
        keys.for_each(|key| known.forget(key));
    }

    /// All of these records, or none if one of them is not known.
    pub fn records<'a>(&self, keys: impl Iterator<Item = &'a RecordKey>) -> Option<Vec<Record>> {
        let mut known = self.records.lock();
        keys.map(|key| known.get(key)).collect()
    }

    pub fn saw(&self, records: impl Iterator<Item = Record>) {
        let mut known = self.records.lock();
        records.for_each(|record| put(&mut known, record));
    }

    pub fn forget_records<'a>(&self, keys: impl Iterator<Item = &'a RecordKey>) {
        let mut known = self.records.lock();
        keys.for_each(|key| known.forget(key));
    }
}

fn put(records: &mut Cache<RecordKey, Record>, record: Record) {
    // Once as text, and once as it is read.
    let bytes = 2 * record.value.len() + record.key.key.len() + 256;
    records.put(record.key.clone(), record, bytes);
}
