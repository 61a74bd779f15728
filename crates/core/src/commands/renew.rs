//! Keep a lease alive.

use super::{Decided, holder::Holder};
use crate::{
    desk::Desk,
    model::{
        keys::Keys,
        policy::{LeaseEnd, check_length},
        reply::Renewed,
        time::Millis,
    },
};

#[derive(Clone, Debug)]
pub struct Renew {
    pub holder: Holder,
    /// From now, where that is longer than the length granted at the claim: a renewal never takes away.
    pub length: Option<Millis>,
}

impl Renew {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        self.holder.keys(keys);
    }

    /// Only the lease's own time moves; the due time stays behind and the sweep catches up with it, so that a heartbeat
    /// rewrites one small row and no index.
    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Renewed> {
        self.length.map_or(Ok(()), |length| check_length("length", length, 1, &desk.limits()))?;
        let mut job = match self.holder.held(desk)? {
            Ok(job) => job,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let now = desk.now();
        let renewable = job.spec.policy.lease.ends == LeaseEnd::Renewable;
        let cancelled = job.live.cancel.is_some();
        let lease = job.live.lease.as_mut().expect("a held job has a lease");
        if renewable {
            lease.until = Some(now + self.length.map_or(lease.length, |asked| asked.max(lease.length)));
        }
        let until = lease.until;
        if renewable {
            desk.put_job(job);
        }
        Ok(Ok(Renewed { until, cancelled }))
    }
}
