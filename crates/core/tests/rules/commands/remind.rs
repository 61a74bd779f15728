use crate::rules::story::{Story, graph, id, ns};
use windlass_core::{Payload, RunId, commands::remind::Remind, record::Kind, stage::Turn};

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
