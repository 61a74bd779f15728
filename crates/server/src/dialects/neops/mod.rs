//! The neops protocol: function blocks that Python workers serve, a blackboard they poll, workflow definitions, and runs that
//! acquire, execute and roll back.
//!
//! Served so that its unmodified worker and its generated client need nothing but the address. Their clients decode an answer only
//! under the exact status that an operation has, so statuses here are part of the contract.

pub mod blocks;
mod board;
pub mod body;
mod context;
pub mod cron;
mod cursor;
pub mod definitions;
pub mod entities;
pub mod error;
mod histogram;
pub mod job;
mod license;
mod listing;
pub mod locks;
mod records;
pub mod results;
pub mod runs;
pub mod settings;
mod spelling;
mod versions;
mod who;
mod workers;

use crate::{
    app::App,
    config::values::Values,
    dialect::{Dialect, Mount, Served, With},
    route::{Nameless, Route, Rules, Surface},
};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::{Notify, Semaphore};
use windlass_api::Uuid;
use windlass_core::{Namespace, RunId, cache::Cache};

pub use error::HttpError;
pub use settings::Settings;

const NAMESPACE: &str = "neops";

/// All of this dialect's jobs, workers and records live here.
pub fn namespace() -> Namespace {
    Namespace::new(NAMESPACE).expect("a legal name")
}

pub static DIALECT: Dialect = Dialect {
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
    serve,
};

fn serve(read: &Values) -> Served {
    let own = Arc::new(Own::new(Settings::read(read)));
    let routes = routes(&Mount(own.clone()));
    let plans = own.clone();
    Served::new(routes)
        .plans(move |app, unit| runs::turn::decide(Neops::new(app, plans.clone()), unit))
        .starts(move |app| std::future::ready(cron::start(Neops::new(app, own.clone()))))
}

/// What its handlers get.
pub type Neops = With<Own>;

/// What an operator chose, and what handlers share.
pub struct Own {
    pub settings: Settings,
    /// Large bodies that are taken in at a time.
    pub large: Semaphore,
    /// Plans of runs that were decided for lately, and the contexts of runs whose jobs were handed out.
    pub plans: Mutex<Cache<RunId, Arc<runs::Plan>>>,
    pub contexts: Mutex<Cache<(Uuid, u32), Arc<str>>>,
    /// Told when a schedule may have changed.
    pub scheduler: Notify,
}

const LARGE_MAX: usize = 2;
const PLANS: usize = 100;
const CONTEXTS: usize = 100;
const CONTEXT_BYTES: usize = 32 << 20;

impl Own {
    pub fn new(settings: Settings) -> Self {
        Self {
            scheduler: Notify::new(),
            settings,
            large: Semaphore::new(LARGE_MAX),
            plans: Mutex::new(Cache::new(PLANS, usize::MAX)),
            contexts: Mutex::new(Cache::new(CONTEXTS, CONTEXT_BYTES)),
        }
    }
}

/// Whether a run has taken note of what its jobs came to.
async fn digested(app: &App, run: Uuid) -> Result<bool, HttpError> {
    Ok(runs::row::find(app, run).await?.is_none_or(|kept| kept.value.status.is_final()))
}

fn routes(on: &Mount<Own>) -> Vec<Route> {
    let workers = [workers::routes(on), blocks::routes(on), board::routes(on)].concat();
    let flows = [definitions::routes(on), runs::routes(on), entities::routes(on)].concat();
    [versions::routes(on), license::routes(on), workers, flows].concat()
}
