//! Workers: registered by themselves, alive by any call.

use super::{
    body::{Json, Path, Result, Sent},
    namespace, translate, wire,
};
use crate::{app::App, auth::Caller};
use axum::extract::State;
use http::StatusCode;
use windlass_core::{
    WorkerId,
    commands::workers::{Heartbeat, RegisterWorker},
    record::Kind,
    worker::{Liveness, Worker},
};
use windlass_engine::store::{JobQuery, RecordQuery};

/// More workers than anybody lists at once.
const WORKERS_MAX: usize = 10_000;

pub async fn register(State(app): State<App>, caller: Caller, Sent(body): Sent<wire::Register>) -> Result<StatusCode> {
    let register = RegisterWorker {
        namespace: namespace(),
        worker: WorkerId::new(&body.worker_id)?,
        tags: translate::labels(&body.labels),
        slots: 1,
        owner: Some(caller.name.clone()),
        policy: translate::worker_policy(),
        // As sent: the labels a client sees again are the ones it gave.
        extra: serde_json::to_string(&body.labels).ok().map(Into::into),
    };
    app.engine.run(register).await?;
    Ok(StatusCode::OK)
}

pub async fn heartbeat(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<StatusCode> {
    let worker = WorkerId::new(&id)?;
    app.engine.run(Heartbeat { namespace: namespace(), worker, principal: Some(caller.name.clone()) }).await?;
    Ok(StatusCode::OK)
}

pub async fn list(State(app): State<App>) -> Result<Json<Vec<wire::WorkerInfo>>> {
    let query = RecordQuery { limit: WORKERS_MAX, ..RecordQuery::all(namespace(), Worker::KIND) };
    let now = app.engine.now().await?;
    let mut workers = Vec::new();
    for record in app.engine.store().records(&query).await? {
        let Ok(worker) = serde_json::from_str::<Worker>(&record.value) else { continue };
        let held =
            JobQuery { namespace: Some(namespace()), holder: Some(worker.id.clone()), limit: 1, ..JobQuery::default() };
        let job = app.engine.store().jobs(&held).await?.pop();
        let current_job = job.and_then(|job| job.spec.node.as_ref().map(|node| node.name.to_string()));
        let labels = worker.extra.as_deref().and_then(|labels| serde_json::from_str(labels).ok());
        let status = match (worker.liveness(now), &current_job) {
            (Liveness::Unreachable | Liveness::Offline, _) => "offline",
            (Liveness::Online, Some(_)) => "busy",
            (Liveness::Online, None) => "idle",
        };
        workers.push(wire::WorkerInfo {
            worker_id: worker.id.to_string(),
            labels: labels.unwrap_or_else(|| worker.tags.iter().map(str::to_owned).collect()),
            registered_at_ms: worker.registered_at.0.max(0) as u64,
            last_heartbeat_ms: worker.last_seen.0.max(0) as u64,
            current_job,
            status,
        });
    }
    workers.sort_by(|a, b| (a.registered_at_ms, &a.worker_id).cmp(&(b.registered_at_ms, &b.worker_id)));
    Ok(Json(StatusCode::OK, workers))
}
