//! Give a held job's lease its full length again after the server was away: its worker could not have renewed. A lease
//! that lives with its worker is kept by taking the worker as just seen.

use super::{Decided, workers};
use crate::{
    desk::Desk,
    model::{
        keys::{JobKey, Keys},
        name::{Namespace, WorkerId},
    },
    moves::liveness,
};

#[derive(Clone, Debug)]
pub struct Grace {
    pub job: JobKey,
}

impl Grace {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.jobs.insert(self.job.clone());
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<()> {
        let Some(mut job) = desk.job(&self.job)?.filter(|job| job.state.is_held()) else { return Ok(Ok(())) };
        let now = desk.now();
        let lease = job.live.lease.as_mut().expect("a held job has a lease");
        match lease.until {
            Some(until) if until < now + lease.length => {
                lease.until = Some(now + lease.length);
                desk.put_job(job);
            }
            Some(_) => {}
            None => {
                let worker = lease.worker.clone();
                liveness::excuse(desk, &self.job.namespace, &worker)?;
            }
        }
        Ok(Ok(()))
    }
}

/// The same for a worker, whether or not it holds a job: nobody was there to hear it.
#[derive(Clone, Debug)]
pub struct Excuse {
    pub namespace: Namespace,
    pub worker: WorkerId,
}

impl Excuse {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        workers::want(&self.namespace, &self.worker, keys);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<()> {
        liveness::excuse(desk, &self.namespace, &self.worker)?;
        Ok(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        commands::testing::{Story, bound, id, ns, once},
        model::{job::State, time::Millis},
    };

    #[test]
    fn after_an_outage_a_lease_has_its_full_length_again_but_no_more_than_its_deadline() {
        for (deadline, then) in [(None, State::Claimed), (Some(Millis(10_000)), State::Failed)] {
            let mut story = Story::new();
            let mut job = once(1);
            job.policy.hard_deadline = deadline;
            story.submit_and_claim(job);
            story.wait(1_000_000);
            story.run(Grace { job: JobKey::new(&ns(), id(1)) }).unwrap();
            story.sweep();
            assert_eq!(story.state(1), then);
            story.wait(30_000);
            story.sweep();
            assert_eq!(story.state(1), State::Failed);
        }
    }

    #[test]
    fn what_needs_no_grace_is_left_alone() {
        let mut story = Story::new();
        story.submit_and_claim(bound(1));
        story.submit(once(2));
        let before = story.tables.jobs.clone();
        for number in 1..=3 {
            story.run(Grace { job: JobKey::new(&ns(), id(number)) }).unwrap();
        }
        assert_eq!(story.tables.jobs, before);
    }
}
