//! Artifacts: complete or not there, under no name but our own.

use crate::support::{ARTIFACT_MAX, Answer, Server};
use axum::body::{Body, Bytes};
use http::{Method, header};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use windlass_core::{Millis, Timestamp, principal::Role};
use windlass_engine::clock::{Clock, System};
use windlass_server::{
    App, Options, artifacts, content,
    quota::{Limits, Owner},
};

fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

async fn upload(server: &Server, role: Role, query: &str, lease: Option<&str>, body: Body) -> Answer {
    let mut request = Server::request(role, Method::POST, &format!("/api/v1/artifacts?{query}"));
    if let Some(lease) = lease {
        request = request.header("windlass-lease", lease);
    }
    server.call(request.body(body).unwrap()).await
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_file_comes_back_as_it_went_in() {
    let server = Server::start().await;
    let file: Vec<u8> = (0..200_000u32).map(|n| (n % 251) as u8).collect();
    let digest = windlass_api::hex(&Sha256::digest(&file));
    let query = format!("name=out.bin&sha256={}", digest.to_uppercase());
    let made = upload(&server, Role::Editor, &query, None, Body::from(file.clone())).await.expect(201);
    assert_eq!((&made["size"], &made["sha256"], &made["name"]), (&json!(200_000), &json!(digest), &json!("out.bin")));
    let path = format!("/api/v1/artifacts/{}", text(&made["id"]));
    assert_eq!(server.get(&path).await.expect(200), made);
    let content = server.send(Role::Worker, Method::GET, &format!("{path}/content"), None).await;
    assert_eq!(content.headers[header::CONTENT_LENGTH], "200000");
    assert_eq!(content.headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
    assert!(content.body == file);
    server.get(&format!("{path}?namespace=other")).await.expect(404);
    server.send(Role::Viewer, Method::DELETE, &path, None).await.expect(403);
    server.delete(&path).await.expect(204);
    server.get(&format!("{path}/content")).await.expect(404);
    assert_eq!(server.artifact_files(), Vec::<std::path::PathBuf>::new());
}

#[tokio::test]
async fn what_did_not_arrive_whole_leaves_nothing() {
    let server = Server::start().await;
    let broken = futures_util::stream::iter([Ok(Bytes::from_static(b"half")), Err(std::io::Error::other("gone"))]);
    upload(&server, Role::Editor, "name=a", None, Body::from_stream(broken)).await.expect(400);
    let large = vec![0; ARTIFACT_MAX as usize + 1];
    upload(&server, Role::Editor, "name=a", None, Body::from(large)).await.expect(413);
    let wrong = format!("name=a&sha256={}", "0".repeat(64));
    let problem = upload(&server, Role::Editor, &wrong, None, Body::from("x")).await.expect(422);
    assert_eq!(problem["field"], "sha256");
    upload(&server, Role::Editor, "name=a&sha256=zz", None, Body::from("x")).await.expect(422);
    upload(&server, Role::Viewer, "name=a", None, Body::from("x")).await.expect(403);
    upload(&server, Role::Editor, "nam=a", None, Body::from("x")).await.expect(400);
    assert_eq!(server.get("/api/v1/artifacts").await.expect(200)["items"], json!([]));
    assert_eq!(server.artifact_files(), Vec::<std::path::PathBuf>::new());
}

#[tokio::test]
async fn a_worker_adds_only_to_a_job_it_holds() {
    let server = Server::start().await;
    let job = text(&server.post("/api/v1/jobs", json!({})).await.expect(201)["id"]);
    let other = text(&server.post("/api/v1/jobs", json!({})).await.expect(201)["id"]);
    let claimed = server.work("/api/v1/leases/claim", json!({"worker": "w"})).await.expect(200);
    let lease = text(&claimed["leases"][0]["lease"]);
    let put =
        async |query: String, lease: Option<&str>| upload(&server, Role::Worker, &query, lease, Body::from("x")).await;
    put(format!("name=a&job={job}"), Some(&lease)).await.expect(201);
    put(format!("name=a&job={job}"), None).await.expect(422);
    put("name=a".into(), Some(&lease)).await.expect(422);
    put(format!("name=a&job={other}"), Some(&lease)).await.expect(422);
    put(format!("name=a&job={job}"), Some(&format!("{}{}", &lease[..32], "0".repeat(32)))).await.expect(409);
    put(format!("name=a&job={job}"), Some("nonsense")).await.expect(422);
    let made = server.post("/api/v1/tokens", json!({"principal": "thief", "role": "worker"})).await.expect(201);
    let stolen = http::Request::builder()
        .method(Method::POST)
        .uri(format!("/api/v1/artifacts?name=a&job={job}"))
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, format!("Bearer {}", text(&made["token"])))
        .header("windlass-lease", &lease);
    server.call(stolen.body(Body::from("x")).unwrap()).await.expect(403);
    server.work("/api/v1/leases/complete", json!({"lease": lease})).await.expect(200);
    put(format!("name=a&job={job}"), Some(&lease)).await.expect(409);
    let listed = server.send(Role::Worker, Method::GET, &format!("/api/v1/artifacts?job={job}"), None).await;
    assert_eq!(listed.expect(200)["items"].as_array().unwrap().len(), 1);
    assert_eq!(server.artifact_files().len(), 1);
}

#[tokio::test]
async fn artifacts_of_a_job_go_when_the_job_does() {
    let server = Server::start().await;
    let job = text(&server.post("/api/v1/jobs", json!({"retention_ms": 1})).await.expect(201)["id"]);
    upload(&server, Role::Editor, &format!("name=a&job={job}"), None, Body::from("x")).await.expect(201);
    upload(&server, Role::Editor, "name=kept", None, Body::from("y")).await.expect(201);
    assert_eq!(artifacts::sweep(&server.app).await.unwrap(), 0);
    server.post(&format!("/api/v1/jobs/{job}/cancel"), json!({})).await.expect(200);
    server.pass(Millis(20)).await;
    assert_eq!(artifacts::sweep(&server.app).await.unwrap(), 1);
    let left = server.get("/api/v1/artifacts").await.expect(200);
    assert_eq!((left["items"].as_array().unwrap().len(), &left["items"][0]["name"]), (1, &json!("kept")));
    assert_eq!(server.artifact_files().len(), 1);
}

/// Names that have broken out of somebody's folder before.
const NAMES: [&str; 42] = [
    "../x",
    "../../etc/passwd",
    "..",
    ".",
    "/etc/passwd",
    "//etc/passwd",
    "\\..\\x",
    "..\\..\\x",
    "C:\\x",
    "C:x",
    "\\\\server\\share\\x",
    "\\\\?\\C:\\x",
    "file:///etc/passwd",
    "http://x/y",
    "%2e%2e%2fx",
    "%2e%2e/x",
    "..%2fx",
    "..%5cx",
    "%252e%252e%252fx",
    "..%c0%afx",
    "..%c1%9cx",
    "....//x",
    "...\\.\\x",
    "x/../../y",
    "x/./y",
    "x//y",
    "~/x",
    "~root/x",
    "$HOME/x",
    "${HOME}/x",
    "`id`",
    "$(id)",
    "; rm -rf x",
    "| id",
    "con",
    "NUL.txt",
    "x:stream",
    "x.",
    " x ",
    "\u{202e}txt.exe",
    "\u{ff0e}\u{ff0e}\u{ff0f}x",
    "x\"; filename=\"y",
];

#[tokio::test]
async fn no_name_is_ever_a_path() {
    let server = Server::start().await;
    let root = server.artifact_folder();
    for (at, name) in NAMES.iter().enumerate() {
        let made = upload(&server, Role::Editor, &format!("name={}", escaped(name)), None, Body::from("x")).await;
        let made = made.expect(201);
        assert_eq!(made["name"], *name, "a name is data and comes back as it was");
        let id = text(&made["id"]);
        let path = format!("/api/v1/artifacts/{id}/content");
        let shown = server.get(&path).await.headers[header::CONTENT_DISPOSITION].to_str().unwrap().to_owned();
        let plain = shown.split('"').nth(1).unwrap();
        assert!(!plain.contains(['/', '\\']) && !["", ".", ".."].contains(&plain), "{shown}");
        let files = server.artifact_files();
        assert_eq!(files.len(), at + 1);
        let simple = id.replace('-', "");
        assert!(files.iter().any(|file| *file == root.join(&simple[30..]).join(&simple)), "{name}");
    }
    for name in ["", "a\nb", "a\0b", "\r", &"x".repeat(256)] {
        upload(&server, Role::Editor, &format!("name={}", escaped(name)), None, Body::from("x")).await.expect(422);
    }
    assert_eq!(server.artifact_files().len(), NAMES.len());
}

#[tokio::test]
async fn the_files_of_a_job_and_of_a_namespace_have_a_quota() {
    let files = Limits { per_job: 200 << 10, per_namespace: 300 << 10, reserve: 0 };
    let server = Server::with(Options { files, ..Options::default() }).await;
    let job = async || text(&server.post("/api/v1/jobs", json!({})).await.expect(201)["id"]);
    let (first, second) = (job().await, job().await);
    let file = || Body::from(vec![b'x'; 150 << 10]);
    let put = async |query: String, body: Body| upload(&server, Role::Editor, &query, None, body).await;
    let kept = put(format!("name=a&job={first}"), file()).await.expect(201);
    let refused = put(format!("name=b&job={first}"), file()).await.expect(413);
    assert!(text(&refused["detail"]).contains("artifacts_per_job_max"), "{refused}");
    let pieces = (0..15).map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; 10 << 10])));
    let unannounced = Body::from_stream(futures_util::stream::iter(pieces));
    put(format!("name=b&job={first}"), unannounced).await.expect(413);
    let refused = put(format!("name=b&job={second}"), file()).await.expect(413);
    assert!(text(&refused["detail"]).contains("artifacts_per_namespace_max"), "{refused}");
    assert_eq!(server.artifact_files().len(), 1, "nothing stays of what was refused");
    put("name=b&namespace=other".into(), file()).await.expect(201);
    // Another server counts what is there.
    let other = App::new(server.engine.clone(), server.app.options.clone());
    let owner = Owner { namespace: windlass_core::Namespace::default(), job: None };
    assert!(other.usage.enter(&other, &owner, 150 << 10).await.is_err());
    assert!(other.usage.enter(&other, &owner, 100 << 10).await.is_ok());
    server.delete(&format!("/api/v1/artifacts/{}", text(&kept["id"]))).await.expect(204);
    put(format!("name=b&job={second}"), file()).await.expect(201);
}

#[test]
fn the_folder_for_artifacts_is_the_server_s_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let new = folder.path().join("new");
    content::open(new.to_str().unwrap()).unwrap();
    assert_eq!(mode(&new), 0o700);
    for (found, left) in [(0o755, 0o750), (0o777, 0o770), (0o770, 0o770)] {
        let open = folder.path().join(format!("{found:o}"));
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(found)).unwrap();
        content::open(open.to_str().unwrap()).unwrap();
        assert_eq!(mode(&open), left, "{found:o}");
    }
}

#[tokio::test]
async fn bytes_go_first_where_a_full_disk_keeps_their_record() {
    use windlass_server::{
        content,
        problem::{Code, Problem},
    };
    let server = Server::start().await;
    let made = upload(&server, Role::Editor, "name=a", None, Body::from("x")).await.expect(201);
    let id = text(&made["id"]).parse().unwrap();
    let full = || Problem::new(Code::StoreFull, "no room");
    let delete = || async { if server.artifact_files().is_empty() { Ok(7) } else { Err(full()) } };
    assert_eq!(content::freeing(&server.app, async { Ok(vec![id]) }, delete).await.unwrap(), 7);
    let made = upload(&server, Role::Editor, "name=a", None, Body::from("x")).await.expect(201);
    let id = text(&made["id"]).parse().unwrap();
    let other = || async { Err::<(), _>(Problem::new(Code::Unavailable, "away")) };
    assert!(content::freeing(&server.app, async { Ok(vec![id]) }, other).await.is_err());
    assert_eq!(server.artifact_files().len(), 1, "otherwise nothing goes that is still known");
}

#[tokio::test]
async fn what_a_killed_server_left_of_uploads_is_swept() {
    use std::{fs, time::Duration};
    let server = Server::start().await;
    upload(&server, Role::Editor, "name=a", None, Body::from("x")).await.expect(201);
    let [kept] = &server.artifact_files()[..] else { panic!("one file") };
    let now = fs::metadata(kept).unwrap().modified().unwrap();
    let beside = |name: &str, age: u64| {
        let path = kept.with_file_name(name);
        let file = fs::File::create(&path).unwrap();
        file.set_modified(now - Duration::from_secs(age)).unwrap();
        path
    };
    let old = beside("0123456789abcdef0123456789abcdef#1", 7_200);
    let young = beside("0123456789abcdef0123456789abcdef#2", 60);
    let foreign = beside("notes#1", 7_200);
    assert_eq!(windlass_server::content::sweep_halves(&server.app).await, 1);
    assert_eq!([kept, &old, &young, &foreign].map(|path| path.exists()), [true, false, true, true]);
}

/// By the clock on the wall alone, one that is set forward takes what is coming in.
#[tokio::test]
async fn an_upload_under_way_is_not_swept_when_the_clock_on_the_wall_is_set() {
    let ahead = Millis(7_200_000);
    let server = Server::at(Timestamp(System::default().now().0 - ahead.0), Options::default()).await;
    server.clock.jump(ahead);
    upload(&server, Role::Editor, "name=a", None, Body::from("x")).await.expect(201);
    let [kept] = &server.artifact_files()[..] else { panic!("one file") };
    let coming = kept.with_file_name("0123456789abcdef0123456789abcdef#1");
    let file = std::fs::File::create(&coming).unwrap();
    let written = file.metadata().unwrap().modified().unwrap() - std::time::Duration::from_millis(ahead.0 as u64);
    file.set_modified(written).unwrap();
    assert_eq!(content::sweep_halves(&server.app).await, 0);
    server.clock.advance(Millis(3_700_000));
    assert_eq!(content::sweep_halves(&server.app).await, 1);
    assert!(!coming.exists());
}
