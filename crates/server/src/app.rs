//! What handlers share, and the service made from the table of routes.

use crate::{
    auth::Auth,
    guard::{self, Guarded},
    health, metrics,
    metrics::{Meter, Metrics},
    origin, prefix,
    problem::Problem,
    route::{Form, Route, Surface},
    trace::Traces,
    without_token::WithoutToken,
};
use axum::{
    Router,
    extract::Request,
    response::{IntoResponse, Response},
    routing::{MethodFilter, MethodRouter},
};
use futures_util::future::BoxFuture;
use http::{HeaderValue, Method, header};
use std::{
    collections::HashMap,
    convert::Infallible,
    ops::Deref,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tower::Service as _;
use windlass_engine::Engine;

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
    pub silo: crate::dialects::silo::Settings,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            origins: Vec::new(),
            store: "embedded",
            artifacts: None,
            artifact_bytes_max: crate::native::artifacts::BYTES_MAX,
            files: Default::default(),
            without_token: WithoutToken::default(),
            body_max: crate::route::BODY_MAX,
            bodies: Default::default(),
            traces: Traces::default(),
            silo: Default::default(),
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
    pub native: crate::native::Shared,
    pub silo: crate::dialects::silo::Shared,
    pub product: crate::product::Shared,
    pub metrics: Arc<Metrics>,
    /// What files take on their disk.
    pub usage: Arc<crate::quota::Usage>,
    /// Of the bodies that are being received.
    pub rooms: Arc<crate::room::Rooms>,
    /// Pages of lists that are read at a time: each may be large until it is an answer.
    pub lists: tokio::sync::Semaphore,
    /// For all that takes longer than a moment.
    pub aside: crate::aside::Aside,
    pub writers: crate::upload::Writers,
    pub turns: Arc<crate::turns::Turns>,
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
            rooms: crate::room::Rooms::new(options.bodies),
            lists: tokio::sync::Semaphore::new(LISTS),
            usage: crate::quota::Usage::new(options.files),
            options,
            native: Default::default(),
            silo: Default::default(),
            product: Default::default(),
            metrics: Arc::default(),
            aside: Default::default(),
            writers: Default::default(),
            turns: Arc::default(),
            drain: CancellationToken::new(),
            store_seen: tokio::sync::Mutex::default(),
        }))
    }
}

/// Every route of every surface.
pub fn routes() -> Vec<Route> {
    let dialects = [crate::dialects::workflow_graph::routes(), crate::dialects::silo::routes()].concat();
    [crate::native::routes(), health::routes(), metrics::routes(), dialects].concat()
}

/// Answers requests: each route behind its guard, everything else a clear error.
#[derive(Clone)]
pub struct Service {
    /// Paths without a name in them, which the router would find as well: these are what workers call all the time.
    fixed: Arc<HashMap<&'static str, Vec<Row>>>,
    router: Router,
}

type Row = (Method, Arc<Guarded>);

impl Service {
    pub fn new(app: App) -> Self {
        let mut paths: HashMap<&'static str, Vec<Row>> = HashMap::new();
        for route in routes() {
            let guarded = Arc::new(Guarded::new(&app, &route));
            paths.entry(route.path).or_default().push((route.method, guarded));
        }
        let router = router(app, &paths);
        paths.retain(|path, _| !path.contains('{'));
        Self { fixed: Arc::new(paths), router }
    }

    pub async fn answer(&self, request: Request) -> Response {
        if let Some(guarded) = self.fixed(&request) {
            return guarded.answer(request).await;
        }
        let Ok(response) = self.router.clone().call(request).await;
        response
    }

    fn fixed(&self, request: &Request) -> Option<&Guarded> {
        let rows = self.fixed.get(request.uri().path())?;
        rows.iter().find(|(method, _)| method == request.method()).map(|(_, guarded)| &**guarded)
    }
}

impl From<Router> for Service {
    fn from(router: Router) -> Self {
        Self { fixed: Arc::default(), router }
    }
}

impl tower::Service<Request> for Service {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.answer(request).await) })
    }
}

fn router(app: App, paths: &HashMap<&'static str, Vec<Row>>) -> Router {
    let mut router = Router::new();
    for (path, rows) in paths {
        let methods: Vec<Method> = rows.iter().map(|(method, _)| method.clone()).collect();
        let other = Arc::new(OtherMethod::new(&app, path, &methods));
        let other = move |request: Request| {
            let other = other.clone();
            async move { other.answer(request).await }
        };
        router = router.route(path, rows.iter().fold(MethodRouter::new(), with).fallback(other));
    }
    let meter = Arc::new(app.metrics.meter(Surface::Native, "other", "none"));
    let router = router.fallback(move |request: Request| {
        let (app, meter) = (app.clone(), meter.clone());
        async move {
            guard::outside(&app, &meter, form_of(request.uri().path()), request, |request| {
                no_such_path(request).into_response()
            })
            .await
        }
    });
    let ordinary = router.clone();
    router.fallback(move |mut request: Request| {
        prefix::take(&mut request);
        let mut ordinary = ordinary.clone();
        async move {
            let Ok(response) = ordinary.call(request).await;
            response
        }
    })
}

fn with(path: MethodRouter, (method, guarded): &Row) -> MethodRouter {
    let filter = MethodFilter::try_from(method.clone()).expect("the table uses ordinary methods");
    let guarded = guarded.clone();
    path.on(filter, move |request: Request| {
        let guarded = guarded.clone();
        async move { guarded.answer(request).await }
    })
}

/// One answer for all that is not there, in the words of whoever owns the place.
fn form_of(path: &str) -> Form {
    let native = path == "/api/v1" || path.starts_with("/api/v1/");
    let silo = path.starts_with("/api/") && !native;
    if silo { Form::Silo } else { Form::Problem }
}

fn no_such_path(request: &Request) -> Problem {
    Problem::new("not-found", format!("there is nothing at {}; /docs lists what there is", request.uri().path()))
}

/// What a path says to methods it does not have: which ones it has; and to browsers, whether a page may use them.
struct OtherMethod {
    app: App,
    path: &'static str,
    allow: HeaderValue,
    meter: Meter,
}

impl OtherMethod {
    fn new(app: &App, path: &'static str, methods: &[Method]) -> Self {
        Self { app: app.clone(), path, allow: allow(methods), meter: app.metrics.meter(Surface::Native, "other", path) }
    }

    async fn answer(&self, request: Request) -> Response {
        let form = form_of(self.path);
        guard::outside(&self.app, &self.meter, form, request, |request| match *request.method() {
            Method::OPTIONS => origin::preflight(&self.app.options, &self.allow, request),
            ref other => {
                let problem = Problem::new("method-not-allowed", format!("{} has no {other}", self.path));
                let mut response = problem.into_response();
                response.headers_mut().insert(header::ALLOW, self.allow.clone());
                response
            }
        })
        .await
    }
}

fn allow(methods: &[Method]) -> HeaderValue {
    let mut names: Vec<&str> = methods.iter().map(Method::as_str).collect();
    if names.contains(&"GET") {
        names.push("HEAD");
    }
    names.push("OPTIONS");
    names.sort_unstable();
    names.join(", ").parse().expect("method names are legal in a header")
}
