//! The newest run of a workflow, or of one version of it.

use super::{
    super::{body::time, runs::row},
    rows::{Last, Row},
};
use crate::{app::App, problem::Problem};
use serde_json::json;

pub async fn runs(app: &App) -> Result<Vec<Last>, Problem> {
    let last = |run: row::Row| {
        let version = run.workflow_id.rsplit_once(':').map(|(_, version)| version);
        let shown = json!({
            "id": run.uuid, "version": version, "status": run.status.as_str(), "createdAt": time(run.created_at),
            "triggerType": run.trigger, "startedAt": run.started_at.map(time), "finishedAt": run.finished_at.map(time),
        });
        Last { created_at: run.created_at, shown, workflow: run.workflow_id }
    };
    Ok(row::latest(app).await?.into_iter().map(last).collect())
}

/// Of any version, if the row stands for its workflow.
pub fn of(row: &Row, runs: &[Last], any_version: bool) -> Option<Last> {
    let name = |run: &Last| run.workflow.rsplit_once(':').is_some_and(|(name, _)| name == row.name);
    let fits = |run: &&Last| if any_version { name(run) } else { run.workflow == row.id };
    runs.iter().filter(fits).max_by_key(|run| run.created_at).cloned()
}
