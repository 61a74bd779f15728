//! Keep a part of a plan whose run is yet to come, so that a large plan is written in small transactions and others can commit
//! in between. A run that never comes leaves nothing behind for long.

use super::{Decided, submit::check_size};
use crate::{
    desk::Desk,
    model::{
        id::RunId,
        keys::Keys,
        name::Namespace,
        record,
        refusal::Refusal,
        run::Run,
        stage::{self, EarlyPlan, PlanPart},
        time::Millis,
    },
};
use std::sync::Arc;

/// How long the parts wait for the next one, and for their run.
pub const WAITS: Millis = Millis::from_secs(600);

#[derive(Clone, Debug)]
pub struct KeepPart {
    pub namespace: Namespace,
    pub run: RunId,
    /// Parts come in order, from 0.
    pub at: u32,
    pub text: Arc<str>,
}

impl KeepPart {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        let run = self.run.to_string();
        keys.want_record(record::key_of::<Run>(&self.namespace, &run), false);
        keys.want_record(record::key_of::<EarlyPlan>(&self.namespace, &run), true);
        keys.want_record(
            record::key_of::<PlanPart>(&self.namespace, &stage::part_key(self.run, self.at as usize)),
            true,
        );
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<()> {
        let (limits, run) = (desk.limits(), self.run.to_string());
        check_size("plan", self.text.len(), limits.record_bytes_max)?;
        check_size("plan", self.at as usize + 1, limits.nodes_max)?;
        if desk.peek::<Run>(&self.namespace, &run)?.is_some() {
            return Err(Refusal::Exists { what: "run", name: run }.into());
        }
        let kept = desk.get::<EarlyPlan>(&self.namespace, &run)?.map_or(0, |early| early.parts);
        if self.at != kept {
            let why = format!("part {} comes after {kept} parts; send the parts in order", self.at);
            return Err(Refusal::invalid("plan", why).into());
        }
        let early = EarlyPlan { parts: kept + 1, until: desk.now() + WAITS };
        desk.put(&self.namespace, &run, &early)?;
        let part = PlanPart { run: self.run, text: self.text.clone() };
        desk.put(&self.namespace, &stage::part_key(self.run, self.at as usize), &part)?;
        Ok(Ok(()))
    }
}
