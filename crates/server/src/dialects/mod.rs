//! The dialects: other job servers' protocols at their original paths, each a thin translation to the one engine.
//!
//! A dialect holds no rules. What it alone understands rides on jobs, workers and records as opaque text. This list is the one
//! place outside their folders that names them.

pub mod joblib;
pub mod neops;
pub mod silo;
pub mod workflow_graph;

use crate::{config::table::Table, dialect::Dialect};
use windlass_core::Namespace;

/// A constant, as each dialect is, and not a static: the compiler puts every static into every test program, with all the code
/// that it refers to, which here is the whole server.
pub const ALL: &[&Dialect] = &[workflow_graph::DIALECT, silo::DIALECT, joblib::DIALECT, neops::DIALECT];

/// Everything that can be set.
pub fn table() -> Table {
    table_of(ALL)
}

pub fn table_of(dialects: &[&'static Dialect]) -> Table {
    let mut table = Table::default();
    for dialect in dialects {
        table.settings.extend(dialect.settings);
        table.foreign.extend((dialect.foreign)());
        table.dialects.push(dialect.name());
        table.adjusted.push(dialect.adjusted);
    }
    table
}

/// Those that the setting names.
pub fn chosen(names: &[String]) -> Vec<&'static Dialect> {
    let named =
        |dialect: &&&Dialect| names.iter().any(|name| name == "all" || name.replace('_', "-") == dialect.name());
    ALL.iter().filter(named).copied().collect()
}

/// Of all of them that have one of their own.
pub fn namespaces() -> Vec<Namespace> {
    ALL.iter().filter_map(|dialect| Namespace::new(dialect.surface.rules.namespace?).ok()).collect()
}
