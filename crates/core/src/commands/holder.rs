//! Who is writing: the different ways a report can name the attempt it is about, and the one check they all pass.

use crate::{
    desk::{Desk, Stop},
    model::{
        id::{JobId, LeaseId},
        job::{Job, Reason, Said, State},
        keys::{JobKey, Keys},
        name::{Namespace, WorkerId},
        refusal::Refusal,
        time::{Millis, Timestamp},
        worker::Worker,
    },
    moves::{concurrency, life, liveness},
};
use std::sync::Arc;

/// What a stopped attempt still prints is taken for so long.
const LAST_WORDS: Millis = Millis::from_secs(60);

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
    /// This very report was accepted before.
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
    /// outcome would depend on how often the sweep runs. Once an attempt has ended, only the very report that ended it is
    /// heard again.
    pub(crate) fn find(&self, desk: &mut Desk, said: Option<Said>) -> Result<Found, Stop> {
        let key = self.job_key();
        let job = desk.job(&key)?.ok_or_else(|| Refusal::not_found("job", key.id))?;
        self.check_identity(&job)?;
        if !job.state.is_held() {
            if said.is_some_and(|said| job.live.was_told(said)) {
                return Ok(Found::Replayed(job));
            }
            let refusal = Refusal::LeaseLost { state: job.state };
            return match said {
                Some(_) if job.live.place_until.is_some() => Ok(self.stopped(desk, job)?),
                _ => Err(refusal.into()),
            };
        }
        match life::expire(desk, &job)? {
            Some(after) => Ok(Found::Late(Refusal::LeaseLost { state: after.state })),
            None => Ok(Found::Held(job)),
        }
    }

    /// The job was taken from this holder, who says now that its work has stopped: too late for anything but its place.
    fn stopped(&self, desk: &mut Desk, job: Job) -> Result<Found, Stop> {
        let refusal = Refusal::LeaseLost { state: job.state };
        concurrency::free_place(desk, job)?;
        Ok(Found::Late(refusal))
    }

    /// The job this holder hands back.
    pub(crate) fn handed_back(&self, desk: &mut Desk) -> Result<Result<Job, Refusal>, Stop> {
        let key = self.job_key();
        let kept = desk.job(&key)?.filter(|job| job.state.is_final() && job.live.place_until.is_some());
        if let Some(job) = kept.filter(|job| self.check_identity(job).is_ok()) {
            return match self.stopped(desk, job)? {
                Found::Late(refusal) => Ok(Err(refusal)),
                Found::Held(job) | Found::Replayed(job) => Ok(Ok(job)),
            };
        }
        self.held(desk)
    }

    /// The job this holder may go on with, for all that is not a final report. Also a sign of life of its worker, where
    /// any call counts; a final report is none, since the worker's next claim tells soon enough and costs no extra row.
    pub(crate) fn held(&self, desk: &mut Desk) -> Result<Result<Job, Refusal>, Stop> {
        let job = match self.find(desk, None)? {
            Found::Held(job) | Found::Replayed(job) => job,
            Found::Late(refusal) => return Ok(Err(refusal)),
        };
        let holder = job.holder().expect("a held job has a holder").clone();
        if let Some(worker) = desk.peek::<Worker>(&self.namespace, holder.as_str())? {
            liveness::called(desk, &self.namespace, &worker)?;
        }
        Ok(Ok(job))
    }

    /// The job about which this holder may still say something. What names nothing but the job may come after its end: that is
    /// how its work is told about, and nothing else follows from it. So may what a program prints when it is stopped because its time
    /// is over.
    pub(crate) fn heard(&self, desk: &mut Desk) -> Result<Result<Job, Refusal>, Stop> {
        let key = self.job_key();
        let Some(mut job) = desk.job(&key)? else { return self.held(desk) };
        if self.check_identity(&job).is_ok() {
            job = life::expire(desk, &job)?.unwrap_or(job);
            let any_time = matches!(self.address, Address::Job(_)) && job.state.is_final();
            let by_lease = matches!(self.address, Address::Lease(_));
            if any_time || (by_lease && was_stopped(&job, desk.now())) {
                return Ok(Ok(job));
            }
        }
        self.held(desk)
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

/// Whether the last attempt ran out of time a moment ago, and no other has begun.
fn was_stopped(job: &Job, now: Timestamp) -> bool {
    let by_deadline = match &job.live.outcome {
        Some(outcome) => matches!(outcome.reason, Reason::DeadlinePassed | Reason::TotalDeadlinePassed),
        None => !job.state.is_final() && job.live.report.is_none(),
    };
    let deadline = job.live.lease.as_ref().and_then(|lease| lease.deadline);
    !job.state.is_held() && by_deadline && deadline.is_some_and(|at| at <= now && now < at + LAST_WORDS)
}

/// Somebody who never held the job: told so, unless nobody holds it at all.
fn stranger(job: &Job) -> Refusal {
    match job.state {
        State::Blocked | State::Scheduled | State::Pending => Refusal::NotHeld { state: job.state },
        _ => Refusal::NotHolder,
    }
}
