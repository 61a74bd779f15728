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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::testing::{Story, code, ns, once};

    #[test]
    fn progress_is_a_percentage_and_keeps_its_last_words() {
        let mut story = Story::new();
        let lease = story.submit_and_claim(once(1));
        let report = |percent, message: Option<&str>| ReportProgress {
            holder: Holder::lease(&ns(), lease),
            percent,
            message: message.map(Into::into),
        };
        for wrong in [-0.1, 100.1, f64::NAN, f64::INFINITY] {
            assert_eq!(code(&story.run(report(wrong, None))), "invalid", "{wrong}");
        }
        assert_eq!(code(&story.run(report(1.0, Some(&"x".repeat(65_537))))), "too-large");
        story.run(report(10.0, Some("building"))).unwrap();
        story.run(report(20.0, None)).unwrap();
        assert_eq!(story.job(1).live.progress, Some(Progress { percent: 20.0, message: "building".into() }));
        assert_eq!(story.events(Some(1))[2..], ["started", "progress", "progress"]);
    }
}
