//! A job as it is behind the command before this one. Put behind a submit or a report, as one command with it, it shows
//! what became of the job without another look at the store.

use super::Decided;
use crate::{
    desk::Desk,
    model::{
        id::JobId,
        keys::{JobKey, Keys},
        name::Namespace,
        refusal::Refusal,
        reply::Seen,
        worker::Worker,
    },
};

#[derive(Clone, Debug)]
pub struct Look {
    pub namespace: Namespace,
    pub job: JobId,
    /// Whether to bring the payload, too.
    pub payload: bool,
}

impl Look {
    fn key(&self) -> JobKey {
        JobKey::new(&self.namespace, self.job)
    }

    /// The job itself is mostly on the desk already, or not yet anywhere: it is asked for only when it is missing.
    pub(crate) fn keys(&self, keys: &mut Keys) {
        if self.payload {
            keys.payloads.insert(self.key());
        }
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Seen> {
        let key = self.key();
        let job = desk.job(&key)?.ok_or_else(|| Refusal::not_found("job", key.id))?;
        let payload = if self.payload { desk.payload(&key)? } else { Default::default() };
        let worker = match &job.live.lease {
            Some(lease) => desk.peek::<Worker>(&self.namespace, lease.worker.as_str())?,
            None => None,
        };
        Ok(Ok(Seen { job: Box::new(job), payload, worker: worker.map(Box::new) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::{
        ask::{Ask, Both},
        complete::Complete,
        holder::Holder,
        submit::Submit,
        testing::{Story, code, id, ns, once},
    };
    use crate::model::job::State;

    fn look(payload: bool) -> Look {
        Look { namespace: ns(), job: id(1), payload }
    }

    #[test]
    fn what_was_just_submitted_or_reported_is_seen_as_it_is_then() {
        let mut story = Story::new();
        let mut job = once(1);
        job.payload = "1".into();
        let submit = Both(Submit { namespace: ns(), job }, look(false));
        let (submitted, seen) = Both::<Submit, Look>::read(story.run(submit).unwrap()).unwrap();
        assert_eq!((submitted.job, seen.job.state), (id(1), State::Pending));
        assert!(seen.payload.is_empty() && seen.worker.is_none());

        let lease = story.claim("x");
        let complete = Complete { holder: Holder::lease(&ns(), lease), result: "2".into() };
        let (ended, seen) = Both::<Complete, Look>::read(story.run(Both(complete, look(true))).unwrap()).unwrap();
        assert_eq!((seen.job.state, &seen.job.live), (State::Completed, &ended.job.live));
        assert_eq!(seen.payload, "1".into());
        assert!(seen.worker.is_some());
    }

    #[test]
    fn nobody_sees_a_job_that_is_not_there() {
        assert_eq!(code(&Story::new().run(look(true))), "not-found");
    }
}
