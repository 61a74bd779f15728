//! End what workers do, or would do, for a run. Its steps go on: their turns come, and the planner says what follows.

use super::Decided;
use crate::{
    desk::Desk,
    model::{id::RunId, keys::Keys, name::Namespace, record, refusal::Refusal, reply::KnownRun, run::Run},
    moves::{life, runs},
};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct StopWork {
    pub namespace: Namespace,
    pub run: RunId,
    pub by: Arc<str>,
}

impl StopWork {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Run>(&self.namespace, &self.run.to_string()), true);
        keys.run_jobs.insert((self.namespace.clone(), self.run));
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<KnownRun> {
        let (key, unknown) = (self.run.to_string(), || Refusal::not_found("run", self.run));
        desk.get::<Run>(&self.namespace, &key)?.ok_or_else(unknown)?;
        let is_work = |job: &crate::model::job::Job| job.live.hold.is_none();
        let ended = runs::cancel_some(desk, &self.namespace, self.run, &self.by, is_work)?;
        life::pass_on(desk, ended)?;
        let run = desk.get::<Run>(&self.namespace, &key)?.ok_or_else(unknown)?;
        Ok(Ok(KnownRun { id: self.run, run: Box::new(run) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        commands::testing::{Story, code, graph, ns},
        model::{job::State, payload::Payload, policy::ParentPolicy, run::RunState},
    };

    #[test]
    fn work_ends_and_steps_have_their_turn() {
        let mut story = Story::new();
        let shape = |name: &str, job: &mut crate::commands::submit::NewJob| {
            if name == "s" {
                (job.stage.plan, job.payload) = (true, Payload::default());
                job.policy.parents = ParentPolicy::RunAnyway;
            }
        };
        story.run(graph(1, &["a", "b", "s: a b"], shape)).unwrap();
        story.claim("w");
        let stop = |run| StopWork { namespace: ns(), run: RunId::from_u128(run), by: "ann".into() };
        assert_eq!(code(&story.run(stop(7))), "not-found");
        story.run(stop(1)).unwrap();
        assert_eq!(story.states(3), ["cancelled", "cancelled", "blocked"]);
        assert_eq!(story.job(3).live.waiting, 1, "it is its turn");
        let run: Run = story.typed(&RunId::from_u128(1).to_string()).unwrap();
        assert_eq!((run.state(), run.open), (RunState::Running, 1));
        story.run(stop(1)).unwrap();
        assert_eq!(story.state(3), State::Blocked, "nothing is left to end");
    }
}
