//! The workflow-graph protocol: DAGs of shell commands, labels, renewable leases, streamed logs.
//!
//! Served so that its unmodified worker, its TypeScript client and its web page need nothing but the address. Known, deliberate
//! differences from the original: a completion is durable and its dependents are released before it is answered; labels and
//! retries of every job count; an expired lease is refused at once; a lease that runs out with no retries left fails its job;
//! a cancelled job ends cancelled and never runs again in that run; starting a run twice makes one; duplicate ids, unknown
//! dependencies and cycles are refused; lists are in order of creation; logs belong to the lease that sent them; no files are served.

pub mod array;
pub mod body;
mod claims;
pub mod file;
pub mod folder;
pub mod logs;
mod sample;
mod status;
pub mod translate;
pub mod wire;
mod workers;
mod workflows;

use crate::{
    config::{
        table::{self, Foreign, From, as_it_is},
        values::Values,
    },
    dialect::{self, Dialect, Served},
    route::{Access, Nameless, Route, Rules, Surface},
};
use windlass_core::Namespace;

const NAMESPACE: &str = "wfg";

pub const DIALECT: &Dialect = &Dialect {
    surface: Surface {
        name: "workflow_graph",
        // Its clients can send nothing but what an address holds: its worker http://worker:TOKEN@host:3000, its
        // TypeScript client http://host:3000/~TOKEN.
        rules: Rules {
            basic: true,
            in_path: true,
            nameless: Nameless::Works,
            namespace: Some(NAMESPACE),
            ..Rules::OURS
        },
    },
    prefixes: &[],
    respell: dialect::one_spelling,
    settings: &[],
    foreign,
    adjusted: crate::config::adjusted::none,
    start_worker: None,
    serve,
};

fn foreign() -> Vec<Foreign> {
    let variable = |name, to, convert| Foreign { from: From::Variable(name), to, convert };
    vec![
        variable("CORS_ORIGINS", table::origins, as_it_is),
        variable("WORKFLOWS_DIR", table::workflows, as_it_is),
        variable("PORT", table::listen, port_here),
    ]
}

/// A port alone says nothing about who may come in, so it is opened to this machine only.
fn port_here(text: &str) -> Result<String, String> {
    let port: u16 = text.trim().parse().map_err(|_| format!("{text:?} is not a port"))?;
    Ok(format!("127.0.0.1:{port}"))
}

/// Its files may lie beside native workflows.
fn serve(read: &Values) -> Served {
    let folder = read.path(table::workflows);
    Served::new(routes()).starts(move |app| folder::start(app, folder.clone()))
}

/// Logs come in bursts of half a second, however long.
const LOGS_BODY_MAX: usize = 64 << 20;
const CREATE_BODY_MAX: usize = 32 << 20;

/// All of this dialect's jobs, workers and workflows live here.
pub fn namespace() -> Namespace {
    Namespace::new(NAMESPACE).expect("a legal name")
}

fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/workflows", Access::Viewer, workflows::list).says("List workflows"),
        Route::post("/api/workflows", Access::Editor, workflows::create)
            .behind()
            .says("Create a workflow")
            .body_max(CREATE_BODY_MAX),
        Route::post("/api/workflows/sample", Access::Editor, workflows::sample).says("Create the sample workflow"),
        Route::get("/api/workflows/{id}/status", Access::Viewer, workflows::status).says("A workflow and its jobs"),
        Route::post("/api/workflows/{id}/run", Access::Editor, workflows::run).behind().says("Run a workflow"),
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
    ]
}
