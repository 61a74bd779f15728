//! Several items' live graphs at once, tied by edges across items.

use super::{
    Seen, Validation,
    graph::{Direction, Graph},
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::Arc,
};
use windlass_core::{Refusal, Timestamp};

/// As many items as somebody loaded. Whoever follows edges has loaded where they lead.
#[derive(Clone, Default)]
pub struct World {
    graphs: BTreeMap<Arc<str>, Arc<Graph>>,
}

/// A node of some item.
pub type NodeKey = (Arc<str>, u32);

/// What became of items that depend on one that was written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spread {
    /// Items that were looked at, whether or not anything in them changed.
    pub visited: BTreeSet<Arc<str>>,
    /// Items whose nodes changed.
    pub changed: BTreeSet<Arc<str>>,
    /// Nodes that became dirty, sorted.
    pub dirty: BTreeSet<(Arc<str>, Arc<str>)>,
}

impl World {
    pub fn put(&mut self, part: &Arc<str>, graph: Arc<Graph>) {
        self.graphs.insert(part.clone(), graph);
    }

    pub fn get(&self, part: &str) -> Option<&Arc<Graph>> {
        self.graphs.get(part)
    }

    /// How a node looks to other items.
    pub fn seen(&self, part: &str, key: &str) -> Seen {
        let node = self.graphs.get(part).and_then(|graph| graph.find(key).map(|at| graph.node(at).seen()));
        node.unwrap_or_else(Seen::missing)
    }

    /// Refuses a graph whose nodes would depend on themselves by way of other items. All it can depend on is loaded, and
    /// the rest of the world has no such cycle.
    pub fn check_cycle(&self, part: &Arc<str>, graph: &Graph) -> Result<(), Refusal> {
        if !self.leads_back(part, graph) {
            return Ok(());
        }
        let mut with = self.clone();
        with.put(part, Arc::new(graph.clone()));
        let flat = Flat::of(&with);
        let home = flat.parts[part];
        let mut parents: Vec<Vec<usize>> = vec![Vec::new(); graph.count()];
        for edge in graph.edges() {
            parents[edge.target as usize].push(edge.source as usize);
        }
        for edge in graph.cross() {
            let Some(source) = flat.find(&edge.part, &edge.source) else { continue };
            parents[edge.target as usize].extend(flat.reaches(home, source).into_iter().map(|at| at as usize));
        }
        for needs in &mut parents {
            needs.sort_unstable();
            needs.dedup();
        }
        match windlass_core::graph::cycle(&parents) {
            Some(path) => {
                let name = |at: usize| format!("{part}/{}", graph.node(at as u32).key);
                Err(Refusal::Cycle { path: path.into_iter().map(name).collect() })
            }
            None => Ok(()),
        }
    }

    /// Whether items that a graph depends on depend on its own item: without that there is no way round.
    fn leads_back(&self, part: &Arc<str>, graph: &Graph) -> bool {
        let mut open = graph.foreign_parts();
        let mut seen: BTreeSet<Arc<str>> = BTreeSet::new();
        while let Some(next) = open.pop() {
            if next == *part {
                return true;
            }
            if seen.insert(next.clone()) {
                open.extend(self.graphs.get(&next).into_iter().flat_map(|graph| graph.foreign_parts()));
            }
        }
        false
    }

    /// Passes on that these nodes of an item look different now, as far as that goes. Only what sees a difference is looked at.
    pub fn spread(&mut self, part: &Arc<str>, visible: &[Arc<str>], now: Timestamp) -> Spread {
        let mut spread = Spread::default();
        let mut open = VecDeque::from([(part.clone(), visible.to_vec())]);
        while let Some((part, visible)) = open.pop_front() {
            open.extend(self.pass_on(&part, &visible, now, &mut spread));
        }
        spread
    }

    /// One step of that: from an item to those that depend on it, which are all there. Gives back what of them looks different
    /// now.
    pub fn pass_on(
        &mut self,
        part: &Arc<str>,
        visible: &[Arc<str>],
        now: Timestamp,
        spread: &mut Spread,
    ) -> Vec<(Arc<str>, Vec<Arc<str>>)> {
        let mut next = Vec::new();
        for (part, seeds) in self.touched(part, visible) {
            let mut graph = (*self.graphs[&part]).clone();
            let outside = |part: &str, key: &str| self.seen(part, key);
            let evaluated = graph.evaluate(seeds, &HashMap::new(), &outside, now);
            spread.visited.insert(part.clone());
            if evaluated.changed.is_empty() {
                continue;
            }
            spread.changed.insert(part.clone());
            let mut visible = Vec::new();
            for changed in &evaluated.changed {
                let node = graph.node(changed.at);
                let place = (part.clone(), node.key.clone());
                match (changed.before, node.state) {
                    (before, Validation::Dirty) if before != Validation::Dirty => drop(spread.dirty.insert(place)),
                    (_, Validation::Dirty) => {}
                    _ => drop(spread.dirty.remove(&place)),
                }
                if changed.visible {
                    visible.push(node.key.clone());
                }
            }
            self.graphs.insert(part.clone(), Arc::new(graph));
            if !visible.is_empty() {
                next.push((part, visible));
            }
        }
        next
    }

    /// Nodes elsewhere that depend on these, by item.
    fn touched(&self, part: &Arc<str>, keys: &[Arc<str>]) -> Vec<(Arc<str>, BTreeSet<u32>)> {
        let keys: BTreeSet<&str> = keys.iter().map(|key| &**key).collect();
        let mut found: Vec<(Arc<str>, BTreeSet<u32>)> = Vec::new();
        for (other, graph) in &self.graphs {
            let ours = graph.cross().iter().filter(|edge| edge.part == *part && keys.contains(&*edge.source));
            let seeds: BTreeSet<u32> = ours.map(|edge| edge.target).collect();
            if !seeds.is_empty() {
                found.push((other.clone(), seeds));
            }
        }
        found
    }

    /// A node's cone over all items, itself included, each node with the fewest edges it takes to get there; nearest first,
    /// then by item and key. The item is in the world.
    pub fn cone(&self, part: &Arc<str>, start: u32, direction: Direction, max: Option<u32>) -> Vec<(NodeKey, u32)> {
        let flat = Flat::of(self);
        let Some(&home) = flat.parts.get(part) else { return Vec::new() };
        let mut found = flat.walk((home, start), direction, max);
        found.sort_unstable_by_key(|&(place, depth)| (depth, place));
        found.into_iter().map(|((item, at), depth)| ((flat.names[item as usize].clone(), at), depth)).collect()
    }
}

/// Item and node, both by position.
type Spot = (u32, u32);

/// The world by positions, so that walking it compares numbers and not names.
struct Flat<'a> {
    names: Vec<&'a Arc<str>>,
    graphs: Vec<&'a Graph>,
    parts: HashMap<&'a Arc<str>, u32>,
    /// By item and node: what depends on it elsewhere.
    outward: Vec<HashMap<u32, Vec<Spot>>>,
}

impl<'a> Flat<'a> {
    fn of(world: &'a World) -> Self {
        let names: Vec<&Arc<str>> = world.graphs.keys().collect();
        let graphs: Vec<&Graph> = world.graphs.values().map(|graph| &**graph).collect();
        let parts = names.iter().zip(0..).map(|(name, at)| (*name, at)).collect();
        let outward = vec![HashMap::new(); graphs.len()];
        let mut flat = Self { names, graphs, parts, outward };
        for item in 0..flat.graphs.len() {
            for edge in flat.graphs[item].cross() {
                if let Some((source, at)) = flat.find(&edge.part, &edge.source) {
                    let list: &mut Vec<Spot> = flat.outward[source as usize].entry(at).or_default();
                    list.push((item as u32, edge.target));
                }
            }
        }
        flat
    }

    fn find(&self, part: &Arc<str>, key: &str) -> Option<Spot> {
        let item = *self.parts.get(part)?;
        Some((item, self.graphs[item as usize].find(key)?))
    }

    fn neighbours(&self, (item, at): Spot, direction: Direction, found: &mut Vec<Spot>) {
        let graph = self.graphs[item as usize];
        match direction {
            Direction::Forward => {
                found.extend(graph.dependents(at).iter().map(|(next, _)| (item, *next)));
                found.extend(self.outward[item as usize].get(&at).into_iter().flatten());
            }
            Direction::Backward => {
                found.extend(graph.sources(at).iter().map(|(next, _)| (item, *next)));
                found.extend(graph.cross_sources(at).filter_map(|edge| self.find(&edge.part, &edge.source)));
            }
        }
    }

    fn walk(&self, start: Spot, direction: Direction, max: Option<u32>) -> Vec<(Spot, u32)> {
        let mut seen: Vec<Vec<bool>> = self.graphs.iter().map(|graph| vec![false; graph.count()]).collect();
        seen[start.0 as usize][start.1 as usize] = true;
        let (mut found, mut near, mut next) = (vec![(start, 0)], Vec::new(), 0);
        while next < found.len() {
            let (spot, depth) = found[next];
            next += 1;
            if max.is_some_and(|max| depth >= max) {
                continue;
            }
            self.neighbours(spot, direction, &mut near);
            for spot in near.drain(..) {
                if !std::mem::replace(&mut seen[spot.0 as usize][spot.1 as usize], true) {
                    found.push((spot, depth + 1));
                }
            }
        }
        found
    }

    /// Nodes of `home` that a node of another item depends on. What lies behind those is not looked at.
    fn reaches(&self, home: u32, start: Spot) -> BTreeSet<u32> {
        let mut seen: Vec<Vec<bool>> = self.graphs.iter().map(|graph| vec![false; graph.count()]).collect();
        let (mut found, mut open, mut near) = (BTreeSet::new(), vec![start], Vec::new());
        while let Some((item, at)) = open.pop() {
            if item == home {
                found.insert(at);
                continue;
            }
            self.neighbours((item, at), Direction::Backward, &mut near);
            for spot in near.drain(..) {
                if !std::mem::replace(&mut seen[spot.0 as usize][spot.1 as usize], true) {
                    open.push(spot);
                }
            }
        }
        found
    }
}
