//! What a run makes of a report is decided with the report where nothing has to be worked out, and by the planner otherwise.

use super::*;

async fn reported(bench: &mut Bench) -> usize {
    let jobs = bench.poll().await;
    for job in &jobs {
        bench.answer(job).await;
    }
    jobs.len()
}

#[tokio::test]
async fn a_run_of_one_step_takes_five_transactions_and_no_turn() {
    let mut bench = Bench::new().await;
    let with = json!({"parameters": {"n": 4}, "rawParameters": {"text": "{{ as it is }}"}});
    bench.publish("one", "global", vec![block("a", "look", with)]).await;
    let before = bench.server.app.engine.counts().batches;
    let run = bench.start("one", &[], json!({})).await;
    assert_eq!(reported(&mut bench).await, 1);
    assert_eq!(bench.state(&run).await, "running - -");
    assert_eq!(reported(&mut bench).await, 1, "nobody planned");
    assert_eq!(bench.state(&run).await, "completed_ack - -");
    assert_eq!(bench.server.app.engine.counts().batches - before, 5, "start, two claims, two reports");
    let told = bench.jobs.iter().map(|job| &job["parameters"]);
    let expected = json!({"n": 4, "text": "{{ as it is }}"});
    assert_eq!(told.collect::<Vec<_>>(), [&expected, &expected]);
    let shown = bench.run(&run).await;
    assert!(shown["startedAt"].is_string() && shown["finishedAt"].is_string(), "{shown}");
    let native = bench.server.get(&format!("/api/v1/runs/{run}?namespace=neops")).await.expect(200);
    assert_eq!(native["state"], "completed");
    bench.plan().await;
    assert_eq!(bench.report(&bench.jobs[1], "success", json!({}), Value::Null).await, 409, "a second result");
    assert_eq!(bench.state(&run).await, "completed_ack - -");
}

#[tokio::test]
async fn what_has_to_be_looked_at_is_left_to_the_planner() {
    let mut bench = Bench::new().await;
    let steps = |more: Value| vec![block("a", "look", more)];
    bench.publish("plain", "global", steps(json!({}))).await;
    bench.publish("asks", "global", steps(json!({"parameters": {"n": "{{ parameters.n }}"}}))).await;
    bench.publish("never", "global", steps(json!({"condition": {"type": "jmes", "jmes": "parameters.no"}}))).await;
    for (name, executed) in [("asks", true), ("never", false)] {
        let run = bench.start(name, &[], json!({"n": 3})).await;
        assert_eq!(reported(&mut bench).await, 1);
        assert!(bench.poll().await.is_empty(), "{name}: nobody has decided yet");
        bench.work().await;
        assert_eq!(bench.state(&run).await, "completed_ack - -", "{name}");
        assert_eq!(bench.did().contains(&"execute a".to_owned()), executed, "{name}");
    }
    let update = json!({"operation": "create", "entity": "device", "id": 99_000_001, "data": {"hostname": "new"}});
    bench.answers.insert("execute a", json!({"data": {}, "dbUpdates": {"updates": [update]}}));
    let run = bench.start("plain", &[], json!({})).await;
    assert_eq!((reported(&mut bench).await, reported(&mut bench).await), (1, 1));
    assert_eq!(bench.state(&run).await, "running - -", "what it changed is yet to be kept");
    bench.plan().await;
    assert_eq!(bench.state(&run).await, "completed_ack - -");
    let made = bench.server.send(Role::Admin, Method::GET, "/api/v1/entities/device/1", None).await.expect(200);
    assert_eq!(made["hostname"], "new");
    bench.answers.insert("execute a", json!({"data": []}));
    let run = bench.start("plain", &[], json!({})).await;
    assert_eq!(reported(&mut bench).await, 1);
    let job = bench.poll().await.remove(0);
    assert_eq!(bench.report(&job, "success", json!({"data": []}), Value::Null).await, 400);
    assert_eq!(bench.report(&job, "failed", json!({"message": "no", "retryable": false}), Value::Null).await, 201);
    bench.plan().await;
    assert_eq!(bench.state(&run).await, "failed_safe_ack step_failed -");
}

#[tokio::test]
async fn what_was_decided_meanwhile_counts() {
    let mut bench = Bench::new().await;
    bench.publish("one", "global", vec![json!("a change")]).await;
    let run = bench.start("one", &[], json!({})).await;
    let acquire = bench.poll().await.remove(0);
    bench.server.delete(&format!("/workflow-execution/{run}")).await.expect(200);
    assert_eq!(bench.report(&acquire, "success", json!({}), Value::Null).await, 409, "it was taken away");
    bench.work().await;
    assert_eq!(bench.state(&run).await, "failed_safe_ack aborted -");
    let run = bench.start("one", &[], json!({})).await;
    assert_eq!(reported(&mut bench).await, 1);
    let execute = bench.poll().await.remove(0);
    bench.server.post(&format!("/api/v1/runs/{run}/cancel?namespace=neops"), json!({})).await.expect(200);
    bench.report(&execute, "success", json!({}), Value::Null).await;
    bench.plan().await;
    bench.server.app.dialects.sweep(&bench.server.app).await.unwrap();
    assert_eq!(bench.state(&run).await, "failed_unsafe_ack aborted rollback_blocked", "its report came too late");
}
