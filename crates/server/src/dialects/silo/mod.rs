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
pub mod events;
pub mod files;
mod items;
mod job_files;
mod jobs;
mod projects;
mod revisions;
mod runners;
pub mod schedule;
pub mod sessions;
pub mod settings;
mod show;
pub mod tokens;
pub mod trigger;
mod work;

use crate::{
    app::App,
    config::values::Values,
    content::ROUTE_MAX,
    derived,
    dialect::{self, Dialect, Mount, Served, With},
    route::{Access, Route, Rules, Surface},
};
use axum::{extract::State, response::IntoResponse};
use http::StatusCode;
use serde_json::json;
use std::sync::{Arc, atomic::AtomicUsize};
use windlass_api::Uuid;
use windlass_core::Namespace;
use windlass_product::Products;

const NAMESPACE: &str = "silo";
const BODY_MAX: usize = 10 << 20;

/// All of this dialect's jobs, runners and records live here.
pub fn namespace() -> Namespace {
    Namespace::new(NAMESPACE).expect("a legal name")
}

/// The items of this dialect.
pub fn products(app: &App) -> Products {
    app.products(&namespace())
}

/// An id that follows from a name.
fn derived(kind: &str, name: &str) -> Uuid {
    derived::id(&format!("windlass silo {kind}\n{name}"))
}

pub use settings::Settings;

pub const DIALECT: &Dialect = &Dialect {
    surface: Surface {
        name: "silo",
        rules: Rules { namespace: Some(NAMESPACE), kinds_apart: true, refuse: error::refuse, ..Rules::OURS },
    },
    prefixes: &["/api/"],
    respell: dialect::one_spelling,
    settings: settings::TABLE,
    foreign: settings::foreign,
    adjusted: settings::adjusted,
    start_worker: None,
    serve,
};

fn serve(read: &Values) -> Served {
    let own = Arc::new(Own::new(Settings::read(read)));
    Served::new(routes(&Mount(own.clone())))
        .starts(move |app| duties::start(With::new(app, own.clone())))
        .fires(|app| Arc::new(trigger::ByDefinition(app.clone())))
        .sweeps(|app| async move { tokens::sweep(&app).await })
}

/// What its handlers get that need more than the app.
pub type Silo = With<Own>;

/// What an operator chose, and what handlers tell one another.
pub struct Own {
    settings: Settings,
    /// How many problems the last look at the definitions folder found.
    faults: parking_lot::Mutex<usize>,
    listeners: AtomicUsize,
    reload: tokio::sync::Mutex<()>,
    scheduler: tokio::sync::Notify,
}

impl Own {
    fn new(settings: Settings) -> Self {
        Self {
            settings,
            faults: Default::default(),
            listeners: Default::default(),
            reload: Default::default(),
            scheduler: Default::default(),
        }
    }
}

async fn ready(State(app): State<Silo>) -> impl IntoResponse {
    let (status, word) = match crate::health::is_ready(&app).await {
        true => (StatusCode::OK, "ready"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
    };
    let faults = *app.own.faults.lock();
    let listeners = events::listeners(&app.own.listeners);
    body::Json(status, json!({"status": word, "mode": "normal", "sse_clients": listeners, "jobdef_errors": faults}))
}

fn routes(on: &Mount<Own>) -> Vec<Route> {
    let all = [auth_routes(on), job_routes(on), runner_routes(on), item_routes(on), bom_routes(on), graph_routes(on)];
    let ordinary = all.concat().into_iter().map(|route| route.body_max(BODY_MAX));
    ordinary.chain(file_routes(on)).collect()
}

fn file_routes(on: &Mount<Own>) -> Vec<Route> {
    vec![
        on.get("/api/items/{part}/revisions/{number}/files", Access::Viewer, files::list).says("A revision's files"),
        on.put("/api/items/{part}/revisions/{number}/files/{*name}", Access::Editor, files::upload)
            .says("Add a file to a revision")
            .body_max(ROUTE_MAX),
        on.get("/api/items/{part}/revisions/{number}/files/{*name}", Access::Viewer, files::download)
            .says("A file of a revision"),
        on.delete("/api/items/{part}/revisions/{number}/files/{*name}", Access::Editor, files::delete)
            .says("Delete a file of a revision"),
        on.get("/api/runner/jobs/{id}/files", Access::Worker, job_files::list).says("The files of a held job's item"),
        on.get("/api/runner/jobs/{id}/files/{*name}", Access::Worker, job_files::download)
            .says("A file of a held job's item"),
        on.put("/api/runner/jobs/{id}/artifacts/{*key}", Access::Worker, job_files::leave)
            .says("Leave a file that the job made")
            .body_max(ROUTE_MAX),
        on.get("/api/jobs/{id}/artifacts", Access::Viewer, job_files::artifacts).says("The files a job left"),
        on.get("/api/jobs/{id}/artifacts/{*key}", Access::Viewer, job_files::artifact).says("A file a job left"),
    ]
}

fn auth_routes(on: &Mount<Own>) -> Vec<Route> {
    vec![
        on.get("/ready", Access::Open, ready).says("Can it serve?"),
        on.get("/api/auth/me", Access::Viewer, tokens::me).says("Who the token stands for"),
        on.post("/api/auth/tokens", Access::Viewer, tokens::create).says("Make a token; it is shown this once"),
        on.get("/api/auth/tokens", Access::Viewer, tokens::list).says("List tokens"),
        on.delete("/api/auth/tokens/{id}", Access::Viewer, tokens::delete).says("Delete a token"),
        on.get("/api/events", Access::Viewer, events::listen).says("Follow what happens"),
    ]
}

fn job_routes(on: &Mount<Own>) -> Vec<Route> {
    vec![
        on.get("/api/jobs", Access::Viewer, jobs::list).says("List jobs"),
        on.post("/api/jobs", Access::Editor, jobs::create).says("Make a job of a definition"),
        on.get("/api/jobs/{id}", Access::Viewer, jobs::one).says("One job"),
        on.get("/api/jobs/claim", Access::Viewer, jobs::no_job).says("No job has this id"),
        on.get("/api/jobs/{id}/logs", Access::Viewer, jobs::logs).says("A job's log"),
        on.post("/api/jobs/{id}/cancel", Access::Editor, jobs::cancel).says("Cancel a job"),
        on.get("/api/job-definitions", Access::Viewer, definitions::list).says("List definitions"),
        on.get("/api/job-definitions/{name}", Access::Viewer, definitions::one).says("One definition"),
        on.get("/api/job-definitions/reload", Access::Viewer, definitions::named_reload)
            .says("The definition of this name"),
        on.post("/api/job-definitions/reload", Access::Admin, definitions::reload).says("Read the folder again"),
    ]
}

fn runner_routes(on: &Mount<Own>) -> Vec<Route> {
    vec![
        on.get("/api/runners", Access::Admin, runners::list).says("List runners"),
        on.post("/api/runners", Access::Admin, runners::create).says("Register a runner; its token is shown this once"),
        on.get("/api/runners/{id}", Access::Admin, runners::one).says("One runner"),
        on.delete("/api/runners/{id}", Access::Admin, runners::delete).says("Delete a runner; its jobs fail"),
        on.post("/api/runner/heartbeat", Access::Worker, work::heartbeat).says("A runner's sign of life"),
        on.post("/api/runner/claim", Access::Worker, work::claim).says("Claim a job"),
        on.put("/api/runner/jobs/{id}/progress", Access::Worker, work::progress).says("Report progress"),
        on.put("/api/runner/jobs/{id}/dag", Access::Worker, dag::put_for_job)
            .behind()
            .says("Write the graph of a job's item"),
        on.post("/api/runner/jobs/{id}/complete", Access::Worker, work::complete).says("Report success"),
        on.post("/api/runner/jobs/{id}/fail", Access::Worker, work::fail).says("Report failure"),
        on.post("/api/runner/jobs/{id}/log", Access::Worker, work::log).says("Append to the job's log"),
    ]
}

fn item_routes(on: &Mount<Own>) -> Vec<Route> {
    vec![
        on.get("/api/items", Access::Viewer, items::list).says("List items"),
        on.post("/api/items", Access::Editor, items::create).says("Make an item"),
        on.get("/api/items/by-uuid/{id}", Access::Viewer, items::by_uuid).says("One item, by its id"),
        on.get("/api/items/{part}", Access::Viewer, items::one).says("One item"),
        on.put("/api/items/{part}", Access::Editor, items::update).says("Change an item"),
        on.delete("/api/items/{part}", Access::Editor, items::delete).says("Delete an item"),
        on.get("/api/items/{part}/revisions", Access::Viewer, revisions::list).says("An item's revisions"),
        on.post("/api/items/{part}/revisions", Access::Editor, revisions::create)
            .says("Make a revision, and the jobs it sets off"),
        on.get("/api/items/{part}/revisions/{number}", Access::Viewer, revisions::one).says("One revision"),
        on.get("/api/projects", Access::Viewer, projects::list).says("List projects"),
        on.post("/api/projects", Access::Editor, projects::create).says("Make a project"),
        on.get("/api/projects/{code}", Access::Viewer, projects::one).says("One project"),
        on.get("/api/projects/{code}/items", Access::Viewer, projects::items).says("A project's items"),
    ]
}

fn bom_routes(on: &Mount<Own>) -> Vec<Route> {
    vec![
        on.get("/api/items/{part}/bom", Access::Viewer, bom::list).says("What an item contains"),
        on.post("/api/items/{part}/bom", Access::Editor, bom::add).says("Add a row"),
        on.get("/api/items/{part}/bom/expanded", Access::Viewer, bom::expanded).says("All levels"),
        on.get("/api/items/{part}/bom/where-used", Access::Viewer, bom::where_used).says("What contains the item"),
        on.get("/api/items/{part}/bom/flat", Access::Viewer, bom::flat).says("All leaf parts with their quantities"),
        on.post("/api/items/{part}/bom/merge", Access::Editor, bom::merge).behind().says("Merge what an assembly says"),
        on.put("/api/items/{part}/bom/{child}", Access::Editor, bom::update).says("Change a row"),
        on.delete("/api/items/{part}/bom/{child}", Access::Editor, bom::remove).says("Remove a row"),
    ]
}

fn graph_routes(on: &Mount<Own>) -> Vec<Route> {
    vec![
        on.get("/api/items/{part}/dag", Access::Viewer, dag::whole).says("An item's graph"),
        on.put("/api/items/{part}/dag", Access::EditorOrWorker, dag::put).behind().says("Write an item's graph"),
        on.get("/api/items/{part}/dag/forward-cone/{key}", Access::Viewer, dag::forward).says("What depends on a node"),
        on.get("/api/items/{part}/dag/backward-cone/{key}", Access::Viewer, dag::backward)
            .says("What a node depends on"),
        on.get("/api/items/{part}/dag/dirty", Access::Viewer, dag::dirty).says("What has to be validated"),
        on.get("/api/items/{part}/dag/compare", Access::Viewer, dag::compare).says("Can two changes be merged?"),
        on.post("/api/items/{part}/dag/mark-dirty/{key}", Access::Editor, dag::mark_dirty)
            .behind()
            .says("Mark a node dirty"),
        on.post("/api/items/{part}/edit-sessions", Access::Editor, sessions::acquire).says("Take an edit lock"),
        on.get("/api/items/{part}/edit-sessions", Access::Viewer, sessions::of_item).says("An item's edit locks"),
        on.get("/api/edit-sessions", Access::Viewer, sessions::own).says("The caller's edit locks"),
        on.post("/api/items/{part}/edit-sessions/{id}/heartbeat", Access::Editor, sessions::heartbeat)
            .says("Keep an edit lock"),
        on.delete("/api/items/{part}/edit-sessions/{id}", Access::Editor, sessions::release)
            .says("Release an edit lock"),
    ]
}
