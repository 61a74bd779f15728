//! Workflows and their runs, between the wire and the rules: how definitions are kept, how runs are made and retried, and
//! the duty that decides the steps whose turn has come.

pub mod begun;
mod decide;
mod facts;
pub mod folder;
pub mod planner;
pub mod reader;
pub mod retry;
pub mod start;
pub mod stored;
pub mod turns;

pub use decide::{in_turn, parts};

use crate::{app::App, problem::Result};
use windlass_core::{Job, Namespace, RunId};
use windlass_engine::store::JobQuery;

const PAGE: usize = 1_000;

/// All jobs of a run.
pub async fn jobs(app: &App, namespace: &Namespace, run: RunId) -> Result<Vec<Job>> {
    let mut query = JobQuery { namespace: Some(namespace.clone()), run: Some(run), limit: PAGE, ..JobQuery::default() };
    let mut all = Vec::new();
    loop {
        let mut page = app.engine.store().jobs(&query).await?;
        let last = page.last().map(|job| (job.key.namespace.clone(), job.key.id));
        let more = page.len() == PAGE;
        all.append(&mut page);
        if !more {
            return Ok(all);
        }
        query.before = last;
    }
}
