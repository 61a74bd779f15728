//! A whole server with an embedded store on a real port, which can be stopped and started again where it was.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};
use tokio::{net::TcpListener, sync::oneshot};
use uuid::Uuid;
use windlass_core::{
    JobId, JobKey, Namespace,
    commands::{principals::CreatePrincipal, tokens::IssueToken},
    principal::Role,
};
use windlass_engine::testing::eventually;
use windlass_engine::{Engine, Settings};
use windlass_sdk::{
    Client,
    api::job::{Job, State, SubmitJob},
};
use windlass_server::{App, Options, Service, auth};
use windlass_stores::embedded::{self, Embedded};

pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct Server {
    folder: tempfile::TempDir,
    pub address: SocketAddr,
    running: Option<Running>,
}

struct Running {
    engine: Engine,
    stop: oneshot::Sender<()>,
    thread: thread::JoinHandle<()>,
}

/// Tokens are named after what they stand for; tests have nothing to hide.
pub fn token(role: Role) -> String {
    format!("test-{role:?}").to_lowercase()
}

impl Server {
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (running, address) = run(folder.path().join("data"), "127.0.0.1:0".parse().unwrap()).await;
        for role in [Role::Admin, Role::Worker] {
            add_token(&running.engine, role).await;
        }
        Self { folder, address, running: Some(running) }
    }

    /// In the middle of everything: connections break, claimers that wait hear nothing.
    pub async fn stop(&mut self) {
        let Running { engine, stop, thread } = self.running.take().unwrap();
        drop((engine, stop));
        tokio::task::spawn_blocking(move || thread.join().unwrap()).await.unwrap();
    }

    pub async fn start_again(&mut self) {
        let (running, _) = run(self.folder.path().join("data"), self.address).await;
        self.running = Some(running);
    }

    /// Goes with the server.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn client(&self, role: Role) -> Client {
        Client::builder(self.url()).token(token(role)).build().unwrap()
    }

    pub fn admin(&self) -> Client {
        self.client(Role::Admin)
    }

    pub fn worker(&self) -> Client {
        self.client(Role::Worker)
    }

    pub fn engine(&self) -> &Engine {
        &self.running.as_ref().unwrap().engine
    }

    pub async fn submit(&self, job: SubmitJob) -> Uuid {
        self.admin().submit(&job).await.unwrap().id
    }

    /// Waits for the job's end.
    pub async fn end_of(&self, id: Uuid) -> Job {
        let job = self.admin().wait(id, PATIENCE).await.unwrap();
        assert!(job.state.is_final(), "{job:?}");
        job
    }

    /// Waits until the job is like that.
    pub async fn until(&self, id: Uuid, like: impl Fn(&Job) -> bool) -> Job {
        let client = self.admin();
        eventually("the job becomes so", async || Some(client.job(id).await.unwrap()).filter(&like)).await
    }

    pub async fn running(&self, id: Uuid) -> Job {
        self.until(id, |job| job.state == State::Running).await
    }

    /// All a job printed.
    pub async fn log_of(&self, id: Uuid) -> String {
        let key = JobKey::new(&Namespace::default(), JobId(id));
        let (mut text, mut after) = (String::new(), 0);
        loop {
            let pieces = self.engine().store().read_log(&key, after, 1 << 20).await.unwrap();
            let Some(last) = pieces.last() else { return text };
            after = last.piece;
            for piece in &pieces {
                text.push_str(std::str::from_utf8(&piece.text()).unwrap());
            }
        }
    }
}

/// A runtime of its own, so that stopping it ends every connection at once.
async fn run(folder: PathBuf, address: SocketAddr) -> (Running, SocketAddr) {
    let (ready, is_ready) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let thread = thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let store = Embedded::open(&folder, embedded::Options::default()).unwrap();
            let engine = Engine::start(Arc::new(store), Settings::default()).await.unwrap();
            let listener = TcpListener::bind(address).await.unwrap();
            assert!(ready.send((engine.clone(), listener.local_addr().unwrap())).is_ok());
            let service = Service::new(App::new(engine.clone(), Options::default()));
            let router = axum::Router::new().fallback_service(service);
            tokio::select! {
                served = axum::serve(listener, router).into_future() => served.unwrap(),
                _ = stopped => {}
            }
            engine.shut_down().await;
        });
        drop(runtime);
    });
    let (engine, address) = is_ready.await.expect("the server starts");
    (Running { engine, stop, thread }, address)
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

/// Any JSON, as the wire has it.
pub fn json(value: serde_json::Value) -> Option<windlass_sdk::api::Json> {
    Some(serde_json::value::to_raw_value(&value).unwrap())
}
