//! Runners as administrators see them.

use super::{
    Silo,
    body::{Json, Listed, Params, Path, Raw, created, ok, page, time},
    error::{HttpError, Result},
    namespace, products,
};
use crate::{
    app::App,
    auth::{self, Caller, system_namespace},
    streams::rights_changed,
};
use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_api::Uuid;
use windlass_core::{
    Millis, Refusal, Tags, Timestamp, WorkerId,
    commands::{
        all::All,
        audited::Audited,
        principals::{CreatePrincipal, DeletePrincipal},
        records::Expect,
        tokens::IssueToken,
        workers::{RegisterWorker, UnregisterWorker},
    },
    policy::{AliveBy, MayClaim, OnlineFrom, Unregister, WorkerPolicy},
    principal::Role,
    worker::{Liveness, Worker},
};
use windlass_engine::{Error, ids, store::JobQuery};
use windlass_product::{
    records::{self, Kept, Kind, Of, Put},
    rules::item::{is_plain_name, is_tag},
};

const RUNNER: Kind<Runner> = Kind::new("silo_runner");

const PREFIX: &str = "silo_runner_";
const SHOWN_CHARACTERS: usize = 20;
const TAGS_MAX: usize = 1_000;
/// Tags that take more are told in the order of the alphabet.
const ORDER_BYTES_MAX: usize = 32 << 10;
const HELD_MAX: usize = 100_000;

/// Kept under the runner's name, which is unique.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Runner {
    id: Uuid,
    name: String,
    tags: Vec<String>,
    token_prefix: String,
    created_at: Timestamp,
    created_by: String,
}

impl Runner {
    /// What the engine calls it, and its principal: both tell name and id without looking anything up.
    fn worker(&self) -> WorkerId {
        WorkerId::trusted(&format!("{}/{}", self.name, self.id))
    }
}

/// A runner's tags in the order in which they were registered. One that was registered by an earlier version has them sorted.
pub fn tags(worker: &Worker) -> Vec<String> {
    let kept = worker.extra.as_deref().and_then(|extra| serde_json::from_str(extra).ok());
    kept.unwrap_or_else(|| worker.tags.iter().map(str::to_owned).collect())
}

/// A runner dies with nobody but an administrator: its jobs have deadlines of their own.
fn policy(timeout: Millis) -> WorkerPolicy {
    WorkerPolicy {
        alive_by: AliveBy::Heartbeat,
        may_claim: MayClaim::Always,
        unregister: Unregister::Fail,
        online_from: OnlineFrom::FirstSign,
        unreachable_after: None,
        offline_after: timeout,
        delete_after: None,
        kept_after: None,
    }
}

#[derive(Deserialize)]
struct Create {
    name: String,
    tags: Option<Vec<String>>,
}

impl Create {
    fn check(&self) -> Result<Vec<String>> {
        if !is_plain_name(&self.name, 64) {
            let why = "name: must have 1 to 64 of A-Z a-z 0-9 . _ -, starting with a letter or digit";
            return Err(HttpError::invalid(why));
        }
        // In the order in which they were given.
        let mut tags: Vec<String> = Vec::new();
        for tag in self.tags.iter().flatten() {
            if tags.len() <= TAGS_MAX && !tags.contains(tag) {
                tags.push(tag.clone());
            }
        }
        if tags.len() > TAGS_MAX || tags.iter().any(|tag| !is_tag(tag)) {
            let why = "tags: each has 1 to 64 of A-Z a-z 0-9 . _ : -, starting with a letter or digit; at most 1000";
            return Err(HttpError::invalid(why));
        }
        Ok(tags)
    }
}

pub async fn create(State(app): State<Silo>, caller: Caller, raw: Raw) -> Result<Json<Value>> {
    let body: Create = raw.parse(&app).await?;
    let tags = body.check()?;
    let random: [u8; 32] = rand::random();
    let token = format!("{PREFIX}{}", windlass_api::hex(&random));
    let runner = Runner {
        id: ids::job_id().0,
        name: body.name,
        tags,
        token_prefix: token.chars().take(SHOWN_CHARACTERS).collect(),
        created_at: app.engine.now().await?,
        created_by: caller.name.to_string(),
    };
    let (worker, id) = (runner.worker(), runner.id.to_string());
    let principal: Arc<str> = worker.as_str().into();
    let put = Put::new(&products(&app), RUNNER, &runner.name, Expect::Nothing).facet("id", &id).value(&runner)?;
    let (role, namespaces) = (Role::Worker, vec![namespace()]);
    let issue = IssueToken {
        namespace: system_namespace(),
        principal: principal.clone(),
        hash: auth::hash(&token).into(),
        shown: runner.token_prefix.as_str().into(),
        expires_at: None,
        made_by: caller.token.clone(),
        session: false,
    };
    let register = RegisterWorker {
        namespace: namespace(),
        worker,
        tags: runner.tags.iter().map(String::as_str).collect::<Tags>(),
        slots: 1,
        owner: Some(principal.clone()),
        policy: policy(app.own.settings.runner_timeout),
        extra: Some(json!(runner.tags).to_string().into()).filter(|order: &Arc<str>| order.len() <= ORDER_BYTES_MAX),
    };
    let create = CreatePrincipal { namespace: system_namespace(), name: principal, role, namespaces };
    let commands = vec![put, create.into(), issue.into(), register.into()];
    match app.engine.run(Audited::new(&caller.name, All { commands })).await {
        Ok(_) => {}
        Err(Error::Refused(Refusal::Exists { what: "record", .. })) => {
            return Err(HttpError::conflict(format!("the runner {} exists already", runner.name)));
        }
        Err(error) => return Err(error.into()),
    }
    let mut shown = show(&app, &runner).await?;
    shown["token"] = json!(token);
    Ok(created(shown))
}

async fn show(app: &App, runner: &Runner) -> Result<Value> {
    let worker = app.engine.read_record::<Worker>(&namespace(), runner.worker().as_str()).await?;
    let now = app.engine.now().await?;
    let online = worker.as_ref().is_some_and(|worker| worker.liveness(now) == Liveness::Online);
    // One that has not come yet was never heard of.
    let heard = worker.filter(|worker| !worker.away).map(|worker| time(worker.last_seen));
    let held =
        JobQuery { namespace: Some(namespace()), holder: Some(runner.worker()), limit: 1, ..JobQuery::default() };
    Ok(json!({
        "id": runner.id,
        "name": runner.name,
        "tags": runner.tags,
        "status": if online { "online" } else { "offline" },
        "last_heartbeat": heard,
        "token_prefix": runner.token_prefix,
        "active_jobs": app.engine.store().count(&held, HELD_MAX).await?,
        "created_at": time(runner.created_at),
        "created_by": runner.created_by,
    }))
}

pub async fn list(State(app): State<App>, params: Params) -> Result<Listed<Value>> {
    let paging = params.page()?;
    let Listed(found, total) = page(records::list(&products(&app), RUNNER, Of::All).await?, paging);
    let mut shown = Vec::with_capacity(found.len());
    for kept in found {
        shown.push(show(&app, &kept.value).await?);
    }
    Ok(Listed(shown, total))
}

async fn find(app: &App, id: &str) -> Result<Kept<Runner>> {
    let missing = || HttpError::missing("runner", id);
    let id = Uuid::parse_str(id).map_err(|_| missing())?.to_string();
    records::list(&products(app), RUNNER, Of::With("id", &id)).await?.pop().ok_or_else(missing)
}

pub async fn one(State(app): State<App>, Path(id): Path<String>) -> Result<Json<Value>> {
    let found = find(&app, &id).await?;
    Ok(ok(show(&app, &found.value).await?))
}

pub async fn delete(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<StatusCode> {
    let found = find(&app, &id).await?;
    let worker = found.value.worker();
    let end = DeletePrincipal { namespace: system_namespace(), name: worker.as_str().into() };
    let leave = UnregisterWorker {
        namespace: namespace(),
        worker,
        how: Some(Unregister::Fail),
        only_offline: false,
        principal: None,
    };
    let commands =
        vec![records::delete(&products(&app), RUNNER, &found.key, found.unchanged()), end.into(), leave.into()];
    app.engine.run(Audited::new(&caller.name, All { commands })).await?;
    rights_changed(&app).await;
    Ok(StatusCode::NO_CONTENT)
}
