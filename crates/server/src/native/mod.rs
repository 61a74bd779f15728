//! The native API: a file per resource.

pub mod artifacts;
pub mod convert;
pub mod definitions;
pub mod docs;
pub mod events;
pub mod graphs;
pub mod items;
pub mod jobs;
pub mod leases;
mod log_search;
pub mod logs;
pub mod once;
pub mod openapi;
pub mod overview;
mod pages;
pub mod principals;
pub mod pulse;
mod ruling;
pub mod runs;
mod said;
pub mod schedules;
pub mod session;
pub mod stats;
pub mod tokens;
pub mod why;
pub mod workers;
pub mod workflows;

use crate::{app::App, problem::Problem, route::Route, schema::Schemas, streams::Streams};
use windlass_api::page::Paging;
use windlass_core::{Namespace, Record};
use windlass_engine::store::RecordQuery;

/// Where it lies, but for the pages that describe it.
pub const ROOT: &str = "/api/v1";

/// What its handlers share beside the engine.
#[derive(Default)]
pub struct Shared {
    pub schemas: Schemas,
    pub streams: Streams,
    pub plans: crate::flows::planner::Plans,
    pub later: crate::flows::planner::Later,
    /// Rung when a schedule was written here.
    pub scheduler: tokio::sync::Notify,
    /// One-time codes to sign in with.
    pub codes: crate::session::Codes,
    pub pulses: pulse::Pulses,
    pub once: once::Once,
}

/// All of it, in the order of its description.
pub fn routes() -> Vec<Route> {
    [
        jobs::routes(),
        why::routes(),
        logs::routes(),
        log_search::routes(),
        leases::routes(),
        workers::routes(),
        definitions::routes(),
        schedules::routes(),
        workflows::routes(),
        runs::routes(),
        artifacts::routes(),
        items::routes(),
        graphs::routes(),
        events::routes(),
        pulse::routes(),
        tokens::routes(),
        principals::routes(),
        session::routes(),
        stats::routes(),
        overview::routes(),
        docs::routes(),
    ]
    .concat()
}

/// One page of the records of a kind, by key, and the cursor of the next.
async fn records_page(
    app: &App,
    namespace: &Namespace,
    kind: &str,
    paging: &Paging,
) -> Result<(Vec<Record>, Option<String>), Problem> {
    let limit = jobs::page_size(paging.limit)?;
    let query = RecordQuery {
        after: paging.cursor.as_deref().map(Into::into),
        limit,
        ..RecordQuery::all(namespace.clone(), kind)
    };
    pages::records(app, query).await
}
