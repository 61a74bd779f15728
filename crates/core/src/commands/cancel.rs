//! Cancel a job, waiting or held.

use super::Decided;
use crate::{
    desk::Desk,
    event::What,
    id::JobId,
    job::{CancelRequest, State},
    keys::{JobKey, Keys},
    life,
    name::Namespace,
    policy::CancelPolicy,
    refusal::Refusal,
    reply::Reply,
};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Cancel {
    pub namespace: Namespace,
    pub job: JobId,
    pub by: Arc<str>,
}

impl Cancel {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.jobs.insert(JobKey::new(&self.namespace, self.job));
    }

    /// A waiting job ends at once. A held one ends at once too, or is asked to stop and ends with its report, as its
    /// policy says.
    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        let key = JobKey::new(&self.namespace, self.job);
        let mut job = desk.job(&key)?.ok_or_else(|| Refusal::not_found("job", self.job))?;
        if let Some(after) = life::expire(desk, &job)? {
            job = after;
        }
        if job.state.is_final() {
            return Ok(Err(Refusal::Final { state: job.state }));
        }
        if job.live.cancel.is_some() {
            return Ok(Ok(Reply::Job(Box::new(job))));
        }
        job.live.cancel = Some(CancelRequest { by: self.by.clone(), at: desk.now() });
        if job.state.is_held() && job.spec.policy.cancel == CancelPolicy::Drain {
            desk.tell(&self.namespace, What::CancelRequested { job: self.job, by: self.by.clone() });
            desk.put_job(job.clone());
        } else {
            job = life::end_cancelled(desk, job)?;
            debug_assert_eq!(job.state, State::Cancelled);
        }
        Ok(Ok(Reply::Job(Box::new(job))))
    }
}
