//! Workers: made, heard, removed and listed.

use super::{
    Joblib, Own,
    body::{Json, Params, Path, created, ok, page, paging, path_id, time},
    error::{FORBIDDEN, HttpError, Result, WORKER_NOT_FOUND},
    listing::{self, cut, live_jobs, seen_from},
    names::check_room,
    namespace,
    registration::registration,
    who::Who,
};
use crate::{
    app::App,
    dialect::Mount,
    route::{Access, Route},
};
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::StatusCode;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use windlass_api::Uuid;
use windlass_core::{
    Record, Refusal, WorkerId,
    commands::workers::{Heartbeat, UnregisterWorker},
    worker::Worker,
};
use windlass_engine::{Error, ids, records::readable, store::RecordQuery};

pub fn routes(on: &Mount<Own>) -> Vec<Route> {
    vec![
        on.post("/v1/joblib/workers", Access::EditorOrWorker, create).says("Make a worker"),
        on.get("/v1/joblib/workers", Access::Any, list).says("All workers"),
        on.patch("/v1/joblib/workers/{worker_id}", Access::EditorOrWorker, beat).says("A heartbeat"),
        on.delete("/v1/joblib/workers/{worker_id}", Access::EditorOrWorker, remove).says("Remove a worker"),
        on.get("/v1/joblib/rooms/{room_id}/workers", Access::Any, in_room).says("Workers of the jobs seen in a room"),
    ]
}

/// Whose a worker or a task is.
pub fn owner(who: &Who) -> Arc<str> {
    who.id.to_string().into()
}

pub fn worker_id(id: Uuid) -> WorkerId {
    WorkerId::trusted(&id.to_string())
}

fn show(worker: &Worker) -> Value {
    json!({"id": worker.id.as_str(), "last_heartbeat": time(worker.last_seen)})
}

async fn create(State(joblib): State<Joblib>, who: Who) -> Result<Json<Value>> {
    let worker = joblib.engine.run(registration(&joblib, ids::secret(), who.id)).await?;
    Ok(created(show(&worker)))
}

fn refused(id: Uuid) -> impl Fn(Error) -> HttpError {
    move |error| match error {
        Error::Refused(Refusal::NotFound { .. }) => WORKER_NOT_FOUND.error(format!("Worker '{id}' not found")),
        Error::Refused(Refusal::Forbidden { .. }) => FORBIDDEN.error("Worker belongs to different user"),
        other => other.into(),
    }
}

async fn beat(State(app): State<App>, Path(id): Path<String>, who: Who) -> Result<Json<Value>> {
    let id = path_id("worker_id", &id)?;
    let beat = Heartbeat { namespace: namespace(), worker: worker_id(id), principal: Some(owner(&who)) };
    let worker = app.engine.run(beat).await.map_err(refused(id))?;
    Ok(ok(show(&worker)))
}

async fn remove(State(app): State<App>, Path(id): Path<String>, who: Who) -> Result<Response> {
    let id = path_id("worker_id", &id)?;
    let principal = (!who.superuser).then(|| owner(&who));
    let remove =
        UnregisterWorker { namespace: namespace(), worker: worker_id(id), how: None, only_offline: false, principal };
    app.engine.run(remove).await.map_err(refused(id))?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn list(State(app): State<App>, params: Params) -> Result<Json<Value>> {
    shown(&app, &params, |_| true).await
}

async fn in_room(State(app): State<App>, Path(room): Path<String>, params: Params) -> Result<Json<Value>> {
    check_room(&room)?;
    paging(&params)?;
    let mut live = HashSet::new();
    for room in seen_from(&room) {
        live.extend(live_jobs(&app, room).await?.into_iter().map(|(name, _)| name));
    }
    let live = Arc::new(live);
    shown(&app, &params, move |worker| worker.tags.iter().any(|job| live.contains(job))).await
}

/// With a thousand jobs each, these are many bytes.
const PAGE: usize = 64;

/// Newest first. What a worker offers are the jobs it is linked to.
async fn shown(
    app: &App,
    params: &Params,
    wanted: impl Fn(&Worker) -> bool + Clone + Send + 'static,
) -> Result<Json<Value>> {
    let paging = paging(params)?;
    let query = RecordQuery { limit: PAGE, ..listing::query::<Worker>() };
    let keep = move |record: &Record| {
        let worker = readable::<Worker>(record).filter(&wanted)?;
        let mut item = show(&worker);
        item["job_count"] = json!(worker.tags.len());
        Some((worker.registered_at, worker.id, item))
    };
    let mut workers = listing::gather(app, query, "", keep).await?;
    workers.sort_by(|(a, of_a, _), (b, of_b, _)| (b, of_b).cmp(&(a, of_a)));
    let (part, total) = cut(workers, paging);
    Ok(page(part.into_iter().map(|(_, _, item)| item).collect(), total, paging))
}
