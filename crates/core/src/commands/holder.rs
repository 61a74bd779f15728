//! Who is writing: the different ways a report can name the attempt it is about, and the one check they all pass.

use crate::{
    desk::{Desk, Stop},
    id::{JobId, LeaseId},
    job::{Job, Report, State},
    keys::{JobKey, Keys},
    life,
    name::{Namespace, WorkerId},
    refusal::Refusal,
};
use std::sync::Arc;

/// What a report is addressed by. A lease id is proof by itself; the others are for dialects whose wire names only the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Lease(LeaseId),
    Worker { job: JobId, worker: WorkerId },
    Owner { job: JobId, principal: Arc<str> },
    Job(JobId),
}

/// An address, and the principal that used it where tokens are in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub namespace: Namespace,
    pub address: Address,
    pub principal: Option<Arc<str>>,
}

pub(crate) enum Found {
    Held(Job),
    /// The same final report was accepted before.
    Replayed(Job),
    /// Refused, and what ran out is now written on the job.
    Late(Refusal),
}

impl Holder {
    pub fn lease(namespace: &Namespace, lease: LeaseId) -> Self {
        Self { namespace: namespace.clone(), address: Address::Lease(lease), principal: None }
    }

    pub fn job_key(&self) -> JobKey {
        let id = match &self.address {
            Address::Lease(lease) => lease.job,
            Address::Worker { job, .. } | Address::Owner { job, .. } | Address::Job(job) => *job,
        };
        JobKey::new(&self.namespace, id)
    }

    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.jobs.insert(self.job_key());
    }

    /// The job this holder may write to now. A lease that has run out is refused even if no sweep ran yet: otherwise the
    /// outcome would depend on how often the sweep runs.
    pub(crate) fn find(&self, desk: &mut Desk, report: Option<Report>) -> Result<Found, Stop> {
        let key = self.job_key();
        let job = desk.job(&key)?.ok_or_else(|| Refusal::not_found("job", key.id))?;
        self.check_identity(&job)?;
        if report.is_some() && job.live.report == report && !job.state.is_held() {
            return Ok(Found::Replayed(job));
        }
        if !job.state.is_held() {
            return Err(Refusal::LeaseLost { state: job.state }.into());
        }
        match life::expire(desk, &job)? {
            Some(after) => Ok(Found::Late(Refusal::LeaseLost { state: after.state })),
            None => Ok(Found::Held(job)),
        }
    }

    /// Whether this is, or was last, the one at work on the job.
    fn check_identity(&self, job: &Job) -> Result<(), Refusal> {
        let Some(lease) = &job.live.lease else {
            return Err(Refusal::NotHeld { state: job.state });
        };
        let foreign = match (&self.principal, &lease.principal) {
            (Some(caller), Some(claimer)) => caller != claimer,
            _ => false,
        };
        if foreign {
            return Err(Refusal::NotHolder);
        }
        match &self.address {
            Address::Lease(id) if lease.secret != id.secret => Err(Refusal::LeaseLost { state: job.state }),
            Address::Worker { worker, .. } if lease.worker != *worker => Err(stranger(job)),
            Address::Owner { principal, .. } if lease.principal.as_ref() != Some(principal) => Err(stranger(job)),
            _ => Ok(()),
        }
    }
}

/// Somebody who never held the job: told so, unless nobody holds it at all.
fn stranger(job: &Job) -> Refusal {
    match job.state {
        State::Blocked | State::Scheduled | State::Pending => Refusal::NotHeld { state: job.state },
        _ => Refusal::NotHolder,
    }
}
