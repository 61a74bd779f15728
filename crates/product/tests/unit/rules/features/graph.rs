use windlass_core::{Refusal, Timestamp};
use windlass_product::rules::features::{
    EdgeKind, Node, NodeKind, Validation,
    graph::{Direction, Edge, Graph},
};

pub fn node(key: &str) -> Node {
    Node {
        key: key.into(),
        kind: NodeKind::new("pad").unwrap(),
        properties_hash: None,
        output_hash: None,
        metadata: Default::default(),
        message: None,
        reported: Validation::Clean,
        reported_hash: "".into(),
        input_hash: "".into(),
        state: Validation::Clean,
        updated_at: Timestamp(0),
    }
}

/// `keys` sorted; edges by position.
pub fn graph(keys: &[&str], edges: &[(u32, u32)]) -> Result<Graph, Refusal> {
    let edges = edges.iter().map(|&(source, target)| Edge { source, target, kind: EdgeKind::DependsOn });
    Graph::new(keys.iter().map(|key| node(key)).collect(), edges.collect(), Vec::new())
}

#[test]
fn cones_run_both_ways_by_shortest_distance() {
    let graph = graph(&["a", "b", "c", "d", "e"], &[(0, 1), (1, 2), (0, 2), (2, 3)]).unwrap();
    assert_eq!(graph.cone(0, Direction::Forward, None), [(0, 0), (1, 1), (2, 1), (3, 2)]);
    assert_eq!(graph.cone(0, Direction::Forward, Some(1)), [(0, 0), (1, 1), (2, 1)]);
    assert_eq!(graph.cone(3, Direction::Backward, None), [(3, 0), (2, 1), (0, 2), (1, 2)]);
    assert_eq!(graph.cone(4, Direction::Forward, None), [(4, 0)]);
    assert_eq!(graph.edges_within([0, 2, 3]).len(), 2);
    let two = graph.compare(1, 4);
    assert!(two.safe && two.upstream.is_empty());
    assert!(!graph.compare(0, 3).safe, "one is in the other's cone");
}

#[test]
fn what_is_no_graph_is_refused_by_its_keys() {
    let message = |result: Result<Graph, Refusal>| result.expect_err("refused").to_string();
    assert!(message(graph(&["a", "b", "c"], &[(0, 1), (1, 2), (2, 0)])).contains("a -> b -> c -> a"));
    assert!(message(graph(&["a"], &[(0, 0)])).contains("depends on itself"));
    assert!(message(graph(&["a", "a"], &[])).contains("twice"));
    assert!(message(graph(&[""], &[])).contains("no key"));
    assert_eq!(graph(&["a", "b"], &[(0, 1), (0, 1)]).unwrap().edges().len(), 1);
}
