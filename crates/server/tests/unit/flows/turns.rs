use std::collections::VecDeque;
use windlass_core::{Namespace, RunId, stage::Turn};
use windlass_server::{
    flows::turns::{Found, Served, by_namespace},
    planned::Unit,
};

#[test]
fn namespaces_take_turns_whatever_each_has_waiting() {
    let turn = |namespace: &str, run: u128| {
        let namespace = Namespace::new(namespace).unwrap();
        Found { turn: Turn { namespace, run: RunId::from_u128(run), job: None }, version: 1 }
    };
    let turns = (0..9).map(|at| turn("busy", at / 3)).chain([turn("quiet", 7)]).collect();
    let lists = by_namespace(turns);
    let mut served = Served::default();
    let shown = |units: VecDeque<Unit>| -> Vec<String> {
        units.iter().map(|unit| format!("{}{}", unit.namespace, unit.jobs.len())).collect()
    };
    let order = shown(served.order(lists.clone()));
    assert_eq!(order, ["busy3", "quiet1", "busy3", "busy3"]);
    served.note(&lists[0][0]);
    let next = served.order(lists.clone());
    assert_eq!(next[0].namespace.as_str(), "quiet", "who was served waits for who was not");
    assert_eq!(next.iter().map(|unit| unit.run).collect::<Vec<_>>(), [7, 1, 2, 0].map(RunId::from_u128));
}
