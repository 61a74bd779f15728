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
const PASSES_KEPT: u32 = 10;
const RELEASES_KEPT: u32 = 100;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        commands::testing::{Story, code, id, keyed, ns, once, tries},
        model::{id::LeaseId, job::State},
    };

    fn pass(lease: LeaseId, delay: i64) -> PassOn {
        PassOn { holder: Holder::lease(&ns(), lease), delay: Millis(delay), why: "not mine".into() }
    }

    #[test]
    fn a_job_passed_on_rests_uncharged_and_lets_others_go_first() {
        let mut story = Story::new();
        story.submit(keyed(1, 1));
        story.submit(keyed(2, 1));
        let lease = story.claim("w");
        story.run(pass(lease, 500)).unwrap();
        assert_eq!((story.states(2), story.job(1).live.spent), (vec!["scheduled", "pending"], 0));
        assert_eq!(code(&story.run(pass(lease, 500))), "lease-lost", "once is enough");
        let next = story.claim("w");
        assert_eq!(next.job, id(2));
        story.complete(next).unwrap();
        story.wait(500);
        story.sweep();
        assert_eq!(story.claim("w").job, id(1));
    }

    #[test]
    fn a_job_that_nobody_can_run_does_not_grow() {
        let mut story = Story::new();
        story.submit(tries(1, 1));
        for _ in 0..50 {
            let lease = story.claim("w");
            story.run(pass(lease, 1_000)).unwrap();
            assert_eq!(story.state(1), State::Scheduled);
            story.wait(1_000);
            story.sweep();
        }
        let kept = story.tables.attempts.values().next().unwrap();
        assert_eq!(kept.len(), PASSES_KEPT as usize);
        assert_eq!(&*kept[0].outcome.message, "not mine");
        let lease = story.claim("w");
        for delay in [0, -1, i64::MAX] {
            assert_eq!(code(&story.run(pass(lease, delay))), "invalid", "{delay}");
        }
    }

    #[test]
    fn a_job_that_nobody_can_run_meets_its_pending_deadline() {
        let mut story = Story::new();
        let mut job = once(1);
        job.policy.pending_deadline = Some(Millis(10_000));
        story.submit(job);
        let mut handed_back = 0;
        for _ in 0..20 {
            story.sweep();
            if story.state(1).is_final() {
                break;
            }
            let lease = story.claim("w");
            handed_back += 1;
            story.run(pass(lease, 1_000)).unwrap();
            story.wait(1_000);
        }
        assert_eq!((story.state(1), handed_back), (State::Failed, 10), "it waited all the time");
        let reason = story.job(1).live.outcome.as_ref().map(|outcome| outcome.reason);
        assert_eq!(reason, Some(Reason::PendingDeadlinePassed));
    }

    #[test]
    fn a_job_that_is_handed_back_for_ever_does_not_grow() {
        let mut story = Story::new();
        story.submit(once(1));
        for _ in 0..2 * RELEASES_KEPT {
            let lease = story.claim("w");
            story.release(lease).unwrap();
        }
        assert_eq!(story.tables.attempts.values().next().unwrap().len(), RELEASES_KEPT as usize);
    }

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
