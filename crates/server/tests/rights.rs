//! What a token makes, who is left to make tokens, and what those may know who rule over a part only.

use crate::support::{Answer, Server};
use axum::body::Body;
use http::{Method, Request, header};
use serde_json::{Value, json};
use std::time::Duration;
use windlass_core::{
    Timestamp,
    principal::{Role, Token},
};
use windlass_server::{
    auth,
    bootstrap::{self, Admin, Watch},
    secret::Secret,
};

async fn call(server: &Server, token: &str, method: Method, path: &str, body: Value) -> Answer {
    let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost");
    let request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    server.call(request.body(Body::from(body.to_string())).unwrap()).await
}

async fn is_valid(server: &Server, token: &str) -> bool {
    server.app.auth.forget();
    server.app.auth.caller(token).await.is_ok()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a string")).to_owned()
}

async fn make(server: &Server, by: &str, body: Value) -> (String, String) {
    let made = call(server, by, Method::POST, "/api/v1/tokens", body).await.expect(201);
    (text(&made["token"]), text(&made["id"]))
}

const ADMIN: &str = "test-admin";

async fn stored(server: &Server, token: &str) -> Token {
    let hash = auth::hash(token);
    server.engine.read_record::<Token>(&auth::system_namespace(), &hash).await.unwrap().expect("it is kept")
}

#[tokio::test]
async fn what_a_token_makes_ends_with_it_on_the_native_api() {
    let server = Server::start().await;
    let short = json!({"principal": "deputy", "role": "admin", "expires_ms": 60_000});
    let (deputy, deputy_id) = make(&server, ADMIN, short).await;
    let long = json!({"principal": "ci", "role": "editor", "expires_ms": 9_000_000});
    let (ci, _) = make(&server, &deputy, long).await;
    let (farm, _) = make(&server, &deputy, json!({"principal": "farm", "role": "worker"})).await;
    let ends = stored(&server, &deputy).await.expires_at;
    assert!(ends.is_some());
    assert_eq!((stored(&server, &ci).await.expires_at, stored(&server, &farm).await.expires_at), (ends, ends));
    assert!(is_valid(&server, &ci).await && is_valid(&server, &farm).await);
    let listed = server.get("/api/v1/tokens").await.expect(200);
    let of_ci = listed["items"].as_array().unwrap().iter().find(|item| item["principal"] == "ci").unwrap().clone();
    assert_eq!(of_ci["made_by"], json!(deputy_id));
    server.delete(&format!("/api/v1/tokens/{deputy_id}")).await.expect(204);
    for token in [&deputy, &ci, &farm] {
        assert!(!is_valid(&server, token).await);
    }
    let listed = server.get("/api/v1/tokens").await.expect(200);
    let names: Vec<_> = listed["items"].as_array().unwrap().iter().map(|item| text(&item["principal"])).collect();
    assert!(!names.contains(&"ci".to_owned()), "what is void is not listed: {names:?}");
    // With its principal as well.
    let (boss, _) = make(&server, ADMIN, json!({"principal": "boss", "role": "admin"})).await;
    let (made, _) = make(&server, &boss, json!({"principal": "tool", "role": "viewer"})).await;
    assert!(is_valid(&server, &made).await);
    server.delete("/api/v1/principals/boss").await.expect(204);
    assert!(!is_valid(&server, &made).await);
}

#[tokio::test]
async fn what_ended_with_its_maker_leaves_nothing_behind() {
    let server = Server::start().await;
    let (deputy, deputy_id) = make(&server, ADMIN, json!({"principal": "deputy", "role": "admin"})).await;
    let (child, _) = make(&server, &deputy, json!({"principal": "child", "role": "admin"})).await;
    let (grandchild, _) = make(&server, &child, json!({"principal": "grandchild", "role": "viewer"})).await;
    let (other, _) = make(&server, ADMIN, json!({"principal": "other", "role": "admin"})).await;
    let silo = async |by: &str, name: &str| {
        let made = call(&server, by, Method::POST, "/api/auth/tokens", json!({"name": name})).await.expect(201);
        text(&made["token"])
    };
    let (orphan, kept) = (silo(&deputy, "orphan").await, silo(&other, "kept").await);
    server.delete(&format!("/api/v1/tokens/{deputy_id}")).await.expect(204);
    windlass_server::void_tokens::sweep(&server.app).await.unwrap();
    let is_kept = async |token: &str| {
        server.engine.read_record::<Token>(&auth::system_namespace(), &auth::hash(token)).await.unwrap().is_some()
    };
    for token in [&child, &grandchild, &orphan] {
        assert!(!is_kept(token).await);
    }
    assert!(is_valid(&server, &other).await && is_valid(&server, &kept).await);
    let listed = call(&server, ADMIN, Method::GET, "/api/auth/tokens", json!({})).await.expect(200);
    let names: Vec<String> = listed.as_array().unwrap().iter().map(|token| text(&token["name"])).collect();
    assert_eq!(names, ["kept"]);
    let again = silo(&other, "orphan").await;
    assert!(is_valid(&server, &again).await && !is_valid(&server, &orphan).await, "its name is free");
    assert_eq!(windlass_server::void_tokens::sweep(&server.app).await.unwrap(), 0);
}

#[tokio::test]
async fn a_caller_counts_for_whoever_began_the_line_of_tokens() {
    let server = Server::start().await;
    let tenant = json!({"principal": "tenant", "role": "admin", "namespaces": ["film"]});
    let (tenant, _) = make(&server, ADMIN, tenant).await;
    let of_film = |name: &str| json!({"principal": name, "role": "worker", "namespaces": ["film"]});
    let (one, _) = make(&server, &tenant, of_film("one")).await;
    let root = async |token: &str| server.app.auth.caller(token).await.unwrap().root.to_string();
    assert_eq!((root(&tenant).await, root(&one).await), ("tenant".to_owned(), "tenant".to_owned()));
    let (two, _) = make(&server, ADMIN, of_film("two")).await;
    assert_eq!(root(&two).await, "two");
}

#[tokio::test]
async fn the_last_admin_goes_only_if_that_is_said_twice() {
    let server = Server::start().await;
    let listed = server.get("/api/v1/tokens").await.expect(200);
    let own = listed["items"].as_array().unwrap().iter().find(|item| item["principal"] == ADMIN).unwrap().clone();
    let own = text(&own["id"]);
    let refused = server.delete(&format!("/api/v1/tokens/{own}")).await.expect(409);
    assert_eq!(refused["type"], "/docs/errors#last-admin");
    assert!(text(&refused["detail"]).contains("force"), "{refused}");
    let demote = json!({"role": "editor"});
    server.put("/api/v1/principals/test-admin", demote.clone()).await.expect(409);
    server.put("/api/v1/principals/test-admin", json!({"namespaces": ["mine"]})).await.expect(409);
    server.delete("/api/v1/principals/test-admin").await.expect(422);
    assert!(is_valid(&server, ADMIN).await);
    // An admin of some namespaces is no help, one whose token would end with the last one's neither.
    make(&server, ADMIN, json!({"principal": "local", "role": "admin", "namespaces": ["mine"]})).await;
    let (child, child_id) = make(&server, ADMIN, json!({"principal": "child", "role": "admin"})).await;
    server.delete(&format!("/api/v1/tokens/{own}")).await.expect(409);
    // Giving up the role is fine where another one has it.
    call(&server, &child, Method::DELETE, &format!("/api/v1/tokens/{child_id}"), json!({})).await.expect(204);
    let (child, _) = make(&server, ADMIN, json!({"principal": "child", "role": "admin"})).await;
    server.put("/api/v1/principals/test-admin", demote).await.expect(200);
    assert!(is_valid(&server, &child).await);
    let gone = call(&server, &child, Method::DELETE, "/api/v1/principals/child?force=true", json!({})).await;
    gone.expect(204);
    assert!(!is_valid(&server, &child).await);
}

#[tokio::test]
async fn a_changed_role_counts_at_once_and_a_deleted_name_starts_anew() {
    let server = Server::start().await;
    let (ann, _) = make(&server, ADMIN, json!({"principal": "ann", "role": "editor"})).await;
    call(&server, &ann, Method::POST, "/api/v1/jobs", json!({})).await.expect(201);
    let changed = server.put("/api/v1/principals/ann", json!({"role": "viewer"})).await.expect(200);
    assert_eq!((&changed["name"], &changed["role"]), (&json!("ann"), &json!("viewer")));
    call(&server, &ann, Method::POST, "/api/v1/jobs", json!({})).await.expect(403);
    server.put("/api/v1/principals/ann", json!({"namespaces": ["film"]})).await.expect(200);
    call(&server, &ann, Method::GET, "/api/v1/jobs", json!({})).await.expect(403);
    call(&server, &ann, Method::GET, "/api/v1/jobs?namespace=film", json!({})).await.expect(200);
    // Nobody gives rights beyond their own.
    let local = json!({"principal": "local", "role": "admin", "namespaces": ["film"]});
    let (local, _) = make(&server, ADMIN, local).await;
    let put = async |name: &str, body: Value| {
        call(&server, &local, Method::PUT, &format!("/api/v1/principals/{name}"), body).await
    };
    put("ann", json!({"namespaces": []})).await.expect(403);
    put("ann", json!({"namespaces": ["sound"]})).await.expect(403);
    put("ann", json!({"role": "editor"})).await.expect(200);
    put("test-viewer", json!({"role": "admin"})).await.expect(404);
    put("nobody", json!({})).await.expect(404);

    server.delete("/api/v1/principals/ann?remove=true").await.expect(204);
    assert!(!is_valid(&server, &ann).await);
    let (again, _) = make(&server, ADMIN, json!({"principal": "ann", "role": "worker"})).await;
    assert!(!is_valid(&server, &ann).await && is_valid(&server, &again).await);
    server.post("/api/v1/tokens", json!({"principal": "anonymous", "role": "viewer"})).await.expect(422);
}

#[tokio::test]
async fn an_admin_of_one_namespace_learns_of_nobody_elses_principals_by_paging() {
    let server = Server::start().await;
    let local = json!({"principal": "m-local", "role": "admin", "namespaces": ["film"]});
    let (local, _) = make(&server, ADMIN, local).await;
    for name in ["a-secret", "n-secret", "z-secret"] {
        make(&server, ADMIN, json!({"principal": name, "role": "viewer"})).await;
    }
    for name in ["b-film", "p-film"] {
        make(&server, ADMIN, json!({"principal": name, "role": "viewer", "namespaces": ["film"]})).await;
    }
    for (path, expected) in [("principals", &["b-film", "m-local", "p-film"][..]), ("tokens", &[])] {
        let all = server.get(&format!("/api/v1/{path}")).await.expect(200);
        let name = |item: &Value| text(item.get("name").unwrap_or(&item["principal"]));
        let foreign: Vec<Value> = all["items"].as_array().unwrap().clone();
        for limit in 1..4 {
            let (mut seen, mut cursor) = (Vec::new(), String::new());
            loop {
                let asked = format!("/api/v1/{path}?limit={limit}{cursor}");
                let answer = call(&server, &local, Method::GET, &asked, json!({})).await.expect(200);
                let told = answer.to_string();
                for item in foreign.iter().filter(|item| item["namespaces"] != json!(["film"])) {
                    assert!(!told.contains(&name(item)), "{told} tells of {item}");
                    assert!(item.get("id").is_none_or(|id| !told.contains(&text(id))), "{told} tells of {item}");
                }
                let items = answer["items"].as_array().unwrap();
                assert!(!items.is_empty(), "a page for nothing");
                seen.extend(items.iter().map(name));
                let Some(next) = answer["next"].as_str() else { break };
                cursor = format!("&cursor={next}");
            }
            seen.sort();
            assert_eq!(seen, ["b-film", "m-local", "p-film"], "{path} by {limit}");
            assert!(expected.is_empty() || seen == expected);
        }
    }
}

#[tokio::test]
async fn the_audit_trail_reaches_admins_only() {
    let server = Server::start().await;
    server.put("/api/v1/definitions/d", json!({})).await.expect(200);
    let job = server.post("/api/v1/jobs", json!({})).await.expect(201);
    for (role, hears) in [(Role::Viewer, false), (Role::Editor, false), (Role::Admin, true)] {
        let request = Server::request(role, Method::GET, "/api/v1/events?after=0").body(Body::empty()).unwrap();
        let mut body = server.open(request).await.into_body();
        let mut told = String::new();
        while !told.contains(&text(&job["id"])) {
            let frame = tokio::time::timeout(Duration::from_secs(20), http_body_util::BodyExt::frame(&mut body));
            let frame = frame.await.expect("it goes on").expect("it is open").unwrap();
            told += &String::from_utf8_lossy(&frame.into_data().unwrap());
        }
        assert!(told.contains("definition_put") || !hears, "{told}");
        assert_eq!(told.contains("event: audit"), hears, "{role:?}: {told}");
        let asked = Server::request(role, Method::GET, "/api/v1/events?after=0&type=audit,submitted");
        let mut body = server.open(asked.body(Body::empty()).unwrap()).await.into_body();
        let mut told = String::new();
        while !told.contains(&text(&job["id"])) {
            let frame = tokio::time::timeout(Duration::from_secs(20), http_body_util::BodyExt::frame(&mut body));
            told += &String::from_utf8_lossy(&frame.await.unwrap().unwrap().unwrap().into_data().unwrap());
        }
        assert_eq!(told.contains("event: audit"), hears, "{role:?} asks for it: {told}");
    }
}

fn held(folder: &tempfile::TempDir) -> String {
    std::fs::read_to_string(folder.path().join("admin.token")).unwrap().trim().to_owned()
}

#[tokio::test]
async fn a_deleted_or_replaced_admin_token_is_void_also_while_the_server_runs() {
    let server = Server::start().await;
    let folder = tempfile::tempdir().unwrap();
    let admin = bootstrap::admin(&server.engine, None, folder.path(), true).await.unwrap();
    let mut watch = Watch::new(&admin, true).unwrap();
    watch.look(&server.app).await.unwrap();
    let first = held(&folder);
    let (made, _) = make(&server, &first, json!({"principal": "farm", "role": "worker"})).await;
    std::fs::write(folder.path().join("admin.token"), "a-token-of-my-own-choice\n").unwrap();
    watch.look(&server.app).await.unwrap();
    assert!(!is_valid(&server, &first).await && is_valid(&server, "a-token-of-my-own-choice").await);
    assert!(is_valid(&server, &made).await, "what a replaced one made is the new one's");
    // Half a file is no wish for another token.
    std::fs::write(folder.path().join("admin.token"), "").unwrap();
    assert!(watch.look(&server.app).await.is_err());
    assert!(is_valid(&server, "a-token-of-my-own-choice").await);
    std::fs::remove_file(folder.path().join("admin.token")).unwrap();
    watch.look(&server.app).await.unwrap();
    let third = held(&folder);
    assert!(third.starts_with("wl_admin_") && is_valid(&server, &third).await);
    assert!(!is_valid(&server, "a-token-of-my-own-choice").await && is_valid(&server, &made).await);
    // A revoked one takes along what it made, and its file does not bring it back.
    let (doomed, _) = make(&server, &third, json!({"principal": "tool", "role": "viewer"})).await;
    let id = auth::hash(&third)[..16].to_owned();
    server.delete(&format!("/api/v1/tokens/{id}")).await.expect(204);
    assert!(!is_valid(&server, &third).await && !is_valid(&server, &doomed).await);
    let again = bootstrap::admin(&server.engine, None, folder.path(), true).await.unwrap();
    assert!(matches!(again, Admin::File { new: true, .. }));
    assert!(!is_valid(&server, &third).await && is_valid(&server, &held(&folder)).await);
    // A variable takes the file's place.
    let by_file = held(&folder);
    let set = Secret::new("set-by-a-variable-0123");
    assert_eq!(bootstrap::admin(&server.engine, Some(&set), folder.path(), true).await.unwrap(), Admin::Variable);
    assert!(!is_valid(&server, &by_file).await && is_valid(&server, set.reveal()).await);
}

#[tokio::test]
async fn servers_that_share_a_store_keep_their_own_admin_tokens_and_imported_ones_are_void() {
    let server = Server::start().await;
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // As an export brings it: nobody says when it was seen in a file.
    bootstrap::admin(&server.engine, None, two.path(), true).await.unwrap();
    let imported = held(&two);
    std::fs::remove_file(two.path().join("admin.token")).unwrap();
    assert!(is_valid(&server, &imported).await);
    let admin = bootstrap::admin(&server.engine, None, one.path(), false).await.unwrap();
    assert!(!is_valid(&server, &imported).await, "it came from elsewhere");
    bootstrap::admin(&server.engine, None, two.path(), false).await.unwrap();
    let (first, second) = (held(&one), held(&two));
    assert!(is_valid(&server, &first).await && is_valid(&server, &second).await);
    let until = async |token: &str| stored(&server, token).await.kept.and_then(|kept| kept.until);
    let now = server.engine.now().await.unwrap();
    assert!(until(&first).await.is_some_and(|until| until > now && until < Timestamp(now.0 + 7_200_000)));
    let mut watch = Watch::new(&admin, false).unwrap();
    watch.look(&server.app).await.unwrap();
    std::fs::remove_file(one.path().join("admin.token")).unwrap();
    watch.look(&server.app).await.unwrap();
    assert!(!is_valid(&server, &first).await, "its file is gone");
    assert!(is_valid(&server, &second).await && is_valid(&server, &held(&one)).await);
}

#[tokio::test]
async fn a_store_without_any_admin_gets_one_at_the_next_start_and_one_with_others_does_not() {
    let server = Server::start().await;
    let folder = tempfile::tempdir().unwrap();
    let start = async || bootstrap::admin(&server.engine, None, folder.path(), true).await.unwrap();
    start().await;
    let first = held(&folder);
    server.delete("/api/v1/principals/admin").await.expect(204);
    assert_eq!(start().await, Admin::Nowhere, "test-admin is there");
    assert!(!is_valid(&server, &first).await);
    server.delete("/api/v1/principals/test-admin?force=true").await.expect(204);
    assert!(matches!(start().await, Admin::File { new: true, .. }));
    let second = held(&folder);
    assert!(first != second && is_valid(&server, &second).await && !is_valid(&server, &first).await);
}

#[tokio::test]
async fn an_admin_of_one_namespace_learns_of_no_principal_of_another() {
    let server = Server::start().await;
    make(&server, ADMIN, json!({"principal": "theirs", "role": "editor", "namespaces": ["b"]})).await;
    make(&server, ADMIN, json!({"principal": "everywhere", "role": "viewer"})).await;
    let (local, _) = make(&server, ADMIN, json!({"principal": "local", "role": "admin", "namespaces": ["a"]})).await;
    for role in ["viewer", "editor", "admin", "worker"] {
        for namespaces in [json!([]), json!(["b"]), json!(["a"])] {
            let ask = async |name: &str| {
                let body = json!({"principal": name, "role": role, "namespaces": namespaces});
                let mut refused = call(&server, &local, Method::POST, "/api/v1/tokens", body).await.expect(403);
                refused["request_id"].take();
                refused
            };
            let (known, everywhere) = (ask("theirs").await, ask("everywhere").await);
            assert_eq!(known, everywhere, "{role} {namespaces}");
            if namespaces != json!(["a"]) {
                assert_eq!(known, ask("nobody").await, "{role} {namespaces}");
            }
        }
    }
    // Where it rules it is told as before.
    make(&server, &local, json!({"principal": "own", "role": "viewer", "namespaces": ["a"]})).await;
    let other = json!({"principal": "own", "role": "editor", "namespaces": ["a"]});
    call(&server, &local, Method::POST, "/api/v1/tokens", other).await.expect(409);
}
