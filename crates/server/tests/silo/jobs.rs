//! Jobs, runners, tokens.

use super::*;
use windlass_core::Millis;

#[tokio::test]
async fn a_job_says_everything_about_itself() {
    let silo = Silo::start(&[("e.yaml", EXPORT)]).await;
    silo.item("P", "part").await;
    silo.post("/api/items/P/revisions", json!({})).await.expect(201);
    let body = json!({"definition_name": "part-export-step", "part_number": "P", "revision_number": 1,
        "args": {"format": "iges"}, "priority": 3});
    let job = silo.post("/api/jobs", body).await.expect(201);
    assert_eq!(job.as_object().unwrap().len(), 34, "{job}");
    for (field, value) in [
        ("status", json!("pending")),
        ("definition_version", json!(1)),
        ("revision_number", json!(1)),
        ("priority", json!(3)),
        ("compute_type", json!("export")),
        ("compute_command", json!("create-export")),
        ("runner_tags", json!(["create"])),
        ("timeout_seconds", json!(300)),
        ("max_retries", json!(1)),
        ("retry_count", json!(0)),
        ("progress", json!(0)),
        ("progress_message", json!("")),
        ("created_by", json!(token(Role::Editor))),
    ] {
        assert_eq!(job[field], value, "{field}");
    }
    assert_eq!(
        job["args"],
        json!({"format": "iges", "output_key_template": "exports/{part_number}_rev{revision}.step"})
    );
    for null in
        ["runner_id", "expires_at", "retry_of", "retry_job_id", "result", "error_message", "claimed_at", "project"]
    {
        assert!(job[null].is_null(), "{null}");
    }
    let listed = silo.get("/api/jobs?part_number=P&definition=part-export-step&status=pending,failed").await;
    assert!(listed[0]["scope"].get("items").is_none() && listed[0]["id"] == job["id"]);
    let by_id = silo.get(&format!("/api/jobs?item={}", text(&job["item_id"]))).await;
    assert_eq!(by_id.as_array().unwrap().len(), 1);
    for (body, status) in [
        (json!({}), 400),
        (json!({"definition_name": "none", "part_number": "P"}), 404),
        (json!({"definition_name": "part-export-step"}), 400),
        (json!({"definition_name": "part-export-step", "part_number": "Q"}), 404),
        (json!({"definition_name": "part-export-step", "part_number": "P", "revision_number": 9}), 404),
        (json!({"definition_name": "part-export-step", "part_number": "P", "args": []}), 400),
    ] {
        assert_eq!(silo.post("/api/jobs", body.clone()).await.status, status, "{body}");
    }
    let viewer = token(Role::Viewer);
    silo.call(&viewer, "GET", "/api/jobs?status=odd", Value::Null).await.refused(400, "invalid_request");
    for missing in ["/api/jobs/claim", "/api/jobs/nonsense", "/api/nothing", "/api/jobs/1/2/3/4"] {
        silo.call(&viewer, "GET", missing, Value::Null).await.refused(404, "not_found");
    }
    let wrong = silo.call(&viewer, "PATCH", "/api/jobs", Value::Null).await;
    assert!(wrong.headers["allow"].to_str().unwrap().contains("POST"));
    wrong.refused(405, "method_not_allowed");
}

#[tokio::test]
async fn claims_follow_tags_priority_and_order() {
    let file = |name: &str, tags: &str, priority: i32| {
        manual(name, &format!("  runner: {{tags: {tags}}}\n  priority: {priority}\n"))
    };
    let files = [file("any", "[]", 100), file("gpu", "[create, gpu]", 10), file("win", "[windows]", 1)];
    let silo = Silo::start(&[("a.yaml", &files[0]), ("g.yaml", &files[1]), ("w.yaml", &files[2])]).await;
    silo.item("P", "part").await;
    let mut jobs = Vec::new();
    for name in ["any", "any", "win", "gpu"] {
        jobs.push(silo.job(name, "P").await);
    }
    let runner = silo.runner("r", &["create", "linux", "gpu"]).await;
    let narrowed =
        silo.call(&runner, "POST", "/api/runner/claim", json!({"tags": ["create", "windows"]})).await.expect(200);
    assert_eq!(narrowed["job"]["id"], json!(jobs[0]), "a host can offer less, never more");
    for expected in [Some(&jobs[3]), Some(&jobs[1]), None] {
        let claimed = silo.claim(&runner).await;
        assert_eq!(claimed.map(|claimed| claimed["job"]["id"].clone()), expected.map(|id| json!(id)));
    }
    let shown = silo.admin("GET", "/api/runners", Value::Null).await.expect(200);
    assert_eq!(
        (&shown[0]["active_jobs"], &shown[0]["status"]),
        (&json!(3), &json!("offline")),
        "and may claim all the same"
    );
    let found = silo.get(&format!("/api/jobs?runner_id={}", text(&shown[0]["id"]))).await;
    assert_eq!(found.as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn no_job_is_given_twice() {
    let silo = Silo::start(&[("d.yaml", &manual("d", ""))]).await;
    silo.item("P", "part").await;
    for _ in 0..30 {
        silo.job("d", "P").await;
    }
    let runners = [silo.runner("r1", &[]).await, silo.runner("r2", &[]).await, silo.runner("r3", &[]).await];
    let claims = (0..45).map(|n| silo.claim(&runners[n % 3]));
    let mut ids: Vec<String> =
        futures_util::future::join_all(claims).await.into_iter().flatten().map(|one| text(&one["job"]["id"])).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 30);
}

/// Every report in every state, by the holder and by a stranger.
#[tokio::test]
async fn transitions_out_of_turn_are_refused_with_the_state_there_is() {
    let silo = Silo::start(&[("d.yaml", &manual("d", "  max_retries: 0\n"))]).await;
    silo.item("P", "part").await;
    let (mine, other) = (silo.runner("mine", &[]).await, silo.runner("other", &[]).await);
    let bodies = [
        ("progress", json!({"progress": 1})),
        ("log", json!({"message": "m"})),
        ("dag", json!({"nodes": []})),
        ("complete", json!({})),
        ("complete", json!({"result": {"says": "something else"}})),
        ("fail", json!({"error_message": "e"})),
        ("fail", json!({"error_message": "something else"})),
    ];
    for (state, holder, stranger) in
        [("pending", 409, 409), ("completed", 409, 403), ("failed", 409, 403), ("cancelled", 409, 403)]
    {
        let job = silo.job("d", "P").await;
        if state != "pending" {
            silo.claim(&mine).await.unwrap();
        }
        match state {
            "completed" => drop(silo.report(&mine, &job, "complete", json!({})).await.expect(200)),
            "failed" => drop(silo.report(&mine, &job, "fail", json!({"error_message": "e"})).await.expect(200)),
            "cancelled" => drop(silo.post(&format!("/api/jobs/{job}/cancel"), json!({})).await.expect(200)),
            _ => {}
        }
        for (what, body) in &bodies {
            let answer = silo.report(&mine, &job, what, body.clone()).await;
            assert_eq!(answer.body["status"], json!(state), "{what} of a {state} job");
            assert_eq!(answer.status, holder, "{what} of a {state} job");
            let answer = silo.report(&other, &job, what, body.clone()).await;
            assert_eq!(answer.status, stranger, "{what} of somebody else's {state} job: {}", answer.body);
        }
        if state == "pending" {
            silo.post(&format!("/api/jobs/{job}/cancel"), json!({})).await.expect(200);
        } else {
            let again = silo.post(&format!("/api/jobs/{job}/cancel"), json!({})).await.refused(409, "conflict");
            assert_eq!(again["status"], json!(state));
        }
    }
    let held = silo.job("d", "P").await;
    silo.claim(&mine).await.unwrap();
    for (what, body) in &bodies {
        assert_eq!(silo.report(&other, &held, what, body.clone()).await.status, 403, "{what}");
        let unknown = "01890000-0000-7000-8000-000000000000";
        assert_eq!(silo.report(&mine, unknown, what, json!("no map")).await.status, 404, "{what}");
    }
    for (what, body) in [
        ("progress", json!({"progress": 101})),
        ("progress", json!({"progress": "5"})),
        ("progress", json!({})),
        ("log", json!({"message": ""})),
        ("log", json!({"message": "m", "level": "loud"})),
        ("log", json!({"message": "m", "metadata": []})),
        ("fail", json!({"error_message": ""})),
        ("fail", json!({})),
    ] {
        silo.report(&mine, &held, what, body.clone()).await.refused(400, "invalid_request");
    }
    let running =
        silo.report(&mine, &held, "progress", json!({"progress": 10, "progress_message": "half"})).await.expect(200);
    assert_eq!((&running["status"], &running["progress_message"]), (&json!("running"), &json!("half")));
    let kept = silo.report(&mine, &held, "progress", json!({"progress": 20})).await.expect(200);
    assert_eq!((&kept["progress"], &kept["progress_message"]), (&json!(20), &json!("half")));
    for n in 1..=3 {
        let entry = silo
            .report(&mine, &held, "log", json!({"message": format!("line {n}"), "level": "warn"}))
            .await
            .expect(201);
        assert_eq!((&entry["id"], &entry["level"], &entry["metadata"]), (&json!(n), &json!("warn"), &json!({})));
    }
    let logs = silo.get(&format!("/api/jobs/{held}/logs?after=1&limit=1")).await;
    assert_eq!(all(&logs, "message"), [&json!("line 2")]);
}

#[tokio::test]
async fn a_job_times_out_whatever_is_reported_and_is_followed_by_another() {
    let silo = Silo::start(&[("d.yaml", &manual("d", "  timeout: 1\n  max_retries: 1\n"))]).await;
    silo.item("P", "part").await;
    let runner = silo.runner("r", &[]).await;
    let job = silo.job("d", "P").await;
    let claimed = silo.claim(&runner).await.unwrap();
    let expires = claimed["job"]["expires_at"].clone();
    silo.listening.server.pass(Millis(500)).await;
    let report = silo.report(&runner, &job, "progress", json!({"progress": 1})).await.expect(200);
    assert_eq!(report["expires_at"], expires, "progress does not extend it");
    silo.listening.server.pass(Millis(600)).await;
    let late = silo.report(&runner, &job, "complete", json!({})).await.refused(409, "conflict");
    assert_eq!(late["status"], "failed");
    let failed = silo.get(&format!("/api/jobs/{job}")).await;
    assert_eq!((&failed["error_message"], &failed["retry_count"]), (&json!("job timed out"), &json!(0)));
    let retry = text(&failed["retry_job_id"]);
    let second = silo.get(&format!("/api/jobs/{retry}")).await;
    assert_eq!(
        (&second["retry_of"], &second["retry_count"], &second["status"]),
        (&json!(job), &json!(1), &json!("pending"))
    );
    silo.claim(&runner).await.unwrap();
    let last = silo.report(&runner, &retry, "fail", json!({"error": "again"})).await.expect(200);
    assert_eq!(
        (&last["retry_job_id"], &last["retry_count"], &last["status"]),
        (&json!(null), &json!(1), &json!("failed"))
    );
    assert!(silo.claim(&runner).await.is_none(), "two attempts are all there are");
}

#[tokio::test]
async fn runners_come_go_and_are_told_apart_from_people() {
    let settings = Values::default().with(windlass_server::dialects::silo::settings::silo_runner_timeout, "300ms");
    let silo = Silo::with(&[("d.yaml", &manual("d", "  max_retries: 1\n"))], settings).await;
    silo.item("P", "part").await;
    let made = silo.admin("POST", "/api/runners", json!({"name": "w-1", "tags": ["b", "a", "a"]})).await.expect(201);
    let (id, runner) = (text(&made["id"]), text(&made["token"]));
    assert!(runner.starts_with("silo_runner_") && runner.len() == 12 + 64);
    assert_eq!(made["token_prefix"], json!(runner[..20]));
    assert_eq!(
        (&made["status"], &made["last_heartbeat"], &made["tags"]),
        (&json!("offline"), &json!(null), &json!(["b", "a"]))
    );
    for (body, status) in [
        (json!({"name": "w-1"}), 409),
        (json!({"name": "-"}), 400),
        (json!({}), 400),
        (json!({"name": "x", "tags": ["a b"]}), 400),
    ] {
        assert_eq!(silo.admin("POST", "/api/runners", body.clone()).await.status, status, "{body}");
    }
    let beat = silo.call(&runner, "POST", "/api/runner/heartbeat", Value::Null).await.expect(200);
    assert_eq!((&beat["status"], &beat["runner_id"], &beat["name"]), (&json!("online"), &json!(id), &json!("w-1")));
    let path = format!("/api/runners/{id}");
    let shown = silo.admin("GET", &path, Value::Null).await.expect(200);
    assert_eq!(shown["status"], "online");
    assert!(shown.get("token").is_none() && !shown.to_string().contains(&runner));
    silo.listening.server.pass(Millis(400)).await;
    assert_eq!(silo.admin("GET", &path, Value::Null).await.expect(200)["status"], "offline");

    for (who, method, path) in [
        (&runner, "GET", "/api/jobs"),
        (&runner, "GET", "/api/items"),
        (&token(Role::Admin), "POST", "/api/runner/claim"),
        (&token(Role::Admin), "POST", "/api/runner/heartbeat"),
        (&"nonsense".to_owned(), "GET", "/api/jobs"),
    ] {
        let answer = silo.call(who, method, path, Value::Null).await;
        assert_eq!(answer.headers["www-authenticate"], "Bearer", "{path}");
        answer.refused(401, "unauthorized");
    }
    silo.call(&token(Role::Editor), "GET", "/api/runners", Value::Null).await.refused(403, "forbidden");

    let job = silo.job("d", "P").await;
    silo.claim(&runner).await.unwrap();
    assert_eq!(silo.admin("DELETE", &path, Value::Null).await.status, 204);
    silo.call(&runner, "POST", "/api/runner/heartbeat", Value::Null).await.refused(401, "unauthorized");
    let failed = silo.get(&format!("/api/jobs/{job}")).await;
    assert_eq!((&failed["error_message"], &failed["runner_name"]), (&json!("runner deleted"), &json!("w-1")));
    assert!(failed["retry_job_id"].is_string());
    silo.admin("GET", &path, Value::Null).await.refused(404, "not_found");
    silo.runner("w-1", &[]).await;
}

#[tokio::test]
async fn tokens_are_made_within_the_makers_rights_and_end_at_once() {
    let silo = Silo::start(&[]).await;
    let made = silo.post("/api/auth/tokens", json!({"name": "ci"})).await.expect(201);
    let ci = text(&made["token"]);
    assert!(ci.starts_with("silo_") && ci.len() == 5 + 64);
    assert_eq!(made["role"], "editor", "the maker's");
    assert_eq!(
        silo.call(&ci, "GET", "/api/auth/me", Value::Null).await.expect(200),
        json!({"name": "ci", "role": "editor"})
    );
    for (body, status) in [
        (json!({"name": "ci"}), 409),
        (json!({"name": ""}), 400),
        (json!({"name": "x", "role": "boss"}), 400),
        (json!({"name": "x", "role": "admin"}), 403),
    ] {
        assert_eq!(silo.post("/api/auth/tokens", body.clone()).await.status, status, "{body}");
    }
    let viewer =
        silo.call(&ci, "POST", "/api/auth/tokens", json!({"name": "eyes", "role": "viewer"})).await.expect(201);
    let eyes = text(&viewer["token"]);
    silo.call(&eyes, "POST", "/api/items", json!({"part_number": "A"})).await.refused(403, "forbidden");
    silo.call(&eyes, "GET", "/api/items", Value::Null).await.expect(200);
    let own = silo.call(&eyes, "GET", "/api/auth/tokens", Value::Null).await.expect(200);
    assert_eq!(all(&own, "name"), [&json!("eyes")]);
    assert!(!own.to_string().contains(&eyes));
    let every = silo.admin("GET", "/api/auth/tokens", Value::Null).await.expect(200);
    assert_eq!(every.as_array().unwrap().len(), 2);
    let path = format!("/api/auth/tokens/{}", text(&made["id"]));
    silo.call(&eyes, "DELETE", &path, Value::Null).await.refused(403, "forbidden");
    let reach = silo.call(&eyes, "GET", "/api/v1/jobs", Value::Null).await;
    assert_eq!(reach.status, 403, "a Silo token has no rights elsewhere");
    assert_eq!(silo.call(&ci, "DELETE", &path, Value::Null).await.status, 204);
    silo.call(&ci, "GET", "/api/auth/me", Value::Null).await.refused(401, "unauthorized");
    silo.call(&eyes, "GET", "/api/auth/me", Value::Null).await.refused(401, "unauthorized");
    // The name is free, for another role as well, and nothing of the old one's comes back with it.
    let again = silo.post("/api/auth/tokens", json!({"name": "ci", "role": "viewer"})).await.expect(201);
    assert_eq!(silo.call(&text(&again["token"]), "GET", "/api/auth/me", Value::Null).await.status, 200);
    silo.call(&ci, "GET", "/api/auth/me", Value::Null).await.refused(401, "unauthorized");
}

#[tokio::test]
async fn what_a_token_makes_never_outlives_it() {
    use windlass_core::principal::Token;
    use windlass_server::auth;
    let silo = Silo::start(&[]).await;
    let short = json!({"principal": "guest", "role": "admin", "namespaces": ["silo"], "expires_ms": 3_600_000});
    let guest = silo.admin("POST", "/api/v1/tokens", short).await.expect(201);
    let (guest, id) = (text(&guest["token"]), text(&guest["id"]));
    let child = silo.call(&guest, "POST", "/api/auth/tokens", json!({"name": "child"})).await.expect(201);
    let child = text(&child["token"]);
    let grandchild = silo.call(&child, "POST", "/api/auth/tokens", json!({"name": "grandchild"})).await.expect(201);
    let grandchild = text(&grandchild["token"]);
    let runner = silo.call(&child, "POST", "/api/runners", json!({"name": "r", "tags": []})).await.expect(201);
    let runner = text(&runner["token"]);
    let ends = async |token: &str| {
        let hash = auth::hash(token);
        silo.app().engine.read_record::<Token>(&auth::system_namespace(), &hash).await.unwrap().unwrap().expires_at
    };
    let last = ends(&guest).await;
    assert!(last.is_some());
    for made in [&child, &grandchild, &runner] {
        assert_eq!(ends(made).await, last);
    }
    silo.call(&grandchild, "GET", "/api/auth/me", Value::Null).await.expect(200);
    assert_eq!(silo.admin("DELETE", &format!("/api/v1/tokens/{id}"), Value::Null).await.status, 204);
    for made in [&child, &grandchild] {
        silo.call(made, "GET", "/api/auth/me", Value::Null).await.refused(401, "unauthorized");
    }
    silo.call(&runner, "POST", "/api/runner/heartbeat", Value::Null).await.refused(401, "unauthorized");
}

#[tokio::test]
async fn bodies_are_held_to_their_limits_and_forms() {
    let silo = Silo::start(&[]).await;
    let editor = token(Role::Editor);
    let send = |kind: Option<&'static str>, body: Vec<u8>| {
        let mut request = silo.request(&editor, "POST", "/api/items").body(body);
        if let Some(kind) = kind {
            request = request.header("content-type", kind);
        }
        async move { request.send().await.unwrap().status().as_u16() }
    };
    assert_eq!(send(None, br#"{"part_number": "A"}"#.to_vec()).await, 201, "no content type is fine");
    assert_eq!(send(Some("text/plain"), br#"{"part_number": "B"}"#.to_vec()).await, 400);
    assert_eq!(send(Some("application/json"), b"{".to_vec()).await, 400);
    assert_eq!(send(Some("application/json"), vec![b' '; (10 << 20) + 1]).await, 413);
    let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
    assert_eq!(send(None, deep.into_bytes()).await, 400);
    let health = silo.get("/health").await;
    assert_eq!((&health["status"], &health["mode"]), (&json!("ok"), &json!("normal")));
}

#[tokio::test]
async fn a_claim_that_nobody_heard_is_answered_again_under_its_name() {
    let silo = Silo::start(&[("a.yaml", &manual("a", ""))]).await;
    silo.item("P", "part").await;
    let (first, second) = (silo.job("a", "P").await, silo.job("a", "P").await);
    let runner = silo.runner("w", &[]).await;
    let claim = async |name: &str| {
        let body = json!({"request_id": name});
        text(&silo.call(&runner, "POST", "/api/runner/claim", body).await.expect(200)["job"]["id"])
    };
    assert_eq!((claim("x").await, claim("x").await, claim("y").await), (first.clone(), first.clone(), second));
    silo.report(&runner, &first, "complete", json!({})).await.expect(200);
    let body = json!({"request_id": "x"});
    assert_eq!(
        silo.call(&runner, "POST", "/api/runner/claim", body).await.status,
        204,
        "what is done is not given again"
    );
}
