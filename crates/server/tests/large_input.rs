//! Runs whose input is too large to be written with them.

use crate::workflows::Flow;
use serde_json::{Value, json};
use windlass_core::Namespace;
use windlass_engine::store::RecordQuery;

/// It is written in pieces before its run; the run and its retry find all of it, and nothing is left over.
#[tokio::test]
async fn a_large_input_is_there_for_a_run_and_for_its_retry() {
    let flow = Flow::start().await;
    let input = json!({"text": "é".repeat(150_000), "end": "here"});
    let run = flow.run("steps:\n  a: {payload: '${{ input.end }}', retry: {attempts: 1}}\n", input).await;
    let mut seen = Vec::new();
    let mut fail = |_: &str, payload: &Value| {
        seen.push(payload.clone());
        None
    };
    flow.work(&run, &mut fail).await;
    let again = flow.server.post(&format!("/api/v1/runs/{run}/retry"), json!({})).await.expect(201);
    flow.work(again["id"].as_str().unwrap(), &mut fail).await;
    assert_eq!(seen, [json!("here"), json!("here")]);
    let of_kind = async |kind: &str| {
        let namespace = Namespace::default();
        let query = RecordQuery { namespace, kind: kind.into(), parent: None, facet: None, after: None, limit: 100 };
        flow.server.engine.store().records(&query).await.unwrap().len()
    };
    assert_eq!((of_kind("early_plan").await, of_kind("plan").await), (0, 10), "five pieces each");
}
