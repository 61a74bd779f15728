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
