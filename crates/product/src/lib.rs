//! Items with their revisions, the projects they belong to, bills of material, feature graphs and edit locks.
//!
//! [`rules`] holds what follows from what, pure and without a store. Everything else here reads and writes records of one
//! namespace through the engine, which knows nothing of items: a change is a list of ordinary commands that is written as a
//! whole, together with the jobs it sets off and with the check that a lease is valid. [`records`] says how, [`Fires`] is where the jobs
//! come from.
#![forbid(unsafe_code)]

pub mod bom;
pub mod change;
pub mod edits;
mod error;
pub mod files;
mod fire;
pub mod graph;
pub mod graphs;
mod item_rows;
pub mod items;
pub mod projects;
pub mod records;
pub mod retry_lines;
pub mod revisions;
pub mod rules;

pub use error::Error;
pub use fire::{Fired, Fires, Nothing};

use std::sync::Arc;
use windlass_core::Namespace;
use windlass_engine::Engine;

/// Copies of what the store has, and the queues of those who change the same record. One for all namespaces.
#[derive(Default)]
pub struct Shared {
    graphs: graphs::Graphs,
    retry_lines: retry_lines::RetryLines,
}

/// The items of one namespace. Cheap to clone.
#[derive(Clone)]
pub struct Products {
    engine: Engine,
    namespace: Namespace,
    shared: Arc<Shared>,
    fires: Arc<dyn Fires>,
}

impl Products {
    pub fn new(engine: Engine, namespace: Namespace, shared: Arc<Shared>, fires: Arc<dyn Fires>) -> Self {
        Self { engine, namespace, shared, fires }
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Waits in line with those who lost over this record.
    pub async fn wait_in_line(&self, record: &str) -> retry_lines::RetryPermit {
        self.shared.retry_lines.wait(record).await
    }
}

/// One page of a list: what is on it, and how many there are on all pages.
pub struct Part<T> {
    pub found: Vec<T>,
    pub total: usize,
}
