//! A server without a socket: the whole service on the reference store, called directly.
#![allow(dead_code, reason = "each test file uses some of it")]

use axum::body::Body;
use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::Value;
use std::sync::{Arc, LazyLock};
use tower::ServiceExt;
use windlass_core::{
    Millis, Timestamp,
    commands::{principals::CreatePrincipal, tokens::IssueToken},
    principal::Role,
};
use windlass_engine::{
    Engine, Settings,
    clock::{Clock, Simulated, System},
    memory::Memory,
};
use windlass_server::{App, Options, Service, auth, route::Route};

pub struct Server {
    pub engine: Engine,
    /// Stands still unless a test moves it.
    pub clock: Arc<Simulated>,
    pub app: App,
    service: Service,
    _folder: tempfile::TempDir,
}

pub struct Answer {
    pub status: StatusCode,
    pub headers: http::HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status.as_u16(), status, "{text}");
        if self.body.is_empty() { Value::Null } else { serde_json::from_slice(&self.body).unwrap() }
    }
}

pub const ARTIFACT_MAX: u64 = 1 << 20;

/// Whatever a route answers in any test, its description says that it may.
fn assert_documented(method: &Method, path: &str, status: StatusCode) {
    let fits = |template: &str| {
        let (mut wanted, mut given) = (template.split('/'), path.split('/'));
        loop {
            match (wanted.next(), given.next()) {
                (None, None) => return true,
                (Some(wanted), Some(given)) if wanted == given || wanted.starts_with('{') => {}
                _ => return false,
            }
        }
    };
    static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(windlass_server::native::routes);
    let mut found: Vec<_> = ROUTES.iter().filter(|route| route.method == *method && fits(route.path)).collect();
    found.sort_by_key(|route| route.path.matches('{').count());
    // Paths say themselves which methods they have.
    let Some(route) = found.first().filter(|_| status != StatusCode::METHOD_NOT_ALLOWED) else { return };
    let told = windlass_server::native::codes::problems(route);
    let told =
        told.contains_key(&status.as_u16()) || route.doc.replies.iter().any(|reply| reply.status == status.as_u16());
    assert!(told, "{method} {} answers {status}, and its description does not say so", route.path);
}

/// Tokens are named after what they stand for; tests have nothing to hide.
pub fn token(role: Role) -> String {
    format!("test-{role:?}").to_lowercase()
}

impl Server {
    pub async fn start() -> Self {
        Self::with(Options::default()).await
    }

    pub async fn with(options: Options) -> Self {
        Self::set(Settings::default(), options).await
    }

    pub async fn set(settings: Settings, options: Options) -> Self {
        let clock = Arc::new(Simulated::at(System::default().now()));
        Self::on(clock.clone(), clock, settings, options).await
    }

    /// With a time that is the same in every run.
    pub async fn at(now: Timestamp, options: Options) -> Self {
        let clock = Arc::new(Simulated::at(now));
        Self::on(clock.clone(), clock, Settings::default(), options).await
    }

    /// For those few that test how time itself goes by.
    pub async fn in_real_time(options: Options) -> Self {
        let clock = Arc::new(Simulated::at(System::default().now()));
        Self::on(Arc::new(System::default()), clock, Settings::default(), options).await
    }

    async fn on(time: Arc<dyn Clock>, clock: Arc<Simulated>, settings: Settings, options: Options) -> Self {
        let store = Arc::new(Memory::new(time));
        let engine = Engine::start(store, settings).await.unwrap();
        for role in [Role::Viewer, Role::Editor, Role::Admin, Role::Worker] {
            add_token(&engine, role).await;
        }
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("artifacts");
        let artifacts = windlass_server::native::artifacts::open(place.to_str().unwrap()).unwrap();
        let options = Options { artifacts: Some(artifacts), artifact_bytes_max: ARTIFACT_MAX, ..options };
        let app = App::new(engine.clone(), options);
        Self { engine, clock, service: Service::new(app.clone()), app, _folder: folder }
    }

    /// Lets so much time go by, and does what is due then.
    pub async fn pass(&self, length: Millis) {
        self.clock.advance(length);
        self.engine.tick().await.unwrap();
    }

    /// The folder artifacts are kept in.
    pub fn artifact_folder(&self) -> std::path::PathBuf {
        self._folder.path().join("artifacts")
    }

    /// All files in or beside it.
    pub fn artifact_files(&self) -> Vec<std::path::PathBuf> {
        fn walk(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.path().is_dir() { walk(&entry.path(), found) } else { found.push(entry.path()) }
            }
        }
        let mut found = Vec::new();
        walk(self._folder.path(), &mut found);
        found
    }

    /// What answers. To make another takes longer than most answers.
    pub fn service(&self) -> Service {
        self.service.clone()
    }

    /// The answer's head, with its body still to come.
    pub async fn open(&self, request: Request<Body>) -> http::Response<Body> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = self.service().oneshot(request).await.unwrap();
        assert_documented(&method, &path, response.status());
        response
    }

    pub async fn call(&self, request: Request<Body>) -> Answer {
        let response = self.open(request).await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes().to_vec();
        Answer { status: parts.status, headers: parts.headers, body }
    }

    pub async fn send(&self, role: Role, method: Method, path: &str, body: Option<Value>) -> Answer {
        let request = Self::request(role, method, path);
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        self.call(request.body(body).unwrap()).await
    }

    pub fn request(role: Role, method: Method, path: &str) -> http::request::Builder {
        Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "127.0.0.1:3000")
            .header(header::AUTHORIZATION, format!("Bearer {}", token(role)))
    }

    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.send(Role::Admin, Method::PUT, path, Some(body)).await
    }
    pub async fn delete(&self, path: &str) -> Answer {
        self.send(Role::Admin, Method::DELETE, path, None).await
    }
    /// As an admin.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(Role::Admin, Method::GET, path, None).await
    }
    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Role::Admin, Method::POST, path, Some(body)).await
    }
    /// As a worker.
    pub async fn work(&self, path: &str, body: Value) -> Answer {
        self.send(Role::Worker, Method::POST, path, Some(body)).await
    }
}

async fn add_token(engine: &Engine, role: Role) {
    let name: Arc<str> = token(role).into();
    let create = CreatePrincipal { namespace: auth::system_namespace(), name: name.clone(), role, namespaces: vec![] };
    engine.run(create).await.unwrap();
    let hash = auth::hash(&name).into();
    let (namespace, principal) = (auth::system_namespace(), name.clone());
    let issue = IssueToken { namespace, principal, hash, shown: name, expires_at: None, made_by: None, session: false };
    engine.run(issue).await.unwrap();
}
