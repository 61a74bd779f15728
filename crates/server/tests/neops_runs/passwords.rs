//! Passwords of devices: workers get them, and people who may not see them find them nowhere.

use super::*;

const OLD: &str = "s3cret-pw";
const NEW: &str = "n3w-s3cret";

async fn device(bench: &Bench) {
    let device = json!({"hostname": "sw1", "password": OLD, "controller": {"id": 9, "password": OLD}});
    bench.server.put("/api/v1/entities/device/5", device).await.expect(201);
}

/// All that is shown of a run and of its jobs.
fn paths(bench: &Bench, run: &str) -> Vec<String> {
    let of_all = [
        "/api/v1/jobs?namespace=neops",
        "/api/v1/runs?namespace=neops",
        "/api/v1/events?namespace=neops&follow=false",
        "/api/v1/overview?namespace=neops",
        "/api/v1/artifacts?namespace=neops",
        "/api/v1/history?namespace=neops",
        "/api/v1/entities?type=device",
        "/api/v1/entities/device/5",
        "/workflow-execution",
        "/workflow-execution/active",
        "/blackboard/jobs",
        "/blackboard/jobs/page?include=resultData",
    ];
    let of_run = [
        format!("/api/v1/runs/{run}?namespace=neops"),
        format!("/workflow-execution/id/{run}"),
        format!("/workflow-execution/{run}/jobs?include=resultData"),
    ];
    let of_job = |job: &Value| {
        let id = job["jobId"].as_str().unwrap();
        let parts = ["", "/logs", "/why", "/wait", "/attempts", "/logs/search"];
        let native = parts.map(|part| format!("/api/v1/jobs/{id}{part}?namespace=neops&pattern=pw&wait_ms=0"));
        [native.to_vec(), vec![format!("/blackboard/jobs/{id}/result")]].concat()
    };
    [of_all.map(str::to_owned).to_vec(), of_run.to_vec(), bench.jobs.iter().flat_map(of_job).collect()].concat()
}

async fn assert_hidden(bench: &Bench, run: &str) {
    let mut shown = 0;
    for path in paths(bench, run) {
        for role in [Role::Viewer, Role::Editor] {
            let answer = bench.server.send(role, Method::GET, &path, None).await;
            let text = String::from_utf8_lossy(&answer.body);
            assert!(!text.contains(OLD) && !text.contains(NEW), "{path}: {text}");
            shown += usize::from(answer.status == 200);
        }
    }
    assert!(shown > 2 * 12, "{shown}");
}

#[tokio::test]
async fn expressions_do_not_see_passwords_and_say_so() {
    let mut bench = Bench::new().await;
    device(&bench).await;
    let refused = [
        "{{ context.device.password }}",
        "login {{ context.device.password }}",
        "{{ context.devices[0].password }}",
        "{{ context.devices[?password == 'guess'].hostname | [0] }}",
        "{{ context.device.controller.password }}",
        "{{ wf.context.device | password }}",
        "{{ sort_by(context.devices, &password)[0].id }}",
    ];
    for (at, text) in refused.into_iter().enumerate() {
        let name = format!("refused{at}");
        bench.publish(&name, "device", vec![block("a", "set", json!({"parameters": {"p": text}}))]).await;
        let run = bench.start(&name, &[5], json!({})).await;
        bench.work().await;
        assert_eq!(bench.state(&run).await, "failed_safe_ack interpolation_failed -", "{text}");
        let reason = bench.run(&run).await["reason"].as_str().unwrap().to_owned();
        assert!(reason.contains("expressions do not see the field password"), "{reason}");
        assert_hidden(&bench, &run).await;
    }
    let all = json!({"d": "{{ context.device }}", "t": "{{ to_string(context) }}", "v": "{{ values(context.device) }}",
        "k": "{{ keys(context.device) }}", "f": "{{ context.device.password !! 'none' }}"});
    bench.publish("whole", "device", vec![block("a", "set", json!({"parameters": all}))]).await;
    let run = bench.start("whole", &[5], json!({})).await;
    bench.work().await;
    assert_eq!(bench.state(&run).await, "completed_ack - -");
    let job = bench.jobs.iter().rfind(|job| job["type"] == "execute").unwrap();
    assert_eq!(
        (&job["parameters"]["d"]["hostname"], &job["parameters"]["d"]["password"]),
        (&json!("sw1"), &Value::Null)
    );
    assert_eq!(job["parameters"]["f"], "none");
    assert!(!job["parameters"].to_string().contains(OLD), "{job}");
    assert_eq!(job["context"]["devices"][0]["password"], OLD, "the worker needs it");
    assert_hidden(&bench, &run).await;
}

#[tokio::test]
async fn a_password_that_a_result_sets_is_for_later_steps_and_for_the_device_and_is_shown_nowhere() {
    let mut bench = Bench::new().await;
    device(&bench).await;
    let of_new = block("c", "set", json!({"parameters": {"h": "{{ context.device.hostname }}"}}));
    bench.publish("sets", "device", vec![json!("a set"), json!("b set"), of_new]).await;
    let updates = json!({"updates": [
        {"operation": "patch", "entity": "device", "id": 5, "path": "password", "value": NEW},
        {"operation": "patch", "entity": "device", "id": 5, "path": "controller", "value": {"id": 9, "password": NEW}},
        {"operation": "patch", "entity": "device", "id": 5, "path": "vendor", "value": "v"},
        {"operation": "create", "entity": "device", "id": 20_000_001, "data": {"hostname": "made", "password": NEW}},
    ]});
    bench.answers.insert("execute a", json!({"message": "ok", "data": {}, "dbUpdates": updates}));
    let run = bench.start("sets", &[5], json!({})).await;
    bench.work().await;
    assert_eq!(bench.state(&run).await, "completed_ack - -", "{}", bench.run(&run).await);
    let of =
        |label: &str| bench.jobs.iter().rfind(|job| job["stepLabel"] == label && job["type"] == "execute").unwrap();
    assert_eq!(of("a")["context"]["devices"][0]["password"], OLD);
    assert_eq!(of("b")["context"]["devices"][0]["password"], NEW, "later steps work with the new one");
    assert_eq!(of("b")["context"]["devices"][0]["controller"]["password"], NEW);
    assert_eq!(of("b")["context"]["devices"][1]["password"], NEW);
    let kept = bench.server.get("/api/v1/entities/device/5").await.expect(200);
    assert_eq!(
        (&kept["password"], &kept["vendor"]),
        (&json!(NEW), &json!("v")),
        "admins who ask for one device see it"
    );
    let id = of("a")["jobId"].as_str().unwrap();
    let shown = bench.server.get(&format!("/api/v1/jobs/{id}?namespace=neops")).await.expect(200);
    let shown = &shown["result"]["dbUpdates"]["updates"];
    assert_eq!(
        (&shown[0]["value"], &shown[2]["value"], &shown[3]["data"]["password"]),
        (&json!("***"), &json!("v"), &json!("***"))
    );
    // What is left out stays, also where it is deeper.
    bench
        .server
        .put("/api/v1/entities/device/5", json!({"hostname": "sw1", "controller": {"id": 9}}))
        .await
        .expect(200);
    let kept = bench.server.get("/api/v1/entities/device/5").await.expect(200);
    assert_eq!((&kept["password"], &kept["controller"]["password"]), (&json!(NEW), &json!(NEW)));
    assert_hidden(&bench, &run).await;
    // A second report of the same job changes nothing.
    let again = json!({"message": "ok", "dbUpdates": {"updates": [
        {"operation": "patch", "entity": "device", "id": 5, "path": "password", "value": "other"}]}});
    assert_eq!(bench.report(of("a"), "success", again, Value::Null).await, 409);
}

#[tokio::test]
async fn an_update_that_sets_a_password_of_the_wrong_type_fails_its_run_without_telling_it() {
    let mut bench = Bench::new().await;
    device(&bench).await;
    bench.publish("sets", "device", vec![json!("a set")]).await;
    let updates = json!({"updates": [
        {"operation": "patch", "entity": "device", "id": 5, "path": "password", "value": [NEW]}]});
    bench.answers.insert("execute a", json!({"message": "ok", "data": {}, "dbUpdates": updates}));
    let run = bench.start("sets", &[5], json!({})).await;
    bench.work().await;
    assert!(bench.state(&run).await.contains("invalid_result"), "{}", bench.run(&run).await);
    assert_hidden(&bench, &run).await;
}
