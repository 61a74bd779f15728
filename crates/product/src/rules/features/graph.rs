//! One item's graph in memory: nodes by key, with their edges both ways and an order in which sources come first.
//!
//! Positions are places in the sorted list of keys, so sorting by position is sorting by key. A cone is a walk over plain
//! numbers: a hundred thousand nodes take milliseconds.

use super::{EDGES_MAX, EdgeKind, KEY_CHARS_MAX, NODES_MAX, Node, Validation};
use serde::{Deserialize, Serialize};
use std::{collections::HashMap, sync::Arc};
use windlass_core::Refusal;

/// From what is depended on to what depends on it, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Edge {
    pub source: u32,
    pub target: u32,
    #[serde(default, skip_serializing_if = "crate::rules::is_default")]
    pub kind: EdgeKind,
}

/// From a node of another item's live graph.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CrossEdge {
    pub part: Arc<str>,
    pub source: Arc<str>,
    pub target: u32,
    #[serde(default, skip_serializing_if = "crate::rules::is_default")]
    pub kind: EdgeKind,
}

/// Lists of neighbours, one after the other in one vector.
#[derive(Clone, Debug, Default)]
struct Neighbours {
    starts: Vec<u32>,
    ends: Vec<(u32, EdgeKind)>,
}

impl Neighbours {
    fn new(count: usize, edges: &[Edge], from: fn(&Edge) -> u32, to: fn(&Edge) -> u32) -> Self {
        let mut starts = vec![0u32; count + 1];
        edges.iter().for_each(|edge| starts[from(edge) as usize + 1] += 1);
        for at in 0..count {
            starts[at + 1] += starts[at];
        }
        let (mut next, mut ends) = (starts.clone(), vec![(0, EdgeKind::DependsOn); edges.len()]);
        for edge in edges {
            let place = &mut next[from(edge) as usize];
            ends[*place as usize] = (to(edge), edge.kind);
            *place += 1;
        }
        Self { starts, ends }
    }

    fn of(&self, at: u32) -> &[(u32, EdgeKind)] {
        &self.ends[self.starts[at as usize] as usize..self.starts[at as usize + 1] as usize]
    }
}

/// Nodes that are kept together: what is copied when one of them changes, and what is stored as one. Small, because a change
/// seldom reaches neighbours by name.
pub const PIECE: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// What depends on it.
    Forward,
    /// What it depends on.
    Backward,
}

#[derive(Clone, Debug)]
pub struct Graph {
    /// In pieces that versions of a graph share until one of their nodes changes.
    pieces: Vec<Arc<Vec<Node>>>,
    count: usize,
    shape: Arc<Shape>,
}

/// Everything but the nodes themselves: shared between versions of a graph that differ in states only.
#[derive(Debug, Default)]
struct Shape {
    edges: Vec<Edge>,
    cross: Vec<CrossEdge>,
    index: HashMap<Arc<str>, u32>,
    incoming: Neighbours,
    outgoing: Neighbours,
    /// Places in `cross`, by target.
    cross_in: HashMap<u32, Vec<u32>>,
    /// Sources have lower ranks than what depends on them.
    rank: Vec<u32>,
}

impl Default for Graph {
    fn default() -> Self {
        Self::new(Vec::new(), Vec::new(), Vec::new()).expect("nothing is a graph")
    }
}

impl Graph {
    /// Nodes sorted by key, each key once; edges between positions of these. Edges that are there twice count once.
    pub fn new(nodes: Vec<Node>, mut edges: Vec<Edge>, mut cross: Vec<CrossEdge>) -> Result<Self, Refusal> {
        if nodes.len() > NODES_MAX {
            return Err(Refusal::invalid("nodes", format!("{} nodes; a graph may have {NODES_MAX}", nodes.len())));
        }
        if edges.len() + cross.len() > EDGES_MAX {
            let why = format!("{} edges; a graph may have {EDGES_MAX}", edges.len() + cross.len());
            return Err(Refusal::invalid("edges", why));
        }
        check_keys(&nodes)?;
        edges.sort_unstable();
        edges.dedup();
        cross.sort_unstable();
        cross.dedup();
        let rank = ranks(&nodes, &edges)?;
        let mut cross_in: HashMap<u32, Vec<u32>> = HashMap::new();
        for (at, edge) in cross.iter().enumerate() {
            cross_in.entry(edge.target).or_default().push(at as u32);
        }
        let index = nodes.iter().zip(0..).map(|(node, at)| (node.key.clone(), at)).collect();
        let incoming = Neighbours::new(nodes.len(), &edges, |edge| edge.target, |edge| edge.source);
        let outgoing = Neighbours::new(nodes.len(), &edges, |edge| edge.source, |edge| edge.target);
        let shape = Shape { edges, cross, index, incoming, outgoing, cross_in, rank };
        let count = nodes.len();
        let mut pieces = Vec::with_capacity(count.div_ceil(PIECE));
        let mut nodes = nodes.into_iter().peekable();
        while nodes.peek().is_some() {
            pieces.push(Arc::new(nodes.by_ref().take(PIECE).collect()));
        }
        Ok(Self { pieces, count, shape: Arc::new(shape) })
    }

    /// How many nodes there are.
    pub fn count(&self) -> usize {
        self.count
    }
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.pieces.iter().flat_map(|piece| piece.iter())
    }
    /// All nodes in pieces of [`PIECE`], by key.
    pub fn pieces(&self) -> &[Arc<Vec<Node>>] {
        &self.pieces
    }
    /// Copies the piece it is in, if another version of the graph has it too.
    pub(super) fn node_mut(&mut self, at: u32) -> &mut Node {
        &mut Arc::make_mut(&mut self.pieces[at as usize / PIECE])[at as usize % PIECE]
    }
    pub fn node(&self, at: u32) -> &Node {
        &self.pieces[at as usize / PIECE][at as usize % PIECE]
    }
    /// Whether they differ in their nodes only, and that is known without looking at edges.
    pub fn has_shape_of(&self, other: &Graph) -> bool {
        Arc::ptr_eq(&self.shape, &other.shape)
    }
    pub fn edges(&self) -> &[Edge] {
        &self.shape.edges
    }
    pub fn cross(&self) -> &[CrossEdge] {
        &self.shape.cross
    }
    pub fn find(&self, key: &str) -> Option<u32> {
        self.shape.index.get(key).copied()
    }
    pub fn rank(&self, at: u32) -> u32 {
        self.shape.rank[at as usize]
    }
    pub fn sources(&self, at: u32) -> &[(u32, EdgeKind)] {
        self.shape.incoming.of(at)
    }
    pub fn dependents(&self, at: u32) -> &[(u32, EdgeKind)] {
        self.shape.outgoing.of(at)
    }
    pub fn cross_sources(&self, at: u32) -> impl Iterator<Item = &CrossEdge> {
        let places = self.shape.cross_in.get(&at).map_or(&[][..], Vec::as_slice);
        places.iter().map(|place| &self.shape.cross[*place as usize])
    }
    /// Items this graph has sources in, each once, sorted.
    pub fn foreign_parts(&self) -> Vec<Arc<str>> {
        let mut parts: Vec<Arc<str>> = self.shape.cross.iter().map(|edge| edge.part.clone()).collect();
        parts.dedup();
        parts
    }

    /// The node and everything in one direction of it, with the fewest edges it takes to get there, nearest first.
    pub fn cone(&self, start: u32, direction: Direction, depth_max: Option<u32>) -> Vec<(u32, u32)> {
        let mut seen = vec![false; self.count];
        seen[start as usize] = true;
        let mut found = vec![(start, 0)];
        let mut next = 0;
        while next < found.len() {
            let (at, depth) = found[next];
            next += 1;
            if depth_max.is_some_and(|max| depth >= max) {
                continue;
            }
            let neighbours = match direction {
                Direction::Forward => self.dependents(at),
                Direction::Backward => self.sources(at),
            };
            for (neighbour, _) in neighbours {
                if !std::mem::replace(&mut seen[*neighbour as usize], true) {
                    found.push((*neighbour, depth + 1));
                }
            }
        }
        found.sort_unstable_by_key(|(at, depth)| (*depth, *at));
        found
    }

    /// Edges with both ends among these.
    pub fn edges_within(&self, members: impl IntoIterator<Item = u32>) -> Vec<Edge> {
        let mut inside = vec![false; self.count];
        let members: Vec<u32> = members.into_iter().inspect(|at| inside[*at as usize] = true).collect();
        let mut edges: Vec<Edge> = members
            .iter()
            .flat_map(|&source| {
                self.dependents(source).iter().map(move |&(target, kind)| Edge { source, target, kind })
            })
            .filter(|edge| inside[edge.target as usize])
            .collect();
        edges.sort_unstable();
        edges
    }

    /// Nodes in these states, in an order in which they can be validated: sources first, then by key.
    pub fn in_states(&self, states: &[Validation]) -> Vec<u32> {
        let mut found: Vec<u32> = (0..self.count as u32).filter(|at| states.contains(&self.node(*at).state)).collect();
        found.sort_unstable_by_key(|at| (self.rank(*at), *at));
        found
    }

    /// Whether changes on either side of these two nodes can be laid together without anybody looking.
    pub fn compare(&self, a: u32, b: u32) -> Comparison {
        let cone =
            |at, direction| -> Vec<u32> { self.cone(at, direction, None).into_iter().map(|(at, _)| at).collect() };
        let shared = |direction| {
            let mut inside = vec![false; self.count];
            cone(a, direction).into_iter().for_each(|at| inside[at as usize] = true);
            let mut both: Vec<u32> = cone(b, direction).into_iter().filter(|at| inside[*at as usize]).collect();
            both.sort_unstable();
            both
        };
        let downstream = shared(Direction::Forward);
        // One in the other's cone is itself shared downstream.
        Comparison { safe: downstream.is_empty(), upstream: shared(Direction::Backward), downstream }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    pub upstream: Vec<u32>,
    pub downstream: Vec<u32>,
    pub safe: bool,
}

fn check_keys(nodes: &[Node]) -> Result<(), Refusal> {
    for node in nodes {
        if !(1..=KEY_CHARS_MAX).contains(&node.key.chars().count()) {
            let why = format!("{:?} is no key: it needs 1 to {KEY_CHARS_MAX} characters", node.key);
            return Err(Refusal::invalid("node_key", why));
        }
    }
    match nodes.windows(2).find(|pair| pair[0].key >= pair[1].key) {
        Some(pair) => Err(Refusal::invalid("node_key", format!("{:?} is there twice", pair[1].key))),
        None => Ok(()),
    }
}

/// How many steps each node is from the nearest end it depends on; a cycle is refused by its keys.
fn ranks(nodes: &[Node], edges: &[Edge]) -> Result<Vec<u32>, Refusal> {
    let mut parents: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for edge in edges {
        if edge.source == edge.target {
            let why = format!("{:?} depends on itself", nodes[edge.source as usize].key);
            return Err(Refusal::invalid("edges", why));
        }
        parents[edge.target as usize].push(edge.source as usize);
    }
    // Two nodes may be tied by edges of different kinds.
    parents.iter_mut().for_each(|parents| parents.dedup());
    let order = windlass_core::graph::order(&parents);
    if order.len() < nodes.len() {
        let path = windlass_core::graph::cycle(&parents).unwrap_or_default();
        let keys: Vec<&str> = path.into_iter().map(|at| &*nodes[at].key).collect();
        return Err(Refusal::invalid("edges", format!("dependencies form a cycle: {}", keys.join(" -> "))));
    }
    let mut rank = vec![0u32; nodes.len()];
    for at in order {
        rank[at] = parents[at].iter().map(|&parent| rank[parent] + 1).max().unwrap_or(0);
    }
    Ok(rank)
}
