//! Hand a job back unworked: same place in the queue, nothing charged.

use super::{Decided, holder::Holder, submit::check_size};
use crate::{
    desk::{Desk, Stop},
    model::{
        event::What,
        job::{Job, Outcome, Reason},
        keys::Keys,
        policy::check_length,
        time::Millis,
    },
    moves::{concurrency, life},
};
use std::sync::Arc;

/// A job may be handed back for ever; only the first times are written into its history.
pub const PASSES_KEPT: u32 = 10;
pub const RELEASES_KEPT: u32 = 100;

#[derive(Clone, Debug)]
pub struct Release {
    pub holder: Holder,
}

impl Release {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        self.holder.keys(keys);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Box<Job>> {
        let job = match self.holder.handed_back(desk)? {
            Ok(job) => job,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let job = release(desk, job)?;
        Ok(Ok(Box::new(job)))
    }
}

/// Hands a job back because this worker cannot run it: nothing is charged, and nobody is offered it for a while, so that
/// the same worker does not get it again at once and for ever.
#[derive(Clone, Debug)]
pub struct PassOn {
    pub holder: Holder,
    pub delay: Millis,
    pub why: Arc<str>,
}

impl PassOn {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        self.holder.keys(keys);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Box<Job>> {
        let limits = desk.limits();
        check_length("delay_ms", self.delay, 1, &limits)?;
        check_size("message", self.why.len(), limits.message_bytes_max)?;
        let job = match self.holder.handed_back(desk)? {
            Ok(job) => job,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let job = pass_on(desk, job, self.delay, &self.why)?;
        Ok(Ok(Box::new(job)))
    }
}

fn pass_on(desk: &mut Desk, mut job: Job, delay: Millis, why: &Arc<str>) -> Result<Job, Stop> {
    if job.live.cancel.is_some() {
        return life::end_cancelled(desk, job);
    }
    hand_back(desk, &mut job, PASSES_KEPT, why.clone());
    // Its pending deadline goes on: were it counted anew each time, a job that nobody can run would never meet it.
    let waited = job.live.claimed_at.zip(job.live.pending_since).map_or(0, |(to, from)| (to.0 - from.0).max(0));
    job.live.waited = Millis(job.live.waited.0.saturating_add(waited).saturating_add(delay.0));
    job.live.run_at = Some(desk.now() + delay);
    // Others with the same key may be able to run meanwhile.
    concurrency::release(desk, &mut job)?;
    life::queue(desk, &mut job)?;
    desk.tell(&job.key.namespace, What::Released { job: job.key.id });
    desk.put_job(job.clone());
    Ok(job)
}

pub(crate) fn release(desk: &mut Desk, mut job: Job) -> Result<Job, Stop> {
    if job.live.cancel.is_some() {
        return life::end_cancelled(desk, job);
    }
    hand_back(desk, &mut job, RELEASES_KEPT, "".into());
    life::queue(desk, &mut job)?;
    desk.tell(&job.key.namespace, What::Released { job: job.key.id });
    desk.put_job(job.clone());
    Ok(job)
}

fn hand_back(desk: &mut Desk, job: &mut Job, kept: u32, why: Arc<str>) {
    if job.live.attempt <= kept {
        life::close_attempt(desk, job, Outcome::new(Reason::Released, why));
    } else {
        job.live.progress = None;
    }
}
