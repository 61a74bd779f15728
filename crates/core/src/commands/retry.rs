//! Run a finished job once more, as a new job linked to it. Of the finished one only the link back changes. A step runs again with its
//! run only: alone it would lack its name, and no other step would get what it gives.

use super::Decided;
use crate::{
    desk::Desk,
    model::{
        event::What,
        id::JobId,
        job::{Job, Live, Node, Spec},
        keys::{JobKey, Keys},
        name::Namespace,
        refusal::Refusal,
        reply::Submitted,
        stage::Stage,
    },
    moves::life,
};

#[derive(Clone, Debug)]
pub struct Retry {
    pub namespace: Namespace,
    pub job: JobId,
    /// Of the new job.
    pub id: JobId,
    /// Also if it was retried before.
    pub again: bool,
}

impl Retry {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        for id in [self.job, self.id] {
            keys.jobs.insert(JobKey::new(&self.namespace, id));
        }
        keys.payloads.insert(JobKey::new(&self.namespace, self.job));
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Submitted> {
        let old_key = JobKey::new(&self.namespace, self.job);
        let old = desk.job(&old_key)?.ok_or_else(|| Refusal::not_found("job", self.job))?;
        if !old.state.is_final() {
            let why = format!("the job is {}; only a finished job can be run again", old.state.name());
            return Err(Refusal::invalid("job", why).into());
        }
        if let Some(Node { run, name }) = &old.spec.node {
            let why =
                format!("it is the step {name:?} of the run {run}; retry the run, which repeats what did not complete");
            return Err(Refusal::invalid("job", why).into());
        }
        if let Some(before) = old.live.retried_by.or(old.live.retry_job).filter(|_| !self.again) {
            let why =
                format!("the job {} was retried as {before} already; set `again` to retry it once more", self.job);
            return Err(Refusal::invalid("again", why).into());
        }
        let key = JobKey::new(&self.namespace, self.id);
        if desk.job(&key)?.is_some() {
            return Err(Refusal::Exists { what: "job", name: self.id.to_string() }.into());
        }
        let payload = desk.payload(&old_key)?;
        let spec = Spec {
            created_at: desk.now(),
            retry_of: Some(self.job),
            parents: Vec::new(),
            unique: None,
            stage: Stage::default(),
            ..(*old.spec).clone()
        };
        let mut job = desk.new_job(key.clone(), old.priority, spec);
        desk.put_job(Job { live: Live { retried_by: Some(self.id), ..old.live.clone() }, ..old });
        life::queue(desk, &mut job)?;
        desk.tell(&self.namespace, What::Submitted { job: self.id });
        desk.put_payload(&key, payload);
        desk.put_job(job.clone());
        Ok(Ok(Submitted { job: self.id, state: job.state, existing: false }))
    }
}
