//! `/metrics`, for Prometheus.

use crate::{
    app::App,
    auth::Caller,
    problem::{Code, Problem, Result},
    route::{Access, Route},
};
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, header};

pub fn routes() -> Vec<Route> {
    vec![
        // Not open, not even on loopback: how busy a server is may concern its users, but not everybody on the machine.
        Route::get("/metrics", Access::Viewer, show).says("Metrics for Prometheus").answers_with(200, CONTENT),
    ]
}

const CONTENT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

async fn show(State(app): State<App>, caller: Caller) -> Result<Response> {
    if !caller.namespaces.is_empty() {
        let why = "metrics cover all namespaces; use a token that is not limited to some";
        return Err(Problem::new(Code::Forbidden, why));
    }
    let text = app.metrics.text(&app.engine, &app.dialects.namespaces()).await?;
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT))], text).into_response())
}
