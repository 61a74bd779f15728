//! What handlers share, and every route there is.

use crate::{
    auth::Auth,
    config::values::Values,
    dialect::{Dialect, Dialects},
    dialects, health, metrics,
    metrics::Metrics,
    native,
    route::{NATIVE, Refuse, Route},
    trace::Traces,
    without_token::WithoutToken,
};
use std::{ops::Deref, sync::Arc, time::Instant};
use tokio_util::sync::CancellationToken;
use windlass_engine::Engine;

pub use crate::service::Service;

/// What an operator chose about the server, as far as handlers care.
#[derive(Clone, Debug)]
pub struct Options {
    /// Host names, beside loopback ones and the listener's own, under which the server may be called.
    pub hosts: Vec<String>,
    /// Web pages of these origins may call.
    pub origins: Vec<String>,
    /// `embedded` or `postgres`, for people.
    pub store: &'static str,
    /// Where artifacts are kept; none: nowhere.
    pub artifacts: Option<crate::content::Files>,
    pub artifact_bytes_max: u64,
    /// What artifacts and other files may take on their disk.
    pub files: crate::quota::Limits,
    /// Who needs no token on surfaces whose clients know none.
    pub without_token: WithoutToken,
    /// Largest body of an ordinary request.
    pub body_max: usize,
    /// What bodies may take in memory.
    pub bodies: crate::room::Limits,
    /// Where spans go.
    pub traces: Traces,
    /// The protocols that are served beside our own.
    pub dialects: Vec<&'static Dialect>,
    /// What was set. Dialects read their own settings from it.
    pub values: Values,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            origins: Vec::new(),
            store: "embedded",
            artifacts: None,
            artifact_bytes_max: native::artifacts::BYTES_MAX,
            files: Default::default(),
            without_token: WithoutToken::default(),
            body_max: crate::route::BODY_MAX,
            bodies: Default::default(),
            traces: Traces::default(),
            dialects: dialects::ALL.to_vec(),
            values: Values::default(),
        }
    }
}

const LISTS: usize = 8;

/// Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Inner>);

pub struct Inner {
    pub engine: Engine,
    pub auth: Auth,
    pub options: Options,
    pub native: native::Shared,
    pub dialects: Dialects,
    pub product: crate::product::Shared,
    pub versions: crate::versions::Versions,
    /// Compiled schemas of dialects' definitions.
    pub pairs: crate::schema::pair::Pairs,
    pub metrics: Arc<Metrics>,
    /// What files take on their disk.
    pub usage: Arc<crate::quota::Usage>,
    /// Of the bodies that are being received.
    pub rooms: Arc<crate::room::Rooms>,
    /// Pages of lists that are read at a time: each may be large until it is an answer.
    pub lists: tokio::sync::Semaphore,
    /// For all that takes longer than a moment.
    pub aside: crate::aside::Aside,
    pub behind: crate::behind::Behind,
    pub writers: crate::upload::Writers,
    pub turns: Arc<crate::turns::Turns>,
    /// Who called last in which protocol.
    pub voices: crate::spoken::Voices,
    /// Cancelled when the server is to stop.
    pub drain: CancellationToken,
    /// When the store was last asked whether it answers, and what came of it.
    pub store_seen: tokio::sync::Mutex<Option<(Instant, health::Store)>>,
}

impl Deref for App {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl App {
    pub fn new(engine: Engine, options: Options) -> Self {
        Self(Arc::new(Inner {
            auth: Auth::new(engine.clone()),
            engine,
            dialects: Dialects::new(&options.dialects, &options.values),
            versions: Default::default(),
            pairs: Default::default(),
            rooms: crate::room::Rooms::new(options.bodies),
            lists: tokio::sync::Semaphore::new(LISTS),
            usage: crate::quota::Usage::new(options.files),
            options,
            native: Default::default(),
            product: Default::default(),
            metrics: Arc::default(),
            aside: Default::default(),
            behind: Default::default(),
            writers: Default::default(),
            turns: Arc::default(),
            voices: Default::default(),
            drain: CancellationToken::new(),
            store_seen: tokio::sync::Mutex::default(),
        }))
    }

    /// Every route that is served.
    pub fn routes(&self) -> Vec<Route> {
        [own_routes(), self.dialects.routes()].concat()
    }

    /// In whose words it is said that there is nothing at a path.
    pub fn refuse_at(&self, path: &str) -> Refuse {
        let below = path.strip_prefix(native::ROOT).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let ours = NATIVE.rules.refuse;
        if below { ours } else { self.dialects.refuse_at(path).unwrap_or(ours) }
    }
}

/// Those that every server has, whatever dialects it serves.
pub fn own_routes() -> Vec<Route> {
    [native::routes(), health::routes(), metrics::routes(), crate::ui::routes()].concat()
}

/// Every route of every surface, as defaults have it.
pub fn routes() -> Vec<Route> {
    let dialects = Dialects::new(dialects::ALL, &Values::default());
    [own_routes(), dialects.routes()].concat()
}
