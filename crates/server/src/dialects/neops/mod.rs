//! The neops protocol: function blocks that Python workers serve, a blackboard they poll, workflow definitions, and runs that
//! acquire, execute and roll back.
//!
//! Served so that its unmodified worker and its generated client need nothing but the address. Their clients decode an answer only
//! under the exact status that an operation has, so statuses here are part of the contract.

pub mod blocks;
pub mod board;
pub mod body;
mod context;
pub mod cron;
pub mod cursor;
pub mod definitions;
pub mod entities;
pub mod error;
pub mod histogram;
pub mod job;
mod license;
mod listing;
pub mod locks;
pub mod results;
pub mod runs;
pub mod settings;
mod spelling;
mod versions;
pub mod watch;
mod workers;

use crate::{
    app::App,
    config::values::Values,
    dialect::{Dialect, Mount, Served, With},
    route::{Nameless, Route, Rules, Surface},
};
use parking_lot::Mutex;
use serde_json::{Value, value::RawValue};
use std::sync::Arc;
use tokio::sync::{Notify, Semaphore};
use windlass_api::Uuid;
use windlass_core::{JobId, Namespace, RunId, cache::Cache};
use windlass_plan::neops::step::World;

pub use error::{HttpError, Result};
pub use settings::Settings;

const NAMESPACE: &str = "neops";

/// All of this dialect's jobs, workers and records live here.
pub fn namespace() -> Namespace {
    Namespace::new(NAMESPACE).expect("a legal name")
}

pub const DIALECT: &Dialect = &Dialect {
    surface: Surface {
        name: "neops",
        // Its worker knows nothing but an address; from elsewhere that is http://worker:TOKEN@host:3000.
        rules: Rules {
            basic: true,
            nameless: Nameless::Works,
            namespace: Some(NAMESPACE),
            any_case: true,
            refuse: error::refuse,
            ..Rules::OURS
        },
    },
    prefixes: &[
        "/workers",
        "/function-blocks",
        "/blackboard",
        "/workflow-definition",
        "/workflow-execution",
        "/version",
        "/me",
        "/license",
        "/schema",
    ],
    respell: spelling::respell,
    settings: settings::TABLE,
    foreign: settings::foreign,
    adjusted: settings::adjusted,
    start_worker: Some(watch::start_worker),
    serve,
};

fn serve(read: &Values) -> Served {
    let own = Arc::new(Own::new(Settings::read(read)));
    let routes = routes(&Mount(own.clone()));
    let (plans, given_up, watched, swept) = (own.clone(), own.clone(), own.clone(), own.clone());
    Served::new(routes)
        .watches(move |app| watch::signs(Neops::new(app, watched.clone())))
        .plans(
            move |app, unit| runs::turn::decide(Neops::new(app, plans.clone()), unit),
            move |app, unit, why| runs::turn::give_up(Neops::new(app, given_up.clone()), unit, why),
        )
        .sweeps(move |app| {
            let neops = Neops::new(app, swept.clone());
            async move { runs::left::round(&neops).await.map(drop) }
        })
        .starts(move |app| {
            let neops = Neops::new(app, own.clone());
            let mut running = cron::start(neops.clone());
            running.tasks.push(tokio::spawn(runs::left::run(neops)));
            std::future::ready(running)
        })
}

/// What its handlers get.
pub type Neops = With<Own>;

/// By id, and by how many versions it had.
type ReadyBlocks = Cache<(Arc<str>, u32), Arc<blocks::Block>>;

/// What an operator chose, and what handlers share.
pub struct Own {
    pub settings: Settings,
    /// Large bodies that are taken in at a time.
    pub large: Semaphore,
    /// Plans of runs that were decided for lately, and the contexts of runs whose jobs were handed out.
    pub plans: Mutex<Cache<RunId, Arc<runs::Plan>>>,
    pub contexts: Mutex<Cache<(Uuid, u32), Arc<RawValue>>>,
    /// The same as expressions see them.
    pub worlds: Mutex<Cache<(Uuid, u32), Arc<World>>>,
    /// What follows from reports that are still to come.
    pub ahead: Mutex<Cache<JobId, runs::ahead::Course>>,
    /// When workers came back that were not heard for too long.
    pub returns: Mutex<watch::Returns>,
    /// The open run that was looked at last, by those who look for what was cut off.
    pub looked_at: Mutex<Option<Arc<str>>>,
    /// Under which keys the records of runs are found.
    pub rows: Mutex<Cache<Uuid, Arc<str>>>,
    /// Versions of blocks, each as it was registered when it had that number of versions, and documents by their ids. Neither
    /// ever changes.
    pub blocks: Mutex<ReadyBlocks>,
    pub documents: Mutex<Cache<String, Arc<Value>>>,
    /// Told when a run begins.
    pub begun: Notify,
    /// How many workflows there are; none is ever forgotten. None: nobody has counted them yet.
    pub workflows: Mutex<Option<usize>>,
    /// Told when a schedule may have changed.
    pub scheduler: Notify,
}

const LARGE_MAX: usize = 2;
const PLANS: usize = 100;
const CONTEXTS: usize = 100;
const WORLDS: usize = 16;
const CONTEXT_BYTES: usize = 32 << 20;
const AHEAD: usize = 10_000;
const AHEAD_BYTES: usize = 16 << 20;
const ROWS: usize = 10_000;
const BLOCKS: usize = 1_000;
const DOCUMENTS: usize = 100;
const KNOWN_BYTES: usize = 8 << 20;

impl Own {
    pub fn new(settings: Settings) -> Self {
        Self {
            scheduler: Notify::new(),
            begun: Notify::new(),
            workflows: Mutex::default(),
            returns: Mutex::default(),
            looked_at: Mutex::default(),
            settings,
            large: Semaphore::new(LARGE_MAX),
            plans: Mutex::new(Cache::new(PLANS, usize::MAX)),
            contexts: Mutex::new(Cache::new(CONTEXTS, CONTEXT_BYTES)),
            worlds: Mutex::new(Cache::new(WORLDS, CONTEXT_BYTES)),
            ahead: Mutex::new(Cache::new(AHEAD, AHEAD_BYTES)),
            rows: Mutex::new(Cache::new(ROWS, usize::MAX)),
            blocks: Mutex::new(Cache::new(BLOCKS, KNOWN_BYTES)),
            documents: Mutex::new(Cache::new(DOCUMENTS, KNOWN_BYTES)),
        }
    }
}

/// Whether a run has taken note of what its jobs came to.
async fn digested(app: &App, run: Uuid) -> Result<bool> {
    Ok(runs::row::find(app, run).await?.is_none_or(|kept| kept.value.status.is_final()))
}

fn routes(on: &Mount<Own>) -> Vec<Route> {
    let workers = [workers::routes(on), blocks::routes(on), board::routes(on)].concat();
    let flows = [definitions::routes(on), runs::routes(on), entities::routes(on)].concat();
    [versions::routes(on), license::routes(on), workers, flows].concat()
}
