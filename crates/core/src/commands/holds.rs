//! A lease holds now. Put in front of what its holder writes beside the job (files, graphs), as one command with it: the
//! lease is looked at in the transaction that writes, so nothing lands after the job was reported, given back or lost.

use super::{Decided, holder::Holder};
use crate::{
    desk::Desk,
    model::{job::Job, keys::Keys},
};

#[derive(Clone, Debug)]
pub struct Holds {
    pub holder: Holder,
}

impl Holds {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        self.holder.keys(keys);
    }

    /// Answers with the job as it is.
    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Box<Job>> {
        Ok(self.holder.held(desk)?.map(Box::new))
    }
}
