//! Cancel a job, waiting or held.

use super::{Decided, submit::check_size};
use crate::{
    desk::Desk,
    model::{
        event::What,
        id::JobId,
        job::{CancelRequest, Job, State},
        keys::{JobKey, Keys},
        name::Namespace,
        policy::CancelPolicy,
        refusal::Refusal,
    },
    moves::{concurrency, life},
};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Cancel {
    pub namespace: Namespace,
    pub job: JobId,
    pub by: Arc<str>,
    /// None: as the job's policy says.
    pub mode: Option<CancelPolicy>,
    /// What to say about it; empty: nothing.
    pub message: Arc<str>,
}

impl Cancel {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.jobs.insert(JobKey::new(&self.namespace, self.job));
    }

    /// A waiting job ends at once. A held one ends at once too, or is asked to stop and ends with its report, as is asked for
    /// here or as its policy says. One that was asked to stop can still be ended at once.
    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Box<Job>> {
        check_size("message", self.message.len(), desk.limits().message_bytes_max)?;
        let key = JobKey::new(&self.namespace, self.job);
        let mut job = desk.job(&key)?.ok_or_else(|| Refusal::not_found("job", self.job))?;
        if let Some(after) = life::expire(desk, &job)? {
            job = after;
        }
        if job.state.is_final() {
            return Ok(Err(Refusal::Final { state: job.state }));
        }
        let drains = job.state.is_held() && self.mode.unwrap_or(job.spec.policy.cancel) == CancelPolicy::Drain;
        if job.live.cancel.is_some() && (drains || self.mode.is_none()) {
            return Ok(Ok(Box::new(job)));
        }
        job.live.cancel = Some(CancelRequest { by: self.by.clone(), at: desk.now(), message: self.message.clone() });
        if drains {
            desk.tell(&self.namespace, What::CancelRequested { job: self.job, by: self.by.clone() });
            desk.put_job(job.clone());
        } else {
            concurrency::keep_place(desk, &mut job)?;
            job = life::end_cancelled(desk, job)?;
            debug_assert_eq!(job.state, State::Cancelled);
        }
        Ok(Ok(Box::new(job)))
    }
}
