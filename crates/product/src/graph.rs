//! An item's graph as it is asked for: the whole of it, cones that cross items, what is not clean.

use crate::{
    Error, Products,
    change::revision_of,
    graphs::{self, Region},
    items,
    records::{self, Kept},
    rules::{
        features::{
            Validation,
            graph::{Comparison, Direction, Graph},
        },
        item::Item,
    },
};
use std::sync::Arc;

/// What still has to be validated, unless a caller names other states.
pub const NOT_CLEAN: [Validation; 3] = [Validation::Dirty, Validation::Validating, Validation::Failed];

/// A graph that was asked for, with the item and revision it is of.
pub struct ItemGraph {
    pub item: Kept<Item>,
    pub revision: u32,
    pub graph: Arc<Graph>,
}

/// A node of another item that a cone reaches.
pub struct Far {
    pub part: Arc<str>,
    pub key: Arc<str>,
    pub state: Validation,
    pub depth: u32,
}

/// Both by distance, then by key.
pub struct Cone {
    pub near: Vec<(u32, u32)>,
    pub far: Vec<Far>,
}

impl ItemGraph {
    /// That of a revision, or else the live one. An item without a graph has an empty one.
    pub async fn find(products: &Products, part: &str, revision: Option<u32>) -> Result<Self, Error> {
        let item = items::find(products, part).await?;
        let found = match revision {
            Some(number) => {
                let revision = revision_of(products, &item.value, Some(number)).await?;
                graphs::load(products, part, revision).await?.map(|loaded| (revision, loaded))
            }
            None => graphs::live_graph(products, part).await?,
        };
        let none = revision.unwrap_or(item.value.current_revision);
        let (revision, graph) = match found {
            Some((revision, loaded)) => (revision, loaded.graph),
            None => (none, Arc::new(Graph::default())),
        };
        Ok(Self { item, revision, graph })
    }

    /// The live graph of an item, if it and its graph are there.
    pub async fn live(products: &Products, part: &str) -> Result<Option<Self>, Error> {
        let Some(item) = records::get(products, records::ITEM, part).await? else { return Ok(None) };
        let Some((revision, loaded)) = graphs::live_graph(products, part).await? else { return Ok(None) };
        Ok(Some(Self { item, revision, graph: loaded.graph }))
    }

    pub fn key(&self, key: &str) -> Result<u32, Error> {
        self.graph.find(key).ok_or_else(|| Error::not_found("node", key))
    }

    pub async fn cone(
        &self,
        products: &Products,
        key: &str,
        direction: Direction,
        max: Option<u32>,
    ) -> Result<Cone, Error> {
        let start = self.key(key)?;
        let mut region = Region::default();
        region.add_all(products, &self.item.value.part_number, direction == Direction::Forward).await?;
        let name: Arc<str> = self.item.value.part_number.as_str().into();
        region.world.put(&name, self.graph.clone());
        let mut cone = Cone { near: Vec::new(), far: Vec::new() };
        for ((part, at), depth) in region.world.cone(&name, start, direction, max) {
            if part == name {
                cone.near.push((at, depth));
            } else if let Some(graph) = region.world.get(&part) {
                let node = graph.node(at);
                cone.far.push(Far { part, key: node.key.clone(), state: node.state, depth });
            }
        }
        Ok(cone)
    }

    pub fn compare(&self, a: &str, b: &str) -> Result<Comparison, Error> {
        Ok(self.graph.compare(self.key(a)?, self.key(b)?))
    }
}

/// A list of states, as words with commas between.
pub fn states(words: Option<&str>) -> Result<Vec<Validation>, Error> {
    let Some(words) = words else { return Ok(NOT_CLEAN.to_vec()) };
    let find = |word: &str| Validation::ALL.into_iter().find(|state| state.name() == word);
    let unknown = |word: &str| Error::invalid("state", format!("{word:?} is no validation state"));
    words.split(',').map(|word| find(word.trim()).ok_or_else(|| unknown(word))).collect()
}
