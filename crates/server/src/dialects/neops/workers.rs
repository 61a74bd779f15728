//! Workers: registered, heard, gone offline, deleted, and remembered for a while after that.

use super::{
    HttpError, Neops, Own, Result, board,
    body::{Json, Params, Path, Sent, created, empty, id, ok, time},
    listing, namespace,
};
use crate::{
    app::App,
    auth::Caller,
    dialect::Mount,
    problem::Problem,
    route::{Access, Route},
};
use axum::{extract::State, response::Response};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_api::Uuid;
use windlass_core::{
    Facet, Millis, Refusal, Tags, Timestamp, WorkerId,
    commands::workers::{Heartbeat, RegisterWorker, UnregisterWorker},
    link::{DEFINITION_FACET, Link},
    policy::{AliveBy, MayClaim, OnlineFrom, Unregister, WorkerPolicy},
    record::Kind,
    worker::{FormerWorker, Liveness, Worker},
};
use windlass_engine::{Error, ids, store::RecordQuery};

pub fn routes(on: &Mount<Own>) -> Vec<Route> {
    vec![
        on.post("/workers/register", Access::Worker, register).says("Register a worker"),
        on.post("/workers/{uuid}/ping", Access::Worker, ping).says("A worker's sign of life"),
        on.post("/workers/{uuid}/unregister", Access::Worker, unregister).says("A worker leaves"),
        on.get("/workers", Access::Viewer, list).says("Workers"),
        on.get("/workers/online", Access::Viewer, online).says("Workers that are online"),
        on.get("/workers/{uuid}", Access::Viewer, get).says("A worker"),
        on.get("/workers/{uuid}/function-blocks", Access::Viewer, blocks).says("Function blocks that a worker serves"),
        on.get("/workers/{uuid}/jobs", Access::Viewer, jobs).says("Jobs that a worker claimed"),
        on.delete("/workers/{uuid}", Access::Editor, delete).says("Delete a worker; jobs it holds fail"),
        on.post("/workers/cleanup", Access::Editor, cleanup).says("Delete workers that are offline for long"),
        on.post("/workers/cleanup-offline", Access::Editor, cleanup_offline)
            .says("Delete all workers that are offline"),
    ]
}

/// What a worker says about itself.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct About {
    version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip_address: Option<String>,
}

/// A worker that is there, or was.
pub struct Known {
    pub worker: Worker,
    pub deleted_at: Option<Timestamp>,
}

impl Known {
    fn about(&self) -> Option<About> {
        serde_json::from_str(self.worker.extra.as_deref()?).ok()
    }

    pub fn name(&self) -> Option<String> {
        self.about()?.name
    }

    fn show(&self, now: Timestamp, with_blocks: bool) -> Value {
        let (worker, about) = (&self.worker, self.about());
        // Whoever has left was last heard in another age, as the original has it.
        let pinged = if worker.away { Timestamp(0) } else { worker.last_seen };
        let liveness = if self.deleted_at.is_some() { Liveness::Offline } else { worker.liveness(now) };
        let mut shown = json!({
            "uuid": worker.id.as_str(),
            "version": about.as_ref().map_or("", |about| &about.version),
            "name": about.as_ref().and_then(|about| about.name.as_deref()),
            "ipAddress": about.as_ref().and_then(|about| about.ip_address.as_deref()),
            "state": liveness.name(),
            "lastPingAt": time(pinged),
            "lastSeenAt": time(worker.last_seen),
            "createdAt": time(worker.registered_at),
            "updatedAt": time(self.deleted_at.unwrap_or(worker.last_seen)),
            "deletedAt": self.deleted_at.map(time),
        });
        if with_blocks {
            shown["functionBlockIds"] = worker.tags.iter().collect();
        }
        shown
    }
}

async fn register(State(neops): State<Neops>, caller: Caller, Sent(about): Sent<About>) -> Result<Json<Value>> {
    let settings = &neops.own.settings;
    let register = RegisterWorker {
        namespace: namespace(),
        worker: WorkerId::trusted(&ids::secret().to_string()),
        tags: Tags::default(),
        slots: 1,
        owner: Some(caller.name.clone()),
        policy: WorkerPolicy {
            alive_by: AliveBy::Heartbeat,
            may_claim: MayClaim::OnlineOnly,
            unregister: Unregister::Offline,
            online_from: OnlineFrom::Registration,
            unreachable_after: Some(settings.unreachable),
            offline_after: settings.offline,
            delete_after: settings.delete.map(|delete| Millis(settings.offline.0.saturating_add(delete.0))),
            kept_after: Some(settings.kept),
        },
        extra: serde_json::to_string(&about).ok().map(Into::into),
    };
    let worker = *neops.engine.run(register).await?;
    let now = neops.engine.now().await?;
    Ok(created(Known { worker, deleted_at: None }.show(now, false)))
}

pub fn worker_id(id: Uuid) -> WorkerId {
    WorkerId::trusted(&id.to_string())
}

/// Nobody hears of another's worker what it may not do with it.
fn refused(id: Uuid) -> impl Fn(Error) -> HttpError {
    move |error| match error {
        Error::Refused(Refusal::NotFound { .. }) => HttpError::no_worker(id),
        other => other.into(),
    }
}

async fn ping(State(neops): State<Neops>, Path(uuid): Path<String>, caller: Caller) -> Result<Json<Value>> {
    let id = id("uuid", &uuid)?;
    let before = neops.engine.read_record::<Worker>(&namespace(), &id.to_string()).await?;
    let beat = Heartbeat { namespace: namespace(), worker: worker_id(id), principal: Some(caller.name.clone()) };
    let worker = *neops.engine.run(beat).await.map_err(refused(id))?;
    // One that left and comes back was not lost.
    if before.is_some_and(|before| !before.away && before.liveness(worker.last_seen) != Liveness::Online) {
        let name = Known { worker: worker.clone(), deleted_at: None }.name().unwrap_or_else(|| worker.id.to_string());
        neops.own.returns.lock().note(worker.last_seen, &name);
    }
    Ok(ok(json!({"success": true})))
}

async fn unregister(State(app): State<App>, Path(uuid): Path<String>, caller: Caller) -> Result<Json<Value>> {
    let id = id("uuid", &uuid)?;
    let leave = UnregisterWorker {
        namespace: namespace(),
        worker: worker_id(id),
        how: None,
        only_offline: false,
        principal: Some(caller.name.clone()),
    };
    app.engine.run(leave).await.map_err(refused(id))?;
    Ok(ok(json!({"success": true})))
}

fn deletion(worker: WorkerId, only_offline: bool) -> UnregisterWorker {
    UnregisterWorker { namespace: namespace(), worker, how: Some(Unregister::Fail), only_offline, principal: None }
}

async fn delete(State(app): State<App>, Path(uuid): Path<String>) -> Result<Response> {
    let id = id("uuid", &uuid)?;
    app.engine.run(deletion(worker_id(id), false)).await.map_err(refused(id))?;
    Ok(empty(StatusCode::NO_CONTENT))
}

async fn cleanup(State(neops): State<Neops>) -> Result<Json<Value>> {
    let settings = &neops.own.settings;
    let (offline, delete) = (settings.offline, settings.delete_by_hand);
    clear_away(&neops, move |worker, now| {
        let since = if worker.away { worker.last_seen } else { worker.last_seen + offline };
        now - since >= delete
    })
    .await
}

async fn cleanup_offline(State(app): State<App>) -> Result<Json<Value>> {
    clear_away(&app, |_, _| true).await
}

/// Deletes those that are offline now and fit.
async fn clear_away(app: &App, fits: impl Fn(&Worker, Timestamp) -> bool) -> Result<Json<Value>> {
    let now = app.engine.now().await?;
    let workers = all::<Worker>(app).await?;
    let gone = workers.into_iter().filter(|worker| worker.liveness(now) == Liveness::Offline && fits(worker, now));
    let (mut ids, mut failed) = (Vec::new(), 0);
    for worker in gone {
        match app.engine.run(deletion(worker.id.clone(), true)).await {
            Ok(done) => {
                failed += done.lost;
                ids.push(worker.id.to_string());
            }
            // It came back, or somebody else deleted it.
            Err(Error::Refused(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(ok(json!({"cleanedUpWorkerIds": ids, "failedJobCount": failed})))
}

/// All of a kind. How many workers there may be is limited, and those that are gone are forgotten in time.
async fn all<T: Kind>(app: &App) -> Result<Vec<T>, Problem> {
    Ok(app.engine.readable_records(RecordQuery::all(namespace(), T::KIND)).await?)
}

/// Those that are registered.
pub async fn there(app: &App) -> Result<Vec<Worker>, Problem> {
    all(app).await
}

async fn list(State(app): State<App>, params: Params) -> Result<Response> {
    let (deleted, with_blocks) = (params.flag("findDeleted")?, params.flag("populateFunctionBlocks")?);
    listed(&app, deleted, with_blocks, |_| true).await
}

async fn online(State(app): State<App>) -> Result<Response> {
    listed(&app, false, false, |liveness| liveness == Liveness::Online).await
}

/// Newest first.
async fn listed(app: &App, deleted: bool, with_blocks: bool, fits: impl Fn(Liveness) -> bool) -> Result<Response> {
    let now = app.engine.now().await?;
    let there = all::<Worker>(app).await?.into_iter().filter(|worker| fits(worker.liveness(now)));
    let mut known: Vec<Known> = there.map(|worker| Known { worker, deleted_at: None }).collect();
    if deleted {
        known.extend(all::<FormerWorker>(app).await?.into_iter().map(former));
    }
    known.sort_by(|a, b| {
        (b.worker.registered_at, b.worker.id.as_str()).cmp(&(a.worker.registered_at, a.worker.id.as_str()))
    });
    let more = known.len() > listing::LIST_MAX;
    known.truncate(listing::LIST_MAX);
    listing::bare(app, known.iter().map(|known| known.show(now, with_blocks)).collect(), more).await
}

fn former(former: FormerWorker) -> Known {
    Known { worker: former.worker, deleted_at: Some(former.deleted_at) }
}

/// A worker that is there or, where asked for, was.
pub async fn find(app: &App, id: &str, deleted: bool) -> Result<Option<Known>> {
    if let Some(worker) = app.engine.read_record::<Worker>(&namespace(), id).await? {
        return Ok(Some(Known { worker, deleted_at: None }));
    }
    match deleted {
        true => Ok(app.engine.read_record::<FormerWorker>(&namespace(), id).await?.map(former)),
        false => Ok(None),
    }
}

async fn found(app: &App, uuid: &str, deleted: bool) -> Result<Known> {
    let id = id("uuid", uuid)?;
    find(app, &id.to_string(), deleted).await?.ok_or_else(|| HttpError::no_worker(id))
}

async fn get(State(app): State<App>, Path(uuid): Path<String>, params: Params) -> Result<Json<Value>> {
    let known = found(&app, &uuid, params.flag("findDeleted")?).await?;
    Ok(ok(known.show(app.engine.now().await?, false)))
}

async fn blocks(State(app): State<App>, Path(uuid): Path<String>) -> Result<Json<Vec<String>>> {
    let known = found(&app, &uuid, false).await?;
    Ok(ok(known.worker.tags.iter().map(str::to_owned).collect()))
}

/// Of deleted ones as well: what they did is still there.
async fn jobs(State(app): State<App>, Path(uuid): Path<String>, params: Params) -> Result<Response> {
    let known = found(&app, &uuid, true).await?;
    board::list::of_worker(&app, &known.worker, &params).await
}

/// Workers that are linked to a block, by id.
pub async fn serving(app: &App, block: &str) -> Result<Vec<Value>> {
    let facet = Some(Facet::new(DEFINITION_FACET, block));
    let links: Vec<Link> =
        app.engine.readable_records(RecordQuery { facet, ..RecordQuery::all(namespace(), Link::KIND) }).await?;
    let now = app.engine.now().await?;
    let mut workers = Vec::with_capacity(links.len());
    for link in links {
        workers.extend(find(app, link.worker.as_str(), false).await?.map(|known| known.show(now, false)));
    }
    Ok(workers)
}
