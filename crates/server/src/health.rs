//! Is it there, is it well? Open to everybody, and telling nothing else.

use crate::{
    app::App,
    ask::{Answer, ok},
    content,
    route::{Access, Route},
};
use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use std::time::{Duration, Instant};

/// A store that does not answer a read within this is not ready.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long an answer about the store stands, so that anybody may ask as often as they like.
const STANDS: Duration = Duration::from_millis(500);

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
            .says(
                "Can it serve? Not while its store does not answer, and not once it is stopping. A server whose store is full \
                 serves what it can, and says so",
            )
            .answers::<Health>(200)
            .answers::<Health>(503),
        Route::get("/health", Access::Open, health).says("The same as /healthz, in the format of older clients").answers::<Health>(200),
    ]
}

async fn alive() -> Answer<Health> {
    ok(Health { status: "ok", mode: None, healthy: None })
}

async fn health() -> Answer<Health> {
    ok(Health { status: "ok", mode: Some("normal"), healthy: Some(true) })
}

async fn ready(State(app): State<App>) -> Answer<Health> {
    let word = if app.drain.is_cancelled() { Store::Stopping } else { look(&app).await };
    Answer(word.status(), Health { status: word.text(), mode: None, healthy: None })
}

/// How the store was when it was last looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    Answers,
    /// Reads and deletes work; whoever turns callers away from here keeps them from making room.
    Full,
    NoRoomForFiles,
    Silent,
    Stopping,
}

impl Store {
    fn status(self) -> StatusCode {
        match self {
            Store::Answers | Store::Full | Store::NoRoomForFiles => StatusCode::OK,
            Store::Silent | Store::Stopping => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Store::Answers => "ready",
            Store::Full => "ready, but the store is full: what has to be written is refused",
            Store::NoRoomForFiles => "ready, but there is no room for artifacts",
            Store::Silent => "the store does not answer",
            Store::Stopping => "stopping",
        }
    }
}

/// Neither stopping nor without its store.
pub async fn is_ready(app: &App) -> bool {
    !app.drain.is_cancelled() && look(app).await.status() == StatusCode::OK
}

async fn look(app: &App) -> Store {
    let mut last = app.store_seen.lock().await;
    if let Some((at, seen)) = *last
        && at.elapsed() < STANDS
    {
        return seen;
    }
    let answers = tokio::time::timeout(PATIENCE, app.engine.now()).await.is_ok_and(|now| now.is_ok());
    let seen = match answers {
        false => Store::Silent,
        true if app.engine.is_full() => Store::Full,
        true if !content::is_roomy(app).await => Store::NoRoomForFiles,
        true => Store::Answers,
    };
    *last = Some((Instant::now(), seen));
    seen
}
