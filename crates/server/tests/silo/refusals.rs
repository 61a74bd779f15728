//! How it says no: every row of the protocol's table of errors, transitions out of turn, and files and graphs that are none.

use super::*;
use windlass_engine::testing::eventually;

async fn raw(silo: &Silo, token: Option<&str>, method: &str, path: &str, body: &'static str) -> Answer {
    let url = format!("http://{}{path}", silo.listening.address);
    let mut request = Client::new().request(method.parse::<Method>().unwrap(), url).body(body);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or_default();
    Answer { status, headers, body }
}

/// Whose token, method, path, body; status and code of the answer.
type Row<'a> = (Option<&'a str>, &'a str, String, &'static str, u16, &'a str);

#[tokio::test]
async fn every_row_of_the_table_of_errors() {
    let silo = Silo::start(&[("m.yaml", &manual("m", ""))]).await;
    for part in ["P", "Q"] {
        silo.item(part, "part").await;
    }
    silo.post("/api/items/P/bom", json!({"child_part_number": "Q"})).await.expect(201);
    let (holder, other) = (silo.runner("holder", &[]).await, silo.runner("other", &[]).await);
    let job = silo.job("m", "P").await;
    silo.claim(&holder).await.unwrap();
    let (viewer, editor, admin) = (token(Role::Viewer), token(Role::Editor), token(Role::Admin));
    let at = |what: &str| format!("/api/runner/jobs/{job}/{what}");
    let nowhere = "/api/jobs/0190c0de-0000-7000-8000-000000000000";
    let table: Vec<Row> = vec![
        // Malformed, missing, of the wrong type, out of range; bad queries.
        (Some(&editor), "POST", "/api/items".into(), "{", 400, "invalid_request"),
        (Some(&editor), "POST", "/api/items".into(), "[]", 400, "invalid_request"),
        (Some(&editor), "POST", "/api/items".into(), "{}", 400, "invalid_request"),
        (Some(&editor), "POST", "/api/items".into(), r#"{"part_number": ["X"]}"#, 400, "invalid_request"),
        (Some(&editor), "POST", "/api/jobs".into(), r#"{"definition_name": "m"}"#, 400, "invalid_request"),
        (Some(&editor), "POST", "/api/jobs".into(), "{}", 400, "invalid_request"),
        (
            Some(&editor),
            "POST",
            "/api/items/P/bom".into(),
            r#"{"child_part_number": "Q", "quantity": -1}"#,
            400,
            "invalid_request",
        ),
        (Some(&editor), "PUT", "/api/items/P/bom/Q".into(), r#"{"quantity": "two"}"#, 400, "invalid_request"),
        (Some(&editor), "PUT", "/api/items/P/bom/Q".into(), r#"{"rel_type": "friend"}"#, 400, "invalid_request"),
        (Some(&holder), "PUT", at("progress"), r#"{"progress": 101}"#, 400, "invalid_request"),
        (Some(&holder), "PUT", at("progress"), "{}", 400, "invalid_request"),
        (Some(&holder), "POST", at("fail"), r#"{"error_message": ""}"#, 400, "invalid_request"),
        (Some(&holder), "POST", at("log"), r#"{"message": "x", "level": "loud"}"#, 400, "invalid_request"),
        (Some(&admin), "POST", "/api/runners".into(), r#"{"name": "a b"}"#, 400, "invalid_request"),
        (Some(&admin), "POST", "/api/auth/tokens".into(), r#"{"name": "x", "role": "king"}"#, 400, "invalid_request"),
        (Some(&viewer), "GET", "/api/jobs?status=odd".into(), "", 400, "invalid_request"),
        (Some(&viewer), "GET", "/api/jobs?limit=501".into(), "", 400, "invalid_request"),
        (Some(&viewer), "GET", "/api/items?offset=x".into(), "", 400, "invalid_request"),
        (Some(&viewer), "GET", "/api/items/P/bom/expanded?depth=21".into(), "", 400, "invalid_request"),
        // Nobody, somebody unknown, and tokens of the other kind.
        (None, "GET", "/api/items".into(), "", 401, "unauthorized"),
        (Some("silo_none"), "GET", "/api/items".into(), "", 401, "unauthorized"),
        (Some(&holder), "GET", "/api/items".into(), "", 401, "unauthorized"),
        (Some(&holder), "POST", "/api/jobs".into(), "{}", 401, "unauthorized"),
        (Some(&admin), "POST", "/api/runner/claim".into(), "", 401, "unauthorized"),
        (Some(&editor), "POST", at("complete"), "{}", 401, "unauthorized"),
        // Known, but not allowed; also before the object and the body are looked at.
        (Some(&viewer), "POST", "/api/items".into(), "{", 403, "forbidden"),
        (Some(&viewer), "DELETE", "/api/items/none".into(), "", 403, "forbidden"),
        (Some(&editor), "GET", "/api/runners".into(), "", 403, "forbidden"),
        (Some(&editor), "POST", "/api/job-definitions/reload".into(), "", 403, "forbidden"),
        (Some(&other), "PUT", at("progress"), r#"{"progress": 1}"#, 403, "forbidden"),
        (Some(&other), "POST", at("complete"), "{}", 403, "forbidden"),
        (Some(&editor), "POST", "/api/auth/tokens".into(), r#"{"name": "x", "role": "admin"}"#, 403, "forbidden"),
        // No such path and no such object; ids that are none; the object before the body.
        (Some(&admin), "GET", "/api/nothing".into(), "", 404, "not_found"),
        (Some(&viewer), "GET", "/api/items/none".into(), "", 404, "not_found"),
        (Some(&editor), "PUT", "/api/items/none".into(), "{", 404, "not_found"),
        (Some(&viewer), "GET", "/api/jobs/17".into(), "", 404, "not_found"),
        (Some(&viewer), "GET", nowhere.into(), "", 404, "not_found"),
        (Some(&editor), "POST", format!("{nowhere}/cancel"), "", 404, "not_found"),
        (Some(&viewer), "GET", "/api/projects/NONE".into(), "", 404, "not_found"),
        (
            Some(&editor),
            "POST",
            "/api/jobs".into(),
            r#"{"definition_name": "none", "part_number": "P"}"#,
            404,
            "not_found",
        ),
        (
            Some(&editor),
            "POST",
            "/api/jobs".into(),
            r#"{"definition_name": "m", "part_number": "none"}"#,
            404,
            "not_found",
        ),
        (
            Some(&editor),
            "POST",
            "/api/jobs".into(),
            r#"{"definition_name": "m", "part_number": "P", "revision_number": 9}"#,
            404,
            "not_found",
        ),
        (Some(&editor), "POST", "/api/items/P/bom".into(), r#"{"child_part_number": "none"}"#, 404, "not_found"),
        (Some(&editor), "DELETE", "/api/items/Q/bom/P".into(), "", 404, "not_found"),
        // The path, but not with this method.
        (Some(&admin), "PATCH", "/api/items".into(), "", 405, "method_not_allowed"),
        (Some(&admin), "DELETE", "/api/events".into(), "", 405, "method_not_allowed"),
        // What the state of things does not allow.
        (Some(&editor), "POST", "/api/items".into(), r#"{"part_number": "P"}"#, 409, "conflict"),
        (Some(&admin), "POST", "/api/runners".into(), r#"{"name": "holder"}"#, 409, "conflict"),
        (Some(&editor), "POST", "/api/items/P/bom".into(), r#"{"child_part_number": "Q"}"#, 409, "conflict"),
        (Some(&editor), "POST", "/api/items/Q/bom".into(), r#"{"child_part_number": "P"}"#, 409, "conflict"),
        (Some(&editor), "POST", "/api/items/Q/bom".into(), r#"{"child_part_number": "Q"}"#, 409, "conflict"),
        (
            Some(&editor),
            "POST",
            "/api/items/Q/bom/merge".into(),
            r#"{"entries": [{"child_part_number": "P"}]}"#,
            409,
            "conflict",
        ),
        (Some(&editor), "DELETE", "/api/items/Q".into(), "", 409, "conflict"),
    ];
    for (who, method, path, body, status, code) in table {
        let answer = raw(&silo, who, method, &path, body).await;
        let told = (answer.status, answer.body["error"].as_str());
        assert_eq!(told, (status, Some(code)), "{method} {path} {body}: {}", answer.body);
        assert!(!answer.body["message"].as_str().unwrap().is_empty(), "{method} {path}");
        assert_eq!(answer.headers.contains_key("www-authenticate"), status == 401, "{method} {path}");
        assert_eq!(answer.headers.contains_key("allow"), status == 405, "{method} {path}");
    }
    let lock = |station: &str| json!({"workstation_id": station, "context_level": "sketch", "object_id": "S"});
    silo.post("/api/items/P/edit-sessions", lock("one")).await.expect(200);
    silo.post("/api/items/P/edit-sessions", lock("two")).await.refused(409, "hard_interference");
    let large = json!({"part_number": "L", "description": "x".repeat(11 << 20)});
    silo.post("/api/items", large).await.refused(413, "payload_too_large");
    let form = silo.request(&editor, "POST", "/api/items").header("content-type", "text/plain").body("{}");
    assert_eq!(form.send().await.unwrap().status(), 400);
    std::fs::remove_dir_all(silo.folder.path()).unwrap();
    silo.admin("POST", "/api/job-definitions/reload", json!({})).await.refused(500, "internal");
    std::fs::create_dir_all(silo.folder.path()).unwrap();
}

/// Takes a job of its own to a state.
async fn job_in(silo: &Silo, runner: &str, state: &str) -> String {
    let id = silo.job("m", "P").await;
    if state == "pending" {
        return id;
    }
    assert_eq!(silo.claim(runner).await.unwrap()["job"]["id"], id);
    let report = async |what, body| silo.report(runner, &id, what, body).await.expect(200);
    match state {
        "claimed" => {}
        "running" => drop(report("progress", json!({"progress": 1})).await),
        "completed" => drop(report("complete", json!({})).await),
        "failed" => drop(report("fail", json!({"error_message": "no"})).await),
        _ => drop(silo.post(&format!("/api/jobs/{id}/cancel"), json!({})).await.expect(200)),
    }
    id
}

#[tokio::test]
async fn transitions_out_of_turn_are_refused_with_the_present_state() {
    let silo = Silo::start(&[("m.yaml", &manual("m", "  max_retries: 0\n"))]).await;
    silo.item("P", "part").await;
    let runner = silo.runner("r", &[]).await;
    let actions = ["progress", "log", "dag", "complete", "fail", "cancel"];
    // A row for each state, a column for each action; as the protocol's table has it.
    let table = [
        ("claimed", [200, 201, 200, 200, 200, 200]),
        ("running", [200, 201, 200, 200, 200, 200]),
        ("completed", [409; 6]),
        ("failed", [409; 6]),
        ("cancelled", [409; 6]),
        ("pending", [409, 409, 409, 409, 409, 200]),
    ];
    for (state, expected) in table {
        for (action, status) in actions.into_iter().zip(expected) {
            let id = job_in(&silo, &runner, state).await;
            let body = match action {
                "progress" => json!({"progress": 5}),
                "log" => json!({"message": "x"}),
                "dag" => json!({"nodes": []}),
                "fail" => json!({"error_message": "x"}),
                _ => json!({}),
            };
            let answer = match action {
                "cancel" => silo.post(&format!("/api/jobs/{id}/cancel"), body).await,
                _ => silo.report(&runner, &id, action, body).await,
            };
            assert_eq!(answer.status, status, "{action} on {state}: {}", answer.body);
            if status == 409 {
                assert_eq!((&answer.body["error"], &answer.body["status"]), (&json!("conflict"), &json!(state)));
            }
            // Nothing stays for the next one to claim.
            silo.post(&format!("/api/jobs/{id}/cancel"), json!({})).await;
        }
    }
}

#[tokio::test]
async fn files_that_are_none_are_told_with_their_places_and_harm_nobody() {
    let silo = Silo::start(&[("good.yaml", &manual("good", ""))]).await;
    let body = manual("x", "");
    let bomb = "a: &a [x, x, x]\nb: &b [*a, *a, *a]\njob: *b\n";
    let table = [
        ("a-wrong-type.yaml", body.replace("name: x", "name: [x]"), Some("name")),
        ("b-wrong-number.yaml", body.clone() + "  timeout: soon\n", Some("timeout")),
        ("c-list.yaml", "- job\n".to_owned(), None),
        ("d-tab.yaml", "job:\n\tname: x\n".to_owned(), None),
        ("e-twice.yaml", body.clone() + "  name: y\n", None),
        ("f-unknown.yaml", body.clone() + "  colour: red\n", Some("colour")),
        ("g-bomb.yaml", bomb.to_owned(), None),
        ("h-two.yaml", body.clone() + "---\n" + &body, None),
        ("i-same-name.yaml", manual("good", ""), Some("name")),
        ("j-negative.yaml", body.clone() + "  max_retries: -1\n", Some("max_retries")),
        ("k-range.yaml", body.clone() + "  priority: 1000001\n", Some("priority")),
        ("l-tags.yaml", body.clone() + "  runner: {tags: create}\n", Some("runner.tags")),
        ("m-empty.yaml", String::new(), None),
        ("n-cron.yaml", body.replace("{type: manual}", "{type: schedule, cron: never}"), Some("trigger.cron")),
        ("o-latin.yaml", "job: \u{fffd}\n".to_owned(), None),
    ];
    for (name, text, _) in &table {
        silo.write(name, text);
    }
    std::fs::write(silo.folder.path().join("z-bytes.yaml"), [0xff, 0xfe, 0x00]).unwrap();
    let report = silo.admin("POST", "/api/job-definitions/reload", json!({})).await.expect(200);
    assert_eq!(report["definitions"], json!(["good"]));
    let errors = report["errors"].as_array().unwrap();
    for (name, _, field) in &table {
        let found: Vec<&Value> = errors.iter().filter(|error| error["file"] == *name).collect();
        assert!(!found.is_empty(), "{name} was taken");
        assert!(found.iter().all(|error| error["line"].as_u64().is_some_and(|line| line >= 1)), "{name}: {found:?}");
        if let Some(field) = field {
            assert!(found.iter().any(|error| error["field"] == *field), "{name}: {found:?}");
        }
    }
    assert!(errors.iter().any(|error| error["file"] == "z-bytes.yaml"));
}

#[tokio::test]
async fn a_graph_of_two_hundred_thousand_nodes_is_refused_and_not_stored() {
    let silo = Silo::start(&[]).await;
    silo.item("P", "part").await;
    let nodes: Vec<Value> = (0..200_000).map(|n| json!({"node_key": format!("n{n}"), "node_type": "pad"})).collect();
    let told = silo.put("/api/items/P/dag", json!({"nodes": nodes})).await.refused(400, "invalid_request");
    assert!(text(&told["message"]).contains("10000"), "{told}");
    let two = json!([{"node_key": "a", "node_type": "pad"}, {"node_key": "b", "node_type": "pad"}]);
    let edges: Vec<Value> = (0..50_001).map(|n| json!({"source_key": "a", "target_key": "b", "n": n})).collect();
    let told = silo.put("/api/items/P/dag", json!({"nodes": two, "edges": edges})).await;
    told.refused(400, "invalid_request");
    assert_eq!(silo.get("/api/items/P/dag").await["nodes"], json!([]));
}

#[tokio::test]
async fn a_watched_folder_is_loaded_again_by_itself() {
    let silo = Silo::with(
        &[("a.yaml", &manual("a", ""))],
        Values::default().with(windlass_server::dialects::silo::settings::silo_watch, "true"),
    )
    .await;
    let _running = silo.app().dialects.start(silo.app()).await;
    silo.write("b.yaml", &manual("b", ""));
    let two =
        async || Some(silo.get("/api/job-definitions").await).filter(|names| names.as_array().unwrap().len() == 2);
    let names = eventually("both are there", two).await;
    assert_eq!(all(&names, "name"), [&json!("a"), &json!("b")]);
}
