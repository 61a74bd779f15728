//! Cancel a run: what waits ends at once, what is held ends as its policy says.

use super::Decided;
use crate::{
    desk::Desk,
    model::{
        id::RunId, job::CancelRequest, keys::Keys, name::Namespace, record, refusal::Refusal, reply::KnownRun, run::Run,
    },
    moves::{dependents, runs},
};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct CancelRun {
    pub namespace: Namespace,
    pub run: RunId,
    pub by: Arc<str>,
}

impl CancelRun {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Run>(&self.namespace, &self.run.to_string()), true);
        keys.run_jobs.insert((self.namespace.clone(), self.run));
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<KnownRun> {
        let key = self.run.to_string();
        let mut run = desk.get::<Run>(&self.namespace, &key)?.ok_or_else(|| Refusal::not_found("run", self.run))?;
        if run.finished_at.is_none() && run.cancel.is_none() {
            run.cancel = Some(CancelRequest::new(&self.by, desk.now()));
            desk.put(&self.namespace, &key, &run)?;
            // Jobs outside the run may wait for them too.
            let ended = runs::cancel_all(desk, &self.namespace, self.run, &self.by)?;
            dependents::pass_on(desk, ended)?;
            run = desk.get::<Run>(&self.namespace, &key)?.ok_or_else(|| Refusal::not_found("run", self.run))?;
        }
        Ok(Ok(KnownRun { id: self.run, run: Box::new(run) }))
    }
}
