//! Workers as this protocol has them: they live by heartbeats, and what they hold fails when they go.

use super::{
    Joblib,
    error::{HttpError, Result, WORKER_NOT_FOUND},
    namespace,
    who::Who,
};
use windlass_api::Uuid;
use windlass_core::{
    Tags, WorkerId,
    commands::workers::RegisterWorker,
    policy::{AliveBy, Unregister, WorkerPolicy},
    worker::Worker,
};

/// A worker of nobody's jobs yet.
pub fn registration(joblib: &Joblib, id: Uuid, owner: Uuid) -> RegisterWorker {
    let timeout = joblib.own.settings.worker_timeout;
    RegisterWorker {
        namespace: namespace(),
        worker: WorkerId::trusted(&id.to_string()),
        tags: Tags::default(),
        slots: 1,
        owner: Some(owner.to_string().into()),
        policy: WorkerPolicy {
            alive_by: AliveBy::Heartbeat,
            unregister: Unregister::Fail,
            offline_after: timeout,
            delete_after: Some(timeout),
            ..WorkerPolicy::default()
        },
        extra: None,
    }
}

/// Whoever registers something for a worker has to be its owner. Others do not hear that it exists.
pub async fn check_owned(joblib: &Joblib, who: &Who, id: Uuid) -> Result<()> {
    let found = joblib.engine.read_record::<Worker>(&namespace(), &id.to_string()).await?;
    let owner = found.and_then(|worker| worker.owner);
    match owner.is_some_and(|owner| *owner == *who.id.to_string()) {
        true => Ok(()),
        false => Err(not_owned(id)),
    }
}

pub fn not_owned(id: Uuid) -> HttpError {
    WORKER_NOT_FOUND.error(format!("Worker '{id}' not found or not owned by user"))
}
