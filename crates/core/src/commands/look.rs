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
