//! What a lease's holder writes beside its job (files, graphs) never lands once the lease has ended, however close the race.
//!
//! Each race starts a write and the end of its lease at the same time, and looks at the order in which they were committed. The
//! shift between the two follows what came of the race before, so that it stays where either may win, on fast machines and
//! on slow ones. `WINDLASS_RACES` says how many there are for each kind of write.

use axum::body::Body;
use http::{Request, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use uuid::Uuid;
use windlass_core::{
    Command, JobId, Namespace, Tags, What, WorkerId,
    commands::{
        cancel::Cancel,
        claim::Claim,
        complete::Complete,
        holder::{Address, Holder},
        principals::CreatePrincipal,
        release::Release,
        tokens::IssueToken,
    },
    principal::Role,
};
use windlass_engine::{Engine, Settings, Store, clock};
use windlass_server::{App, Options, Service, auth, config::values::Values, native::artifacts};
use windlass_stores::{
    embedded::{self, Embedded},
    postgres::{self, Postgres},
    testing::Cluster,
};

const DEFINITION: &str = "job:\n  name: d\n  trigger: {type: manual}\n  compute: {type: custom, command: c}\n";
const ENDS: [&str; 3] = ["completed", "released", "cancelled"];
const WRITES: [&str; 3] = ["artifact", "silo file", "silo graph"];
/// Kinds of records that such a write puts.
const KINDS: [&str; 4] = ["artifact", "silo_graph", "silo_graph_part", "silo_live"];

fn races() -> usize {
    std::env::var("WINDLASS_RACES").ok().and_then(|text| text.parse().ok()).unwrap_or(60)
}

struct Server {
    engine: Engine,
    service: Service,
}

impl Server {
    async fn start(store: Arc<dyn Store>, folder: &Path) -> Self {
        let engine = Engine::start(store, Settings::default()).await.unwrap();
        let place = folder.join("artifacts");
        let values = Values::default()
            .with(windlass_server::dialects::silo::settings::silo_jobs, folder.join("jobdefs").to_str().unwrap());
        let artifacts = Some(artifacts::open(place.to_str().unwrap()).unwrap());
        let app = App::new(engine.clone(), Options { artifacts, values, ..Options::default() });
        Self { engine, service: Service::new(app) }
    }

    async fn send(&self, token: &str, method: &str, path: &str, lease: Option<&str>, body: Body) -> (u16, Value) {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "127.0.0.1:3000")
            .header(header::AUTHORIZATION, format!("Bearer {token}"));
        if let Some(lease) = lease {
            request = request.header("windlass-lease", lease);
        }
        let response = self.service.answer(request.body(body).unwrap()).await;
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    async fn call(&self, token: &str, method: &str, path: &str, body: Value) -> Value {
        let (status, answer) = self.send(token, method, path, None, Body::from(body.to_string())).await;
        assert!(status < 300, "{method} {path}: {status} {answer}");
        answer
    }
}

async fn add_token(engine: &Engine, role: Role) -> String {
    let token = format!("late-{role:?}");
    let name: Arc<str> = token.as_str().into();
    let create = CreatePrincipal { namespace: auth::system_namespace(), name: name.clone(), role, namespaces: vec![] };
    engine.run(create).await.unwrap();
    let hash = auth::hash(&token).into();
    let issue = IssueToken {
        namespace: auth::system_namespace(),
        principal: name.clone(),
        hash,
        shown: name,
        expires_at: None,
        made_by: None,
        session: false,
    };
    engine.run(issue).await.unwrap();
    token
}

/// How much later the write starts than the end of its lease, in microseconds.
struct Shift {
    micros: i64,
    step: i64,
    landed: Option<bool>,
}

impl Shift {
    /// Towards the other outcome: in smaller steps where it has just changed, in larger ones where it stays the same.
    fn learn(&mut self, landed: bool) {
        let turned = self.landed.replace(landed).is_some_and(|before| before != landed);
        self.step = if turned { (self.step / 2).max(20) } else { (self.step * 2).min(20_000) };
        self.micros = (self.micros + if landed { self.step } else { -self.step }).clamp(-200_000, 200_000);
    }
}

async fn pause(micros: i64) {
    let until = Instant::now() + Duration::from_micros(micros.max(0) as u64);
    if micros > 5_000 {
        tokio::time::sleep(Duration::from_micros(micros as u64 - 3_000)).await; // The race is for a moment of real time.
    }
    while Instant::now() < until {
        tokio::task::yield_now().await;
    }
}

/// A job under a lease, and the call by which its holder writes something.
struct Held {
    namespace: Namespace,
    job: JobId,
    token: String,
    method: &'static str,
    path: String,
    lease: Option<String>,
    body: String,
}

struct Site {
    /// The writer calls the first one, the end is told to the last one.
    servers: Vec<Arc<Server>>,
    admin: String,
    worker: String,
    runner: String,
    folder: tempfile::TempDir,
}

fn id(value: &Value) -> JobId {
    JobId(value.as_str().and_then(|text| Uuid::parse_str(text).ok()).unwrap_or_else(|| panic!("{value} is not an id")))
}

impl Site {
    async fn new(stores: Vec<Arc<dyn Store>>, folder: tempfile::TempDir) -> Self {
        std::fs::create_dir(folder.path().join("jobdefs")).unwrap();
        std::fs::write(folder.path().join("jobdefs/d.yaml"), DEFINITION).unwrap();
        let mut servers = Vec::new();
        for store in stores {
            servers.push(Arc::new(Server::start(store, folder.path()).await));
        }
        let engine = &servers[0].engine;
        let (admin, worker) = (add_token(engine, Role::Admin).await, add_token(engine, Role::Worker).await);
        servers[0].call(&admin, "POST", "/api/job-definitions/reload", json!({})).await;
        servers[0].call(&admin, "POST", "/api/items", json!({"part_number": "P", "item_type": "part"})).await;
        let runner = servers[0].call(&admin, "POST", "/api/runners", json!({"name": "r", "tags": []})).await;
        let runner = runner["token"].as_str().unwrap().to_owned();
        Self { servers, admin, worker, runner, folder }
    }

    async fn held(&self, write: &str, number: usize) -> Held {
        let server = &self.servers[0];
        if write == "artifact" {
            server.call(&self.admin, "POST", "/api/v1/jobs", json!({"cancel": "revoke"})).await;
            let claimed = server.call(&self.worker, "POST", "/api/v1/leases/claim", json!({"worker": "w"})).await;
            let leased = &claimed["leases"][0];
            let job = id(&leased["job"]);
            return Held {
                namespace: Namespace::default(),
                job,
                token: self.worker.clone(),
                method: "POST",
                path: format!("/api/v1/artifacts?name=a&job={job}"),
                lease: Some(leased["lease"].as_str().unwrap().to_owned()),
                body: "x".into(),
            };
        }
        server.call(&self.runner, "POST", "/api/runner/heartbeat", json!({})).await;
        let made = json!({"definition_name": "d", "part_number": "P"});
        server.call(&self.admin, "POST", "/api/jobs", made).await;
        let claimed = server.call(&self.runner, "POST", "/api/runner/claim", json!({})).await;
        let job = id(&claimed["job"]["id"]);
        let node = json!({"node_key": "a", "node_type": "sketch", "properties_hash": number.to_string()});
        let (path, body) = match write {
            "silo file" => ("artifacts/out.bin", "x".to_owned()),
            _ => ("dag", json!({"nodes": [node]}).to_string()),
        };
        Held {
            namespace: Namespace::new("silo").unwrap(),
            job,
            token: self.runner.clone(),
            method: "PUT",
            path: format!("/api/runner/jobs/{job}/{path}"),
            lease: None,
            body,
        }
    }

    /// Whether the write landed.
    async fn race(&self, write: &str, end: &'static str, number: usize, shift: i64) -> bool {
        let held = self.held(write, number).await;
        let (namespace, job) = (held.namespace.clone(), held.job);
        let last = self.servers.last().unwrap();
        let before = last.engine.store().events_after(u64::MAX - 1, 1).await.unwrap().last;
        let server = self.servers[0].clone();
        let writing = tokio::spawn(async move {
            pause(shift).await;
            let body = Body::from(held.body);
            server.send(&held.token, held.method, &held.path, held.lease.as_deref(), body).await
        });
        let ending = tokio::spawn(finish(last.clone(), namespace.clone(), job, end, shift));
        let (status, answer) = writing.await.unwrap();
        ending.await.unwrap();
        let landed = self.order(before, job, &format!("{write} against {end}, race {number}")).await;
        match landed {
            true => assert!(status < 300, "{status} {answer}, but it was written"),
            // Where the call names only the job, another worker's job is answered as such.
            false => assert!(matches!(status, 403 | 409), "{status} {answer}"),
        }
        // Whatever is left of the job goes, so that the next race has one of its own.
        let holder = Holder { namespace: namespace.clone(), address: Address::Job(job), principal: None };
        drop(last.engine.run(Complete { holder, result: "".into() }).await);
        drop(last.engine.run(Cancel { namespace, job, by: "test".into(), mode: None, message: "".into() }).await);
        landed
    }

    /// Whether something was written, and that nothing was behind the end of the lease.
    async fn order(&self, before: u64, job: JobId, race: &str) -> bool {
        let page = self.servers[0].engine.store().events_after(before, 1_000).await.unwrap();
        let (mut ended, mut landed) = (false, false);
        for (_, event) in &page.events {
            match &event.what {
                What::Completed { job: one } | What::Released { job: one } | What::Cancelled { job: one, .. } => {
                    ended |= *one == job;
                }
                What::RecordPut { kind, key } if KINDS.contains(&&**kind) => {
                    assert!(!ended, "{race}: {kind} {key} was written after the lease had ended: {:?}", page.events);
                    landed = true;
                }
                _ => {}
            }
        }
        assert!(ended, "{race}: the lease never ended: {:?}", page.events);
        landed
    }

    fn files(&self) -> usize {
        fn count(folder: &Path) -> usize {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
            entries.map(|path| if path.is_dir() { count(&path) } else { 1 }).sum()
        }
        count(&self.folder.path().join("artifacts"))
    }

    async fn all(&self) {
        let mut files = 0;
        for write in WRITES {
            let mut shifts = ENDS.map(|_| Shift { micros: 0, step: 100, landed: None });
            let mut landed = [0; 3];
            for number in 0..races() {
                let at = number % ENDS.len();
                let won = self.race(write, ENDS[at], number, shifts[at].micros).await;
                shifts[at].learn(won);
                landed[at] += usize::from(won);
            }
            println!("{write}: of {} races, written before the job was {ENDS:?}: {landed:?}", races());
            files += if write == "silo graph" { 0 } else { landed.iter().sum::<usize>() };
        }
        assert_eq!(self.files(), files, "what was refused left no bytes behind");
    }
}

/// Ends the lease. One that is given back is taken by another worker at once.
async fn finish(server: Arc<Server>, namespace: Namespace, job: JobId, end: &str, shift: i64) {
    pause(-shift).await;
    let holder = Holder { namespace: namespace.clone(), address: Address::Job(job), principal: None };
    let command: Command = match end {
        "completed" => Complete { holder, result: "1".into() }.into(),
        "released" => Release { holder }.into(),
        _ => Cancel { namespace: namespace.clone(), job, by: "test".into(), mode: None, message: "".into() }.into(),
    };
    server.engine.run(command).await.unwrap();
    if end == "released" {
        let claim = Claim::new(&namespace, WorkerId::new("other").unwrap(), Tags::default(), vec![Uuid::new_v4()]);
        drop(server.engine.claim(claim, Duration::ZERO).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_holder_writes_never_lands_after_its_lease_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let options = embedded::Options::new(Arc::new(clock::System::default()));
    let store = Embedded::open(&folder.path().join("data"), options).unwrap();
    Site::new(vec![Arc::new(store)], folder).await.all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_holder_writes_on_one_server_never_lands_after_its_lease_has_ended_on_another() {
    let url = Cluster::shared().fresh_database();
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    for _ in 0..2 {
        stores.push(Arc::new(Postgres::connect(postgres::Options::new(&url)).await.unwrap()));
    }
    Site::new(stores, tempfile::tempdir().unwrap()).await.all().await;
}
