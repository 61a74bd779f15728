//! Workers: made, heard, removed and listed.

use super::{
    Joblib, Own,
    body::{Json, Params, Path, created, ok, page, path_id, time},
    error::{FORBIDDEN, HttpError, WORKER_NOT_FOUND},
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
    Refusal, WorkerId,
    commands::workers::{Heartbeat, UnregisterWorker},
    link::Link,
    worker::Worker,
};
use windlass_engine::{Error, ids, store::RecordQuery};

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

async fn create(State(joblib): State<Joblib>, who: Who) -> Result<Json<Value>, HttpError> {
    let worker = joblib.engine.run(registration(&joblib, ids::secret(), who.id)).await?;
    Ok(created(show(&worker)))
}

fn refused(id: Uuid) -> impl Fn(Error) -> HttpError {
    move |error| match error {
        Error::Refused(Refusal::NotFound { .. }) => WORKER_NOT_FOUND.no(format!("Worker '{id}' not found")),
        Error::Refused(Refusal::Forbidden { .. }) => FORBIDDEN.no("Worker belongs to different user"),
        other => other.into(),
    }
}

async fn beat(State(app): State<App>, Path(id): Path<String>, who: Who) -> Result<Json<Value>, HttpError> {
    let id = path_id("worker_id", &id)?;
    let beat = Heartbeat { namespace: namespace(), worker: worker_id(id), principal: Some(owner(&who)) };
    let worker = app.engine.run(beat).await.map_err(refused(id))?;
    Ok(ok(show(&worker)))
}

async fn remove(State(app): State<App>, Path(id): Path<String>, who: Who) -> Result<Response, HttpError> {
    let id = path_id("worker_id", &id)?;
    let principal = (!who.superuser).then(|| owner(&who));
    let remove =
        UnregisterWorker { namespace: namespace(), worker: worker_id(id), how: None, only_offline: false, principal };
    app.engine.run(remove).await.map_err(refused(id))?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn list(State(app): State<App>, params: Params) -> Result<Json<Value>, HttpError> {
    shown(&app, &params, |_| true).await
}

async fn in_room(State(app): State<App>, Path(room): Path<String>, params: Params) -> Result<Json<Value>, HttpError> {
    check_room(&room)?;
    params.paging()?;
    let mut live = HashSet::new();
    for room in seen_from(&room) {
        live.extend(live_jobs(&app, room).await?.into_iter().map(|(name, _)| name));
    }
    let links = listing::all(&app, listing::query::<Link>(), |_| true).await?;
    let serving = links.iter().filter_map(listing::read::<Link>).filter(|link| live.contains(&link.definition));
    let serving: HashSet<WorkerId> = serving.map(|link| link.worker).collect();
    shown(&app, &params, |worker| serving.contains(&worker.id)).await
}

/// Newest first.
async fn shown(app: &App, params: &Params, wanted: impl Fn(&Worker) -> bool) -> Result<Json<Value>, HttpError> {
    let paging = params.paging()?;
    let found = listing::all(app, listing::query::<Worker>(), |_| true).await?;
    let mut workers: Vec<Worker> = found.iter().filter_map(listing::read::<Worker>).filter(wanted).collect();
    workers.sort_by(|a, b| (b.registered_at, &b.id).cmp(&(a.registered_at, &a.id)));
    let (part, total) = cut(workers, paging);
    let mut items = Vec::with_capacity(part.len());
    for worker in part {
        let links = RecordQuery { parent: Some(worker.id.as_str().into()), ..listing::query::<Link>() };
        let mut item = show(&worker);
        item["job_count"] = json!(app.engine.store().count_records(&links).await?);
        items.push(item);
    }
    Ok(page(items, total, paging))
}
