//! Metrics: few at rest, what an operator looks for, and each of them in the documentation.

use crate::support::Server;
use http::Method;
use serde_json::json;
use std::collections::HashMap;
use windlass_core::{Millis, principal::Role};
use windlass_engine::testing::eventually;
use windlass_server::metrics;

async fn served(server: &Server) -> String {
    let request =
        Server::request(Role::Viewer, Method::GET, "/metrics").header("accept", "application/openmetrics-text");
    let answer = server.call(request.body(axum::body::Body::empty()).unwrap()).await;
    assert_eq!(answer.status, 200);
    String::from_utf8(answer.body).unwrap()
}

/// By name and labels.
fn samples(text: &str) -> HashMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.rsplit_once(' ').map(|(name, value)| (name.to_owned(), value.parse().unwrap())).unwrap())
        .collect()
}

/// Figures of the store stand for half a second.
async fn once(server: &Server, name: &str, wanted: impl Fn(f64) -> bool) -> HashMap<String, f64> {
    let look = async || {
        let found = samples(&served(server).await);
        found.get(name).copied().is_some_and(&wanted).then_some(found)
    };
    eventually(format!("{name} comes to it"), look).await
}

#[tokio::test]
async fn there_are_few_series_at_rest_and_only_called_routes_have_some() {
    let server = Server::start().await;
    served(&server).await;
    let text = served(&server).await;
    let found = samples(&text);
    assert!(found.len() < 300, "{} series at rest", found.len());
    let routes: Vec<_> = found.keys().filter(|name| name.starts_with("windlass_http_requests_total")).collect();
    assert_eq!(routes, [r#"windlass_http_requests_total{method="GET",route="/metrics",status="200"}"#]);
    assert!(text.ends_with("# EOF\n"));
    for family in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = family.split_once(' ').unwrap();
        let totals = found.keys().any(|sample| sample.starts_with(&format!("{name}_total")));
        assert!(!totals || kind == "counter", "{name} is a total and a {kind}");
    }
}

#[tokio::test]
async fn what_an_operator_looks_for_is_counted() {
    let server = Server::start().await;
    server.work("/api/v1/workers/register", json!({"worker": "w"})).await.expect(200);
    for _ in 0..5 {
        server.post("/api/v1/jobs", json!({})).await.expect(201);
    }
    let claim = json!({"worker": "w", "max": 3});
    let claimed = server.work("/api/v1/leases/claim", claim).await.expect(200);
    let leases = claimed["leases"].as_array().unwrap();
    assert_eq!(leases.len(), 3);
    server.work("/api/v1/leases/complete", json!({"lease": leases[0]["lease"]})).await.expect(200);
    let failed = json!({"lease": leases[1]["lease"], "message": "no", "permanent": true});
    server.work("/api/v1/leases/fail", failed).await.expect(200);
    let found = once(&server, r#"windlass_jobs{state="pending"}"#, |count| count == 2.0).await;
    for (name, value) in [
        ("windlass_jobs_submitted_total", 5.0),
        ("windlass_jobs_claimed_total", 3.0),
        (r#"windlass_jobs_ended_total{outcome="completed"}"#, 1.0),
        (r#"windlass_jobs_ended_total{outcome="failed"}"#, 1.0),
        (r#"windlass_jobs_ended_total{outcome="cancelled"}"#, 0.0),
        (r#"windlass_jobs{state="claimed"}"#, 1.0),
        ("windlass_job_wait_seconds_count", 3.0),
        ("windlass_job_run_seconds_count", 2.0),
        ("windlass_report_seconds_count", 2.0),
        (r#"windlass_workers{state="online"}"#, 1.0),
        (r#"windlass_http_requests_total{method="POST",route="/api/v1/jobs",status="201"}"#, 5.0),
    ] {
        assert_eq!(found.get(name), Some(&value), "{name}");
    }
    assert!(found["windlass_engine_commits_total"] >= 1.0 && found["windlass_engine_commit_seconds_count"] >= 1.0);
    // A job that waits gets older, and none is none.
    server.pass(Millis::from_secs(1)).await;
    once(&server, "windlass_oldest_waiting_seconds", |age| age > 0.0).await;
    server.work("/api/v1/leases/claim", json!({"worker": "w", "max": 5})).await.expect(200);
    once(&server, "windlass_oldest_waiting_seconds", |age| age == 0.0).await;
}

#[tokio::test]
async fn every_metric_is_in_the_documentation() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md")).unwrap();
    assert!(page.contains(&metrics::markdown()), "docs/operations.md lacks this table:\n{}", metrics::markdown());
    let server = Server::start().await;
    let text = served(&server).await;
    let listed: Vec<_> = metrics::FAMILIES.iter().map(|family| format!("# TYPE {} ", family.name)).collect();
    assert!(listed.iter().all(|line| text.contains(line.as_str())));
    assert_eq!(text.matches("# TYPE ").count(), listed.len());
}

#[tokio::test]
async fn the_format_is_the_one_that_is_asked_for() {
    let server = Server::start().await;
    server.post("/api/v1/jobs", json!({})).await.expect(201);
    let prometheus = "application/openmetrics-text;version=1.0.0;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,\
                      text/plain;version=0.0.4;q=0.4,*/*;q=0.3";
    for (accept, open) in [
        (None, false),
        (Some("*/*"), false),
        (Some("text/plain"), false),
        (Some("text/plain;q=0.9, application/openmetrics-text;q=0.1"), false),
        (Some("application/openmetrics-text;q=0"), false),
        (Some("text/html, application/json"), false),
        (Some("application/openmetrics-text"), true),
        (Some("APPLICATION/OpenMetrics-Text; version=1.0.0"), true),
        (Some(prometheus), true),
    ] {
        let request = Server::request(Role::Viewer, Method::GET, "/metrics");
        let request = accept.into_iter().fold(request, |request, accept| request.header("accept", accept));
        let answer = server.call(request.body(axum::body::Body::empty()).unwrap()).await;
        let (kind, text) = (answer.headers["content-type"].clone(), String::from_utf8(answer.body).unwrap());
        if open {
            assert_eq!(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8", "{accept:?}");
            assert!(text.ends_with("# EOF\n"));
            continue;
        }
        assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8", "{accept:?}");
        assert!(!text.contains("# EOF") && !text.contains("# UNIT"), "{accept:?}");
        let mut typed = std::collections::HashSet::new();
        for line in text.lines() {
            if let Some(family) = line.strip_prefix("# TYPE ") {
                assert!(typed.insert(family.split(' ').next().unwrap()), "{line}");
                // What was never typed is what promtool complains of.
                assert!(!family.ends_with(" unknown") && !family.ends_with(" info"), "{line}");
            } else if !line.starts_with('#') {
                let name = line.split(['{', ' ']).next().unwrap();
                let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
                assert!(typed.contains(name) || family.is_some_and(|family| typed.contains(family)), "{line}");
            }
        }
        assert!(text.contains("# TYPE windlass_jobs_submitted_total counter\n"), "{text}");
    }
}
