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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        commands::testing::{Story, graph, id, ns},
        model::{payload::Payload, record::Kind},
    };

    #[test]
    fn a_turn_is_told_again_and_none_is_made() {
        let mut story = Story::new();
        story.run(graph(1, &["s"], |_, job| (job.stage.plan, job.payload) = (true, Payload::default()))).unwrap();
        story.tables.wakes.clear();
        let turns = |story: &Story| -> Vec<u64> {
            let of_turns = story.tables.records.iter().filter(|(key, _)| &*key.kind == Turn::KIND);
            of_turns.map(|(_, record)| record.version).collect()
        };
        for job in [Some(id(1)), Some(id(9)), None] {
            story.run(Remind { namespace: ns(), run: RunId::from_u128(1), job }).unwrap();
        }
        assert_eq!((turns(&story), story.tables.wakes.len()), (vec![2], 1));
    }
}
