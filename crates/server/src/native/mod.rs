//! The native API: a file per resource.

pub mod artifacts;
pub mod audit;
pub mod codes;
pub mod definitions;
pub mod docs;
pub mod events;
pub mod graphs;
pub mod items;
pub mod jobs;
pub mod leases;
pub mod log_line;
pub mod log_search;
pub mod logs;
pub mod metrics;
#[cfg(feature = "schema")]
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

use crate::{app::App, health, problem::Result, route::Route, ui};
use windlass_api::page::Paging;
use windlass_core::{Namespace, Record};
use windlass_engine::store::RecordQuery;

/// Every route that a server has whatever dialects it serves, in the order of the description.
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
        audit::routes(),
        pulse::routes(),
        tokens::routes(),
        principals::routes(),
        session::routes(),
        stats::routes(),
        overview::routes(),
        docs::routes(),
        health::routes(),
        metrics::routes(),
        ui::routes(),
    ]
    .concat()
}

/// One page of the records of a kind, by key, and the cursor of the next.
async fn records_page(
    app: &App,
    namespace: &Namespace,
    kind: &str,
    paging: &Paging,
) -> Result<(Vec<Record>, Option<String>)> {
    let limit = jobs::page_size(paging.limit)?;
    let query = RecordQuery {
        after: paging.cursor.as_deref().map(Into::into),
        limit,
        ..RecordQuery::all(namespace.clone(), kind)
    };
    pages::records(app, query).await
}
