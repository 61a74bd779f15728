//! Report success.

use super::{
    Decided,
    holder::{Found, Holder},
    submit::check_size,
};
use crate::{
    desk::Desk,
    job::{Report, State},
    keys::Keys,
    life,
    payload::Payload,
    policy::StartPolicy,
    refusal::Refusal,
    reply::Reply,
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
    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        check_size("result", self.result.len(), desk.limits().payload_bytes_max)?;
        let mut job = match self.holder.find(desk, Some(Report::Completed))? {
            Found::Held(job) => job,
            Found::Replayed(job) => return Ok(Ok(Reply::Ended { job: Box::new(job), replayed: true })),
            Found::Late(refusal) => return Ok(Err(refusal)),
        };
        let unstarted = job.spec.policy.start == StartPolicy::Required && job.state == State::Claimed;
        if unstarted && job.live.cancel.is_none() {
            return Err(Refusal::NotStarted.into());
        }
        job.live.report = Some(Report::Completed);
        job.live.started_at.get_or_insert(desk.now());
        if job.live.cancel.is_some() {
            // It was draining: the work may have been done, but the job was cancelled first.
            let job = life::end_cancelled(desk, job)?;
            return Ok(Ok(Reply::Ended { job: Box::new(job), replayed: false }));
        }
        if !self.result.is_empty() {
            desk.put_result(&job.key, self.result.clone());
            job.live.has_result = true;
        }
        let job = life::end(desk, job, State::Completed, None)?;
        Ok(Ok(Reply::Ended { job: Box::new(job), replayed: false }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        commands::testing::{Story, code, ns, once},
        policy::CancelPolicy,
    };

    #[test]
    fn of_many_reports_one_is_accepted() {
        let mut story = Story::new();
        let lease = story.submit_and_claim(once(1));
        let complete = || Complete { holder: Holder::lease(&ns(), lease), result: "1".into() };
        let answers =
            story.batch(vec![complete().into(), crate::commands::testing::failure(lease).into(), complete().into()]);
        assert!(matches!(&answers[0], Ok(Reply::Ended { replayed: false, .. })));
        assert_eq!(answers[1], Err(Refusal::LeaseLost { state: State::Completed }));
        assert!(matches!(&answers[2], Ok(Reply::Ended { replayed: true, .. })));
        assert_eq!(story.events(Some(1)), ["submitted", "claimed", "completed"]);
        assert_eq!(story.tables.results.len(), 1);
    }

    #[test]
    fn a_job_that_must_be_started_is_refused_until_it_is() {
        for (drains, expected) in [(false, "not-started"), (true, "ok")] {
            let mut story = Story::new();
            let mut job = once(1);
            job.policy.start = StartPolicy::Required;
            job.policy.cancel = CancelPolicy::Drain;
            let lease = story.submit_and_claim(job);
            if drains {
                story.cancel(1).unwrap();
            }
            assert_eq!(code(&story.complete(lease)), expected, "the report of a cancelled job is its end");
            if !drains {
                story.start(lease).unwrap();
                story.complete(lease).unwrap();
                assert_eq!(story.state(1), State::Completed);
            }
        }
    }

    #[test]
    fn a_result_too_large_leaves_the_job_held() {
        let mut story = Story::new();
        story.tables.limits.payload_bytes_max = 3;
        let lease = story.submit_and_claim(once(1));
        let long = Complete { holder: Holder::lease(&ns(), lease), result: "1234".into() };
        assert_eq!(code(&story.run(long)), "too-large");
        story.complete(lease).unwrap();
    }
}
