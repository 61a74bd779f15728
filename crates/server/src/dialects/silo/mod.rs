//! Silo's worker system and dependency graph: YAML definitions, triggers, runners with tags, events, items and their graphs.
//!
//! Served so that its clients and runners need nothing but the address. Known, deliberate differences from the original: an
//! expired job is refused to its runner at once, whether or not a sweep ran; finished jobs go after their retention;
//! events are kept by time and not in a ring, so a reader that was away for an hour misses nothing.

mod body;
mod bom;
mod dag;
pub mod definitions;
pub mod duties;
pub mod error;
mod events;
mod files;
mod items;
mod job_files;
mod jobs;
mod projects;
mod revisions;
mod runners;
pub mod schedule;
pub mod sessions;
mod show;
mod tokens;
pub mod trigger;
mod work;

use crate::{
    app::App,
    content::ROUTE_MAX,
    route::{Access, Route, Surface},
};
use axum::{extract::State, response::IntoResponse};
use http::StatusCode;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::{path::PathBuf, sync::atomic::AtomicUsize, time::Duration};
use windlass_api::Uuid;
use windlass_core::{Millis, Namespace};
use windlass_product::Products;

const BODY_MAX: usize = 10 << 20;

/// All of this dialect's jobs, runners and records live here.
pub fn namespace() -> Namespace {
    Namespace::new("silo").expect("a legal name")
}

/// The items of this dialect.
pub fn products(app: &App) -> Products {
    app.products(&namespace())
}

/// An id that follows from a name.
fn derived(kind: &str, name: &str) -> Uuid {
    let digest = Sha256::digest(format!("windlass silo {kind}\n{name}"));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    // Marked as made by a scheme of our own (RFC 9562, version 8).
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    Uuid::from_bytes(bytes)
}

/// What an operator chose about this dialect.
#[derive(Clone, Debug)]
pub struct Settings {
    pub directory: PathBuf,
    /// Somebody named the folder, so it should be there.
    pub directory_is_set: bool,
    pub watch: bool,
    pub runner_timeout: Millis,
    pub timeout_check: Duration,
    pub default_priority: i32,
    pub heartbeat: Duration,
    pub lock_timeout: Millis,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            directory: "/etc/silo/jobdefs".into(),
            directory_is_set: false,
            watch: false,
            runner_timeout: Millis::from_secs(90),
            timeout_check: Duration::from_secs(30),
            default_priority: 100,
            heartbeat: Duration::from_secs(30),
            lock_timeout: Millis::from_secs(15 * 60),
        }
    }
}

/// What its handlers share: copies of what the store has, and wake-ups.
#[derive(Default)]
pub struct Shared {
    definitions: definitions::Cache,
    /// How many problems the last look at the definitions folder found.
    faults: std::sync::Mutex<usize>,
    listeners: AtomicUsize,
    reload: tokio::sync::Mutex<()>,
    scheduler: tokio::sync::Notify,
}

async fn ready(State(app): State<App>) -> impl IntoResponse {
    let (status, word) = match crate::health::is_ready(&app).await {
        true => (StatusCode::OK, "ready"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
    };
    let faults = *app.silo.faults.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let listeners = events::listeners(&app.silo.listeners);
    body::Json(status, json!({"status": word, "mode": "normal", "sse_clients": listeners, "jobdef_errors": faults}))
}

pub fn routes() -> Vec<Route> {
    let all = [auth_routes(), job_routes(), runner_routes(), item_routes(), bom_routes(), graph_routes()].concat();
    let ordinary = all.into_iter().map(|route| route.body_max(BODY_MAX));
    ordinary.chain(file_routes()).map(|route| route.on(Surface::Silo)).collect()
}

fn file_routes() -> Vec<Route> {
    vec![
        Route::get("/api/items/{part}/revisions/{number}/files", Access::Viewer, files::list)
            .says("A revision's files"),
        Route::put("/api/items/{part}/revisions/{number}/files/{*name}", Access::Editor, files::upload)
            .says("Add a file to a revision")
            .body_max(ROUTE_MAX),
        Route::get("/api/items/{part}/revisions/{number}/files/{*name}", Access::Viewer, files::download)
            .says("A file of a revision"),
        Route::delete("/api/items/{part}/revisions/{number}/files/{*name}", Access::Editor, files::delete)
            .says("Delete a file of a revision"),
        Route::get("/api/runner/jobs/{id}/files", Access::Worker, job_files::list)
            .says("The files of a held job's item"),
        Route::get("/api/runner/jobs/{id}/files/{*name}", Access::Worker, job_files::download)
            .says("A file of a held job's item"),
        Route::put("/api/runner/jobs/{id}/artifacts/{*key}", Access::Worker, job_files::leave)
            .says("Leave a file that the job made")
            .body_max(ROUTE_MAX),
        Route::get("/api/jobs/{id}/artifacts", Access::Viewer, job_files::artifacts).says("The files a job left"),
        Route::get("/api/jobs/{id}/artifacts/{*key}", Access::Viewer, job_files::artifact).says("A file a job left"),
    ]
}

fn auth_routes() -> Vec<Route> {
    vec![
        Route::get("/ready", Access::Open, ready).says("Can it serve?"),
        Route::get("/api/auth/me", Access::Viewer, tokens::me).says("Who the token stands for"),
        Route::post("/api/auth/tokens", Access::Viewer, tokens::create).says("Make a token; it is shown this once"),
        Route::get("/api/auth/tokens", Access::Viewer, tokens::list).says("List tokens"),
        Route::delete("/api/auth/tokens/{id}", Access::Viewer, tokens::delete).says("Delete a token"),
        Route::get("/api/events", Access::Viewer, events::listen).says("Follow what happens"),
    ]
}

fn job_routes() -> Vec<Route> {
    vec![
        Route::get("/api/jobs", Access::Viewer, jobs::list).says("List jobs"),
        Route::post("/api/jobs", Access::Editor, jobs::create).says("Make a job of a definition"),
        Route::get("/api/jobs/{id}", Access::Viewer, jobs::one).says("One job"),
        Route::get("/api/jobs/claim", Access::Viewer, jobs::no_job).says("No job has this id"),
        Route::get("/api/jobs/{id}/logs", Access::Viewer, jobs::logs).says("A job's log"),
        Route::post("/api/jobs/{id}/cancel", Access::Editor, jobs::cancel).says("Cancel a job"),
        Route::get("/api/job-definitions", Access::Viewer, definitions::list).says("List definitions"),
        Route::get("/api/job-definitions/{name}", Access::Viewer, definitions::one).says("One definition"),
        Route::get("/api/job-definitions/reload", Access::Viewer, definitions::named_reload)
            .says("The definition of this name"),
        Route::post("/api/job-definitions/reload", Access::Admin, definitions::reload).says("Read the folder again"),
    ]
}

fn runner_routes() -> Vec<Route> {
    vec![
        Route::get("/api/runners", Access::Admin, runners::list).says("List runners"),
        Route::post("/api/runners", Access::Admin, runners::create)
            .says("Register a runner; its token is shown this once"),
        Route::get("/api/runners/{id}", Access::Admin, runners::one).says("One runner"),
        Route::delete("/api/runners/{id}", Access::Admin, runners::delete).says("Delete a runner; its jobs fail"),
        Route::post("/api/runner/heartbeat", Access::Worker, work::heartbeat).says("A runner's sign of life"),
        Route::post("/api/runner/claim", Access::Worker, work::claim).says("Claim a job"),
        Route::put("/api/runner/jobs/{id}/progress", Access::Worker, work::progress).says("Report progress"),
        Route::put("/api/runner/jobs/{id}/dag", Access::Worker, dag::put_for_job)
            .says("Write the graph of a job's item"),
        Route::post("/api/runner/jobs/{id}/complete", Access::Worker, work::complete).says("Report success"),
        Route::post("/api/runner/jobs/{id}/fail", Access::Worker, work::fail).says("Report failure"),
        Route::post("/api/runner/jobs/{id}/log", Access::Worker, work::log).says("Append to the job's log"),
    ]
}

fn item_routes() -> Vec<Route> {
    vec![
        Route::get("/api/items", Access::Viewer, items::list).says("List items"),
        Route::post("/api/items", Access::Editor, items::create).says("Make an item"),
        Route::get("/api/items/by-uuid/{id}", Access::Viewer, items::by_uuid).says("One item, by its id"),
        Route::get("/api/items/{part}", Access::Viewer, items::one).says("One item"),
        Route::put("/api/items/{part}", Access::Editor, items::update).says("Change an item"),
        Route::delete("/api/items/{part}", Access::Editor, items::delete).says("Delete an item"),
        Route::get("/api/items/{part}/revisions", Access::Viewer, revisions::list).says("An item's revisions"),
        Route::post("/api/items/{part}/revisions", Access::Editor, revisions::create)
            .says("Make a revision, and the jobs it sets off"),
        Route::get("/api/items/{part}/revisions/{number}", Access::Viewer, revisions::one).says("One revision"),
        Route::get("/api/projects", Access::Viewer, projects::list).says("List projects"),
        Route::post("/api/projects", Access::Editor, projects::create).says("Make a project"),
        Route::get("/api/projects/{code}", Access::Viewer, projects::one).says("One project"),
        Route::get("/api/projects/{code}/items", Access::Viewer, projects::items).says("A project's items"),
    ]
}

fn bom_routes() -> Vec<Route> {
    vec![
        Route::get("/api/items/{part}/bom", Access::Viewer, bom::list).says("What an item contains"),
        Route::post("/api/items/{part}/bom", Access::Editor, bom::add).says("Add a row"),
        Route::get("/api/items/{part}/bom/expanded", Access::Viewer, bom::expanded).says("All levels"),
        Route::get("/api/items/{part}/bom/where-used", Access::Viewer, bom::where_used).says("What contains the item"),
        Route::get("/api/items/{part}/bom/flat", Access::Viewer, bom::flat)
            .says("All leaf parts with their quantities"),
        Route::post("/api/items/{part}/bom/merge", Access::Editor, bom::merge).says("Merge what an assembly says"),
        Route::put("/api/items/{part}/bom/{child}", Access::Editor, bom::update).says("Change a row"),
        Route::delete("/api/items/{part}/bom/{child}", Access::Editor, bom::remove).says("Remove a row"),
    ]
}

fn graph_routes() -> Vec<Route> {
    vec![
        Route::get("/api/items/{part}/dag", Access::Viewer, dag::whole).says("An item's graph"),
        Route::put("/api/items/{part}/dag", Access::EditorOrWorker, dag::put).says("Write an item's graph"),
        Route::get("/api/items/{part}/dag/forward-cone/{key}", Access::Viewer, dag::forward)
            .says("What depends on a node"),
        Route::get("/api/items/{part}/dag/backward-cone/{key}", Access::Viewer, dag::backward)
            .says("What a node depends on"),
        Route::get("/api/items/{part}/dag/dirty", Access::Viewer, dag::dirty).says("What has to be validated"),
        Route::get("/api/items/{part}/dag/compare", Access::Viewer, dag::compare).says("Can two changes be merged?"),
        Route::post("/api/items/{part}/dag/mark-dirty/{key}", Access::Editor, dag::mark_dirty)
            .says("Mark a node dirty"),
        Route::post("/api/items/{part}/edit-sessions", Access::Editor, sessions::acquire).says("Take an edit lock"),
        Route::get("/api/items/{part}/edit-sessions", Access::Viewer, sessions::of_item).says("An item's edit locks"),
        Route::get("/api/edit-sessions", Access::Viewer, sessions::own).says("The caller's edit locks"),
        Route::post("/api/items/{part}/edit-sessions/{id}/heartbeat", Access::Editor, sessions::heartbeat)
            .says("Keep an edit lock"),
        Route::delete("/api/items/{part}/edit-sessions/{id}", Access::Editor, sessions::release)
            .says("Release an edit lock"),
    ]
}
