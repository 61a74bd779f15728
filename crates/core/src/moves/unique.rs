//! Unique keys: a submit that is repeated (the answer was lost, two triggers fired) makes one job, not two.
//!
//! Kept per namespace and principal, so that nobody learns of, or blocks, somebody else's jobs by guessing a key.

use crate::{
    desk::{Desk, Stop},
    model::{
        id::JobId,
        job::{Job, UniqueKey, UniqueUntil},
        name::Namespace,
        record::Kind,
        refusal::Refusal,
        time::Timestamp,
    },
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    pub job: JobId,
    pub body_hash: Arc<str>,
    pub until: Option<Timestamp>,
}

impl Kind for Taken {
    const KIND: &'static str = "unique";
    fn due(&self) -> Option<Timestamp> {
        self.until
    }
}

/// Where a key of this owner is kept, of jobs and of runs alike: nobody learns of somebody else's by guessing. The line break
/// cannot occur in either half.
pub fn record_key(owner: Option<&str>, key: &str) -> String {
    format!("{}\n{key}", owner.unwrap_or_default())
}

/// Whoever uses a key again has to ask for the same as before.
pub fn check_body(key: &str, before: &str, now: &str) -> Result<(), Refusal> {
    if before == now { Ok(()) } else { Err(Refusal::KeyReused { key: key.to_owned() }) }
}

/// The job that was made under this key before, if any; otherwise takes the key for `job`.
pub(crate) fn take(
    desk: &mut Desk,
    namespace: &Namespace,
    owner: Option<&str>,
    unique: &UniqueKey,
    job: JobId,
) -> Result<Option<JobId>, Stop> {
    let key = record_key(owner, &unique.key);
    if let Some(taken) =
        desk.get::<Taken>(namespace, &key)?.filter(|taken| taken.until.is_none_or(|until| until > desk.now()))
    {
        check_body(&unique.key, &taken.body_hash, &unique.body_hash)?;
        return Ok(Some(taken.job));
    }
    let until = match unique.until {
        UniqueUntil::Final => None,
        UniqueUntil::After(length) => Some(desk.now() + length),
    };
    desk.put(namespace, &key, &Taken { job, body_hash: unique.body_hash.clone(), until })?;
    Ok(None)
}

/// Frees a key that was taken until the job is final.
pub(crate) fn release(desk: &mut Desk, job: &Job) -> Result<(), Stop> {
    match &job.spec.unique {
        Some(unique) if unique.until == UniqueUntil::Final => {
            let key = record_key(job.spec.owner.as_deref(), &unique.key);
            match desk.get::<Taken>(&job.key.namespace, &key)? {
                Some(taken) if taken.job == job.key.id => desk.remove::<Taken>(&job.key.namespace, &key),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}
