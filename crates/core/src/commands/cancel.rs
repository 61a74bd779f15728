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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        commands::testing::{Story, code, keyed, tries},
        job::Reason,
    };

    #[test]
    fn a_drained_job_ends_with_its_report_or_its_lease_and_keeps_its_place_till_then() {
        for how in ["complete", "fail", "lapse", "unregister"] {
            let mut story = Story::new();
            let mut job = keyed(1, 1);
            job.policy = tries(1, 5).policy;
            job.policy.cancel = CancelPolicy::Drain;
            let lease = story.submit_and_claim(job);
            story.submit(keyed(2, 1));
            story.cancel(1).unwrap();
            assert!(matches!(story.renew(lease), Ok(Reply::Renewed { cancelled: true, .. })));
            assert_eq!(story.states(2), ["claimed", "blocked"], "its place is not free yet");
            match how {
                "complete" => drop(story.complete(lease).unwrap()),
                "fail" => drop(story.fail(lease).unwrap()),
                "lapse" => {
                    story.wait(30_000);
                    story.sweep();
                }
                _ => drop(story.unregister("w", crate::policy::Unregister::Requeue).unwrap()),
            }
            assert_eq!(story.states(2), ["cancelled", "pending"], "{how}");
            assert_eq!(story.reason(1), Some(Reason::Cancelled));
            assert!(story.tables.results.is_empty(), "{how}");
        }
    }

    #[test]
    fn a_lease_that_had_run_out_is_over_before_it_is_cancelled() {
        for (attempts, answer, state) in [(1, "final", State::Failed), (2, "ok", State::Cancelled)] {
            let mut story = Story::new();
            story.submit_and_claim(tries(1, attempts));
            story.wait(30_000);
            assert_eq!((code(&story.cancel(1)), story.state(1)), (answer, state));
        }
        assert_eq!(code(&Story::new().cancel(1)), "not-found");
    }
}
