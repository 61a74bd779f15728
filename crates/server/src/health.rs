//! Is it there, is it well? Open to everybody, and telling nothing else.

use crate::{
    app::App,
    ask::{Answer, ok},
    route::{Access, Route},
};
use axum::extract::State;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::{Duration, Instant};

/// A store that does not answer a read within this is not ready.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long an answer about the store stands, so that anybody may ask as often as they like.
const STANDS: Duration = Duration::from_millis(500);

#[derive(Serialize, JsonSchema)]
struct Health {
    status: &'static str,
    /// Always `normal`: kept for readers that look for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    healthy: Option<bool>,
}

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/healthz", Access::Open, alive).says("Is the process alive?").answers::<Health>(200),
        Route::get("/readyz", Access::Open, ready)
            .says("Can it serve? Not while its store does not answer, and not once it is stopping")
            .answers::<Health>(200)
            .answers::<Health>(503),
        Route::get("/health", Access::Open, health).says("Health in the words of older clients").answers::<Health>(200),
    ]
}

async fn alive() -> Answer<Health> {
    ok(Health { status: "ok", mode: None, healthy: None })
}

async fn health() -> Answer<Health> {
    ok(Health { status: "ok", mode: Some("normal"), healthy: Some(true) })
}

async fn ready(State(app): State<App>) -> Answer<Health> {
    let (status, word) = if app.drain.is_cancelled() {
        (StatusCode::SERVICE_UNAVAILABLE, "stopping")
    } else if store_answers(&app).await {
        (StatusCode::OK, "ready")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the store does not answer")
    };
    Answer(status, Health { status: word, mode: None, healthy: None })
}

/// Neither stopping nor without its store.
pub async fn is_ready(app: &App) -> bool {
    !app.drain.is_cancelled() && store_answers(app).await
}

async fn store_answers(app: &App) -> bool {
    let mut last = app.store_seen.lock().await;
    if let Some((at, answered)) = *last
        && at.elapsed() < STANDS
    {
        return answered;
    }
    let answered = tokio::time::timeout(PATIENCE, app.engine.now()).await.is_ok_and(|now| now.is_ok());
    *last = Some((Instant::now(), answered));
    answered
}
