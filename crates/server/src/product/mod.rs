//! Items, revisions, projects, bills of material and feature graphs as they are kept: read, paged and changed.
//!
//! The native API and the Silo dialect are two ways to the same things, and both come here: a change worked out by one is seen
//! by the other, sets off the same jobs and tells the same events. The rules are in `windlass_core::product` and
//! `windlass_core::features`; here they meet the store.

pub mod bom;
pub mod change;
pub mod files;
pub mod graph;
pub mod graphs;
pub mod items;
pub mod projects;
pub mod revisions;
pub mod store;
pub mod turns;

use windlass_core::Namespace;

/// All items lie here, whichever way they are reached: jobs that they set off must meet the runners of Silo's protocol.
pub const NAMESPACE: &str = "silo";

pub fn namespace() -> Namespace {
    Namespace::new(NAMESPACE).expect("a legal name")
}

/// Copies of what the store has, and the lines in which those wait who change it.
#[derive(Default)]
pub struct Shared {
    graphs: graphs::Cache,
    pub turns: turns::Turns,
}

/// One page of a list: what is on it, and how many there are on all pages.
pub struct Part<T> {
    pub found: Vec<T>,
    pub total: usize,
}
