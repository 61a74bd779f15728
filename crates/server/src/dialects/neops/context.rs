//! The entities that a job sees. They are kept once for the whole run, and join the job when it is handed out.

use super::{Neops, job::JobBrief, runs};
use crate::problem::Problem;
use std::sync::Arc;

const EMPTY: &str = r#"{"devices":[],"deviceGroups":[],"interfaces":[]}"#;

/// As JSON.
pub async fn text(neops: &Neops, told: &JobBrief) -> Result<Arc<str>, Problem> {
    match told.context {
        None => Ok(EMPTY.into()),
        Some(version) => runs::context::text(neops, told.run, version).await,
    }
}
