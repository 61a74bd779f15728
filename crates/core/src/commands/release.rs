//! Hand a job back unworked: same place in the queue, nothing charged.

use super::{Decided, holder::Holder};
use crate::{
    desk::{Desk, Stop},
    event::What,
    job::{Job, Outcome, Reason},
    keys::Keys,
    life,
    reply::Reply,
};

#[derive(Clone, Debug)]
pub struct Release {
    pub holder: Holder,
}

impl Release {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        self.holder.keys(keys);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        let job = match self.holder.held(desk)? {
            Ok(job) => job,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let job = release(desk, job)?;
        Ok(Ok(Reply::Job(Box::new(job))))
    }
}

pub(crate) fn release(desk: &mut Desk, mut job: Job) -> Result<Job, Stop> {
    if job.live.cancel.is_some() {
        return life::end_cancelled(desk, job);
    }
    life::close_attempt(desk, &mut job, Outcome::new(Reason::Released, ""));
    life::queue(desk, &mut job)?;
    desk.tell(&job.key.namespace, What::Released { job: job.key.id });
    desk.put_job(job.clone());
    Ok(job)
}

#[cfg(test)]
mod tests {
    use crate::{
        commands::testing::{Story, id, once, tries},
        job::Reason,
    };

    #[test]
    fn a_released_job_keeps_its_place_and_its_budget() {
        let mut story = Story::new();
        story.submit(tries(1, 1));
        story.submit(once(2));
        for attempt in 1..=5 {
            let lease = story.claim("w");
            assert_eq!((lease.job, story.job(1).live.attempt), (id(1), attempt));
            story.release(lease).unwrap();
        }
        assert_eq!(story.job(1).live.spent, 0);
        let kept = story.tables.attempts.values().next().unwrap();
        assert!(kept.len() == 5 && kept.iter().all(|attempt| attempt.outcome.reason == Reason::Released));
        assert_eq!(story.tables.wakes.len(), 7, "each time somebody may want it");
    }
}
