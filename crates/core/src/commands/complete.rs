//! Report success.

use super::{
    Decided,
    holder::{Found, Holder},
    submit::check_size,
};
use crate::{
    desk::Desk,
    model::{
        digest::digest,
        job::{Report, State},
        keys::Keys,
        payload::Payload,
        policy::StartPolicy,
        refusal::Refusal,
        reply::Ended,
    },
    moves::life,
};

#[derive(Clone, Debug)]
pub struct Complete {
    pub holder: Holder,
    /// Empty: no result.
    pub result: Payload,
}

impl Complete {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        self.holder.keys(keys);
    }

    /// Finishes the job for its holder. Of two racing reports one wins; the same report again is recognised.
    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Ended> {
        check_size("result", self.result.len(), desk.limits().payload_bytes_max)?;
        let said = (Report::Completed, digest(&[self.result.as_bytes()]));
        let mut job = match self.holder.find(desk, Some(said))? {
            Found::Held(job) => job,
            Found::Replayed(job) => return Ok(Ok(Ended { job: Box::new(job), replayed: true })),
            Found::Late(refusal) => return Ok(Err(refusal)),
        };
        let unstarted = job.spec.policy.start == StartPolicy::Required && job.state == State::Claimed;
        if unstarted && job.live.cancel.is_none() {
            return Err(Refusal::NotStarted.into());
        }
        job.live.note(said);
        job.live.started_at.get_or_insert(desk.now());
        if job.live.cancel.is_some() {
            // It was draining: the work may have been done, but the job was cancelled first.
            let job = life::end_cancelled(desk, job)?;
            return Ok(Ok(Ended { job: Box::new(job), replayed: false }));
        }
        if !self.result.is_empty() {
            desk.put_result(&job.key, self.result.clone());
            job.live.has_result = true;
        }
        let job = life::end(desk, job, State::Completed, None)?;
        Ok(Ok(Ended { job: Box::new(job), replayed: false }))
    }
}
