//! Doubt that a worker is alive: it has less time to say so than its policy gives it.

use super::{Decided, workers};
use crate::{
    desk::Desk,
    model::{
        keys::Keys,
        name::{Namespace, WorkerId},
        policy::check_length,
        time::Millis,
    },
    moves::liveness,
};
use std::sync::Arc;

/// Any call of the worker lifts the doubt. If none comes in time, it is offline, as if it had been silent for all the time
/// that its policy gives it.
#[derive(Clone, Debug)]
pub struct Doubt {
    pub namespace: Namespace,
    pub worker: WorkerId,
    /// How long it may stay silent from now on; a doubt that ends earlier stays. None: the doubt is lifted.
    pub silence: Option<Millis>,
    /// None: an operator, or the server itself.
    pub principal: Option<Arc<str>>,
}

impl Doubt {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        workers::want(&self.namespace, &self.worker, keys);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<()> {
        self.silence.map_or(Ok(()), |silence| check_length("silence", silence, 1, &desk.limits()))?;
        let mut worker = workers::known(desk, &self.namespace, &self.worker, self.principal.as_ref())?;
        let changed = match self.silence {
            None => liveness::trust(&mut worker),
            Some(silence) => {
                let until = desk.now() + silence;
                let earlier = worker.doubt_until.is_none_or(|before| until < before);
                if earlier {
                    worker.doubt_until = Some(until);
                }
                earlier
            }
        };
        if changed {
            desk.put(&self.namespace, self.worker.as_str(), &worker)?;
        }
        Ok(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        commands::testing::{Story, bound, code, ns, worker},
        model::{
            job::{Reason, State},
            policy::{AliveBy, WorkerPolicy},
            worker::Liveness,
        },
    };

    fn doubt(seconds: i64) -> Doubt {
        Doubt { namespace: ns(), worker: worker("w"), silence: Some(Millis(seconds * 1_000)), principal: None }
    }

    /// When it is offline, and when it is deleted; seconds after the doubt.
    #[test]
    fn a_doubt_that_ends_counts_as_all_the_silence_there_is() {
        for (unreachable, delete, offline_at, deleted_at) in
            [(None, 60, 15, 15), (Some(30), 60, 15, 15), (None, 80, 15, 35)]
        {
            let mut story = Story::new();
            let policy = WorkerPolicy {
                alive_by: AliveBy::Heartbeat,
                unreachable_after: unreachable.map(Millis::from_secs),
                offline_after: Millis::from_secs(60),
                delete_after: Some(Millis::from_secs(delete)),
                ..WorkerPolicy::default()
            };
            story.register("w", policy).unwrap();
            story.submit_and_claim(bound(1));
            story.wait(5_000);
            story.run(doubt(15)).unwrap();
            story.wait(offline_at * 1_000 - 1);
            story.sweep();
            assert_eq!(story.worker("w").unwrap().liveness(story.now), Liveness::Online);
            story.wait(1);
            assert_eq!(story.worker("w").unwrap().liveness(story.now), Liveness::Offline, "before the sweep");
            story.sweep();
            assert_eq!((story.state(1), story.reason(1)), (State::Failed, Some(Reason::WorkerLost)));
            assert_eq!(story.worker("w").is_some(), deleted_at > offline_at);
            story.wait((deleted_at - offline_at) * 1_000);
            story.sweep();
            assert!(story.worker("w").is_none());
        }
    }

    #[test]
    fn a_call_of_a_worker_that_lives_by_any_call_lifts_the_doubt_at_once() {
        let mut story = Story::new();
        story.register("w", WorkerPolicy::default()).unwrap();
        story.run(doubt(15)).unwrap();
        story.claims("w", 1);
        assert_eq!(story.worker("w").unwrap().doubt_until, None);
        assert_eq!(code(&story.run(doubt(0))), "invalid");
    }
}
