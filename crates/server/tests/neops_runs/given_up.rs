//! Expressions that would end the server, and turns that did.

use super::*;
use windlass_core::{
    JobId, RecordKey, RunId,
    commands::records::{Expect, PutRecord},
    stage,
};
use windlass_server::dialects::neops;

/// Fifteen gigabytes of what is below, of which only the length is asked.
fn joined(from: &str) -> String {
    format!("length(join({from}.g, {from}.q))")
}

#[tokio::test]
async fn an_expression_that_grows_without_end_fails_its_run_and_nothing_else() {
    let mut bench = Bench::new().await;
    let parameters = json!({"q": vec!["x"; 50_000], "g": "g".repeat(200_000)});
    let table = [
        ("join", format!("{{{{ {} }}}}", joined("parameters")), "join"),
        ("slice", "{{ parameters.q[1::2147483647] }}".into(), "must be from -1000000 to 1000000"),
    ];
    for (name, text, told) in table {
        bench.publish(name, "global", vec![block("a", "look", json!({"parameters": {"t": text}}))]).await;
        let run = bench.start(name, &[], parameters.clone()).await;
        assert_eq!(bench.state(&run).await, "failed_safe_ack invalid_parameters -");
        let reason = bench.run(&run).await["reason"].as_str().unwrap().to_owned();
        assert!(reason.contains(told) && reason.contains("step a: t: "), "{reason}");
    }
    // The same over what a step gave, which is looked at by the planner.
    let second = block("b", "look", json!({"parameters": {"t": format!("{{{{ {} }}}}", joined("a.result.data"))}}));
    bench.publish("later", "global", vec![json!("a look"), second]).await;
    bench.answers.insert("execute a", json!({"message": "ok", "data": parameters}));
    let run = bench.start("later", &[], json!({})).await;
    bench.work().await;
    assert_eq!(bench.state(&run).await, "failed_safe_ack interpolation_failed -");
    let reason = bench.run(&run).await["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("join"), "{reason}");
    // A condition that takes too much is not taken for one that does not hold.
    let condition = format!("{} == `1`", joined("parameters"));
    bench
        .publish(
            "condition",
            "global",
            vec![block("a", "look", json!({"condition": {"type": "jmes", "jmes": condition}}))],
        )
        .await;
    let run = bench.start("condition", &[], parameters).await;
    bench.work().await;
    assert_eq!(bench.state(&run).await, "failed_safe_ack interpolation_failed -");
}

/// As if a server had ended so often while this was worked out.
async fn ended_during(bench: &Bench, name: String, times: u32) {
    let key = RecordKey { namespace: stage::system_namespace(), kind: stage::BEGUN.into(), key: name.into() };
    let value = json!({"times": times}).to_string().into();
    let put = PutRecord { key, expect: Expect::Anything, parent: None, value, facets: vec![], expires_at: None };
    bench.server.engine.run(put).await.unwrap();
}

async fn main_step(bench: &Bench, run: &str) -> JobId {
    let jobs = bench.server.get(&format!("/api/v1/runs/{run}?namespace=neops")).await.expect(200);
    let step = jobs["steps"].as_array().unwrap().iter().find(|step| step["name"] == "main").cloned().unwrap();
    step["job"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_turn_that_ended_the_server_twice_ends_its_run_and_one_that_did_once_is_tried_again() {
    let mut bench = Bench::new().await;
    bench.publish("one", "device", vec![json!("a set")]).await;
    for (times, expected) in [(1, "completed_ack - -"), (2, "failed_safe_ack engine_error -")] {
        let run = bench.start("one", &[5], json!({})).await;
        let id: RunId = run.parse().unwrap();
        let name = stage::turn_key(&neops::namespace(), id, Some(main_step(&bench, &run).await));
        ended_during(&bench, name, times).await;
        bench.work().await;
        assert_eq!(bench.state(&run).await, expected);
        let reason = bench.run(&run).await["reason"].as_str().unwrap_or_default().to_owned();
        assert_eq!(reason.contains("the server ended 2 times while this step was being worked out"), times == 2);
    }
    // What it would have locked is free.
    let run = bench.start("one", &[5], json!({})).await;
    bench.work().await;
    assert_eq!(bench.state(&run).await, "completed_ack - -");
}
