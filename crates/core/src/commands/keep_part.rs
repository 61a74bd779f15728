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
const WAITS: Millis = Millis::from_secs(600);

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        commands::{
            submit_run::SubmitRun,
            testing::{Story, code, graph, ns},
        },
        model::record::Kind,
    };

    fn part(at: u32) -> KeepPart {
        KeepPart { namespace: ns(), run: RunId::from_u128(1), at, text: format!("part {at}").into() }
    }

    fn run(early: u32) -> SubmitRun {
        let mut run = graph(1, &["a"], |_, _| {});
        run.plan.early = early;
        run.plan.parts = vec!["the last".into()];
        run
    }

    fn parts(story: &Story) -> Vec<String> {
        let parts = story.tables.records.values().filter(|record| &*record.key.kind == PlanPart::KIND);
        parts.map(|record| record::decode::<PlanPart>(record).unwrap().text.to_string()).collect()
    }

    #[test]
    fn a_run_takes_over_the_parts_that_came_before_it_and_no_others() {
        let mut story = Story::new();
        assert_eq!(code(&story.run(part(1))), "invalid", "the first is missing");
        story.run(part(0)).unwrap();
        assert_eq!(code(&story.run(part(0))), "invalid", "it is there");
        story.run(part(1)).unwrap();
        for wrong in [1, 3] {
            assert_eq!(code(&story.run(run(wrong))), "invalid");
        }
        story.run(run(2)).unwrap();
        assert_eq!(parts(&story), ["part 0", "part 1", "the last"]);
        assert_eq!(code(&story.run(part(2))), "exists", "the run has begun");
        story.wait(WAITS.0);
        story.sweep();
        assert_eq!(parts(&story).len(), 3, "they are the run's");
    }

    #[test]
    fn parts_whose_run_never_comes_go() {
        let mut story = Story::new();
        story.run(part(0)).unwrap();
        story.wait(WAITS.0 - 1);
        story.run(part(1)).unwrap();
        story.sweep();
        story.wait(WAITS.0 - 1);
        story.sweep();
        assert_eq!(parts(&story).len(), 2, "the second one came later");
        story.wait(1);
        story.sweep();
        assert!(story.tables.records.is_empty(), "{:?}", story.tables.records.keys());
        assert_eq!(code(&story.run(run(2))), "invalid");
    }
}
