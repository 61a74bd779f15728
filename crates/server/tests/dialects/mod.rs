//! What is promised of every dialect: one folder and one line add it, and a setting leaves it out.

mod parrot;

use crate::support::{Answer, Server, token};
use axum::body::Body;
use http::{Method, Request, header};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};
use windlass_core::principal::Role;
use windlass_engine::testing::eventually;
use windlass_server::{
    App, Options,
    config::{Config, Sources, effective, table::Table, values::Values},
    content,
    dialect::Dialect,
    dialects::{self, table_of},
    product::files,
};

/// The line that adds it.
static MORE: &[&Dialect] = &[&parrot::DIALECT];

fn all() -> Vec<&'static Dialect> {
    [dialects::ALL, MORE].concat()
}

async fn with(values: Values) -> Server {
    Server::with(Options { dialects: all(), values, ..Options::default() }).await
}

async fn call(server: &Server, method: Method, path: &str, key: Option<Role>) -> Answer {
    let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost");
    let request = key.into_iter().fold(request, |request, role| request.header("x-parrot-key", token(role)));
    server.call(request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn a_dialect_is_one_folder_and_one_line() {
    let server = with(Values::default().with(parrot::loud_parrot_greeting, "ahoy")).await;
    let first = call(&server, Method::GET, "/parrot/said", Some(Role::Viewer)).await.expect(200);
    assert_eq!(first, json!({"greeting": "ahoy", "said": 0}));
    call(&server, Method::POST, "/parrot/say/land", Some(Role::Editor)).await.expect(202);
    // A job like any other, in the dialect's namespace.
    let jobs = server.get("/api/v1/jobs?namespace=parrot").await.expect(200);
    assert_eq!(jobs["items"].as_array().unwrap().len(), 1, "{jobs}");
    let metrics = String::from_utf8(server.get("/metrics").await.body).unwrap();
    assert!(metrics.contains(r#"api="loud_parrot""#), "{metrics}");
}

#[tokio::test]
async fn a_dialect_says_no_in_its_own_words_and_knows_callers_in_its_own_way() {
    let server = with(Values::default()).await;
    for (method, path, key, status, told) in [
        (Method::GET, "/parrot/said", None, 401, "Unauthorized"),
        (Method::POST, "/parrot/say/x", Some(Role::Viewer), 403, "the role viewer may not do this"),
        (Method::GET, "/parrot/nothing", None, 404, "Not Found"),
        (Method::PUT, "/parrot/said", None, 405, "/parrot/said has no PUT"),
    ] {
        let answer = call(&server, method, path, key).await;
        assert!(!answer.headers.contains_key(header::WWW_AUTHENTICATE), "{path}");
        assert_eq!(answer.expect(status), json!({"detail": told}), "{path}");
    }
    // Nobody else's words change, and nobody else's way in is open.
    let bearer = server.get("/parrot/said").await;
    assert_eq!(bearer.status, 401, "a token in the usual place is none here");
    for (path, content) in [
        ("/nothing", "application/problem+json"),
        ("/api/v1/nothing", "application/problem+json"),
        ("/api/nothing", "application/json"),
    ] {
        let answer = call(&server, Method::GET, path, None).await;
        assert_eq!((answer.status.as_u16(), &answer.headers[header::CONTENT_TYPE]), (404, &content.parse().unwrap()));
    }
}

#[tokio::test]
async fn a_path_is_found_as_its_dialect_spells_it_and_names_in_it_are_each_route_s_own() {
    let server = with(Values::default()).await;
    call(&server, Method::GET, "/Parrot/SAID/?x=1", Some(Role::Viewer)).await.expect(200);
    let feather = call(&server, Method::GET, "/api/jobs/a%20b/colour", Some(Role::Viewer)).await;
    assert_eq!(feather.body, b"a b");
    let job = server.get("/api/jobs/01890000-0000-7000-8000-000000000000").await;
    assert_eq!(job.status, 404, "the dialect whose path begins alike still has its own");
    let head = call(&server, Method::HEAD, "/parrot/said", Some(Role::Viewer)).await;
    assert_eq!(
        (head.status.as_u16(), head.body.len(), &head.headers[header::CONTENT_LENGTH]),
        (200, 0, &"29".parse().unwrap())
    );
}

#[tokio::test]
async fn what_a_dialect_does_by_itself_is_started_and_ends_with_the_server() {
    let server = with(Values::default().with(parrot::loud_parrot_every, "5ms")).await;
    let said = async || {
        call(&server, Method::GET, "/parrot/said", Some(Role::Viewer)).await.expect(200)["said"].as_u64().unwrap()
    };
    assert_eq!(said().await, 0, "not before it is started");
    let duties = windlass_server::duties::start(&server.app, None, None).await;
    eventually("it speaks", async || (said().await > 0).then_some(())).await;
    drop(duties);
}

#[tokio::test]
async fn what_is_not_served_has_no_paths() {
    let bare = Server::with(Options { dialects: Vec::new(), ..Options::default() }).await;
    let own: BTreeSet<&str> = windlass_server::native::routes().iter().map(|route| route.path).collect();
    for route in windlass_server::routes().into_iter().filter(|route| !own.contains(route.path)) {
        let path = route.path.replace(['{', '}', '*'], "");
        let answer = bare.send(Role::Admin, route.method.clone(), &path, None).await;
        assert_eq!(answer.status, 404, "{} {path}", route.method);
        assert_eq!(answer.headers[header::CONTENT_TYPE], "application/problem+json");
    }
    bare.get("/api/v1/jobs").await.expect(200);
    // One alone is as it is beside the others.
    for dialect in dialects::ALL {
        let server = Server::with(Options { dialects: vec![*dialect], ..Options::default() }).await;
        let names: BTreeSet<&str> =
            windlass_server::service::routes(&server.app).iter().map(|route| route.surface.name).collect();
        assert_eq!(names, BTreeSet::from(["native", dialect.surface.name]));
    }
}

#[tokio::test]
async fn what_a_dialect_keeps_stays_while_it_is_not_served() {
    let server = Server::start().await;
    server.post("/api/v1/items?namespace=silo", json!({"part_number": "P"})).await.expect(201);
    let upload = Server::request(Role::Editor, Method::PUT, "/api/items/P/revisions/1/files/a");
    server.call(upload.body(Body::from("a")).unwrap()).await.expect(201);
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for file in server.artifact_files() {
        std::fs::File::options().write(true).open(file).unwrap().set_modified(old).unwrap();
    }
    let options = Options { dialects: Vec::new(), ..server.app.options.clone() };
    let without = App::new(server.engine.clone(), options);
    assert_eq!((files::sweep(&without).await.unwrap(), content::sweep(&without).await.unwrap()), (0, 0));
    assert_eq!(server.artifact_files().len(), 1);
}

fn set(table: Table, text: &str) -> Result<Config, String> {
    let sources = Sources { file: Some(("w.yaml".into(), text.to_owned())), table, ..Sources::default() };
    effective(&sources).and_then(|found| Config::new(&found)).map_err(|error| error.to_string())
}

#[test]
fn the_setting_says_which_are_served_and_an_unknown_one_is_named() {
    let served = |text: &str| {
        let config = set(dialects::table(), text).unwrap();
        dialects::chosen(&config.dialects).iter().map(|dialect| dialect.name()).collect::<Vec<_>>()
    };
    let every: Vec<String> = dialects::ALL.iter().map(|dialect| dialect.name()).collect();
    for (text, expected) in [
        ("", every.clone()),
        ("dialects: all\n", every.clone()),
        ("dialects: none\n", vec![]),
        ("dialects: []\n", vec![]),
        ("dialects: [silo]\n", vec!["silo".to_owned()]),
        ("dialects: workflow-graph\n", vec!["workflow-graph".to_owned()]),
        ("dialects: workflow_graph, silo, joblib, neops\n", every),
    ] {
        assert_eq!(served(text), expected, "{text:?}");
    }
    let refused = |text: &str| set(dialects::table(), text).err().unwrap();
    assert_eq!(
        refused("dialects: [silo, sillo]\n"),
        "dialects (from w.yaml, line 1): there is no dialect \"sillo\"; write all, none, or some of workflow-graph, silo, joblib, neops"
    );
    assert!(refused("dialects: none, silo\n").contains("all and none stand alone"));
}

#[test]
fn a_dialect_s_settings_are_read_beside_ours_under_either_name() {
    let variables = |name: &str| (name == "PARROT_GREETING").then(|| "avast".to_owned());
    let sources = Sources { variable: Some(&variables), table: table_of(&all()), ..Sources::default() };
    let found = effective(&sources).unwrap();
    let config = Config::new(&found).unwrap();
    let (read, greeting, every) = (&config.values, parrot::loud_parrot_greeting, parrot::loud_parrot_every);
    assert_eq!((read.text(greeting), read.time(every).as_secs()), ("avast", 3_600));
    assert!(read.is_chosen(greeting) && !read.is_chosen(every));
    let error = set(table_of(&all()), "loud_parrot_every: often\n").err().unwrap();
    assert!(error.starts_with("loud_parrot_every (from w.yaml, line 1): "), "{error}");
    let error = set(dialects::table(), "loud_parrot_every: 1s\n").err().unwrap();
    assert!(error.contains("there is no setting \"loud_parrot_every\""), "{error}");
}

#[test]
fn no_dialect_takes_a_name_that_another_has() {
    let (mut names, mut settings) = (BTreeSet::from(["native"]), BTreeSet::new());
    for dialect in all() {
        assert!(names.insert(dialect.surface.name), "{dialect:?}");
        for setting in dialect.settings {
            assert!(setting.name.starts_with(dialect.surface.name), "{} of {dialect:?}", setting.name);
        }
    }
    for setting in table_of(&all()).settings {
        assert!(settings.insert(setting.name), "{} is there twice", setting.name);
    }
}

/// What a caller is told is JSON, whoever words it.
#[tokio::test]
async fn every_surface_words_its_refusals() {
    let server = with(Values::default()).await;
    for route in windlass_server::service::routes(&server.app) {
        let path = route.path.replace(['{', '}', '*'], "");
        let request = Request::builder().method(route.method.clone()).uri(&path).header(header::HOST, "evil.example");
        let answer = server.call(request.body(Body::empty()).unwrap()).await;
        let body: Value = answer.expect(421);
        assert!(body.is_object(), "{path}");
    }
}
