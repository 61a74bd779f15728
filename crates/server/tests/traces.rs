//! A collector gets one trace from a job's submit to its end.

use crate::support::{Server, token};
use axum::{Json, Router, routing::post};
use http::{Method, Request, header};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use windlass_core::principal::Role;
use windlass_server::{
    Options,
    config::{table, values::Values},
    trace::Traces,
};

type Spans = Arc<Mutex<Vec<Value>>>;

async fn collector() -> (String, Spans) {
    let spans = Spans::default();
    let kept = spans.clone();
    let take = move |Json(body): Json<Value>| {
        let got = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
        kept.lock().unwrap().extend(got);
        async { Json(json!({})) }
    };
    let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", socket.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(socket, Router::new().route("/v1/traces", post(take))).await });
    (url, spans)
}

async fn submit(server: &Server, parent: Option<&str>) {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri("/api/v1/jobs")
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, format!("Bearer {}", token(Role::Editor)));
    if let Some(parent) = parent {
        request = request.header("traceparent", parent);
    }
    server.call(request.body("{}".into()).unwrap()).await.expect(201);
}

#[tokio::test]
async fn one_trace_leads_from_submit_to_result() {
    let (url, spans) = collector().await;
    let server = Server::with(Options { traces: Traces::to(&url).unwrap(), ..Options::default() }).await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    submit(&server, Some(&format!("00-{trace}-00f067aa0ba902b7-01"))).await;
    submit(&server, None).await;
    let claimed = server.work("/api/v1/leases/claim", json!({"worker": "w", "max": 2})).await.expect(200);
    let given: Vec<&str> =
        claimed["leases"].as_array().unwrap().iter().map(|lease| lease["traceparent"].as_str().unwrap()).collect();
    assert!(given[0].starts_with(&format!("00-{trace}-")) && !given[1].contains(trace), "{given:?}");
    for lease in claimed["leases"].as_array().unwrap() {
        server.work("/api/v1/leases/complete", json!({"lease": lease["lease"]})).await.expect(200);
    }
    server.app.options.traces.flush().await;
    let spans = spans.lock().unwrap();
    let named = |name: &str| spans.iter().find(|span| span["name"] == name && span["traceId"] == trace).unwrap();
    assert_eq!(named("submit")["parentSpanId"], "00f067aa0ba902b7");
    for follower in ["claim", "complete"] {
        assert_eq!(named(follower)["parentSpanId"], named("submit")["spanId"], "{follower}");
    }
    assert_eq!(spans.len(), 6, "{spans:#?}");
    assert!(spans.iter().all(|span| !span.to_string().contains(claimed["leases"][0]["lease"].as_str().unwrap())));
}

#[tokio::test]
async fn without_a_collector_a_caller_s_trace_still_reaches_the_worker() {
    let server = Server::start().await;
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    submit(&server, Some(parent)).await;
    submit(&server, None).await;
    let claimed = server.work("/api/v1/leases/claim", json!({"worker": "w", "max": 2})).await.expect(200);
    assert_eq!(
        (&claimed["leases"][0]["traceparent"], &claimed["leases"][1]["traceparent"]),
        (&json!(parent), &Value::Null)
    );
}

#[tokio::test]
async fn a_collector_that_is_gone_costs_nothing_but_spans() {
    let server =
        Server::with(Options { traces: Traces::to("http://127.0.0.1:1").unwrap(), ..Options::default() }).await;
    for _ in 0..5 {
        submit(&server, None).await;
    }
    server.app.options.traces.flush().await;
}

#[tokio::test]
async fn a_job_tells_its_trace_and_where_to_look_at_it() {
    let values = Values::default().with(table::trace_url, "https://traces.example.com/t/{trace}");
    let server = Server::with(Options { values, ..Options::default() }).await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    submit(&server, Some(&format!("00-{trace}-00f067aa0ba902b7-01"))).await;
    let listed = server.get("/api/v1/jobs").await.expect(200);
    let id = listed["items"][0]["id"].as_str().unwrap();
    let job = server.get(&format!("/api/v1/jobs/{id}")).await.expect(200);
    assert_eq!(
        (&job["trace"], &job["trace_url"]),
        (&json!(trace), &json!(format!("https://traces.example.com/t/{trace}")))
    );
    submit(&server, None).await;
    let listed = server.get("/api/v1/jobs").await.expect(200);
    let id = listed["items"][0]["id"].as_str().unwrap();
    assert_eq!(server.get(&format!("/api/v1/jobs/{id}")).await.expect(200).get("trace_url"), None);
}
