//! Report how far a job has come.

use super::{Decided, holder::Holder, start::started, submit::check_size};
use crate::{
    desk::Desk,
    model::{
        event::What,
        job::{Job, Progress},
        keys::Keys,
        refusal::Refusal,
    },
};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct ReportProgress {
    pub holder: Holder,
    /// 0 to 100.
    pub percent: f64,
    /// None keeps the old one.
    pub message: Option<Arc<str>>,
}

impl ReportProgress {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        self.holder.keys(keys);
    }

    /// The first report also starts the job.
    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Box<Job>> {
        if !(0.0..=100.0).contains(&self.percent) {
            return Err(Refusal::invalid("percent", format!("{} is not between 0 and 100", self.percent)).into());
        }
        check_size(
            "message",
            self.message.as_ref().map_or(0, |message| message.len()),
            desk.limits().message_bytes_max,
        )?;
        let mut job = match self.holder.held(desk)? {
            Ok(job) => job,
            Err(refusal) => return Ok(Err(refusal)),
        };
        started(desk, &mut job);
        let kept = job.live.progress.take().map_or_else(|| Arc::from(""), |progress| progress.message);
        let message = self.message.clone().unwrap_or(kept);
        job.live.progress = Some(Progress { percent: self.percent, message: message.clone() });
        desk.tell(&job.key.namespace, What::Progress { job: job.key.id, percent: self.percent, message });
        desk.put_job(job.clone());
        Ok(Ok(Box::new(job)))
    }
}
