//! Which entities the steps of a run are for, and how each goes on.

use super::*;

fn parallel() -> Value {
    json!({"config": {"executionStrategy": {"parallel": true}}})
}

#[tokio::test]
async fn in_parallel_each_entity_goes_on_by_itself_and_a_global_step_joins_them() {
    let mut bench = Bench::new().await;
    let second = block(
        "b",
        "set",
        json!({"parameters": {"v": "{{ context.device.vendor }}", "m": "{{ a.result.data.m }}", "c": "{{ z.result.message }}"}}),
    );
    let last =
        block("d", "set", json!({"parameters": {"v": "{{ context.device.vendor }}", "k": "{{ b.result.data.n }}"}}));
    let steps = vec![json!("z look"), json!("a set"), second, json!("c change"), last];
    bench.publish_with("lanes", "device", steps, parallel()).await;
    let update = |id: u64| json!({"operation": "patch", "entity": "device", "id": id, "path": "vendor", "value": format!("v{id}")});
    let run = bench.start("lanes", &[1, 2, 3], json!({})).await;
    // Up to the first step on devices.
    for _ in 0..2 {
        for job in &bench.poll().await {
            bench.answer(job).await;
        }
        bench.plan().await;
    }
    bench.did();
    let first = bench.poll().await;
    assert_eq!(first.len(), 3);
    let done = json!({"message": "ok", "data": {"m": 7}, "dbUpdates": {"updates": [update(2)]}});
    assert_eq!(bench.report(&first[1], "success", done, Value::Null).await, 201);
    bench.plan().await;
    let ahead = bench.poll().await;
    assert_eq!(ahead.len(), 1, "the second device does not wait for the others");
    assert_eq!((&ahead[0]["stepLabel"], &ahead[0]["entityId"]), (&json!("b"), &json!(2)));
    assert_eq!(ahead[0]["parameters"], json!({"n": 1, "v": "v2", "m": 7, "c": "ok"}));
    let seen: Vec<&Value> =
        ahead[0]["context"]["devices"].as_array().unwrap().iter().map(|one| &one["vendor"]).collect();
    assert_eq!(seen, [&Value::Null, &json!("v2"), &Value::Null]);
    let done = json!({"message": "ok", "data": {"n": 9}});
    assert_eq!(bench.report(&ahead[0], "success", done, Value::Null).await, 201);
    bench.plan().await;
    assert!(bench.poll().await.is_empty(), "the global step waits for all");
    for at in [0, 2] {
        bench.answer(&first[at]).await;
    }
    bench.work().await;
    assert_eq!(bench.state(&run).await, "completed_ack - -", "{}", bench.run(&run).await);
    assert_eq!(
        bench.did(),
        [
            "execute a 1",
            "execute a 3",
            "execute b 1",
            "execute b 3",
            "execute c",
            "execute d 1",
            "execute d 2",
            "execute d 3"
        ]
    );
    let last: Vec<&Value> =
        bench.jobs.iter().filter(|job| job["stepLabel"] == "d" && job["type"] == "execute").collect();
    assert_eq!(
        last[1]["parameters"],
        json!({"n": 1, "k": 9, "v": "v2"}),
        "later steps see what lanes gave and changed"
    );
    assert_eq!(last[0]["parameters"]["v"], Value::Null);
    let entity = bench.server.get("/api/v1/entities/device/2").await.expect(200);
    assert_eq!(entity["vendor"], "v2");
}

#[tokio::test]
async fn a_lane_that_fails_stops_the_others_and_all_that_was_begun_is_undone() {
    let mut bench = Bench::new().await;
    bench.publish_with("lanes", "device", vec![json!("a set"), json!("b set")], parallel()).await;
    let run = bench.start("lanes", &[1, 2, 3], json!({})).await;
    for job in &bench.poll().await {
        bench.answer(job).await;
    }
    bench.plan().await;
    let first = bench.poll_for(2).await;
    let update = json!({"operation": "patch", "entity": "device", "id": 1, "path": "vendor", "value": "v1"});
    let done = json!({"message": "ok", "dbUpdates": {"updates": [update]}});
    assert_eq!(bench.report(&first[0], "success", done, Value::Null).await, 201);
    bench.plan().await;
    let ahead = bench.poll_for(2).await;
    let at = |job: &Value| format!("{} {}", job["stepLabel"].as_str().unwrap(), job["entityId"]);
    assert_eq!(ahead.iter().map(at).collect::<Vec<_>>(), ["a 3", "b 1"]);
    bench.fails.insert("execute b", 1);
    bench.answer(&ahead[1]).await;
    bench.answer(&ahead[0]).await;
    bench.answer(&first[1]).await;
    bench.did();
    bench.work().await;
    let did = bench.did();
    assert_eq!(did[0], "rollback b 1");
    let mut rest = did[1..].to_vec();
    rest.sort();
    assert_eq!(rest, ["rollback a 1", "rollback a 2", "rollback a 3"]);
    let undone = bench.jobs.iter().rfind(|job| job["type"] == "rollback" && job["stepLabel"] == "b").unwrap();
    assert_eq!(undone["context"]["devices"][0]["vendor"], "v1", "it sees what the step saw that it undoes");
    assert_eq!(bench.state(&run).await, "failed_safe_ack step_failed -");
    assert_eq!(bench.run(&run).await["reason"], "step b: broken (on 1)");
    assert_eq!(bench.server.get("/api/v1/entities/device/1").await.status, 404, "what failed changes nothing");
}

#[tokio::test]
async fn clauses_say_which_entities_a_step_is_for() {
    let mut bench = Bench::new().await;
    for (id, up) in [(1, true), (2, false)] {
        let device = json!({"id": id, "facts": {"up": up}});
        bench.server.put(&format!("/api/v1/entities/device/{id}"), device).await;
    }
    let context =
        |filter: &str| json!({"type": "context", "entity": "device", "filter": filter, "assertNotEmpty": true});
    let same = |label: &str| json!({"type": "reference", "entity": "device", "label": label, "assertNotEmpty": true});
    let table = [
        (
            "same",
            vec![
                block("a", "set", json!({"acquire": [context("facts.up")]})),
                block("b", "set", json!({"acquire": [same("a")]})),
                json!("c set"),
            ],
            "completed_ack - -",
            "execute a 1, execute b 1, execute c 1, execute c 2",
        ),
        ("nobody", vec![block("a", "set", json!({"acquire": [same("z")]}))], "failed_safe_ack acquire_failed -", ""),
        (
            "none",
            vec![block("a", "set", json!({"acquire": [context("facts.down")]}))],
            "failed_safe_ack acquire_failed -",
            "",
        ),
        (
            "interface",
            vec![
                block(
                    "a",
                    "set",
                    json!({"acquire": [{"type": "reference", "entity": "interface", "label": "b", "assertNotEmpty": true}]}),
                ),
                json!("b set"),
            ],
            "failed_safe_ack acquire_failed -",
            "",
        ),
    ];
    for (name, steps, expected, executed) in table {
        bench.publish(name, "device", steps).await;
        let run = bench.start(name, &[1, 2], json!({})).await;
        bench.work().await;
        assert_eq!(bench.state(&run).await, expected, "{name}: {}", bench.run(&run).await["reason"]);
        let did: Vec<String> = bench.did().into_iter().filter(|did| did.starts_with("execute")).collect();
        assert_eq!(did.join(", "), executed, "{name}");
        assert_eq!(bench.run(&run).await["cmsResourcesLocked"], false);
    }
}

#[tokio::test]
async fn a_run_that_could_have_too_many_jobs_fails_before_the_first() {
    let mut bench = Bench::new().await;
    bench.publish("many", "device", vec![json!("a set"), json!("b set")]).await;
    let ids: Vec<u64> = (1..=5_000).collect();
    let run = bench.start("many", &ids, json!({})).await;
    bench.work().await;
    assert_eq!(bench.state(&run).await, "failed_safe_ack acquire_failed -");
    assert!(bench.run(&run).await["reason"].as_str().unwrap().contains("at most 20000"));
    assert_eq!(bench.did(), ["acquire a", "acquire b"]);
}

/// The rules for native runs know nothing of locks and rollbacks.
#[tokio::test]
async fn a_run_that_was_cancelled_natively_is_classified_and_its_lock_is_not_forgotten() {
    let mut bench = Bench::new().await;
    bench.publish("set", "device", vec![json!("a set")]).await;
    let cancel = async |bench: &Bench, run: &str| {
        let path = format!("/api/v1/runs/{run}/cancel?namespace=neops");
        bench.server.post(&path, json!({})).await.expect(200);
        bench.plan().await;
        bench.server.app.dialects.sweep(&bench.server.app).await.unwrap();
    };
    let idle = bench.start("set", &[5], json!({})).await;
    cancel(&bench, &idle).await;
    assert_eq!(bench.state(&idle).await, "failed_safe_ack aborted -", "nothing was done");
    let run = bench.start("set", &[5], json!({})).await;
    for job in &bench.poll().await {
        bench.answer(job).await;
    }
    bench.plan().await;
    assert_eq!(bench.poll().await.len(), 1);
    let other = bench.start("set", &[6], json!({})).await;
    bench.server.app.dialects.sweep(&bench.server.app).await.unwrap();
    assert_eq!(bench.state(&run).await, "running - -", "what goes on is left alone");
    cancel(&bench, &run).await;
    assert_eq!(bench.state(&run).await, "failed_unsafe_ack aborted rollback_blocked");
    assert_eq!(bench.run(&run).await["heldLocks"]["devices"], json!([5]), "a worker had the device");
    let path = format!("/workflow-execution/{run}/remediation");
    let made = bench.server.post(&format!("{path}/rollback"), json!({"all": true})).await.expect(200);
    assert_eq!(made["createdRollbackJobs"], 1);
    bench.work().await;
    assert_eq!(bench.state(&run).await, "failed_safe_ack aborted rollback_blocked");
    assert_eq!(bench.run(&run).await["cmsResourcesLocked"], false);
    assert_eq!(bench.state(&other).await, "completed_ack - -");
}
