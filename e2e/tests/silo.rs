//! Silo's protocol on the real stores, with the server killed between every two calls.

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use windlass_e2e::{ADMIN, Server};
use windlass_stores::testing::Cluster;

const DEFINITIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/silo");

/// A call, and a kill after its answer.
async fn call(server: &mut Server, token: &str, method: &str, path: &str, body: Value) -> (u16, Value) {
    let body = body.to_string();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        server.address(),
        body.len()
    );
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    server.kill();
    server.restart().await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_default())
}

async fn story(database: Option<&str>) {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start_with(folder.path(), database, &["--silo-jobs", DEFINITIONS]).await;
    let server = &mut server;
    let item = json!({"part_number": "ASM-001", "item_type": "assembly"});
    assert_eq!(call(server, ADMIN, "POST", "/api/items", item).await.0, 201);
    let runner = json!({"name": "worker-01", "tags": ["create"]});
    let (status, runner) = call(server, ADMIN, "POST", "/api/runners", runner).await;
    assert_eq!(status, 201, "{runner}");
    let token = runner["token"].as_str().unwrap();
    let (status, made) = call(server, ADMIN, "POST", "/api/items/ASM-001/revisions", json!({})).await;
    assert_eq!((status, &made["triggered_jobs"][0]["definition_name"]), (201, &json!("assembly-validate")), "{made}");
    let id = made["triggered_jobs"][0]["id"].as_str().unwrap().to_owned();
    let (status, claimed) = call(server, token, "POST", "/api/runner/claim", json!({})).await;
    assert_eq!((status, &claimed["job"]["id"]), (200, &json!(id)), "{claimed}");
    let at = |what: &str| format!("/api/runner/jobs/{id}/{what}");
    let graph = json!({"nodes": [{"node_key": "S", "node_type": "sketch", "properties_hash": "a"}], "edges": []});
    for (path, method, body, expected) in [
        (at("progress"), "PUT", json!({"progress": 40}), 200),
        (at("log"), "POST", json!({"message": "opened"}), 201),
        (at("dag"), "PUT", graph, 200),
        (at("complete"), "POST", json!({"result": {"ok": true}}), 200),
        (at("complete"), "POST", json!({"result": {"ok": true}}), 409),
    ] {
        let (status, answer) = call(server, token, method, &path, body).await;
        assert_eq!(status, expected, "{method} {path}: {answer}");
    }
    let (status, job) = call(server, ADMIN, "GET", &format!("/api/jobs/{id}"), Value::Null).await;
    assert_eq!((status, &job["status"], &job["result"]), (200, &json!("completed"), &json!({"ok": true})), "{job}");
    let (status, logs) = call(server, ADMIN, "GET", &format!("/api/jobs/{id}/logs"), Value::Null).await;
    assert_eq!((status, &logs[0]["message"]), (200, &json!("opened")), "{logs}");
    let (status, graph) = call(server, ADMIN, "GET", "/api/items/ASM-001/dag", Value::Null).await;
    assert_eq!((status, &graph["nodes"][0]["node_key"]), (200, &json!("S")), "{graph}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_silo_is_lost_by_kills_on_the_embedded_store() {
    story(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_silo_is_lost_by_kills_on_postgres() {
    let cluster = Cluster::start();
    story(Some(&cluster.create_database("silo"))).await;
}
