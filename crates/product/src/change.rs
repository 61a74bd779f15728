//! A change of one item's graph, worked out over all items it touches and written as one.

use crate::{
    Error, Products,
    graphs::{self, Region},
    items,
    records::Change,
    revisions,
    rules::{
        features::{
            NODES_MAX, Validation,
            graph::Graph,
            sync::{self, Diff, NewEdge, NewNode, Writer},
            world::Spread,
        },
        item::Item,
    },
    write_change,
};
use serde_json::{Map, Value, json};
use std::{collections::BTreeSet, sync::Arc};
use windlass_core::{Command, commands::holds::Holds};

/// A graph as somebody sent it.
pub struct Sent {
    /// None: the item's current one.
    pub revision: Option<u32>,
    pub nodes: Vec<NewNode>,
    pub edges: Vec<NewEdge>,
    /// Only what is given about the nodes that are named changes.
    pub partial: bool,
}

const METADATA_BYTES_MAX: usize = 8 << 10;
const MESSAGE_BYTES_MAX: usize = 4 << 10;

impl Sent {
    /// What can be said about it without knowing anything else.
    pub fn check(&self) -> Result<(), Error> {
        if self.nodes.len() > NODES_MAX {
            let why = format!("{} of them; a graph may have {NODES_MAX}", self.nodes.len());
            return Err(Error::invalid("nodes", why));
        }
        if self.partial && !self.edges.is_empty() {
            return Err(Error::invalid("edges", "a partial update has none"));
        }
        for node in &self.nodes {
            let long = node.message.iter().flatten().any(|text| text.len() > MESSAGE_BYTES_MAX);
            let size = |data: &Arc<Map<String, Value>>| json!(**data).to_string().len();
            if long || node.metadata.as_ref().is_some_and(|data| size(data) > METADATA_BYTES_MAX) {
                let why = format!(
                    "{}: its message may have {MESSAGE_BYTES_MAX} bytes, metadata {METADATA_BYTES_MAX}",
                    node.key
                );
                return Err(Error::invalid("nodes", why));
            }
        }
        Ok(())
    }

    /// Items that it says it depends on.
    fn foreign(&self) -> BTreeSet<String> {
        self.edges.iter().filter_map(|edge| edge.part.as_ref()).map(|part| part.to_string()).collect()
    }
}

/// What a change came to.
pub struct Synced {
    pub item: Item,
    pub revision: u32,
    pub graph: Arc<Graph>,
    pub diff: Diff,
    /// What became of other items.
    pub spread: Spread,
}

impl Synced {
    /// Keys of everything that is dirty now, sorted.
    pub fn dirty(&self) -> Vec<Arc<str>> {
        let mut dirty: Vec<Arc<str>> =
            self.graph.in_states(&[Validation::Dirty]).into_iter().map(|at| self.graph.node(at).key.clone()).collect();
        dirty.sort_unstable();
        dirty
    }
}

/// A revision that exists: the one asked for, else the current one.
pub async fn revision_of(products: &Products, item: &Item, asked: Option<u32>) -> Result<u32, Error> {
    match asked {
        Some(number) => Ok(revisions::find(products, item, number).await?.number),
        None => Ok(item.current_revision),
    }
}

/// Written for a job, it is written only while that job is held.
pub async fn write(
    products: &Products,
    part: &str,
    sent: &Sent,
    writer: Writer,
    holds: Option<Holds>,
) -> Result<Synced, Error> {
    sent.check()?;
    let (synced, fresh) = write_change!(products, Error, {
        let item = items::find(products, part).await?;
        let revision = revision_of(products, &item.value, sent.revision).await?;
        let (own, base) = graphs::with_base(products, part, revision).await?;
        let now = products.engine().now().await?;
        let foreign = match (&own, sent.partial) {
            (Some(own), true) => own.graph.foreign_parts().iter().map(|part| part.to_string()).collect(),
            _ => sent.foreign(),
        };
        let mut region = Region::default();
        for source in &foreign {
            if source == part {
                return Err(Error::invalid("cross_edges", "a node of the same item is named in edges"));
            }
            if !sent.partial {
                items::find(products, source).await?;
            }
        }
        region.add_sources(products, part, &foreign).await?;
        let outside = |part: &str, key: &str| region.world.seen(part, key);
        let (graph, diff) = if sent.partial {
            let own = own.as_ref().ok_or_else(|| Error::not_found("graph of revision", revision))?;
            let mut graph = (*own.graph).clone();
            let diff = sync::update(&mut graph, &sent.nodes, &outside, now)?;
            (graph, diff)
        } else {
            sync::replace(base.as_deref(), &sent.nodes, &sent.edges, writer, &outside, now)?
        };
        let written = graphs::written(products, &item, revision, (graph, &diff), own.as_ref(), region).await?;
        // The same again is nothing to write, unless this revision had no graph yet.
        let commands = if own.is_some() && !diff.differs { Vec::new() } else { written.commands };
        let fresh = if commands.is_empty() { Vec::new() } else { written.fresh };
        let commands = holds.iter().cloned().map(Command::from).chain(commands).collect();
        let (graph, spread) = (written.graph, written.spread);
        Ok(Change { commands, answer: (Synced { item: item.value, revision, graph, diff, spread }, fresh) })
    })?;
    graphs::remember(products, fresh);
    Ok(synced)
}

/// Marks a node of the live graph dirty, and everything that depends on it.
pub async fn mark_dirty(products: &Products, part: &str, key: &str) -> Result<Synced, Error> {
    let (synced, fresh) = write_change!(products, Error, {
        let item = items::find(products, part).await?;
        let missing = || Error::not_found("node", key);
        let (revision, own) = graphs::live_graph(products, part).await?.ok_or_else(missing)?;
        let at = own.graph.find(key).ok_or_else(missing)?;
        let foreign = own.graph.foreign_parts().iter().map(|part| part.to_string()).collect();
        let (mut region, now) = (Region::default(), products.engine().now().await?);
        region.add_sources(products, part, &foreign).await?;
        let outside = |part: &str, key: &str| region.world.seen(part, key);
        let mut graph = (*own.graph).clone();
        let diff = sync::mark_dirty(&mut graph, at, &outside, now);
        let written = graphs::written(products, &item, revision, (graph, &diff), Some(&own), region).await?;
        let commands = if diff.differs { written.commands } else { Vec::new() };
        let fresh = if commands.is_empty() { Vec::new() } else { written.fresh };
        let (graph, spread) = (written.graph, written.spread);
        Ok(Change { commands, answer: (Synced { item: item.value, revision, graph, diff, spread }, fresh) })
    })?;
    graphs::remember(products, fresh);
    Ok(synced)
}
