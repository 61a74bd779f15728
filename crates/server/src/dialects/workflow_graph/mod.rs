//! The workflow-graph protocol: DAGs of shell commands, labels, renewable leases, streamed logs.
//!
//! Served so that its unmodified worker, its TypeScript client and its web page need nothing but the address. Known, deliberate
//! differences from the original: a completion is durable and its dependents are released before it is answered; labels and
//! retries of every job count; an expired lease is refused at once; a lease that runs out with no retries left fails its job;
//! a cancelled job ends cancelled and never runs again in that run; starting a run twice makes one; duplicate ids, unknown
//! dependencies and cycles are refused; lists are in order of creation; logs belong to the lease that sent them; no files are served.

mod body;
mod claims;
pub mod file;
pub mod folder;
mod logs;
mod sample;
mod status;
mod translate;
mod wire;
mod workers;
mod workflows;

use crate::route::{Access, Route, Surface};
use windlass_core::Namespace;

/// Logs come in bursts of half a second, however long.
const LOGS_BODY_MAX: usize = 64 << 20;
const CREATE_BODY_MAX: usize = 32 << 20;

/// All of this dialect's jobs, workers and workflows live here.
pub fn namespace() -> Namespace {
    Namespace::new("wfg").expect("a legal name")
}

pub fn routes() -> Vec<Route> {
    let routes = vec![
        Route::get("/api/workflows", Access::Viewer, workflows::list).says("List workflows"),
        Route::post("/api/workflows", Access::Editor, workflows::create)
            .says("Create a workflow")
            .body_max(CREATE_BODY_MAX),
        Route::post("/api/workflows/sample", Access::Editor, workflows::sample).says("Create the sample workflow"),
        Route::get("/api/workflows/{id}/status", Access::Viewer, workflows::status).says("A workflow and its jobs"),
        Route::post("/api/workflows/{id}/run", Access::Editor, workflows::run).says("Run a workflow"),
        Route::post("/api/workflows/{id}/cancel", Access::Editor, workflows::cancel).says("Cancel a workflow's run"),
        Route::get("/api/workflows/{id}/jobs/{job}/logs", Access::Viewer, logs::list).says("A job's log"),
        Route::get("/api/workflows/{id}/jobs/{job}/logs/stream", Access::Viewer, logs::stream)
            .says("A job's log, live"),
        Route::post("/api/workers/register", Access::Worker, workers::register).says("Register a worker"),
        Route::post("/api/workers/{id}/heartbeat", Access::Worker, workers::heartbeat).says("A worker's sign of life"),
        Route::get("/api/workers", Access::Viewer, workers::list).says("List workers"),
        Route::post("/api/jobs/claim", Access::Worker, claims::claim).says("Claim a job"),
        Route::post("/api/jobs/{id}/heartbeat", Access::Worker, claims::heartbeat).says("Renew a lease"),
        Route::post("/api/jobs/{id}/complete", Access::Worker, claims::complete).says("Report success"),
        Route::post("/api/jobs/{id}/fail", Access::Worker, claims::fail).says("Report failure"),
        Route::post("/api/jobs/{id}/release", Access::Worker, claims::release).says("Give a job back"),
        Route::post("/api/jobs/{id}/logs", Access::Worker, logs::append).says("Send log lines").body_max(LOGS_BODY_MAX),
        Route::get("/api/jobs/{id}/{job}/cancelled", Access::Worker, claims::cancelled).says("Was the job cancelled?"),
        // Another protocol's path begins like this one of a job that is called so.
        Route::get("/api/jobs/{id}/artifacts/cancelled", Access::Worker, claims::artifacts_cancelled)
            .says("Was the job named artifacts cancelled?"),
    ];
    routes.into_iter().map(|route| route.on(Surface::WorkflowGraph)).collect()
}
