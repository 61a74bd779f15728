//! Give a held job's lease its full length again after the server was away: its worker could not have renewed. A lease
//! that lives with its worker is kept by taking the worker as just seen.

use super::{Decided, workers};
use crate::{
    desk::Desk,
    model::{
        keys::{JobKey, Keys},
        name::{Namespace, WorkerId},
    },
    moves::liveness,
};

#[derive(Clone, Debug)]
pub struct Grace {
    pub job: JobKey,
}

impl Grace {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.jobs.insert(self.job.clone());
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<()> {
        let Some(mut job) = desk.job(&self.job)?.filter(|job| job.state.is_held()) else { return Ok(Ok(())) };
        let now = desk.now();
        let lease = job.live.lease.as_mut().expect("a held job has a lease");
        match lease.until {
            Some(until) if until < now + lease.length => {
                lease.until = Some(now + lease.length);
                desk.put_job(job);
            }
            Some(_) => {}
            None => {
                let worker = lease.worker.clone();
                liveness::excuse(desk, &self.job.namespace, &worker)?;
            }
        }
        Ok(Ok(()))
    }
}

/// The same for a worker, whether or not it holds a job: nobody was there to hear it.
#[derive(Clone, Debug)]
pub struct Excuse {
    pub namespace: Namespace,
    pub worker: WorkerId,
}

impl Excuse {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        workers::want(&self.namespace, &self.worker, keys);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<()> {
        liveness::excuse(desk, &self.namespace, &self.worker)?;
        Ok(Ok(()))
    }
}
