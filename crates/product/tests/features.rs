//! Feature graphs under random changes: what is worked out step by step, and only where something changed, is what anybody
//! would get who works everything out from nothing, by the rule as it is written down.

use crate::seeds;
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use windlass_core::Timestamp;
use windlass_product::rules::features::{
    EdgeKind, Node, NodeKind, Seen, Validation,
    evaluate::{Say, Statement},
    graph::{Direction, Graph},
    sync::{self, NewEdge, NewNode, Writer},
};

/// Small, even, and the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

fn outside(part: &str, key: &str) -> Seen {
    Seen { clean: part != "dirty", output: format!("{part}-{key}") }
}

/// The rule, word by word: no order, no memory, no shortcuts.
fn naive(graph: &Graph, at: u32) -> (String, Validation) {
    let node = graph.node(at);
    let mut sources: Vec<[String; 3]> = Vec::new();
    let mut clean = true;
    for (source, kind) in graph.sources(at) {
        let (hash, state) = naive(graph, *source);
        let from = graph.node(*source);
        let output = match (&from.output_hash, state) {
            (Some(output), Validation::Clean) => output.to_string(),
            _ => format!("in:{hash}"),
        };
        clean &= state == Validation::Clean;
        sources.push([kind.name().into(), from.key.to_string(), output]);
    }
    for edge in graph.cross_sources(at) {
        let seen = outside(&edge.part, &edge.source);
        clean &= seen.clean;
        sources.push([edge.kind.name().into(), format!("{}/{}", edge.part, edge.source), seen.output]);
    }
    sources.sort();
    let text =
        serde_json::json!([node.kind.name(), node.properties_hash.as_deref().unwrap_or(""), sources]).to_string();
    let hash: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    let state = if *node.reported_hash != *hash {
        Validation::Dirty
    } else if node.reported != Validation::Clean {
        node.reported
    } else if !clean {
        Validation::Dirty
    } else {
        Validation::Clean
    };
    (hash, state)
}

fn key(n: u64) -> Arc<str> {
    format!("n{n:03}").into()
}

fn new_node(n: u64, hash: &str) -> NewNode {
    NewNode {
        key: key(n),
        kind: NodeKind::new("pad").ok(),
        properties_hash: Some(Some(hash.into())),
        ..NewNode::default()
    }
}

fn edges(dice: &mut Dice, count: u64) -> Vec<NewEdge> {
    let mut edges = Vec::new();
    for target in 1..count {
        for _ in 0..dice.roll(4) {
            let (source, kind) = (dice.roll(target), [EdgeKind::DependsOn, EdgeKind::Contains][dice.roll(2) as usize]);
            edges.push(NewEdge { part: None, source: key(source), target: key(target), kind });
        }
        if dice.roll(12) == 0 {
            let part = ["dirty", "clean", "clean"][dice.roll(3) as usize];
            let far =
                NewEdge { part: Some(part.into()), source: "x".into(), target: key(target), kind: EdgeKind::DependsOn };
            edges.push(far);
        }
    }
    edges
}

fn check(graph: &Graph, seed: u64, step: u64) {
    for at in 0..graph.count() as u32 {
        let (hash, state) = naive(graph, at);
        let node = graph.node(at);
        assert_eq!((&*node.input_hash, node.state), (&*hash, state), "seed {seed}, step {step}: {}", node.key);
    }
}

#[test]
fn states_worked_out_step_by_step_are_those_worked_out_from_nothing() {
    for seed in seeds::of(1..120) {
        let mut dice = Dice(seed * 0x9e37_79b9);
        let count = 2 + dice.roll(14);
        let mut hashes: BTreeMap<u64, u64> = (0..count).map(|n| (n, 0)).collect();
        let mut laid = edges(&mut dice, count);
        let sent = |hashes: &BTreeMap<u64, u64>| -> Vec<NewNode> {
            hashes.iter().map(|(n, hash)| new_node(*n, &format!("h{hash}"))).collect()
        };
        let first = sync::replace(None, &sent(&hashes), &laid, Writer::User, &outside, Timestamp(0)).unwrap();
        let (mut graph, _) = first;
        check(&graph, seed, 0);
        for step in 1..20 {
            let now = Timestamp(step as i64);
            let before = graph.clone();
            let n = dice.roll(count);
            match dice.roll(5) {
                0 => {
                    *hashes.get_mut(&n).unwrap() = dice.roll(3);
                    let new = new_node(n, &format!("h{}", hashes[&n]));
                    sync::update(&mut graph, &[new], &outside, now).unwrap();
                }
                1 => {
                    let state = Validation::ALL[dice.roll(4) as usize];
                    let output = [None, Some(None), Some(Some(format!("o{}", dice.roll(2)).into()))];
                    let output_hash = output[dice.roll(3) as usize].clone();
                    let new = NewNode { key: key(n), state: Some(state), output_hash, ..NewNode::default() };
                    sync::update(&mut graph, &[new], &outside, now).unwrap();
                }
                2 => drop(sync::mark_dirty(&mut graph, n as u32, &outside, now)),
                3 => {
                    laid = edges(&mut dice, count);
                    let writer = [Writer::User, Writer::Runner][dice.roll(2) as usize];
                    graph = sync::replace(Some(&graph), &sent(&hashes), &laid, writer, &outside, now).unwrap().0;
                }
                _ => {
                    let same = sync::replace(Some(&graph), &sent(&hashes), &laid, Writer::User, &outside, now).unwrap();
                    assert!(!same.1.differs, "seed {seed}, step {step}: the same again changes nothing");
                    graph = same.0;
                }
            }
            check(&graph, seed, step);
            for node in graph.nodes() {
                let was = before.find(&node.key).map(|at| before.node(at));
                let same = |was: &Node| Node { updated_at: node.updated_at, ..was.clone() } == *node;
                let touched = !was.is_some_and(same);
                assert_eq!(node.updated_at == now, touched, "seed {seed}, step {step}: {}", node.key);
            }
        }
    }
}

/// A long body of layers, each node on a few of the layer before.
fn large(count: u64, width: u64) -> Graph {
    let nodes: Vec<NewNode> =
        (0..count).map(|n| NewNode { key: format!("n{n:06}").into(), ..new_node(n, "h") }).collect();
    let edge = |source: u64, target: u64| NewEdge {
        part: None,
        source: format!("n{source:06}").into(),
        target: format!("n{target:06}").into(),
        kind: EdgeKind::DependsOn,
    };
    let edges: Vec<NewEdge> = (width..count).flat_map(|n| [edge(n - width, n), edge(n - width + 1, n)]).collect();
    sync::replace(None, &nodes, &edges, Writer::User, &outside, Timestamp(0)).unwrap().0
}

fn keys(graph: &Graph, state: Validation) -> BTreeSet<Arc<str>> {
    graph.in_states(&[state]).into_iter().map(|at| graph.node(at).key.clone()).collect()
}

#[test]
fn one_change_looks_at_its_cone_and_at_nothing_else() {
    let mut graph = large(10_000, 100);
    let start = graph.find("n005050").unwrap();
    let cone = graph.cone(start, Direction::Forward, None);
    let expected: BTreeSet<Arc<str>> = cone.iter().map(|(at, _)| graph.node(*at).key.clone()).collect();
    assert!(cone.len() > 1_000 && cone.len() < 5_000, "{}", cone.len());
    let outcome = graph.evaluate([start], &[(start, dirty())].into(), &outside, Timestamp(1));
    assert_eq!(outcome.visited, cone.len());
    assert_eq!(keys(&graph, Validation::Dirty), expected);
    let clean = [(start, clean())].into();
    graph.evaluate([start], &clean, &outside, Timestamp(2));
    assert!(keys(&graph, Validation::Dirty).is_empty(), "said clean again, the whole cone is");
    assert_eq!(graph.in_states(&[Validation::Clean]).len(), 10_000);
}

fn dirty() -> Statement {
    let state = Some(Say::Is(Validation::Dirty));
    Statement { state, output_hash: None, message: None }
}

fn clean() -> Statement {
    let state = Some(Say::Is(Validation::Clean));
    Statement { state, output_hash: None, message: None }
}

/// Sketch, pad on it, fillet on that, and a sketch beside them.
fn story() -> Graph {
    let nodes: Vec<NewNode> = ["Fillet005", "Pad003", "Sketch001", "Sketch003"]
        .map(|key| NewNode {
            key: key.into(),
            kind: NodeKind::new("pad").ok(),
            properties_hash: Some(Some("1".into())),
            ..NewNode::default()
        })
        .into();
    let edge = |source: &str, target: &str| NewEdge {
        part: None,
        source: source.into(),
        target: target.into(),
        kind: EdgeKind::DependsOn,
    };
    let edges = [edge("Sketch001", "Pad003"), edge("Pad003", "Fillet005")];
    sync::replace(None, &nodes, &edges, Writer::User, &outside, Timestamp(0)).unwrap().0
}

fn say(
    graph: &mut Graph,
    key: &str,
    properties: Option<&str>,
    state: Option<Validation>,
    output: Option<&str>,
) -> Vec<String> {
    let new = NewNode {
        key: key.into(),
        properties_hash: properties.map(|text| Some(text.into())),
        state,
        output_hash: output.map(|text| Some(text.into())),
        ..NewNode::default()
    };
    sync::update(graph, &[new], &outside, Timestamp(1)).unwrap();
    graph.nodes().map(|node| node.state.name().to_owned()).collect()
}

#[test]
fn undo_cleans_without_work_and_an_output_that_stayed_stops_the_change() {
    use Validation::*;
    let mut graph = story();
    assert_eq!(say(&mut graph, "Sketch001", Some("2"), None, None), ["dirty", "dirty", "dirty", "clean"]);
    assert_eq!(say(&mut graph, "Sketch001", Some("1"), None, None), ["clean"; 4], "undone");
    for key in ["Sketch001", "Pad003", "Fillet005"] {
        say(&mut graph, key, None, Some(Clean), Some("out"));
    }
    assert_eq!(graph.in_states(&[Clean]).len(), 4);
    assert_eq!(say(&mut graph, "Sketch001", Some("2"), None, None), ["dirty", "dirty", "dirty", "clean"]);
    assert_eq!(say(&mut graph, "Sketch001", None, Some(Clean), Some("out")), ["clean"; 4], "it came out as before");
    say(&mut graph, "Sketch001", Some("3"), None, None);
    let told = say(&mut graph, "Sketch001", None, Some(Clean), Some("another"));
    assert_eq!(told, ["dirty", "dirty", "clean", "clean"], "it came out different");
    assert_eq!(say(&mut graph, "Pad003", None, Some(Failed), None), ["dirty", "failed", "clean", "clean"]);
    assert_eq!(say(&mut graph, "Pad003", None, Some(Validating), None), ["dirty", "validating", "clean", "clean"]);
    assert_eq!(say(&mut graph, "Pad003", None, Some(Clean), Some("out")), ["clean"; 4]);
}
