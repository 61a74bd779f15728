//! Report failure.

use super::{
    Decided,
    holder::{Found, Holder},
    submit::check_size,
};
use crate::{
    desk::Desk,
    model::{
        digest::digest,
        job::{Outcome, Reason, Report, State},
        keys::Keys,
        payload::Payload,
        policy::StartPolicy,
        reply::Ended,
    },
    moves::life,
};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Fail {
    pub holder: Holder,
    pub message: Arc<str>,
    /// False: trying again is of no use, whatever budget is left.
    pub retryable: bool,
    /// What it leaves all the same; kept where this is the job's end.
    pub result: Payload,
}

impl Fail {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        self.holder.keys(keys);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Ended> {
        check_size("message", self.message.len(), desk.limits().message_bytes_max)?;
        check_size("result", self.result.len(), desk.limits().payload_bytes_max)?;
        let said = (Report::Failed, self.digest());
        let mut job = match self.holder.find(desk, Some(said))? {
            Found::Held(job) => job,
            Found::Replayed(job) => return Ok(Ok(Ended { job: Box::new(job), replayed: true })),
            Found::Late(refusal) => return Ok(Err(refusal)),
        };
        job.live.note(said);
        if job.spec.policy.start == StartPolicy::Implied {
            job.live.started_at.get_or_insert(desk.now());
        }
        let outcome = Outcome::new(Reason::Reported, self.message.clone());
        let mut job = life::attempt_failed(desk, job, outcome, self.retryable)?;
        if job.state == State::Failed && !self.result.is_empty() {
            desk.put_result(&job.key, self.result.clone());
            job.live.has_result = true;
            desk.put_job(job.clone());
        }
        Ok(Ok(Ended { job: Box::new(job), replayed: false }))
    }

    /// Without a result it is the one that versions without results made.
    fn digest(&self) -> u64 {
        let (message, retryable) = (self.message.as_bytes(), [u8::from(self.retryable)]);
        match self.result.is_empty() {
            true => digest(&[message, &retryable]),
            false => digest(&[message, &retryable, self.result.as_bytes()]),
        }
    }
}
