//! `/api/v1/workers`.

use super::{jobs::WAIT_MS_MAX, records_page};
use crate::{
    app::App,
    ask::{Answer, Ask, Path, Query, Sent, ok},
    convert, history,
    problem::{Code, Problem, Result},
    route::{Access, Route},
    wire_time::millis,
};
use axum::extract::State;
use http::StatusCode;
use std::time::Duration;
use windlass_api::{
    overview::WorkerFigures,
    page::{Page, Paging},
    worker::{DrainWorker, RegisterWorker, WatchWorker, Worker, WorkerName, WorkerNews},
};
use windlass_core::{
    WorkerId, WorkerKey,
    commands::{audited::Audited, workers as core},
    policy::{Unregister, WorkerPolicy},
    record::Kind,
    worker::Worker as Row,
};

pub fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/v1/workers/register", Access::Worker, register)
            .says("Register a worker, or replace its registration")
            .takes::<RegisterWorker>()
            .answers::<Worker>(200)
            .refuses(&[Code::Invalid, Code::TooLarge, Code::Forbidden]),
        Route::post("/api/v1/workers/heartbeat", Access::Worker, heartbeat)
            .says("Say that the worker is alive")
            .takes::<WorkerName>()
            .answers::<Worker>(200)
            .refuses(&[Code::NotFound, Code::Invalid, Code::Forbidden]),
        Route::post("/api/v1/workers/unregister", Access::Worker, unregister)
            .says("Unregister a worker; jobs it holds return to the queue")
            .takes::<WorkerName>()
            .answers_with(204, "")
            .refuses(&[Code::NotFound, Code::Invalid, Code::Forbidden]),
        Route::post("/api/v1/workers/watch", Access::Worker, watch)
            .says("Wait until a job of the worker is cancelled or revoked, or the worker is drained or undrained")
            .takes::<WatchWorker>()
            .answers::<WorkerNews>(200)
            .refuses(&[Code::Invalid, Code::Forbidden]),
        Route::get("/api/v1/workers", Access::Viewer, list)
            .says("List workers by name")
            .query::<Paging>()
            .answers::<Page<Worker>>(200)
            .refuses(&[Code::Invalid]),
        Route::get("/api/v1/workers/{worker}", Access::Viewer, show)
            .says("One worker")
            .answers::<Worker>(200)
            .refuses(&[Code::NotFound]),
        Route::get("/api/v1/workers/{worker}/figures", Access::Viewer, figures)
            .says("How a worker's attempts ended in the last day, beside those of all workers")
            .answers::<WorkerFigures>(200),
        Route::post("/api/v1/workers/{worker}/drain", Access::Editor, drain)
            .says("Drain a worker (it finishes its jobs and claims no more), or end the drain")
            .takes::<DrainWorker>()
            .answers::<Worker>(200)
            .refuses(&[Code::NotFound]),
        Route::delete("/api/v1/workers/{worker}", Access::Admin, delete)
            .says("Delete a worker; jobs it holds count as lost")
            .answers_with(204, "")
            .refuses(&[Code::NotFound]),
    ]
}

async fn answer(app: &App, ask: &Ask, worker: &Row) -> Result<Answer<Worker>> {
    // A worker that was just written was seen by the clock that decides.
    Ok(ok(convert::worker(&ask.namespace, worker, app.engine.now().await?)))
}

async fn register(State(app): State<App>, ask: Ask, Sent(body): Sent<RegisterWorker>) -> Result<Answer<Worker>> {
    let default = WorkerPolicy::default();
    let command = core::RegisterWorker {
        namespace: ask.namespace.clone(),
        worker: WorkerId::new(&body.worker)?,
        tags: convert::tags(&body.tags),
        slots: body.slots,
        owner: Some(ask.caller.name.clone()),
        policy: WorkerPolicy {
            offline_after: body.offline_after_ms.map_or(default.offline_after, millis),
            delete_after: body.delete_after_ms.map(millis).or(default.delete_after),
            ..default
        },
        extra: body.info.as_ref().map(|info| info.to_string().into()),
    };
    answer(&app, &ask, &*app.engine.run(command).await?).await
}

async fn heartbeat(State(app): State<App>, ask: Ask, Sent(body): Sent<WorkerName>) -> Result<Answer<Worker>> {
    let worker = WorkerId::new(&body.worker)?;
    let worker = app
        .engine
        .run(core::Heartbeat { namespace: ask.namespace.clone(), worker, principal: Some(ask.caller.name.clone()) })
        .await?;
    answer(&app, &ask, &worker).await
}

async fn unregister(State(app): State<App>, ask: Ask, Sent(body): Sent<WorkerName>) -> Result<StatusCode> {
    let worker = WorkerId::new(&body.worker)?;
    let (namespace, principal) = (ask.namespace.clone(), Some(ask.caller.name.clone()));
    app.engine.run(core::UnregisterWorker { namespace, worker, how: None, only_offline: false, principal }).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn watch(State(app): State<App>, ask: Ask, Sent(body): Sent<WatchWorker>) -> Result<Answer<WorkerNews>> {
    let (namespace, worker) = (ask.namespace.clone(), WorkerId::new(&body.worker)?);
    let wait = body.wait_ms.unwrap_or(0);
    if wait > WAIT_MS_MAX {
        return Err(Problem::invalid("wait_ms", format!("{wait} is more than {WAIT_MS_MAX}")));
    }
    let row = app.engine.read_record::<Row>(&namespace, worker.as_str()).await?;
    if row.is_some_and(|row| row.owner.is_some_and(|owner| owner != ask.caller.name)) {
        return Err(Problem::new(Code::Forbidden, format!("the worker {worker} belongs to somebody else")));
    }
    let wait = Duration::from_millis(wait);
    let (news, seen) = app.engine.notice(&WorkerKey { namespace, worker }, body.seen.as_deref(), wait).await;
    Ok(ok(WorkerNews { news, seen }))
}

async fn list(State(app): State<App>, ask: Ask, Query(query): Query<Paging>) -> Result<Answer<Page<Worker>>> {
    let (found, next) = records_page(&app, &ask.namespace, Row::KIND, &query).await?;
    let now = app.engine.now().await?;
    let rows = found.iter().filter_map(|record| serde_json::from_str::<Row>(&record.value).ok());
    Ok(ok(Page { items: rows.map(|row| convert::worker(&ask.namespace, &row, now)).collect(), next }))
}

async fn show(State(app): State<App>, ask: Ask, Path(name): Path<String>) -> Result<Answer<Worker>> {
    let row = app.engine.read_record::<Row>(&ask.namespace, &name).await?;
    let row = row.ok_or_else(|| Problem::not_found("worker", &name))?;
    Ok(ok(convert::worker(&ask.namespace, &row, app.engine.now().await?)))
}

/// Also of a worker that is gone.
async fn figures(State(app): State<App>, ask: Ask, Path(name): Path<String>) -> Result<Answer<WorkerFigures>> {
    let (own, fleet) = history::workers::told(&app, &ask.namespace, &name, app.engine.now().await?).await?;
    Ok(ok(WorkerFigures {
        completed: own.completed,
        failed: own.failed,
        fleet_completed: fleet.completed,
        fleet_failed: fleet.failed,
    }))
}

async fn drain(
    State(app): State<App>,
    ask: Ask,
    Path(name): Path<String>,
    Sent(body): Sent<DrainWorker>,
) -> Result<Answer<Worker>> {
    let worker = WorkerId::new(&name)?;
    let draining = body.draining.unwrap_or(true);
    let drain = core::DrainWorker { namespace: ask.namespace.clone(), worker, draining, principal: None };
    answer(&app, &ask, &*app.engine.run(Audited::new(&ask.caller.name, drain)).await?).await
}

async fn delete(State(app): State<App>, ask: Ask, Path(name): Path<String>) -> Result<StatusCode> {
    let worker = WorkerId::new(&name)?;
    let how = Some(Unregister::Fail);
    let delete =
        core::UnregisterWorker { namespace: ask.namespace.clone(), worker, how, only_offline: false, principal: None };
    app.engine.run(Audited::new(&ask.caller.name, delete)).await?;
    Ok(StatusCode::NO_CONTENT)
}
