//! Requests that are under way when the access of their sender ends: nothing of them is written.

use crate::{
    joblib,
    support::{Answer, Server, token},
};
use axum::body::Body;
use futures_util::{StreamExt, stream};
use http::{Method, Request, header};
use serde_json::{Value, json};
use std::convert::Infallible;
use tokio::sync::oneshot;
use windlass_core::principal::Role;

fn request(token: &str, method: Method, path: &str) -> http::request::Builder {
    let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost");
    let request = request.header(header::CONTENT_TYPE, "application/json");
    request.header(header::AUTHORIZATION, format!("Bearer {token}"))
}

/// The last byte of the body arrives when `between` is over, which begins when the server reads the body.
async fn slow(server: &Server, request: http::request::Builder, body: &str, between: impl Future) -> Answer {
    let ((began, begun), (go, wait)) = (oneshot::channel(), oneshot::channel::<()>());
    let (first, last) = body.as_bytes().split_at(body.len() - 1);
    let (length, first, last) = (body.len(), first.to_vec(), last.to_vec());
    let first = stream::once(async move {
        let _ = began.send(());
        Ok::<_, Infallible>(first)
    });
    let last = stream::once(async move {
        let _ = wait.await;
        Ok(last)
    });
    let body = Body::from_stream(first.chain(last).boxed());
    let request = request.header(header::CONTENT_LENGTH, length).body(body).unwrap();
    let ends = async {
        let _ = begun.await;
        between.await;
        let _ = go.send(());
    };
    tokio::join!(server.call(request), ends).0
}

/// A token of a new principal, and its id.
async fn make(server: &Server, name: &str, role: &str) -> (String, String) {
    let made = server.post("/api/v1/tokens", json!({"principal": name, "role": role})).await.expect(201);
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("token"), text("id"))
}

#[tokio::test]
async fn what_is_under_way_when_its_token_is_revoked_is_not_written() {
    let workflow = json!({"name": "w", "trigger": "manual", "jobs": []});
    for (method, path, body, list) in [
        (Method::POST, "/api/v1/jobs", json!({}), "/api/v1/jobs"),
        (Method::PUT, "/api/v1/schedules/s", json!({"every_ms": 60_000, "job": {}}), "/api/v1/schedules"),
        (Method::POST, "/api/v1/items", json!({"part_number": "A"}), "/api/v1/items"),
        (Method::POST, "/api/v1/artifacts?name=a", json!("bytes"), "/api/v1/artifacts"),
        (Method::POST, "/api/items", json!({"part_number": "A"}), "/api/items"),
        (Method::POST, "/api/workflows", workflow, "/api/workflows"),
        (Method::PUT, "/api/v1/entities/device/5", json!({"hostname": "sw1"}), "/api/v1/entities?type=device"),
    ] {
        let server = Server::start().await;
        let before = server.get(list).await.body;
        let (editor, id) = make(&server, "leaver", "editor").await;
        let revoke = async { server.delete(&format!("/api/v1/tokens/{id}")).await.expect(204) };
        let refused = slow(&server, request(&editor, method, path), &body.to_string(), revoke).await;
        assert_eq!(refused.status, 401, "{path}: {}", String::from_utf8_lossy(&refused.body));
        let after = server.get(list).await;
        assert_eq!(String::from_utf8_lossy(&after.body), String::from_utf8_lossy(&before), "{path}");
        assert!(server.artifact_files().is_empty(), "{path}");
    }
}

#[tokio::test]
async fn each_job_of_many_is_refused_when_the_token_is_revoked_meanwhile() {
    let server = Server::start().await;
    let (editor, id) = make(&server, "leaver", "editor").await;
    let revoke = async { server.delete(&format!("/api/v1/tokens/{id}")).await.expect(204) };
    let many = request(&editor, Method::POST, "/api/v1/jobs/batch");
    let told = slow(&server, many, r#"{"jobs": [{}, {}]}"#, revoke).await.expect(200);
    let told: Vec<_> = told["jobs"].as_array().unwrap().iter().map(|job| job["problem"]["status"].clone()).collect();
    assert_eq!(told, [401, 401]);
    assert_eq!(server.get("/api/v1/jobs").await.expect(200)["items"], json!([]));
}

#[tokio::test]
async fn an_admin_who_is_disabled_or_may_less_by_now_makes_nobody_an_admin() {
    for (method, path, body, status) in [
        (Method::DELETE, "/api/v1/principals/deputy", Value::Null, 401),
        (Method::DELETE, "/api/v1/principals/deputy?remove=true", Value::Null, 401),
        (Method::PUT, "/api/v1/principals/deputy", json!({"role": "viewer"}), 503),
        (Method::PUT, "/api/v1/principals/deputy", json!({"namespaces": ["elsewhere"]}), 503),
    ] {
        let server = Server::start().await;
        let (deputy, _) = make(&server, "deputy", "admin").await;
        make(&server, "friend", "viewer").await;
        let end = async { server.send(Role::Admin, method.clone(), path, Some(body.clone())).await };
        let promote = request(&deputy, Method::PUT, "/api/v1/principals/friend");
        let refused = slow(&server, promote, r#"{"role": "admin"}"#, end).await;
        assert_eq!(refused.status, status, "{path} {body}: {}", String::from_utf8_lossy(&refused.body));
        let refused: Value = serde_json::from_slice(&refused.body).unwrap();
        assert!(refused["detail"].as_str().unwrap().contains("nothing was written"), "{refused}");
        let page = server.get("/api/v1/principals").await.expect(200);
        let friend = page["items"].as_array().unwrap().iter().find(|one| one["name"] == "friend").unwrap();
        assert_eq!(friend["role"], "viewer", "{path} {body}");
    }
}

#[tokio::test]
async fn a_worker_whose_token_is_revoked_completes_nothing_and_another_one_of_its_principal_does() {
    let server = Server::start().await;
    let (farm, id) = make(&server, "farm", "worker").await;
    let (other, _) = make(&server, "farm", "worker").await;
    let job = server.post("/api/v1/jobs", json!({})).await.expect(201)["id"].as_str().unwrap().to_owned();
    let claim = request(&farm, Method::POST, "/api/v1/leases/claim").body(Body::from(r#"{"worker": "w"}"#)).unwrap();
    let lease = server.call(claim).await.expect(200)["leases"][0]["lease"].clone();
    let complete = |token: &str| request(token, Method::POST, "/api/v1/leases/complete");
    let body = json!({"lease": lease}).to_string();
    let revoke = async { server.delete(&format!("/api/v1/tokens/{id}")).await.expect(204) };
    slow(&server, complete(&farm), &body, revoke).await.expect(401);
    assert_eq!(server.get(&format!("/api/v1/jobs/{job}")).await.expect(200)["state"], "claimed");
    slow(&server, complete(&other), &body, async {}).await.expect(200);
}

#[tokio::test]
async fn what_a_token_has_made_ends_with_it_also_while_it_is_under_way() {
    let server = Server::start().await;
    let (deputy, id) = make(&server, "deputy", "admin").await;
    let child = request(&deputy, Method::POST, "/api/v1/tokens");
    let child = child.body(Body::from(r#"{"principal": "child", "role": "editor"}"#)).unwrap();
    let child = server.call(child).await.expect(201)["token"].as_str().unwrap().to_owned();
    let revoke = async { server.delete(&format!("/api/v1/tokens/{id}")).await.expect(204) };
    slow(&server, request(&child, Method::POST, "/api/v1/jobs"), "{}", revoke).await.expect(401);
}

/// A worker always has a request under way, and must not end because its principal may more.
#[tokio::test]
async fn what_is_under_way_goes_on_if_its_principal_may_more() {
    let server = Server::start().await;
    let body = json!({"principal": "grows", "role": "editor", "namespaces": ["a"]});
    let made = server.post("/api/v1/tokens", body).await.expect(201);
    let more = async { server.put("/api/v1/principals/grows", json!({"namespaces": ["a", "b"]})).await.expect(200) };
    let submit = request(made["token"].as_str().unwrap(), Method::POST, "/api/v1/jobs?namespace=a");
    slow(&server, submit, "{}", more).await.expect(201);
}

#[tokio::test]
async fn a_user_who_is_deactivated_or_changes_the_password_registers_nothing_under_way() {
    for change in [json!({"is_active": false}), json!({"password": "another"})] {
        let server = Server::start().await;
        let root = joblib::superuser(&server, "root").await;
        let user = joblib::register(&server, "u@example.org", "right").await;
        let bearer = joblib::token(&server, "u@example.org", "right").await;
        let path = format!("/users/{}", user["id"].as_str().unwrap());
        let end = async {
            joblib::send(&server, Method::PATCH, &path, &root, Some(change.clone())).await.expect(200);
        };
        let body = json!({"category": "modifiers", "name": "mine", "schema": {}}).to_string();
        let late = slow(&server, request(&bearer, Method::PUT, "/v1/joblib/rooms/r/jobs"), &body, end).await;
        assert_eq!(late.status, 503, "{}", String::from_utf8_lossy(&late.body));
        // Sent again, it is refused for good.
        let again = request(&bearer, Method::PUT, "/v1/joblib/rooms/r/jobs").body(Body::from(body.clone())).unwrap();
        server.call(again).await.expect(401);
        let jobs = joblib::send(&server, Method::GET, "/v1/joblib/rooms/r/jobs", &root, None).await.expect(200);
        assert_eq!(jobs["total"], 0);
    }
}

/// What the cases above rest on: a caller that keeps its access is served, however slow it is.
#[tokio::test]
async fn who_keeps_its_access_is_served_while_that_of_others_ends() {
    let server = Server::start().await;
    let (_, id) = make(&server, "leaver", "editor").await;
    let revoke = async { server.delete(&format!("/api/v1/tokens/{id}")).await.expect(204) };
    let stays = request(&token(Role::Editor), Method::POST, "/api/v1/jobs");
    slow(&server, stays, "{}", revoke).await.expect(201);
}
