//! Workflow definitions of neops: published, found, compared, deleted, restored.

use crate::support::{Answer, Server};
use http::Method;
use serde_json::{Value, json};
use windlass_core::principal::Role;

const PUBLISH: &str = "/workflow-definition/publish";

fn document(version: &str, blocks: &[&str]) -> Value {
    let numbers: Vec<u32> = version.split('.').map(|number| number.parse().unwrap()).collect();
    let step = |(at, block): (usize, &&str)| json!({"type": "functionBlock", "label": format!("s{at}"), "functionBlock": block});
    json!({"type": "workflow", "label": "w", "name": "n", "package": "wf.x", "majorVersion": numbers[0],
        "minorVersion": numbers[1], "patchVersion": numbers[2], "seedEntity": "global",
        "steps": blocks.iter().enumerate().map(step).collect::<Vec<_>>()})
}

async fn publish(server: &Server, workflow: Value, more: Value) -> Answer {
    let mut body = json!({"workflow": workflow});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server.post(PUBLISH, body).await
}

fn path(id: &str) -> String {
    format!("/workflow-definition/{}", id.replace('/', "%2F"))
}

#[tokio::test]
async fn every_row_of_publishing_has_its_status_and_body() {
    let server = Server::start().await;
    let one = document("1.0.0", &["b/x:1"]);
    let told = publish(&server, one.clone(), json!({})).await.expect(201);
    let expected = json!({"id": "wf.x/n:1.0.0", "version": "1.0.0", "status": "published", "bump": null, "floor": null, "findings": []});
    assert_eq!(told, expected);
    let told = publish(&server, one.clone(), json!({})).await.expect(200);
    assert_eq!((&told["status"], &told["id"]), (&json!("unchanged"), &json!("wf.x/n:1.0.0")));
    // Another document under the same number.
    let mut other = one.clone();
    other["description"] = json!("other words");
    let told = publish(&server, other.clone(), json!({})).await.expect(409);
    assert_eq!((&told["error"], &told["suggestedVersion"]), (&json!("VersionAlreadyPublished"), &json!("1.0.1")));
    assert_eq!((&told["statusCode"], &told["findings"][0]["path"]), (&json!(409), &json!("/description")));
    // Deleted: the number stays taken, and the same document comes back.
    server.delete(&path("wf.x/n:1.0.0")).await.expect(200);
    assert_eq!(publish(&server, other, json!({})).await.expect(409)["error"], "VersionDeleted");
    let told = publish(&server, one.clone(), json!({})).await.expect(201);
    assert_eq!((&told["status"], &told["revived"]), (&json!("published"), &json!(true)));
    // Too small a step.
    let more = document("1.0.1", &["b/x:1", "b/y:1"]);
    let told = publish(&server, more.clone(), json!({})).await.expect(422);
    let shown =
        ["error", "floor", "declaredBump", "suggestedVersion"].map(|field| told[field].as_str().unwrap().to_owned());
    assert_eq!(shown, ["BelowFloor", "minor", "patch", "1.1.0"]);
    assert_eq!(told["retryWith"], json!({"acceptBump": "patch"}));
    let told = publish(&server, more.clone(), json!({"acceptBump": "minor"})).await.expect(400);
    assert_eq!((&told["error"], &told["expected"]), (&json!("AcceptBumpMismatch"), &json!("patch")));
    assert_eq!(
        publish(&server, more.clone(), json!({"acceptBump": "huge"})).await.expect(400)["error"],
        "InvalidParameter"
    );
    let dry = publish(&server, more.clone(), json!({"acceptBump": "huge", "dryRun": true})).await.expect(200);
    assert_eq!((&dry["wouldStatus"], &dry["suggestedVersion"]), (&json!("InvalidParameter"), &json!("1.0.1")));
    let dry = publish(&server, more.clone(), json!({"dryRun": true})).await.expect(200);
    assert_eq!((&dry["dryRun"], &dry["wouldStatus"], &dry["id"]), (&json!(true), &json!("BelowFloor"), &Value::Null));
    server.get(&path("wf.x/n:1.0.1")).await.expect(404);
    let told = publish(&server, more, json!({"acceptBump": "patch"})).await.expect(201);
    assert_eq!((&told["acceptedBump"], &told["floor"]), (&json!("patch"), &json!("minor")));
    // The next free number.
    let told =
        publish(&server, document("1.0.0", &["b/x:1", "b/y:1", "b/z:1"]), json!({"increment": true})).await.expect(201);
    assert_eq!((&told["version"], &told["bump"]), (&json!("1.1.0"), &json!("minor")));
    let kept = server.get(&path("wf.x/n:1.1.0")).await.expect(200);
    assert_eq!(kept["workflowDefinition"]["minorVersion"], 1, "the document says what it is");
    let told = publish(&server, document("1.0.0", &["b/x:2"]), json!({"increment": true})).await.expect(422);
    assert_eq!((&told["error"], &told["suggestedVersion"]), (&json!("MajorRequiresExplicit"), &json!("2.0.0")));
}

#[tokio::test]
async fn what_is_wrong_with_a_document_is_said_with_its_place() {
    let server = Server::start().await;
    type Spoil = fn(&mut Value);
    let table: Vec<(Spoil, &str, &str)> = vec![
        (|document| document["steps"] = json!([]), "Bad Request", "workflow.steps must have at least one step"),
        (|document| document["steps"][0]["label"] = json!("context"), "Bad Request", "workflow.steps[0].label"),
        (
            |document| document["steps"][0]["functionBlock"] = json!("b/x"),
            "Bad Request",
            "workflow.steps[0].functionBlock",
        ),
        (
            |document| drop(document.as_object_mut().unwrap().remove("seedEntity")),
            "Bad Request",
            "workflow.seedEntity is missing",
        ),
        (
            |document| document["hideForExecution"] = json!("true"),
            "Bad Request",
            "workflow.hideForExecution must be true",
        ),
        (
            |document| document["steps"][1]["label"] = json!("s0"),
            "InvalidDocument",
            "workflow.steps[1].label \"s0\" is used twice",
        ),
        (|document| document["parameterSchema"] = json!({"type": "nothing"}), "Bad Request", "parameterSchema"),
        (
            |document| document["parameterSchema"] = json!({"$ref": "http://example.org/x"}),
            "Bad Request",
            "parameterSchema",
        ),
        (
            |document| document["parameterSchema"] = json!({"pattern": "(a{1000}){1000}"}),
            "Bad Request",
            "parameterSchema",
        ),
        (
            |document| {
                let tab = json!({"second": "61", "minute": "*", "hour": "*", "dayOfMonth": "*", "month": "*", "dayOfWeek": "*", "timezone": "UTC"});
                document["cron"] = json!([{"title": "t", "description": "d", "query": "", "concurrency": true, "enabled": true, "crontab": tab}]);
            },
            "Bad Request",
            "cron[0].crontab",
        ),
    ];
    for (change, error, place) in table {
        let mut workflow = document("1.0.0", &["b/x:1", "b/y:1"]);
        change(&mut workflow);
        let told = publish(&server, workflow.clone(), json!({})).await.expect(400);
        assert_eq!((&told["statusCode"], &told["error"]), (&json!(400), &json!(error)), "{told}");
        assert!(told["message"].as_str().unwrap().contains(place), "{place}: {told}");
        let dry = publish(&server, workflow, json!({"dryRun": true})).await.expect(200);
        assert_eq!((&dry["wouldStatus"], &dry["version"]), (&json!("InvalidDocument"), &json!("1.0.0")), "{dry}");
        assert!(dry["findings"][0]["message"].as_str().unwrap().contains(place), "{place}: {dry}");
    }
    server.post(PUBLISH, json!({"workflow": document("1.0.0", &["b/x:1"]), "dryRun": "true"})).await.expect(400);
    server.post(PUBLISH, json!({})).await.expect(400);
    let mut large = document("1.0.0", &["b/x:1"]);
    large["parameters"] = json!({"text": "x".repeat(1_100_000)});
    publish(&server, large, json!({})).await.expect(413);
    let mut odd = document("1.0.0", &["b/x:1"]);
    odd["steps"][0]["retryConfig"] = json!({"maxRetries": 3});
    let told = publish(&server, odd, json!({})).await.expect(201);
    assert_eq!(
        (&told["findings"][0]["level"], &told["findings"][0]["path"]),
        (&json!("advisory"), &json!("/steps/0/retryConfig"))
    );
}

#[tokio::test]
async fn versions_are_found_by_number_and_by_reference_until_they_are_deleted() {
    let server = Server::start().await;
    for version in ["1.0.0", "1.0.1", "1.2.0", "2.0.0"] {
        publish(&server, document(version, &["b/x:1"]), json!({})).await.expect(201);
    }
    let find = async |reference: &str| {
        let found = server.get(&format!("/workflow-definition/find-by-semver/wf.x%2Fn:{reference}")).await;
        let status = found.status.as_u16();
        (status, serde_json::from_slice::<Value>(&found.body).unwrap()["id"].as_str().map(str::to_owned))
    };
    let found = |id: &str| (200, Some(format!("wf.x/n:{id}")));
    assert_eq!(find("1").await, found("1.2.0"));
    assert_eq!(find("1.0").await, found("1.0.1"));
    assert_eq!(find("2").await, found("2.0.0"));
    assert_eq!((find("3").await.0, find("1.0.9").await.0, find("x").await.0), (404, 404, 400));
    server.delete(&path("wf.x/n:1.2.0")).await.expect(200);
    assert_eq!(find("1").await, found("1.0.1"));
    server.delete(&path("wf.x/n:1.2.0")).await.expect(404);
    server.get(&path("wf.x/n:1.2.0")).await.expect(404);
    let dead = server.get(&format!("{}?findDeleted=true", path("wf.x/n:1.2.0"))).await.expect(200);
    assert!(dead["deletedAt"].is_string());
    let count = async |query: &str| {
        server.get(&format!("/workflow-definition{query}")).await.expect(200).as_array().unwrap().len()
    };
    assert_eq!((count("").await, count("?findDeleted=true").await), (3, 4));
    server.get("/workflow-definition?findDeleted=yes").await.expect(400);
    server.post(&format!("{}/restore", path("wf.x/n:1.0.0")), json!({})).await.expect(400);
    server.post(&format!("{}/restore", path("wf.x/n:9.0.0")), json!({})).await.expect(404);
    server.post(&format!("{}/restore", path("wf.x/n:1.2.0")), json!({})).await.expect(200);
    assert_eq!(find("1").await, found("1.2.0"));
    let shown = server.get("/workflow-definition/wf.x%2Fn%3A1.0.0").await.expect(200);
    assert_eq!(shown["workflowDefinition"], document("1.0.0", &["b/x:1"]), "as it was published");
    server.get("/workflow-definition/nonsense").await.expect(404);
    server.send(Role::Viewer, Method::DELETE, &path("wf.x/n:1.0.0"), None).await.expect(403);
    let trail = server.get("/api/v1/audit?limit=3").await.expect(200);
    let noted =
        |item: &Value| ["by", "act", "on"].map(|field| item[field].as_str().unwrap_or_default().to_owned()).join(" ");
    let noted: Vec<String> = trail["items"].as_array().unwrap().iter().map(noted).collect();
    let expected = ["restored wf.x/n:1.2.0", "deleted wf.x/n:1.2.0", "published wf.x/n:2.0.0"];
    assert_eq!(noted, expected.map(|act| format!("test-admin workflow_{act}")));
}

#[tokio::test]
async fn versions_come_in_pages_and_can_be_compared() {
    let server = Server::start().await;
    for version in ["1.0.0", "1.1.0"] {
        publish(&server, document(version, &["b/x:1"]), json!({})).await.expect(201);
    }
    for name in ["a", "b", "c"] {
        let mut other = document("1.0.0", &["b/x:1"]);
        (other["name"], other["package"], other["description"]) = (json!(name), json!("wf.y"), json!("text"));
        publish(&server, other, json!({})).await.expect(201);
    }
    let page = async |query: &str| server.get(&format!("/workflow-definition/page?{query}")).await.expect(200);
    let ids = |page: &Value| -> Vec<String> {
        page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
    };
    let first = page("limit=2&include=facets").await;
    assert_eq!((ids(&first), &first["total"]), (vec!["wf.y/a:1.0.0".into(), "wf.y/b:1.0.0".into()], &json!(4)));
    assert_eq!(first["facets"]["package"][0], json!({"value": "wf.y", "count": 3}));
    assert_eq!((&first["items"][0]["description"], &first["items"][0]["lastRun"]), (&json!("text"), &Value::Null));
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = page(&format!("limit=2&cursor={cursor}")).await;
    assert_eq!(
        (ids(&second), &second["nextCursor"]),
        (vec!["wf.y/c:1.0.0".into(), "wf.x/n:1.1.0".into()], &Value::Null)
    );
    assert_eq!(ids(&page("latestOnly=false&workflow=wf.x%2Fn&sort=createdAt:desc").await).len(), 2);
    assert_eq!(ids(&page("package=wf.x&q=N").await), ["wf.x/n:1.1.0"]);
    assert_eq!(page("limit=0").await["total"], 4);
    for odd in ["limit=201", "sort=size:asc", "cursor=made-up", "seedEntity=planet", "latestOnly=1"] {
        server.get(&format!("/workflow-definition/page?{odd}")).await.expect(400);
    }
    let told = server.get("/workflow-definition/compare?from=wf.x%2Fn:1.0.0&to=wf.y%2Fa:1.0.0").await.expect(200);
    assert_eq!((&told["from"]["version"], &told["floor"]), (&json!("1.0.0"), &json!("patch")));
    server.get("/workflow-definition/compare?from=wf.x%2Fn:1.0.0").await.expect(400);
    server.get("/workflow-definition/compare?from=wf.x%2Fn:1.0.0&to=wf.x%2Fn:7.0.0").await.expect(404);
    assert_eq!(server.get("/schema").await.expect(200)["title"], "RootWorkflow");
}

#[tokio::test]
async fn there_are_so_many_workflows_and_no_more() {
    let limits = windlass_core::Limits { definitions_max: 2, ..Default::default() };
    let server = Server::set(windlass_engine::Settings { limits, ..Default::default() }, Default::default()).await;
    let named = |name: &str, version: &str| {
        let mut workflow = document(version, &["b/x:1"]);
        workflow["name"] = json!(name);
        workflow
    };
    for name in ["one", "two"] {
        publish(&server, named(name, "1.0.0"), json!({})).await.expect(201);
    }
    let refused = publish(&server, named("three", "1.0.0"), json!({})).await.expect(429);
    let why = refused["message"].as_str().unwrap();
    assert!(why.contains("2 workflows") && why.contains("definitions_per_namespace_max"), "{refused}");
    let mut next = named("one", "1.0.1");
    next["description"] = json!("a version of one that is there");
    publish(&server, next, json!({})).await.expect(201);
    // A deleted one keeps its numbers, and counts.
    server.delete(&path("wf.x/two:1.0.0")).await.expect(200);
    publish(&server, named("three", "1.0.0"), json!({})).await.expect(429);
    publish(&server, named("two", "1.0.0"), json!({})).await.expect(201);
}
