//! What handlers share.

use crate::{
    auth::{Auth, Caller},
    config::values::Values,
    dialect::{Dialect, Dialects},
    health,
    metrics::Metrics,
    peer::Network,
    trace::Traces,
    without_token::WithoutToken,
};
use std::{ops::Deref, sync::Arc, time::Instant};
use tokio_util::sync::CancellationToken;
use windlass_core::Namespace;
use windlass_engine::Engine;

/// What an operator chose about the server, as far as handlers care.
#[derive(Clone, Debug)]
pub struct Options {
    /// Host names, beside loopback ones and the listener's own, under which the server may be called.
    pub hosts: Vec<String>,
    /// Web pages of these origins may call.
    pub origins: Vec<String>,
    /// Proxies that may say for whom they call.
    pub proxies: Vec<Network>,
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
    /// Namespaces in which revisions may have files. Those of dialects that are not served are among them: their files stay.
    pub with_files: Vec<Namespace>,
    /// What was set. Dialects read their own settings from it.
    pub values: Values,
}

const LISTS: usize = 8;

/// Cheap to clone.
#[derive(Clone)]
pub struct App {
    shared: Arc<Inner>,
    /// While a request is answered: what runs commands for its caller.
    pub engine: Engine,
}

pub struct Inner {
    pub auth: Auth,
    pub options: Options,
    pub dialects: Dialects,
    pub product: Arc<windlass_product::Shared>,
    pub versions: crate::versions::Versions,
    /// Compiled schemas of definitions.
    pub schemas: crate::schema::Schemas,
    /// Of dialects' definitions.
    pub pairs: crate::schema::pair::Pairs,
    pub metrics: Arc<Metrics>,
    /// What files take on their disk.
    pub usage: Arc<crate::quota::Usage>,
    /// Of the bodies that are being received.
    pub rooms: Arc<crate::room::Rooms>,
    /// Pages of lists that are read at a time: each may be large until it is an answer.
    pub lists: tokio::sync::Semaphore,
    /// For all that takes longer than a moment.
    pub aside: Arc<crate::aside::Aside>,
    pub behind: crate::behind::Behind,
    pub writers: crate::upload::Writers,
    pub read_permits: Arc<crate::read_permits::ReadPermits>,
    pub streams: crate::streams::Streams,
    pub plans: crate::planned::plans::Plans,
    /// Turns of runs that cannot be decided yet.
    pub later: crate::planned::later::Later,
    /// Held by whatever is noted before it is begun; alone by what a server ended during before.
    pub begun: Arc<tokio::sync::RwLock<()>>,
    /// Rung when a schedule was written here.
    pub schedules_changed: tokio::sync::Notify,
    /// One-time codes to sign in with.
    pub codes: crate::session::Codes,
    /// Answers that many ask for.
    pub once: crate::once::Once,
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
        &self.shared
    }
}

impl App {
    pub fn new(engine: Engine, options: Options) -> Self {
        let aside: Arc<crate::aside::Aside> = Arc::default();
        let shared = Arc::new(Inner {
            auth: Auth::new(engine.clone()),
            schemas: crate::schema::Schemas::new(engine.clone(), aside.clone()),
            pairs: crate::schema::pair::Pairs::new(aside.clone()),
            dialects: Dialects::new(&options.dialects, &options.values),
            versions: Default::default(),
            rooms: crate::room::Rooms::new(options.bodies),
            lists: tokio::sync::Semaphore::new(LISTS),
            usage: crate::quota::Usage::new(options.files),
            options,
            product: Default::default(),
            metrics: Arc::default(),
            aside,
            behind: Default::default(),
            writers: Default::default(),
            read_permits: Arc::default(),
            streams: Default::default(),
            plans: Default::default(),
            later: Default::default(),
            begun: Arc::default(),
            schedules_changed: Default::default(),
            codes: Default::default(),
            once: Default::default(),
            voices: Default::default(),
            drain: CancellationToken::new(),
            store_seen: tokio::sync::Mutex::default(),
        });
        Self { shared, engine }
    }

    /// What answers a request of this caller: nothing is written for it once its access has ended.
    pub fn acting_for(&self, caller: Option<&Caller>) -> Self {
        let by = caller.and_then(|caller| caller.credential.clone());
        Self { shared: self.shared.clone(), engine: self.engine.acting_for(by) }
    }

    /// For what the server does by itself, also where a request is the occasion.
    pub fn itself(&self) -> Self {
        self.acting_for(None)
    }
}
