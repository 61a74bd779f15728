//! Runs that are given what they cannot use: they fail safely, say where, and keep no lock.

use super::*;

#[tokio::test]
async fn parameters_and_templates_that_cannot_be_are_told_with_their_step() {
    let mut bench = Bench::new().await;
    let schema =
        json!({"parameterSchema": {"type": "object", "required": ["who"], "properties": {"who": {"type": "string"}}}});
    bench.publish_with("schema", "device", vec![json!("a set")], schema).await;
    for parameters in [json!({}), json!({"who": 7})] {
        let run = bench.start("schema", &[5], parameters).await;
        assert_eq!(bench.state(&run).await, "failed_safe_ack invalid_parameters -");
        assert!(bench.run(&run).await["reason"].as_str().unwrap().contains("who"), "{}", bench.run(&run).await);
    }
    let nested = format!("{{{{ {}a{} }}}}", "[".repeat(1_000), "]".repeat(1_000));
    let long = format!("{{{{ {} }}}}", "a".repeat(5_000));
    for (name, text) in [("open", "{{ a"), ("odd", "{{ a.[ }}"), ("nested", nested.as_str()), ("long", long.as_str())] {
        bench.publish(name, "device", vec![block("a", "set", json!({"parameters": {"n": text}}))]).await;
        let run = bench.start(name, &[5], json!({})).await;
        bench.work().await;
        let state = bench.state(&run).await;
        assert!(state.starts_with("failed_safe_ack in"), "{name}: {state}");
        assert!(bench.run(&run).await["reason"].as_str().unwrap().contains("step a"), "{name}");
    }
    assert!(bench.did().iter().all(|did| !did.starts_with("execute")), "no job for any of them");
    let run = bench.start("schema", &[5], json!({"who": "ann"})).await;
    bench.work().await;
    assert_eq!(bench.state(&run).await, "completed_ack - -", "no lock was left");
}

#[tokio::test]
async fn results_that_cannot_be_fail_the_run_and_what_was_done_is_undone() {
    let mut bench = Bench::new().await;
    let server = &bench.server;
    let strict = json!({"name": "strict", "package": "fb", "majorVersion": 1, "minorVersion": 0, "patchVersion": 0,
        "workerId": bench.worker, "description": "", "fbType": "execute", "runOn": "device", "reversible": true,
        "parameterJsonSchema": {"type": "object"},
        "resultDataJsonSchema": {"type": "object", "required": ["v"], "properties": {"v": {"type": "integer"}}}});
    assert_eq!(server.work("/function-blocks/register", strict).await.status, 201);
    bench.publish("strict", "device", vec![json!("a strict")]).await;
    bench.also.push("strict");
    let table = [
        (json!({"data": {}}), "data"),
        (json!({"data": {"v": "1"}}), "data"),
        (
            json!({"data": {"v": 1}, "dbUpdates": {"updates": [{"operation": "burn", "entity": "device", "id": 5}]}}),
            "dbUpdates",
        ),
        (json!({"data": {"v": 1}, "dbUpdates": {"updates": [{"operation": "delete", "entity": "device"}]}}), "id"),
    ];
    for (answer, place) in table {
        bench.answers.insert("execute a", answer.clone());
        let run = bench.start("strict", &[5], json!({})).await;
        bench.work().await;
        assert_eq!(bench.state(&run).await, "failed_safe_ack invalid_result -", "{answer}");
        assert!(
            bench.run(&run).await["reason"].as_str().unwrap().contains(place),
            "{}",
            bench.run(&run).await["reason"]
        );
        assert_eq!(bench.did(), ["acquire a", "execute a 5", "rollback a 5"]);
    }
}

#[tokio::test]
async fn clauses_nobody_knows_fail_the_acquire_and_a_worker_that_never_reports_the_step() {
    let mut bench = Bench::new().await;
    bench.publish("one", "device", vec![json!("a set")]).await;
    for clause in [
        json!({"type": "planet", "entity": "device"}),
        json!({"type": "context", "entity": "planet"}),
        json!({"type": "context", "entity": "device", "filter": 7}),
        json!("all"),
    ] {
        bench.answers.insert("acquire a", json!({"message": "ok", "acquires": [clause]}));
        let run = bench.start("one", &[5], json!({})).await;
        bench.work().await;
        assert_eq!(bench.state(&run).await, "failed_safe_ack acquire_failed -", "{clause}");
        assert!(bench.run(&run).await["reason"].as_str().unwrap().contains("acquires[0]"), "{clause}");
    }
    bench.answers.clear();
    let run = bench.start("one", &[5], json!({})).await;
    for job in &bench.poll().await {
        bench.answer(job).await;
    }
    bench.plan().await;
    let never = bench.poll().await;
    assert_eq!(never.len(), 1);
    // It pings all the time, and says nothing about its job.
    for _ in 0..12 {
        let ping = format!("/workers/{}/ping", bench.worker);
        bench.server.work(&ping, json!({})).await.expect(200);
        bench.server.pass(Millis::from_secs(60)).await;
    }
    bench.server.work(&format!("/workers/{}/ping", bench.worker), json!({})).await.expect(200);
    bench.did();
    bench.work().await;
    assert_eq!(bench.did(), ["rollback a 5"], "a worker had it");
    assert_eq!(bench.state(&run).await, "failed_safe_ack job_timed_out -");
    assert_eq!(bench.report(&never[0], "success", json!({}), Value::Null).await, 409);
    assert_eq!(bench.run(&run).await["cmsResourcesLocked"], false);
}

#[tokio::test]
async fn what_a_caller_sends_with_a_run_has_bounds() {
    let bench = Bench::new().await;
    bench.publish("one", "device", vec![json!("a set")]).await;
    let post = async |ids: Vec<u64>, parameters: Value| {
        let body = json!({"workflow": "wf/one:1", "executeOnParameters": {"ids": ids}, "parameters": parameters});
        bench.server.post("/workflow-execution", body).await
    };
    let told = post((1..=10_001).collect(), json!({})).await.expect(400);
    assert!(told["message"].as_str().unwrap().contains("at most 10000"), "{told}");
    let told = post(vec![0], json!({})).await.expect(400);
    assert!(told["message"].as_str().unwrap().contains("ids"), "{told}");
    let told = post(vec![], json!({"x": "y".repeat(600 << 10)})).await.expect(400);
    assert!(told["message"].as_str().unwrap().contains("parameters"), "{told}");
    assert_eq!(bench.server.get("/workflow-execution").await.expect(200), json!([]), "nothing was made");
}
