//! Report failure.

use super::{
    Decided,
    holder::{Found, Holder},
    submit::check_size,
};
use crate::{
    desk::Desk,
    job::{Outcome, Reason, Report},
    keys::Keys,
    life,
    reply::Reply,
};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Fail {
    pub holder: Holder,
    pub message: Arc<str>,
    /// False: trying again is of no use, whatever budget is left.
    pub retryable: bool,
}

impl Fail {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        self.holder.keys(keys);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        check_size("message", self.message.len(), desk.limits().message_bytes_max)?;
        let mut job = match self.holder.find(desk, Some(Report::Failed))? {
            Found::Held(job) => job,
            Found::Replayed(job) => return Ok(Ok(Reply::Ended { job: Box::new(job), replayed: true })),
            Found::Late(refusal) => return Ok(Err(refusal)),
        };
        job.live.report = Some(Report::Failed);
        job.live.started_at.get_or_insert(desk.now());
        let outcome = Outcome::new(Reason::Reported, self.message.clone());
        let job = life::attempt_failed(desk, job, outcome, self.retryable)?;
        Ok(Ok(Reply::Ended { job: Box::new(job), replayed: false }))
    }
}
