//! The entities that a job sees. They are kept once for the whole run, and join the job when it is handed out.

use super::{Neops, job::JobBrief, runs};
use crate::problem::Problem;
use serde_json::value::{RawValue, to_raw_value};
use std::sync::{Arc, LazyLock};

static EMPTY: LazyLock<Arc<RawValue>> =
    LazyLock::new(|| to_raw_value(&runs::context::empty()).expect("plain data").into());

/// As JSON.
pub async fn text(neops: &Neops, told: &JobBrief) -> Result<Arc<RawValue>, Problem> {
    match told.context {
        None => Ok(EMPTY.clone()),
        Some(_) => runs::context::text(neops, told).await,
    }
}
