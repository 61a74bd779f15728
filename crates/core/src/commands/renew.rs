//! Keep a lease alive.

use super::{
    Decided,
    holder::{Found, Holder},
};
use crate::{
    desk::Desk,
    keys::Keys,
    policy::{LeaseEnd, check_length},
    reply::Reply,
    time::Millis,
    worker,
};

#[derive(Clone, Debug)]
pub struct Renew {
    pub holder: Holder,
    /// From now; the length granted at the claim where absent.
    pub length: Option<Millis>,
}

impl Renew {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        self.holder.keys(keys);
    }

    /// Only the lease's own time moves; the due time stays behind and the sweep catches up with it, so that a heartbeat
    /// rewrites one small row and no index.
    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        self.length.map_or(Ok(()), |length| check_length("length", length, 1, &desk.limits()))?;
        let mut job = match self.holder.find(desk, None)? {
            Found::Held(job) => job,
            Found::Replayed(_) => unreachable!("no final report was asked about"),
            Found::Late(refusal) => return Ok(Err(refusal)),
        };
        let now = desk.now();
        let renewable = job.spec.policy.lease.ends == LeaseEnd::Renewable;
        let cancelled = job.live.cancel.is_some();
        let lease = job.live.lease.as_mut().expect("a held job has a lease");
        let worker = lease.worker.clone();
        if renewable {
            lease.until = Some(now + self.length.unwrap_or(lease.length));
        }
        let until = lease.until;
        worker::called(desk, &job.key.namespace, &worker)?;
        if renewable {
            desk.put_job(job);
        }
        Ok(Ok(Reply::Renewed { until, cancelled }))
    }
}
