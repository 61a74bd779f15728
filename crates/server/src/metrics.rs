//! What is counted, for Prometheus. Label values come from tables, never from callers, so their number is bounded.

use crate::{
    app::App,
    auth::Caller,
    problem::Problem,
    route::{Access, Route},
};
use axum::{
    Extension,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, header};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use std::{
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};
use windlass_core::State as JobState;
use windlass_engine::store::JobQuery;

/// Jobs of one state are counted no further than this: counting what grows would make looking at a full queue expensive.
const JOBS_COUNTED_MAX: usize = 1_000;
const SECONDS: [f64; 14] =
    [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];
/// Statuses whose counters are kept at hand; others are looked up.
const AT_HAND: [u16; 12] = [200, 201, 204, 400, 401, 403, 404, 409, 413, 422, 500, 503];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Request {
    method: &'static str,
    route: &'static str,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct At {
    method: &'static str,
    route: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Why {
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Of {
    state: &'static str,
}

pub struct Metrics {
    registry: Mutex<Registry>,
    requests: Family<Request, Counter>,
    seconds: Family<At, Histogram>,
    connections: Gauge,
    connections_refused: Family<Why, Counter>,
    jobs: Family<Of, Gauge>,
    batches: Gauge,
    commands: Gauge,
    log_bytes: Gauge,
    waiting: Gauge,
    readers: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let metrics = Self {
            registry: Mutex::new(Registry::with_prefix("windlass")),
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            connections: Gauge::default(),
            connections_refused: Family::default(),
            jobs: Family::default(),
            batches: Gauge::default(),
            commands: Gauge::default(),
            log_bytes: Gauge::default(),
            waiting: Gauge::default(),
            readers: Gauge::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&self) {
        let mut registry = self.registry.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        registry.register("http_requests", "Requests answered, by route", self.requests.clone());
        registry.register("http_request_seconds", "Time to the answer's head, waits included", self.seconds.clone());
        registry.register("http_connections", "Open connections", self.connections.clone());
        registry.register(
            "http_connections_refused",
            "Connections turned away because too many were open",
            self.connections_refused.clone(),
        );
        registry.register("jobs", "Jobs by state, counted up to 1000", self.jobs.clone());
        registry.register("engine_batches", "Transactions committed since the start", self.batches.clone());
        registry.register("engine_commands", "Commands in them", self.commands.clone());
        registry.register("log_bytes", "Bytes of job logs taken since the start", self.log_bytes.clone());
        registry.register("claims_waiting", "Claimers that wait for work", self.waiting.clone());
        registry.register("event_readers", "Readers of the event feed", self.readers.clone());
    }

    /// An open connection, until dropped.
    pub fn connection(&self) -> Open {
        self.connections.inc();
        Open(self.connections.clone())
    }

    pub fn refused_connection(&self, reason: &'static str) {
        self.connections_refused.get_or_create(&Why { reason }).inc();
    }

    pub fn meter(self: &Arc<Self>, method: &'static str, route: &'static str) -> Meter {
        let seconds = self.seconds.get_or_create(&At { method, route }).clone();
        Meter { metrics: self.clone(), method, route, seconds, at_hand: Default::default() }
    }

    fn count(&self, method: &'static str, route: &'static str, status: u16) -> Counter {
        self.requests.get_or_create(&Request { method, route, status }).clone()
    }
}

pub struct Open(Gauge);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Counts the requests of one route.
pub struct Meter {
    metrics: Arc<Metrics>,
    pub method: &'static str,
    pub route: &'static str,
    seconds: Histogram,
    at_hand: [OnceLock<Counter>; AT_HAND.len()],
}

impl Meter {
    pub fn count(&self, status: u16, took: Duration) {
        self.seconds.observe(took.as_secs_f64());
        match AT_HAND.iter().position(|known| *known == status) {
            Some(at) => {
                self.at_hand[at].get_or_init(|| self.metrics.count(self.method, self.route, status)).inc();
            }
            None => {
                self.metrics.count(self.method, self.route, status).inc();
            }
        }
    }
}

pub fn routes() -> Vec<Route> {
    vec![
        // Not open, not even on loopback: how busy a server is may concern its users, but not everybody on the machine.
        Route::get("/metrics", Access::Viewer, show).says("Figures for Prometheus").answers_with(200, CONTENT),
    ]
}

const CONTENT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

async fn show(State(app): State<App>, Extension(caller): Extension<Caller>) -> Result<Response, Problem> {
    if !caller.namespaces.is_empty() {
        return Err(Problem::new("forbidden", "figures are about all namespaces, and this token is not"));
    }
    let metrics = &app.metrics;
    for state in JobState::ALL {
        let query = JobQuery { states: vec![state], limit: JOBS_COUNTED_MAX, ..JobQuery::default() };
        let count = app.engine.store().count(&query, JOBS_COUNTED_MAX).await?;
        metrics.jobs.get_or_create(&Of { state: state.name() }).set(count as i64);
    }
    let counts = app.engine.counts();
    metrics.batches.set(counts.batches as i64);
    metrics.commands.set(counts.commands as i64);
    metrics.log_bytes.set(counts.log_bytes as i64);
    metrics.waiting.set(counts.waiting as i64);
    metrics.readers.set(counts.readers as i64);
    let mut text = String::new();
    let registry = metrics.registry.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    encode(&mut text, &registry).map_err(|error| Problem::new("internal", error.to_string()))?;
    drop(registry);
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT))], text).into_response())
}
