//! The native API: a file per resource.

pub mod artifacts;
pub mod convert;
pub mod definitions;
pub mod docs;
pub mod events;
pub mod jobs;
pub mod leases;
pub mod logs;
pub mod openapi;
pub mod schedules;
pub mod stats;
pub mod tokens;
pub mod why;
pub mod workers;

use crate::{route::Route, schema::Schemas, sse::Streams};

/// What its handlers share beside the engine.
#[derive(Default)]
pub struct Shared {
    pub schemas: Schemas,
    pub streams: Streams,
    /// Rung when a schedule was written here.
    pub scheduler: tokio::sync::Notify,
}

/// All of it, in the order of its description.
pub fn routes() -> Vec<Route> {
    [
        jobs::routes(),
        why::routes(),
        logs::routes(),
        leases::routes(),
        workers::routes(),
        definitions::routes(),
        schedules::routes(),
        artifacts::routes(),
        events::routes(),
        tokens::routes(),
        stats::routes(),
        docs::routes(),
    ]
    .concat()
}
