use windlass_api::job::State;
use windlass_cli::commands::workflow::layout::{Layout, Node};

pub fn graph(names: &[&str], edges: &[(usize, usize)]) -> Layout {
    let node =
        |name: &&str| Node { name: (*name).to_owned(), state: State::Completed, duration_ms: Some(1_200), attempt: 1 };
    Layout::new(names.iter().map(node).collect(), edges.to_vec())
}

#[test]
fn every_step_is_behind_what_it_waits_for() {
    let diamond = graph(&["top", "left", "right", "end", "alone"], &[(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)]);
    assert_eq!(diamond.layers.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 1]);
    let layer = |node: usize| diamond.layers.iter().position(|nodes| nodes.contains(&node)).unwrap();
    assert!(diamond.edges.iter().all(|(from, to)| layer(*from) < layer(*to)));
}

#[test]
fn lines_that_need_not_cross_do_not() {
    let crossed = graph(&["a", "b", "a2", "b2"], &[(0, 3), (1, 2)]);
    let order = |node: usize| crossed.layers.iter().flatten().position(|other| *other == node).unwrap();
    assert_eq!(order(0) < order(1), order(3) < order(2), "{:?}", crossed.layers);
}

#[test]
fn ten_thousand_steps_are_laid_out() {
    let names: Vec<String> = (0..10_000).map(|at| format!("s{at}")).collect();
    let edges: Vec<(usize, usize)> = (100..10_000).map(|to| (to - 100, to)).collect();
    let large = graph(&names.iter().map(String::as_str).collect::<Vec<_>>(), &edges);
    assert_eq!(large.layers.len(), 100);
}
