//! What HTTP and JSON alone allow here: a handler that parses a small body and answers a small one, nothing behind it.

use super::connection::{Address, Connection};
use axum::{Json, Router, routing::post};
use http::Method;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use tokio::{net::TcpListener, task::JoinSet};

#[derive(Deserialize)]
struct Ask {
    payload: serde_json::Value,
}

#[derive(Serialize)]
struct Submitted {
    id: usize,
    state: &'static str,
}

async fn handler(Json(ask): Json<Ask>) -> Json<Submitted> {
    Json(Submitted { id: ask.payload.as_object().map_or(0, serde_json::Map::len), state: "pending" })
}

/// Requests per second over so many connections.
pub async fn measure(connections: usize, time: Duration) -> anyhow::Result<f64> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = Address::parse(&format!("http://{}", listener.local_addr()?))?;
    // A runtime of its own: a server under load shares no threads with its callers either.
    let server = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let listener = listener.into_std()?;
    server.spawn(async move {
        let listener = TcpListener::from_std(listener)?;
        axum::serve(listener, Router::new().route("/", post(handler))).await
    });
    let mut callers = JoinSet::new();
    let begun = Instant::now();
    for _ in 0..connections {
        let mut connection = Connection::open(&address, "none").await?;
        callers.spawn(async move {
            let mut done = 0usize;
            while begun.elapsed() < time {
                connection.call(Method::POST, "/", super::load::JOB).await?;
                done += 1;
            }
            anyhow::Ok(done)
        });
    }
    let mut done = 0;
    while let Some(caller) = callers.join_next().await {
        done += caller??;
    }
    let rate = done as f64 / begun.elapsed().as_secs_f64();
    server.shutdown_background();
    Ok(rate)
}
