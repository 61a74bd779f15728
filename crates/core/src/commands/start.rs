//! Say that work on a claimed job begins.

use super::{Decided, holder::Holder};
use crate::{
    desk::Desk,
    model::{
        event::What,
        job::{Job, State},
        keys::Keys,
        refusal::Refusal,
    },
};

#[derive(Clone, Debug)]
pub struct Start {
    pub holder: Holder,
}

impl Start {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        self.holder.keys(keys);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Box<Job>> {
        let mut job = match self.holder.held(desk)? {
            Ok(job) => job,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if job.state == State::Running {
            return Err(Refusal::AlreadyStarted.into());
        }
        started(desk, &mut job);
        desk.put_job(job.clone());
        Ok(Ok(Box::new(job)))
    }
}

/// From claimed to running, once.
pub(crate) fn started(desk: &mut Desk, job: &mut Job) {
    if job.state == State::Claimed {
        job.state = State::Running;
        job.live.started_at = Some(desk.now());
        desk.tell(&job.key.namespace, What::Started { job: job.key.id });
    }
}
