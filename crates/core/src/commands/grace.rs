//! Give a held job's lease its full length again after the server was away: its worker could not have renewed.

use super::Decided;
use crate::{
    desk::Desk,
    keys::{JobKey, Keys},
    reply::Reply,
};

#[derive(Clone, Debug)]
pub struct Grace {
    pub job: JobKey,
}

impl Grace {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.jobs.insert(self.job.clone());
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        let Some(mut job) = desk.job(&self.job)?.filter(|job| job.state.is_held()) else { return Ok(Ok(Reply::Done)) };
        let now = desk.now();
        let lease = job.live.lease.as_mut().expect("a held job has a lease");
        match lease.until {
            Some(until) if until < now + lease.length => {
                lease.until = Some(now + lease.length);
                desk.put_job(job);
            }
            _ => {}
        }
        Ok(Ok(Reply::Done))
    }
}
