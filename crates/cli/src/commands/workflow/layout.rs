//! Where the steps of a run go when it is drawn: in layers, each step behind everything it waits for, and within a layer near
//! to it, so that few lines cross.

use serde::Serialize;
use std::collections::HashMap;
use windlass_api::{
    Uuid,
    job::State,
    workflow::{Run, Step},
};

/// Sweeps over the layers that put neighbours together; more change little.
const SWEEPS: usize = 4;

#[derive(Serialize)]
pub struct Layout {
    pub nodes: Vec<Node>,
    /// From, to: positions in `nodes`.
    pub edges: Vec<(usize, usize)>,
    /// Positions in `nodes`, from the first layer to the last, each in the order they are drawn in.
    pub layers: Vec<Vec<usize>>,
}

#[derive(Serialize)]
pub struct Node {
    pub name: String,
    pub state: State,
    pub duration_ms: Option<u64>,
    pub attempt: u32,
}

impl Layout {
    pub fn of(run: &Run) -> Self {
        let at: HashMap<Uuid, usize> = run.steps.iter().enumerate().map(|(at, step)| (step.job, at)).collect();
        let node = |step: &Step| Node {
            name: step.name.clone(),
            state: step.state,
            duration_ms: step.duration_ms,
            attempt: step.attempt,
        };
        let edges = run.steps.iter().enumerate().flat_map(|(to, step)| {
            let from = step.after.iter().filter_map(|job| at.get(job).copied()).filter(move |from| *from != to);
            from.map(move |from| (from, to)).collect::<Vec<_>>()
        });
        Self::new(run.steps.iter().map(node).collect(), edges.collect())
    }

    pub fn new(nodes: Vec<Node>, edges: Vec<(usize, usize)>) -> Self {
        let layers = arrange(&layers(nodes.len(), &edges), &edges);
        Self { nodes, edges, layers }
    }

    pub fn parents(&self, of: usize) -> impl Iterator<Item = usize> + '_ {
        self.edges.iter().filter(move |(_, to)| *to == of).map(|(from, _)| *from)
    }
}

/// Each node one layer behind the last of its parents. What is part of a cycle, which no run has, stays in front.
fn layers(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut children = vec![Vec::new(); count];
    let mut open = vec![0; count];
    for &(from, to) in edges {
        children[from].push(to);
        open[to] += 1;
    }
    let mut layer = vec![0; count];
    let mut ready: Vec<usize> = (0..count).filter(|node| open[*node] == 0).collect();
    while let Some(node) = ready.pop() {
        for &child in &children[node] {
            layer[child] = layer[child].max(layer[node] + 1);
            open[child] -= 1;
            if open[child] == 0 {
                ready.push(child);
            }
        }
    }
    layer
}

/// Orders each layer by the middle of its neighbours in the layer before, and then behind, a few times over.
fn arrange(layer: &[usize], edges: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let depth = layer.iter().max().map_or(0, |last| last + 1);
    let mut layers = vec![Vec::new(); depth];
    for (node, &at) in layer.iter().enumerate() {
        layers[at].push(node);
    }
    let (mut before, mut behind) = (vec![Vec::new(); layer.len()], vec![Vec::new(); layer.len()]);
    for &(from, to) in edges {
        before[to].push(from);
        behind[from].push(to);
    }
    let mut place = vec![0.0; layer.len()];
    let sort_layer = |nodes: &mut Vec<usize>, place: &mut Vec<f64>, beside: Option<&[Vec<usize>]>| {
        if let Some(beside) = beside {
            let middle = |node: usize| match beside[node].len() {
                0 => place[node],
                count => beside[node].iter().map(|other| place[*other]).sum::<f64>() / count as f64,
            };
            let mut keyed: Vec<(f64, usize)> = nodes.iter().map(|node| (middle(*node), *node)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            *nodes = keyed.into_iter().map(|(_, node)| node).collect();
        }
        let count = nodes.len() as f64;
        for (at, node) in nodes.iter().enumerate() {
            place[*node] = (at as f64 + 0.5) / count;
        }
    };
    layers.iter_mut().for_each(|nodes| sort_layer(nodes, &mut place, None));
    for _ in 0..SWEEPS {
        layers.iter_mut().for_each(|nodes| sort_layer(nodes, &mut place, Some(&before)));
        layers.iter_mut().rev().for_each(|nodes| sort_layer(nodes, &mut place, Some(&behind)));
    }
    layers
}
