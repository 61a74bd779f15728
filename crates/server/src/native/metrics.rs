//! `/metrics`, for Prometheus.

use crate::{
    app::App,
    auth::Caller,
    metrics::Format,
    problem::{Code, Problem, Result},
    route::{Access, Route},
};
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, header};

pub fn routes() -> Vec<Route> {
    vec![
        // Not open, not even on loopback: how busy a server is may concern its users, but not everybody on the machine.
        Route::get("/metrics", Access::Viewer, show)
            .says("Metrics for Prometheus")
            .answers_with(200, PLAIN)
            .answers_with(200, OPEN_METRICS),
    ]
}

const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// OpenMetrics if the client asks for it and prefers nothing else. Browsers, curl and promtool get Prometheus' own format.
fn format(headers: &HeaderMap) -> Format {
    let lines = headers.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let (mut open, mut plain) = (0.0_f32, 0.0_f32);
    for part in lines.flat_map(|line| line.split(',')) {
        let mut words = part.split(';').map(str::trim);
        let kind = words.next().unwrap_or_default().to_ascii_lowercase();
        let quality = words.find_map(|word| word.strip_prefix("q=")).map_or(Some(1.0), |quality| quality.parse().ok());
        let quality = quality.unwrap_or_default();
        match kind.as_str() {
            "application/openmetrics-text" => open = open.max(quality),
            "text/plain" => plain = plain.max(quality),
            _ => {}
        }
    }
    if open > 0.0 && open >= plain { Format::OpenMetrics } else { Format::Prometheus }
}

async fn show(State(app): State<App>, caller: Caller, headers: HeaderMap) -> Result<Response> {
    if !caller.namespaces.is_empty() {
        let why = "metrics cover all namespaces; use a token that is not limited to some";
        return Err(Problem::new(Code::Forbidden, why));
    }
    let format = format(&headers);
    let content = match format {
        Format::Prometheus => PLAIN,
        Format::OpenMetrics => OPEN_METRICS,
    };
    let text = app.metrics.text(&app.engine, &app.dialects.namespaces(), format).await?;
    let headers =
        [(header::CONTENT_TYPE, HeaderValue::from_static(content)), (header::VARY, HeaderValue::from_static("accept"))];
    Ok((headers, text).into_response())
}
