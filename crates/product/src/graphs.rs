//! Feature graphs as they are kept, and how a change of one reaches the others.
//!
//! A graph is a head and pieces of a hundred nodes, so that a change writes the pieces it touches. The head is written with
//! every change and holds a fresh stamp; a graph in memory is good as long as the stored head is the one it was read
//! with. An item's live record names its live graph, what that depends on and what depends on it; whoever works out states of
//! an item writes its live record, so that of two changes that see each other one is worked out again.

use crate::{
    Error, Products, item_rows,
    records::{self, Kept, Kind, Of, Put},
    rules::{
        features::{
            Node, Validation,
            graph::{CrossEdge, Edge, Graph},
            sync::Diff,
            world::{Spread, World},
        },
        item::Item,
    },
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};
use uuid::Uuid;
use windlass_core::{Command, Namespace, Record, Timestamp, cache::Cache, commands::records::Expect};
use windlass_engine::ids;

/// Which graph of an item is live, and which items depend on it. Written by whoever changes either.
pub const LIVE: Kind<Live> = Kind::new("silo_live");
pub const GRAPH: Kind<GraphHead> = Kind::new("silo_graph");
/// Nodes or edges of a graph, by the letter in the key; listed under the graph.
pub const GRAPH_PART: Kind<Value> = Kind::new("silo_graph_part");

const EDGES_A_PIECE: usize = 2_000;
const CROSS_A_PIECE: usize = 500;
/// Graphs kept in memory in each generation of the cache, and their nodes.
const CACHED_MAX: usize = 100_000;
const CACHED_NODES_MAX: usize = 500_000;
const READS_MAX: usize = 10;

/// Which graph of an item counts, and how items hang together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Live {
    /// 0: it has no graph.
    pub revision: u32,
    /// Part numbers.
    pub sources: BTreeSet<String>,
    pub dependents: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GraphHead {
    revision: u32,
    nodes: usize,
    edges: usize,
    /// Another one with every write.
    stamp: Uuid,
}

/// A graph as it was read.
#[derive(Clone)]
pub struct Loaded {
    pub graph: Arc<Graph>,
    head: Arc<str>,
    version: u64,
    /// Stored pieces of the graph's nodes, edges and edges across items.
    stored: [usize; 3],
}

/// Whose graph it is: namespace, part number and revision.
type GraphKey = (Namespace, String, u32);

/// What was read before.
pub struct Graphs(Mutex<Cache<GraphKey, Loaded>>);

impl Default for Graphs {
    fn default() -> Self {
        Self(Mutex::new(Cache::new(CACHED_MAX, CACHED_NODES_MAX)))
    }
}

impl Graphs {
    fn get(&self, at: &GraphKey, head: &str) -> Option<Loaded> {
        let mut kept = self.0.lock();
        kept.get(at).filter(|loaded| *loaded.head == *head)
    }

    fn put(&self, at: GraphKey, loaded: &Loaded) {
        let mut kept = self.0.lock();
        kept.put(at, loaded.clone(), loaded.graph.count());
    }
}

fn head_key(part: &str, revision: u32) -> String {
    format!("{part}/{revision:010}")
}

pub async fn load(products: &Products, part: &str, revision: u32) -> Result<Option<Loaded>, Error> {
    let name = head_key(part, revision);
    let at = (products.namespace().clone(), part.to_owned(), revision);
    for _ in 0..READS_MAX {
        let Some((head, version)) = records::text(products, GRAPH, &name).await? else { return Ok(None) };
        if let Some(found) = products.shared.graphs.get(&at, &head) {
            return Ok(Some(Loaded { version, ..found }));
        }
        let pieces = records::raw(products, GRAPH_PART, Of::Under(&name)).await?;
        // Pieces that were read while somebody wrote may be of two graphs.
        if records::text(products, GRAPH, &name).await?.is_none_or(|(now, _)| now != head) {
            continue;
        }
        let (graph, stored) = assemble(&name, &pieces)?;
        let loaded = Loaded { graph: Arc::new(graph), head, version, stored };
        products.shared.graphs.put(at, &loaded);
        return Ok(Some(loaded));
    }
    Err(Error::Outrun("the graph changes faster than it can be read"))
}

/// `n`odes, `e`dges and `x` for edges across items; within each in order.
fn piece_key(name: &str, kind: char, at: usize) -> String {
    format!("{name}/{kind}{at:06}")
}

fn assemble(name: &str, pieces: &[Record]) -> Result<(Graph, [usize; 3]), Error> {
    let damaged = |why: String| Error::Damaged { what: format!("graph {name}"), why };
    let (mut nodes, mut edges, mut cross, mut stored) = (Vec::new(), Vec::new(), Vec::new(), [0; 3]);
    for Record { key, value: text, .. } in pieces {
        let (kind, read) = match key.key.as_bytes().get(name.len() + 1) {
            Some(b'n') => (0, serde_json::from_str::<Vec<Node>>(text).map(|mut read| nodes.append(&mut read))),
            Some(b'e') => (1, serde_json::from_str::<Vec<Edge>>(text).map(|mut read| edges.append(&mut read))),
            _ => (2, serde_json::from_str::<Vec<CrossEdge>>(text).map(|mut read| cross.append(&mut read))),
        };
        stored[kind] += 1;
        read.map_err(|error| damaged(error.to_string()))?;
    }
    let count = nodes.len() as u32;
    let fits = edges.iter().all(|edge| edge.source < count && edge.target < count);
    if !fits || cross.iter().any(|edge| edge.target >= count) {
        return Err(damaged("an edge leads nowhere".into()));
    }
    let graph = Graph::new(nodes, edges, cross).map_err(|refusal| damaged(refusal.to_string()))?;
    Ok((graph, stored))
}

/// Pieces of one kind that are not what they were, and those that are no longer there.
fn pieces<T: Serialize + PartialEq>(
    products: &Products,
    (name, kind): (&str, char),
    now: &[&[T]],
    before: &[&[T]],
    stored: usize,
) -> Result<Vec<Command>, Error> {
    let mut commands = Vec::new();
    // What is stored in other pieces than these was written by another version of this program.
    let known = if stored == before.len() { before } else { &[] };
    for (at, piece) in now.iter().enumerate() {
        let same = known.get(at).is_some_and(|known| std::ptr::eq(*known, *piece) || known == piece);
        if !same {
            let key = piece_key(name, kind, at);
            let text = serde_json::to_string(piece)?;
            commands.push(Put::new(products, GRAPH_PART, &key, Expect::Anything).under(name).text(text.into()));
        }
    }
    let gone = (now.len()..stored).map(|at| piece_key(name, kind, at));
    commands.extend(gone.map(|key| records::delete(products, GRAPH_PART, &key, Expect::Anything)));
    Ok(commands)
}

fn node_pieces(graph: &Graph) -> Vec<&[Node]> {
    graph.pieces().iter().map(|piece| piece.as_slice()).collect()
}

fn chunks<T>(list: &[T], size: usize) -> Vec<&[T]> {
    list.chunks(size).collect()
}

/// What to write so that this graph is stored in place of the one that was read; and the copy that is good once it is.
fn write(
    products: &Products,
    part: &str,
    revision: u32,
    graph: &Arc<Graph>,
    before: Option<&Loaded>,
) -> Result<(Vec<Command>, Fresh), Error> {
    let name = head_key(part, revision);
    let (nodes, edges) = (graph.count(), graph.edges().len() + graph.cross().len());
    let head = GraphHead { revision, nodes, edges, stamp: ids::secret() };
    let expect = before.map_or(Expect::Nothing, |before| Expect::Version(before.version));
    let head: Arc<str> = serde_json::to_string(&head)?.into();
    let mut commands = vec![Put::new(products, GRAPH, &name, expect).under(part).text(head.clone())];
    let none = Graph::default();
    let (old, had) = before.map_or((&none, [0; 3]), |before| (&*before.graph, before.stored));
    commands.extend(pieces(products, (&name, 'n'), &node_pieces(graph), &node_pieces(old), had[0])?);
    let (edges, cross) = (chunks(graph.edges(), EDGES_A_PIECE), chunks(graph.cross(), CROSS_A_PIECE));
    if before.is_none() || !graph.has_shape_of(old) {
        commands.extend(pieces(products, (&name, 'e'), &edges, &chunks(old.edges(), EDGES_A_PIECE), had[1])?);
        commands.extend(pieces(products, (&name, 'x'), &cross, &chunks(old.cross(), CROSS_A_PIECE), had[2])?);
    }
    let stored = [graph.pieces().len(), edges.len(), cross.len()];
    let loaded = Loaded { graph: graph.clone(), head, version: 0, stored };
    Ok((commands, Fresh { at: (products.namespace().clone(), part.to_owned(), revision), loaded }))
}

/// A graph that is about to be stored: good from then on, so that nobody has to read it back.
pub struct Fresh {
    at: GraphKey,
    loaded: Loaded,
}

/// Keeps copies of what was stored.
pub fn remember(products: &Products, fresh: Vec<Fresh>) {
    for Fresh { at, loaded } in fresh {
        products.shared.graphs.put(at, &loaded);
    }
}

pub async fn live(products: &Products, part: &str) -> Result<Option<Kept<Live>>, Error> {
    records::get(products, LIVE, part).await
}

fn put_live(products: &Products, part: &str, live: &Live, expect: Expect) -> Result<Command, Error> {
    Put::new(products, LIVE, part, expect).value(live)
}

/// An item's live graph and its revision.
pub async fn live_graph(products: &Products, part: &str) -> Result<Option<(u32, Loaded)>, Error> {
    let Some(live) = live(products, part).await?.filter(|live| live.value.revision > 0) else { return Ok(None) };
    Ok(load(products, part, live.value.revision).await?.map(|loaded| (live.value.revision, loaded)))
}

/// The stored graph of a revision, and the one a new graph of it is compared with.
pub async fn with_base(
    products: &Products,
    part: &str,
    revision: u32,
) -> Result<(Option<Loaded>, Option<Arc<Graph>>), Error> {
    if let Some(own) = load(products, part, revision).await? {
        let base = own.graph.clone();
        return Ok((Some(own), Some(base)));
    }
    let stored = records::list(products, GRAPH, Of::Under(part)).await?;
    let lower = stored.iter().map(|kept| kept.value.revision).filter(|stored| *stored < revision).max();
    let base = match lower {
        Some(lower) => load(products, part, lower).await?.map(|loaded| loaded.graph),
        None => None,
    };
    Ok((None, base))
}

/// Items as a change needs them: their graphs, and what has to be written if theirs change.
#[derive(Default)]
pub struct Region {
    pub world: World,
    lives: BTreeMap<String, Option<Kept<Live>>>,
    loaded: BTreeMap<String, (u32, Loaded)>,
}

impl Region {
    async fn live(&mut self, products: &Products, part: &str) -> Result<Option<&Kept<Live>>, Error> {
        if !self.lives.contains_key(part) {
            self.lives.insert(part.to_owned(), live(products, part).await?);
        }
        Ok(self.lives[part].as_ref())
    }

    /// Brings an item's live graph in, if it has one.
    pub async fn add(&mut self, products: &Products, part: &str) -> Result<(), Error> {
        if self.loaded.contains_key(part) {
            return Ok(());
        }
        let revision = self.live(products, part).await?.map_or(0, |live| live.value.revision);
        if revision > 0
            && let Some(loaded) = load(products, part, revision).await?
        {
            self.world.put(&part.into(), loaded.graph.clone());
            self.loaded.insert(part.to_owned(), (revision, loaded));
        }
        Ok(())
    }

    /// Everything a graph depends on, if that leads back to its own item; else only what it depends on directly.
    pub async fn add_sources(
        &mut self,
        products: &Products,
        part: &str,
        direct: &BTreeSet<String>,
    ) -> Result<(), Error> {
        let (mut seen, mut open) = (BTreeSet::new(), direct.iter().cloned().collect::<Vec<_>>());
        while let Some(next) = open.pop() {
            if seen.insert(next.clone()) {
                let sources = self.live(products, &next).await?.map(|live| live.value.sources.clone());
                open.extend(sources.into_iter().flatten());
            }
        }
        let wanted = if seen.contains(part) { &seen } else { direct };
        for source in wanted.iter().filter(|source| *source != part) {
            self.add(products, source).await?;
        }
        Ok(())
    }

    /// Everything in one direction of an item.
    pub async fn add_all(&mut self, products: &Products, part: &str, forward: bool) -> Result<(), Error> {
        let (mut seen, mut open) = (BTreeSet::new(), vec![part.to_owned()]);
        while let Some(next) = open.pop() {
            if !seen.insert(next.clone()) {
                continue;
            }
            let live = self.live(products, &next).await?.map(|live| live.value.clone()).unwrap_or_default();
            open.extend(if forward { live.dependents } else { live.sources });
            if next != part {
                self.add(products, &next).await?;
            }
        }
        Ok(())
    }

    /// Passes on what became visible, bringing in dependents as far as the change goes.
    async fn spread(
        &mut self,
        products: &Products,
        part: &Arc<str>,
        visible: &[Arc<str>],
        now: Timestamp,
    ) -> Result<Spread, Error> {
        let mut spread = Spread::default();
        let mut open = VecDeque::from([(part.clone(), visible.to_vec())]);
        while let Some((at, visible)) = open.pop_front() {
            let dependents =
                self.live(products, &at).await?.map(|live| live.value.dependents.clone()).unwrap_or_default();
            // The item itself is in the world as it is going to be.
            for dependent in dependents.iter().filter(|dependent| ***dependent != **part) {
                self.add(products, dependent).await?;
            }
            open.extend(self.world.pass_on(&at, &visible, now, &mut spread));
        }
        Ok(spread)
    }

    /// What to write for items that a change of another one reached.
    fn write_spread(&self, products: &Products, spread: &Spread) -> Result<(Vec<Command>, Vec<Fresh>), Error> {
        let (mut commands, mut fresh) = (Vec::new(), Vec::new());
        for part in &spread.visited {
            if let Some(Some(live)) = self.lives.get(&**part) {
                commands.push(put_live(products, part, &live.value, live.unchanged())?);
            }
        }
        for part in &spread.changed {
            let (Some(graph), Some((revision, before))) = (self.world.get(part), self.loaded.get(&**part)) else {
                continue;
            };
            let (written, copy) = write(products, part, *revision, graph, Some(before))?;
            commands.extend(written);
            fresh.push(copy);
        }
        Ok((commands, fresh))
    }
}

/// A graph worked out anew, on its way to the store.
pub struct Written {
    pub graph: Arc<Graph>,
    pub spread: Spread,
    pub commands: Vec<Command>,
    /// To be remembered once the commands are done.
    pub fresh: Vec<Fresh>,
}

/// Everything that has to be written for a new graph of an item: itself, what depends on it elsewhere, and the events.
pub async fn written(
    products: &Products,
    item: &Kept<Item>,
    revision: u32,
    (graph, diff): (Graph, &Diff),
    before: Option<&Loaded>,
    mut region: Region,
) -> Result<Written, Error> {
    let part: Arc<str> = item.value.part_number.as_str().into();
    region.world.check_cycle(&part, &graph)?;
    let mut graph = Arc::new(graph);
    let known = region.live(products, &part).await?.cloned();
    let mut live = known.as_ref().map(|known| known.value.clone()).unwrap_or_default();
    let (mut spread, mut commands, mut fresh) = (Spread::default(), Vec::new(), Vec::new());
    if revision >= live.revision {
        let sources: BTreeSet<String> = graph.foreign_parts().iter().map(|part| part.to_string()).collect();
        commands.extend(tie(products, &mut region, &part, &live.sources, &sources).await?);
        (live.revision, live.sources) = (revision, sources);
        commands.push(put_live(products, &part, &live, records::as_found(known.as_ref()))?);
        if known.is_none() {
            // The first graph; from then on the live record keeps the item from going unnoticed.
            commands.push(item_rows::put(products, &item.value, item.unchanged())?);
        }
        region.world.put(&part, graph.clone());
        spread = region.spread(products, &part, &diff.visible, products.engine().now().await?).await?;
        // What it set off may have come back to it.
        graph = region.world.get(&part).cloned().unwrap_or(graph);
        spread.visited.remove(&part);
        spread.changed.remove(&part);
        let (written, copies) = region.write_spread(products, &spread)?;
        commands.extend(written);
        fresh.extend(copies);
    }
    let (written, copy) = write(products, &part, revision, &graph, before)?;
    commands.extend(written);
    fresh.push(copy);
    if diff.differs {
        commands.push(news(products, &item.value, revision, &graph));
    }
    for other in &spread.changed {
        if let (Some(graph), Some((revision, _))) = (region.world.get(other), region.loaded.get(&**other)) {
            let item = item_rows::find(products, other).await?;
            commands.push(news(products, &item.value, *revision, graph));
        }
    }
    Ok(Written { graph, spread, commands, fresh })
}

/// Enters an item with those it depends on now, and takes it out where it no longer does.
async fn tie(
    products: &Products,
    region: &mut Region,
    part: &str,
    before: &BTreeSet<String>,
    after: &BTreeSet<String>,
) -> Result<Vec<Command>, Error> {
    let mut commands = Vec::new();
    for source in before.symmetric_difference(after).filter(|source| *source != part) {
        let known = region.live(products, source).await?.cloned();
        let mut live = known.as_ref().map(|known| known.value.clone()).unwrap_or_default();
        if after.contains(source) {
            live.dependents.insert(part.to_owned());
        } else {
            live.dependents.remove(part);
        }
        commands.push(put_live(products, source, &live, records::as_found(known.as_ref()))?);
    }
    Ok(commands)
}

fn news(products: &Products, item: &Item, revision: u32, graph: &Graph) -> Command {
    let told = json!({
        "item_id": item.id,
        "part_number": item.part_number,
        "revision_number": revision,
        "dirty_count": graph.in_states(&[Validation::Dirty]).len(),
    });
    records::tell(products, "dag.updated", &told)
}

/// What to write when an item goes: its graphs, and what others see of it from then on.
pub async fn remove(products: &Products, part: &str) -> Result<Vec<Command>, Error> {
    let mut commands = Vec::new();
    for head in records::list(products, GRAPH, Of::Under(part)).await? {
        commands.extend(records::delete_all(products, GRAPH_PART, Of::Under(&head.key)).await?);
        commands.push(records::delete(products, GRAPH, &head.key, head.unchanged()));
    }
    let Some(known) = live(products, part).await? else { return Ok(commands) };
    let mut region = Region::default();
    region.add(products, part).await?;
    commands.extend(tie(products, &mut region, part, &known.value.sources, &BTreeSet::new()).await?);
    let name: Arc<str> = part.into();
    let keys: Vec<Arc<str>> = match region.world.get(part) {
        Some(graph) => graph.nodes().map(|node| node.key.clone()).collect(),
        None => Vec::new(),
    };
    region.world.put(&name, Arc::new(Graph::default()));
    let mut spread = region.spread(products, &name, &keys, products.engine().now().await?).await?;
    spread.visited.remove(&name);
    commands.extend(region.write_spread(products, &spread)?.0);
    if known.value.dependents.is_empty() {
        commands.push(records::delete(products, LIVE, part, known.unchanged()));
    } else {
        // Those who depend on it wait for another item of this number.
        let left = Live { dependents: known.value.dependents.clone(), ..Live::default() };
        commands.push(put_live(products, part, &left, known.unchanged())?);
    }
    Ok(commands)
}
