//! Files of revisions and of jobs.

use super::*;
use crate::support::ARTIFACT_MAX;
use sha2::{Digest, Sha256};
use windlass_server::{artifacts, content, product::files};

fn digest(bytes: &[u8]) -> String {
    windlass_api::hex(&Sha256::digest(bytes))
}

async fn put(silo: &Silo, token: &str, path: &str, body: impl Into<reqwest::Body>) -> Answer {
    let response = silo.request(token, "PUT", path).body(body).send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Answer { status, headers, body: serde_json::from_slice(&response.bytes().await.unwrap()).unwrap() }
}

async fn download(silo: &Silo, token: &str, path: &str) -> (u16, Vec<u8>) {
    let response = silo.request(token, "GET", path).send().await.unwrap();
    (response.status().as_u16(), response.bytes().await.unwrap().to_vec())
}

fn kept(silo: &Silo) -> usize {
    silo.listening.server.artifact_files().len()
}

#[tokio::test]
async fn a_revision_keeps_its_files_as_they_came() {
    let silo = Silo::start(&[]).await;
    let (editor, viewer) = (token(Role::Editor), token(Role::Viewer));
    silo.item("PRT-100", "part").await;
    let at = |name: &str| format!("/api/items/PRT-100/revisions/1/files/{name}");
    let body = vec![7u8; 200_000];
    let path = format!("{}?sha256={}", at("cad/part.json"), digest(&body));
    let made = put(&silo, &editor, &path, body.clone()).await.expect(201);
    assert_eq!((&made["name"], &made["size"]), (&json!("cad/part.json"), &json!(200_000)));
    assert_eq!((&made["sha256"], &made["created_by"]), (&json!(digest(&body)), &json!("test-editor")));
    put(&silo, &editor, &at("cad/part.json"), body.clone()).await.expect(200);
    put(&silo, &editor, &at("cad/part.json"), "another").await.refused(409, "conflict");
    put(&silo, &editor, &at("b%20c.txt"), "b").await.expect(201);
    let listed = silo.get("/api/items/PRT-100/revisions/1/files").await;
    assert_eq!(all(&listed, "name"), [&json!("b c.txt"), &json!("cad/part.json")]);
    assert!(download(&silo, &viewer, &at("cad/part.json")).await == (200, body));
    assert_eq!(download(&silo, &viewer, &at("none")).await.0, 404);
    assert_eq!(kept(&silo), 2, "what was not taken left nothing");
    silo.delete(&at("b%20c.txt")).await.expect(204);
    silo.delete(&at("b%20c.txt")).await.refused(404, "not_found");
    assert_eq!(kept(&silo), 1);
    silo.delete("/api/items/PRT-100").await.expect(204);
    assert_eq!(kept(&silo), 0, "files go with their item");
    silo.item("PRT-100", "part").await;
    assert_eq!(silo.get("/api/items/PRT-100/revisions/1/files").await, json!([]));
}

#[tokio::test]
async fn the_next_revision_gets_its_files_before_it_sets_anything_off() {
    let silo = Silo::start(&[("v.yaml", VALIDATE)]).await;
    let editor = token(Role::Editor);
    silo.item("ASM-001", "assembly").await;
    put(&silo, &editor, "/api/items/ASM-001/revisions/3/files/a", "x").await.refused(404, "not_found");
    put(&silo, &editor, "/api/items/ASM-001/revisions/2/files/a", "x").await.expect(201);
    put(&silo, &editor, "/api/items/ASM-001/revisions/2/files/a", "y").await.expect(200);
    assert_eq!(kept(&silo), 1, "it is no history yet, and was replaced");
    silo.post("/api/items/ASM-001/revisions", json!({})).await.expect(201);
    put(&silo, &editor, "/api/items/ASM-001/revisions/2/files/a", "z").await.refused(409, "conflict");
    let runner = silo.runner("w", &["create"]).await;
    let job = text(&silo.claim(&runner).await.unwrap()["job"]["id"]);
    let listed = silo.call(&runner, "GET", &format!("/api/runner/jobs/{job}/files"), Value::Null).await.expect(200);
    assert_eq!(all(&listed, "sha256"), [&json!(digest(b"y"))]);
}

#[tokio::test]
async fn names_and_sizes_and_digests_are_checked() {
    let silo = Silo::start(&[]).await;
    let editor = token(Role::Editor);
    silo.item("P", "part").await;
    let at = |name: &str| format!("/api/items/P/revisions/1/files/{name}");
    for name in ["%2Fetc%2Fpasswd", "a%2F..%2Fb", "a%0Ab", "a%00", "a%5Cb", &"x".repeat(256)] {
        put(&silo, &editor, &at(name), "x").await.refused(400, "invalid_request");
    }
    put(&silo, &editor, &format!("{}?sha256=zz", at("a")), "x").await.refused(400, "invalid_request");
    let wrong = format!("{}?sha256={}", at("a"), "0".repeat(64));
    let refused = put(&silo, &editor, &wrong, "x").await.refused(400, "invalid_request");
    assert!(refused["message"].as_str().unwrap().contains(&digest(b"x")), "{refused}");
    put(&silo, &editor, &at("a"), vec![0; ARTIFACT_MAX as usize + 1]).await.refused(413, "payload_too_large");
    put(&silo, &token(Role::Viewer), &at("a"), "x").await.refused(403, "forbidden");
    assert_eq!(kept(&silo), 0);
}

#[tokio::test]
async fn a_runner_reads_what_its_job_is_about_and_leaves_what_it_made() {
    let silo = Silo::start(&[("e.yaml", EXPORT), ("v.yaml", VALIDATE)]).await;
    let (editor, viewer) = (token(Role::Editor), token(Role::Viewer));
    silo.item("PRT-1", "part").await;
    put(&silo, &editor, "/api/items/PRT-1/revisions/1/files/part.json", "{}").await.expect(201);
    let (runner, other) = (silo.runner("w", &["create"]).await, silo.runner("o", &["create"]).await);
    let job = silo.job("part-export-step", "PRT-1").await;
    let at = |what: &str| format!("/api/runner/jobs/{job}/{what}");
    silo.call(&runner, "GET", &at("files"), Value::Null).await.refused(409, "conflict");
    silo.claim(&runner).await.unwrap();
    assert_eq!(download(&silo, &runner, &at("files/part.json")).await, (200, b"{}".to_vec()));
    silo.call(&other, "GET", &at("files"), Value::Null).await.refused(403, "forbidden");
    assert_eq!(download(&silo, &other, &at("files/part.json")).await.0, 403);
    assert_eq!(download(&silo, &viewer, &at("files/part.json")).await.0, 401, "people have their own path");
    silo.call(&runner, "GET", &at("files?part_number=ELSE"), Value::Null).await.refused(400, "invalid_request");

    let made = put(&silo, &runner, &at("artifacts/exports/PRT-1_rev1.step"), "solid").await.expect(201);
    assert_eq!((&made["key"], &made["size"]), (&json!("exports/PRT-1_rev1.step"), &json!(5)));
    let again = put(&silo, &runner, &at("artifacts/exports/PRT-1_rev1.step"), "solid 2").await.expect(200);
    assert_eq!(again["sha256"], json!(digest(b"solid 2")));
    assert_eq!(kept(&silo), 2, "the first one was replaced");
    put(&silo, &other, &at("artifacts/x"), "x").await.refused(403, "forbidden");
    put(&silo, &runner, &at("artifacts/cancelled"), "x").await.refused(400, "invalid_request");
    put(&silo, &runner, &at("artifacts/..%2Fx"), "x").await.refused(400, "invalid_request");
    silo.report(&runner, &job, "complete", json!({})).await.expect(200);
    let late = put(&silo, &runner, &at("artifacts/late"), "x").await.refused(409, "conflict");
    assert_eq!(late["status"], "completed");
    silo.call(&runner, "GET", &at("files"), Value::Null).await.refused(409, "conflict");

    let listed = silo.get(&format!("/api/jobs/{job}/artifacts")).await;
    assert_eq!(all(&listed, "key"), [&json!("exports/PRT-1_rev1.step")]);
    let path = format!("/api/jobs/{job}/artifacts/exports/PRT-1_rev1.step");
    assert_eq!(download(&silo, &viewer, &path).await, (200, b"solid 2".to_vec()));
    assert_eq!(download(&silo, &viewer, &format!("/api/jobs/{job}/artifacts/none")).await.0, 404);
    let native = silo.admin("GET", &format!("/api/v1/artifacts?namespace=silo&job={job}"), Value::Null).await;
    assert_eq!(native.expect(200)["items"][0]["name"], "exports/PRT-1_rev1.step", "one store, two views");
}

#[tokio::test]
async fn an_assembly_job_reads_the_files_of_its_whole_scope() {
    let silo = Silo::start(&[("v.yaml", VALIDATE)]).await;
    let editor = token(Role::Editor);
    silo.item("ASM", "assembly").await;
    silo.item("PRT", "part").await;
    silo.post("/api/items/ASM/bom", json!({"child_part_number": "PRT"})).await.expect(201);
    put(&silo, &editor, "/api/items/PRT/revisions/1/files/p", "p").await.expect(201);
    let runner = silo.runner("w", &["create"]).await;
    let job = silo.job("assembly-validate", "ASM").await;
    silo.claim(&runner).await.unwrap();
    let path = format!("/api/runner/jobs/{job}/files/p");
    assert_eq!(download(&silo, &runner, &path).await.0, 404);
    assert_eq!(download(&silo, &runner, &format!("{path}?part_number=PRT")).await, (200, b"p".to_vec()));
    let path = format!("/api/runner/jobs/{job}/files?scope=all");
    let listed = silo.call(&runner, "GET", &path, Value::Null).await.expect(200);
    assert_eq!((all(&listed, "part_number"), all(&listed, "name")), (vec![&json!("PRT")], vec![&json!("p")]));
}

#[tokio::test]
async fn sweeps_leave_what_is_known_and_take_what_is_not() {
    let silo = Silo::start(&[("e.yaml", EXPORT)]).await;
    let editor = token(Role::Editor);
    silo.item("P", "part").await;
    put(&silo, &editor, "/api/items/P/revisions/1/files/a", "a").await.expect(201);
    let server = &silo.listening.server;
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let stray = server.artifact_folder().join("00/01890000000070008000000000000000");
    // Named like ours, but not where ours are.
    let foreign = server.artifact_folder().join("11/01890000000070008000000000000000");
    for (file, text) in [(&stray, "nobody's"), (&foreign, "somebody's")] {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    for file in server.artifact_files() {
        std::fs::File::options().write(true).open(file).unwrap().set_modified(old).unwrap();
    }
    assert_eq!((files::sweep(silo.app()).await.unwrap(), kept(&silo)), (0, 3));
    assert_eq!(content::sweep(silo.app()).await.unwrap(), 1, "the one that no record knows");
    assert!(!stray.exists() && foreign.exists());
    assert_eq!(artifacts::sweep(silo.app()).await.unwrap(), 0);
    let (status, body) = download(&silo, &editor, "/api/items/P/revisions/1/files/a").await;
    assert_eq!((status, body), (200, b"a".to_vec()));
}

#[tokio::test]
async fn a_workflow_graph_job_called_artifacts_is_still_asked_about() {
    let silo = Silo::start(&[]).await;
    let path = "/api/jobs/01890000-0000-7000-8000-000000000000/artifacts/cancelled";
    assert_eq!(silo.call(&token(Role::Worker), "GET", path, Value::Null).await.expect(200), json!(false));
}
