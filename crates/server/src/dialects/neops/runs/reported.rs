//! Passwords that a result brings. The result can be read by people, so they are kept beside it for the run, which needs them for
//! the context of later steps and for the entities.

use super::context::UPDATE_BYTES_MAX;
use crate::{
    app::App,
    dialects::neops::{HttpError, Result, job::JobBrief, namespace},
    problem::Problem,
};
use serde_json::{Value, json, value::RawValue};
use windlass_core::{
    Command, Job, JobId, JobKey, RecordKey,
    commands::records::{Expect, PutRecord},
    stage::OF_RUN,
};
use windlass_plan::neops::{
    secrets::{self, Masked},
    updates::Update,
};

/// Masks the passwords in a result's updates. None: there are none.
pub fn mask(updates: &RawValue) -> Result<Option<(Box<RawValue>, Masked)>> {
    // A name may also be written with escapes.
    if !["assword", "\\u"].iter().any(|part| updates.get().contains(part)) {
        return Ok(None);
    }
    let odd = |error: serde_json::Error| HttpError::bad(format!("result.dbUpdates: {error}"));
    let mut value: Value = serde_json::from_str(updates.get()).map_err(odd)?;
    let masked = secrets::mask(&mut value);
    if masked.is_empty() {
        return Ok(None);
    }
    let bytes = json!(masked).to_string().len();
    if bytes > UPDATE_BYTES_MAX {
        return Err(HttpError::bad(format!(
            "result.dbUpdates: its passwords have {bytes} bytes together with their places; at most {UPDATE_BYTES_MAX}"
        )));
    }
    Ok(Some((serde_json::value::to_raw_value(&value).map_err(odd)?, masked)))
}

fn key(run: windlass_api::Uuid, job: JobId) -> RecordKey {
    RecordKey { namespace: namespace(), kind: OF_RUN.into(), key: format!("{run}/secret/{job}").into() }
}

/// Keeps what was masked in the result of a job. A second result keeps nothing.
pub async fn keep(app: &App, job: JobId, masked: &Masked) -> Result<Option<Command>, Problem> {
    if masked.is_empty() {
        return Ok(None);
    }
    let found = app.engine.store().job(&JobKey::new(&namespace(), job)).await?;
    let Some(told) = found.as_ref().and_then(JobBrief::of) else { return Ok(None) };
    let put = PutRecord {
        key: key(told.run, job),
        expect: Expect::Nothing,
        parent: Some(told.run.to_string().into()),
        value: json!(masked).to_string().into(),
        facets: Vec::new(),
        expires_at: None,
    };
    Ok(Some(put.into()))
}

/// The updates of a job's result, with the passwords in them. The error is the run's own.
pub async fn whole(app: &App, job: &Job, updates: Vec<Value>) -> Result<Result<Vec<Value>, String>, Problem> {
    if !secrets::has_mask(&updates) {
        return Ok(Ok(updates));
    }
    let Some(told) = JobBrief::of(job) else { return Ok(Ok(updates)) };
    let Some(record) = app.engine.store().record(&key(told.run, job.key.id)).await? else { return Ok(Ok(updates)) };
    let updates = secrets::unmask(updates, serde_json::from_str(&record.value).unwrap_or_default());
    let checked = Update::read_all(&json!({ "updates": updates }), "dbUpdates");
    let first = checked.err().and_then(|faults| faults.first().map(|fault| format!("{}: {}", fault.place, fault.text)));
    Ok(first.map_or(Ok(updates), Err))
}
