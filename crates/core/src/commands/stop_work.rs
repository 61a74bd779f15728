//! End what workers do, or would do, for a run. Its steps go on: their turns come, and the planner says what follows.

use super::Decided;
use crate::{
    desk::Desk,
    model::{id::RunId, keys::Keys, name::Namespace, record, refusal::Refusal, reply::KnownRun, run::Run},
    moves::{dependents, runs},
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
        dependents::pass_on(desk, ended)?;
        let run = desk.get::<Run>(&self.namespace, &key)?.ok_or_else(unknown)?;
        Ok(Ok(KnownRun { id: self.run, run: Box::new(run) }))
    }
}
