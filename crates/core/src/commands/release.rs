//! Hand a job back unworked: same place in the queue, nothing charged.

use super::{Decided, holder::Holder};
use crate::{
    desk::{Desk, Stop},
    event::What,
    job::{Job, Outcome, Reason},
    keys::Keys,
    life,
    reply::Reply,
};

#[derive(Clone, Debug)]
pub struct Release {
    pub holder: Holder,
}

impl Release {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        self.holder.keys(keys);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        let job = match self.holder.held(desk)? {
            Ok(job) => job,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let job = release(desk, job)?;
        Ok(Ok(Reply::Job(Box::new(job))))
    }
}

pub(crate) fn release(desk: &mut Desk, mut job: Job) -> Result<Job, Stop> {
    if job.live.cancel.is_some() {
        return life::end_cancelled(desk, job);
    }
    life::close_attempt(desk, &mut job, Outcome::new(Reason::Released, ""));
    life::queue(desk, &mut job)?;
    desk.tell(&job.key.namespace, What::Released { job: job.key.id });
    desk.put_job(job.clone());
    Ok(job)
}
