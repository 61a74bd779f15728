//! Definitions: versions, schemas, and the folder they can be kept in.

use crate::support::Server;
use serde_json::json;
use windlass_core::{Namespace, principal::Role};
use windlass_server::{definitions, folders};

fn build() -> serde_json::Value {
    json!({
        "tags": ["gpu"], "priority": 7, "timeout_ms": 60_000, "retry": {"attempts": 2},
        "payload": {"n": 1},
        "payload_schema": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}},
        "result_schema": {"type": "array", "items": {"type": "string"}},
    })
}

#[tokio::test]
async fn another_body_is_another_version_and_all_of_them_stay() {
    let server = Server::start().await;
    let first = server.put("/api/v1/definitions/build", build()).await.expect(200);
    assert_eq!((&first["version"], &first["body"]), (&json!(1), &build()));
    assert_eq!(server.put("/api/v1/definitions/build", build()).await.expect(200)["version"], 1);
    let mut other = build();
    other["priority"] = json!(8);
    assert_eq!(server.put("/api/v1/definitions/build", other).await.expect(200)["version"], 2);
    server.put("/api/v1/definitions/a%2Fb", json!({})).await.expect(200);
    assert_eq!(server.get("/api/v1/definitions/build").await.expect(200)["version"], 2);
    assert_eq!(server.get("/api/v1/definitions/build/versions/1").await.expect(200)["body"]["priority"], 7);
    let all = server.get("/api/v1/definitions/build/versions").await.expect(200);
    let versions: Vec<_> = all["items"].as_array().unwrap().iter().map(|item| item["version"].clone()).collect();
    assert_eq!(versions, [json!(1), json!(2)]);
    let page = server.get("/api/v1/definitions?limit=1").await.expect(200);
    assert_eq!((&page["items"][0]["name"], &page["next"]), (&json!("a/b"), &json!("a/b")));
    let page = server.get("/api/v1/definitions?limit=1&cursor=a/b").await.expect(200);
    assert_eq!(page["items"][0]["name"], "build");
    server.delete("/api/v1/definitions/build").await.expect(204);
    server.get("/api/v1/definitions/build").await.expect(404);
    server.delete("/api/v1/definitions/build").await.expect(404);
    server.get("/api/v1/definitions/build/versions/2").await.expect(200);
    server.post("/api/v1/jobs", json!({"definition": "build"})).await.expect(404);
}

#[tokio::test]
async fn a_job_takes_what_it_does_not_say_itself_and_its_payload_is_checked() {
    let server = Server::start().await;
    server.put("/api/v1/definitions/build", build()).await.expect(200);
    let id = |job: &serde_json::Value| job["id"].as_str().unwrap().to_owned();
    let job = server.post("/api/v1/jobs", json!({"definition": "build"})).await.expect(201);
    let shown = server.get(&format!("/api/v1/jobs/{}", id(&job))).await.expect(200);
    let told = (&shown["tags"], &shown["priority"], &shown["attempts_max"], &shown["payload"], &shown["definition"]);
    assert_eq!(told, (&json!(["gpu"]), &json!(7), &json!(2), &json!({"n": 1}), &json!("build@1")));
    let own = json!({"definition": "build@1", "tags": [], "priority": 1, "payload": {"n": 2}});
    let job = server.post("/api/v1/jobs", own).await.expect(201);
    let shown = server.get(&format!("/api/v1/jobs/{}", id(&job))).await.expect(200);
    assert_eq!((&shown["tags"], &shown["priority"], &shown["payload"]), (&json!([]), &json!(1), &json!({"n": 2})));
    let wrong = json!({"definition": "build", "payload": {"n": "two"}});
    let problem = server.post("/api/v1/jobs", wrong.clone()).await.expect(422);
    assert_eq!((&problem["type"], &problem["field"]), (&json!("/docs/errors#schema"), &json!("/n")));
    let many = server.post("/api/v1/jobs/batch", json!({"jobs": [{"definition": "build"}, wrong]})).await.expect(200);
    assert_eq!(many["jobs"][1]["problem"]["type"], "/docs/errors#schema");
    server.post("/api/v1/jobs", json!({"definition": "build@2"})).await.expect(404);
    server.post("/api/v1/jobs", json!({"definition": "build@x"})).await.expect(422);
    server.post("/api/v1/jobs", json!({"definition": "ghost"})).await.expect(404);
}

/// In a file `name` is the definition's own.
#[tokio::test]
async fn jobs_are_called_as_their_definition_says_unless_they_say_it_themselves() {
    let server = Server::start().await;
    let folder = tempfile::tempdir().unwrap();
    let write = |text: &str| std::fs::write(folder.path().join("one.yaml"), text).unwrap();
    let load = async || definitions::load(&server.app, &Namespace::default(), folder.path()).await;
    write("name: render\njob_name: render a frame\n");
    assert_eq!(load().await.changed, ["render"]);
    let name = async |body: serde_json::Value| {
        let id = server.post("/api/v1/jobs", body).await.expect(201)["id"].as_str().unwrap().to_owned();
        server.get(&format!("/api/v1/jobs/{id}")).await.expect(200)["name"].clone()
    };
    assert_eq!(name(json!({"definition": "render"})).await, "render a frame");
    assert_eq!(name(json!({"definition": "render", "name": "frame 7"})).await, "frame 7");
    write(&format!("name: render\njob_name: {}\n", "x".repeat(201)));
    let fault = load().await.faults[0].to_string();
    assert!(fault.contains("one.yaml:2:") && fault.contains("201 characters; at most 200"), "{fault}");
    let problem = server.put("/api/v1/definitions/d", json!({"job_name": ""})).await.expect(422);
    assert_eq!(problem["field"], "job_name");
    server.put("/api/v1/definitions/d", json!({"name": "d"})).await.expect(400);
}

#[tokio::test]
async fn a_result_that_its_definition_does_not_allow_is_refused_and_the_job_stays_held() {
    let server = Server::start().await;
    server.put("/api/v1/definitions/build", build()).await.expect(200);
    server.post("/api/v1/jobs", json!({"definition": "build", "tags": []})).await.expect(201);
    server.post("/api/v1/jobs", json!({"definition": "build", "tags": []})).await.expect(201);
    server.post("/api/v1/jobs", json!({})).await.expect(201);
    let claimed = server.work("/api/v1/leases/claim", json!({"worker": "w", "max": 3})).await.expect(200);
    let lease = |at: usize| claimed["leases"][at]["lease"].clone();
    let wrong = json!({"lease": lease(0), "result": ["a", 7]});
    let problem = server.work("/api/v1/leases/complete", wrong).await.expect(422);
    assert_eq!((&problem["type"], &problem["field"]), (&json!("/docs/errors#schema"), &json!("/1")));
    let right = json!({"lease": lease(0), "result": ["a"]});
    assert_eq!(server.work("/api/v1/leases/complete", right).await.expect(200)["state"], "completed");
    let batch = json!({"operations": [
        {"do": "complete", "lease": lease(1), "result": {}},
        {"do": "complete", "lease": lease(2), "result": {"any": "thing"}},
    ]});
    let done = server.work("/api/v1/leases/batch", batch).await.expect(200);
    assert_eq!(done["operations"][0]["problem"]["type"], "/docs/errors#schema");
    assert_eq!(done["operations"][1]["state"], "completed");
}

#[tokio::test]
async fn repeating_a_submit_after_the_definition_changed_is_still_a_repetition() {
    let server = Server::start().await;
    server.put("/api/v1/definitions/d", json!({"priority": 1})).await.expect(200);
    let submit = json!({"definition": "d", "idempotency_key": "once"});
    let first = server.post("/api/v1/jobs", submit.clone()).await.expect(201);
    server.put("/api/v1/definitions/d", json!({"priority": 2})).await.expect(200);
    let again = server.post("/api/v1/jobs", submit).await.expect(200);
    assert_eq!((&again["id"], &again["existing"]), (&first["id"], &json!(true)));
}

#[tokio::test]
async fn what_could_not_be_used_is_refused_when_it_is_written() {
    let server = Server::start().await;
    let table = [
        ("d", json!({"payload_schema": {"type": "nothing"}}), 422, "payload_schema/type"),
        ("d", json!({"payload_schema": {"$ref": "http://10.0.0.1/x"}}), 422, "payload_schema"),
        ("d", json!({"payload_schema": {"type": "string"}, "payload": 7}), 422, "payload"),
        ("d", json!({"retry": {"attempts": 0}}), 422, "policy.retry.attempts"),
        ("d", json!({"tags": [""]}), 422, "tags"),
        ("a@1", json!({}), 422, "name"),
        ("d", json!({"description": "x".repeat(300 << 10)}), 413, "body"),
        ("d", json!({"unknown": 1}), 400, "body"),
    ];
    for (name, body, status, field) in table {
        let problem = server.put(&format!("/api/v1/definitions/{name}"), body.clone()).await.expect(status);
        assert!(problem["field"].as_str().unwrap().starts_with(field), "{body}: {problem}");
    }
    let viewer = server.send(Role::Viewer, http::Method::PUT, "/api/v1/definitions/d", Some(json!({}))).await;
    viewer.expect(403);
    server.get("/api/v1/definitions/d").await.expect(404);
}

#[tokio::test]
async fn a_folder_is_loaded_and_a_bad_file_harms_nobody() {
    let server = Server::start().await;
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("build.yaml", "tags: [gpu]\n");
    write("other.json", r#"{"name": "test", "priority": 3}"#);
    write("notes.txt", "not one of them");
    let load = async || definitions::load(&server.app, &Namespace::default(), folder.path()).await;
    let loaded = load().await;
    assert_eq!((loaded.changed, loaded.unchanged, loaded.faults.len()), (vec!["build".into(), "test".into()], 0, 0));
    assert_eq!(load().await.unchanged, 2, "what did not change makes no new version");
    write("build.yaml", "tags: [gpu]\npriority: urgent\n");
    write("other.json", r#"{"name": "test", "priority": 4}"#);
    let loaded = load().await;
    assert_eq!(loaded.changed, ["test"]);
    let fault = loaded.faults[0].to_string();
    assert!(fault.contains("build.yaml:2:"), "{fault}");
    assert_eq!(server.get("/api/v1/definitions/build").await.expect(200)["version"], 1);
    assert_eq!(server.get("/api/v1/definitions/test").await.expect(200)["version"], 2);
}

#[tokio::test]
async fn a_watched_folder_is_loaded_when_it_changes() {
    let server = Server::start().await;
    let folder = tempfile::tempdir().unwrap();
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let tell = move |loaded: &folders::Loaded| drop(told.send(loaded.changed.clone()));
    let _watch = definitions::watch(server.app.clone(), Namespace::default(), folder.path().to_owned(), tell).unwrap();
    std::fs::write(folder.path().join("late.yaml"), "description: came later\n").unwrap();
    let changed = tokio::time::timeout(std::time::Duration::from_secs(20), heard.recv()).await.unwrap().unwrap();
    assert_eq!(changed, ["late"]);
    server.get("/api/v1/definitions/late").await.expect(200);
}
