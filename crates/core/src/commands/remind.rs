//! Tell the planners once more of a turn that one of them could not decide yet, because what kept it is gone.

use super::Decided;
use crate::{
    desk::Desk,
    model::{
        id::{JobId, RunId},
        keys::Keys,
        name::Namespace,
        record,
        stage::{self, Turn},
    },
};

#[derive(Clone, Debug)]
pub struct Remind {
    pub namespace: Namespace,
    pub run: RunId,
    pub job: Option<JobId>,
}

impl Remind {
    fn key(&self) -> String {
        stage::turn_key(&self.namespace, self.run, self.job)
    }

    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Turn>(&stage::system_namespace(), &self.key()), true);
    }

    /// A turn that is over needs nobody.
    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<()> {
        if let Some(turn) = desk.get::<Turn>(&stage::system_namespace(), &self.key())? {
            desk.put(&stage::system_namespace(), &self.key(), &turn)?;
        }
        Ok(Ok(()))
    }
}
