//! What a job came to. A result that is too large for the store is a file of its job, and a short note says where.

use super::{Result, namespace};
use crate::{
    app::App,
    artifacts, content,
    problem::{Code, Problem},
    quota::Owner,
    wire_time,
};
use axum::{body::Body, extract::Request};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use windlass_api::{Uuid, artifact::Artifact};
use windlass_core::{JobId, JobKey, Payload};
use windlass_engine::ids;

/// A result as it is kept: what the worker said, and what an acquire job found.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredResult {
    pub success: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub db_updates: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acquires: Option<Box<RawValue>>,
}

/// Stands in the place of a result that is a file.
#[derive(Deserialize, Serialize)]
struct Elsewhere {
    #[serde(rename = "$artifact")]
    artifact: Uuid,
}

/// What is no longer than this is read and written on the spot.
pub const SMALL: usize = 16 << 10;
/// Results that are read at a time. Each has at most what a payload may have; files are read one by one.
const AT_ONCE: usize = 16;
const NAME: &str = "result.json";
/// No other result begins so.
const MARK: &[u8] = br#"{"$artifact""#;

fn elsewhere(payload: &Payload) -> Option<Uuid> {
    let text = Some(payload.as_bytes()).filter(|text| text.starts_with(MARK))?;
    serde_json::from_slice(text).ok().map(|Elsewhere { artifact }| artifact)
}

/// What to report: the result itself, or the note of the file that was written.
pub async fn keep(app: &App, job: JobId, text: Vec<u8>) -> Result<Payload> {
    if text.len() <= app.engine.settings().limits.payload_bytes_max {
        return Ok(Payload::from(text));
    }
    let owner = Owner { namespace: namespace(), job: Some(job.0) };
    let id = ids::job_id().0;
    let request = Request::new(Body::from(text));
    let (size, sha256, grant) = content::receive(app, &owner, id, request, None).await?;
    let artifact = Artifact {
        id,
        namespace: namespace().to_string(),
        name: NAME.into(),
        size,
        sha256,
        content_type: Some("application/json".into()),
        job: owner.job,
        created_at: wire_time::text(app.engine.now().await?),
    };
    if let Err(error) = app.engine.run(artifacts::put(&namespace(), &artifact)?).await {
        content::remove(app, id).await;
        return Err(error.into());
    }
    grant.keep(size);
    let note = serde_json::to_string(&Elsewhere { artifact: id }).expect("plain data");
    Ok(Payload::from(note.as_str()))
}

/// The file was written for a report that was refused.
pub async fn forget(app: &App, payload: &Payload) {
    if let Some(artifact) = elsewhere(payload) {
        content::remove(app, artifact).await;
        // What is left over goes with the job.
        let _ = app.engine.run(artifacts::forget(artifact)).await;
    }
}

/// The whole text of a result. None: there is none.
pub async fn text(app: &App, key: &JobKey) -> Result<Option<Bytes>, Problem> {
    let found = app.engine.store().results(std::slice::from_ref(key)).await?;
    let Some((_, payload)) = found.into_iter().next().filter(|(_, payload)| !payload.is_empty()) else {
        return Ok(None);
    };
    match elsewhere(&payload) {
        Some(artifact) => content::bytes(app, artifact).await,
        None => Ok(Some(Bytes::copy_from_slice(payload.as_bytes()))),
    }
}

/// What is made of each of these results, where there is one. `take` gets its text, and whether it has only a moment; None: that
/// is not enough.
pub async fn each<T: Send + 'static>(
    app: &App,
    keys: &[JobKey],
    take: impl Fn(&[u8], bool) -> Option<T> + Clone + Send + 'static,
) -> Result<Vec<(JobId, T)>, Problem> {
    let mut all = Vec::with_capacity(keys.len());
    for some in keys.chunks(AT_ONCE) {
        let (mut short, mut long) = (Vec::new(), Vec::new());
        for (JobKey { id, .. }, payload) in app.engine.store().results(some).await? {
            match elsewhere(&payload) {
                _ if payload.is_empty() => {}
                Some(artifact) => long.push((id, artifact)),
                None => short.push((id, payload)),
            }
        }
        short.retain(|(id, payload)| {
            let made = if payload.len() <= SMALL { take(payload.as_bytes(), true) } else { None };
            let is_left = made.is_none();
            all.extend(made.map(|made| (*id, made)));
            is_left
        });
        if !short.is_empty() {
            let take = take.clone();
            let make = move || -> Vec<(JobId, Option<T>)> {
                short.into_iter().map(|(id, payload)| (id, take(payload.as_bytes(), false))).collect()
            };
            let made = app.aside.run(&namespace(), make).await?;
            all.extend(made.into_iter().filter_map(|(id, made)| Some((id, made?))));
        }
        for (id, artifact) in long {
            let Some(text) = content::bytes(app, artifact).await? else { continue };
            let take = take.clone();
            let made = app.aside.run(&namespace(), move || take(&text, false)).await?;
            all.extend(made.map(|made| (id, made)));
        }
    }
    Ok(all)
}

/// Only its outer fields are taken apart.
pub async fn outline(app: &App, key: &JobKey) -> Result<Option<StoredResult>, Problem> {
    let Some(text) = text(app, key).await? else { return Ok(None) };
    let parse = move || serde_json::from_slice(&text).map_err(|_| unreadable());
    app.aside.run(&namespace(), parse).await?.map(Some)
}

/// The same, and how long it is, unless it is longer than there is room for.
pub async fn small(app: &App, key: &JobKey, most: usize) -> Result<Option<(StoredResult, usize)>, Problem> {
    let found = app.engine.store().results(std::slice::from_ref(key)).await?;
    let Some((_, payload)) = found.into_iter().next() else { return Ok(Some((StoredResult::default(), 0))) };
    if payload.len() > most || elsewhere(&payload).is_some() {
        return Ok(None);
    }
    let bytes = payload.len();
    let parse = move || serde_json::from_slice(payload.as_bytes()).map_err(|_| unreadable());
    Ok(Some((app.aside.run(&namespace(), parse).await??, bytes)))
}

fn unreadable() -> Problem {
    Problem::new(Code::Damaged, "the job's result cannot be read")
}
