//! Jobs that workers hold, as this server wrote them last.
//!
//! A hint and never the truth: whoever decides by it has the database compare every row with it while it writes, and decides
//! again by what is there where one differs.

use crate::weight;
use parking_lot::Mutex;
use windlass_core::{Job, JobChange, JobKey, cache::Cache};

const JOBS_MAX: usize = 16_384;
/// What they may take, in each of two generations.
const BYTES_MAX: usize = 16 << 20;
/// Jobs with more bytes than this are read again rather than remembered.
const JOB_BYTES_MAX: usize = 16 << 10;

pub struct Known(Mutex<Cache<JobKey, Job>>);

impl Default for Known {
    fn default() -> Self {
        Self(Mutex::new(Cache::new(JOBS_MAX, BYTES_MAX)))
    }
}

impl Known {
    /// All of these jobs, or none if one of them is not known.
    pub fn all<'a>(&self, keys: impl Iterator<Item = &'a JobKey>) -> Option<Vec<Job>> {
        let mut known = self.0.lock();
        keys.map(|key| known.get(key)).collect()
    }

    /// What was just committed. Only what somebody holds is reported on next.
    pub fn learn(&self, changes: Vec<JobChange>) {
        let mut known = self.0.lock();
        for change in changes {
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
        let mut known = self.0.lock();
        keys.for_each(|key| known.forget(key));
    }
}
