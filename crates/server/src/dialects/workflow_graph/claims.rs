//! What a worker does with jobs: claim, renew, ask whether it was cancelled, report.

use super::{
    body::{HttpError, Json, Path, Result, Sent},
    namespace, status, translate, wire,
};
use crate::{app::App, auth::Caller};
use axum::extract::{FromRequestParts, State};
use http::{StatusCode, request::Parts};
use std::{
    collections::{BTreeMap, HashMap},
    convert::Infallible,
    sync::Arc,
    time::Duration,
};
use windlass_core::{
    JobKey, Leased, Payload, WorkerId,
    commands::{
        claim::{self, Offer, Unknown},
        complete::Complete,
        fail::Fail,
        holder::Holder,
        release::Release,
        renew::Renew,
    },
    reply::Ended,
};
use windlass_engine::ids;

/// A claim is held open this long while there is nothing to do: the original worker then sleeps two seconds, which a job
/// that comes meanwhile would have to wait. Short enough for people who try it by hand.
const HOLD: Duration = Duration::from_secs(5);

pub async fn claim(
    State(app): State<App>,
    caller: Caller,
    hold: Hold,
    Sent(body): Sent<wire::Claim>,
) -> Result<Json<Option<wire::Claimed>>> {
    let claim = claim::Claim {
        namespace: namespace(),
        worker: WorkerId::new(&body.worker_id)?,
        offer: Offer::Tags(translate::labels(&body.labels)),
        secrets: ids::secrets(1),
        lease: Some(translate::lease_length(body.lease_ttl_secs)),
        unknown: Unknown::Create(translate::worker_policy()),
        principal: Some(caller.name.clone()),
        request_id: None,
    };
    let Some(leased) = app.engine.claim(claim, hold.0).await?.pop() else { return Ok(Json(StatusCode::OK, None)) };
    match claimed(&app, &leased, &body).await {
        Ok(claimed) => Ok(Json(StatusCode::OK, Some(claimed))),
        // A worker that cannot be told its job must not hold it.
        Err(error) => {
            let holder = Holder { principal: Some(caller.name.clone()), ..Holder::lease(&namespace(), leased.lease) };
            drop(app.itself().engine.run(Release { holder }).await);
            Err(error)
        }
    }
}

/// How long to hold a claim open: a client that wants less says so (`Prefer: wait=2`, RFC 7240).
pub struct Hold(Duration);

impl FromRequestParts<App> for Hold {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Infallible> {
        let wanted =
            parts.headers.get("prefer").and_then(|value| value.to_str().ok()?.strip_prefix("wait=")?.parse().ok());
        Ok(Self(wanted.map_or(HOLD, |seconds| Duration::from_secs(seconds).min(HOLD))))
    }
}

async fn claimed(app: &App, leased: &Leased, body: &wire::Claim) -> Result<wire::Claimed> {
    let job = &leased.job;
    let name =
        |facet: &str| job.spec.facets.iter().find(|found| &*found.name == facet).map(|found| found.value.to_string());
    let workflow_id = name(translate::WORKFLOW).unwrap_or_default();
    let job_id = job.spec.node.as_ref().map(|node| node.name.to_string()).unwrap_or_default();
    let millis = |at: Option<windlass_core::Timestamp>| at.map_or(0, |at| at.0.max(0) as u64);
    let attempt = job.live.attempt.saturating_sub(1);
    let enqueued = millis(job.live.pending_since.or(Some(job.spec.created_at)));
    Ok(wire::Claimed {
        lease: wire::Lease {
            lease_id: leased.lease.to_string(),
            job_id: job_id.clone(),
            workflow_id: workflow_id.clone(),
            worker_id: body.worker_id.clone(),
            ttl_secs: body.lease_ttl_secs,
            granted_at_ms: millis(job.live.claimed_at),
        },
        job: wire::QueuedJob {
            job_id,
            workflow_id,
            command: translate::command(&leased.payload),
            required_labels: job.spec.tags.iter().map(str::to_owned).collect(),
            retry_policy: wire::RetryPolicy {
                max_retries: job.spec.policy.retry.attempts.saturating_sub(1),
                backoff: "None",
            },
            attempt,
            upstream_outputs: upstream(app, leased).await?,
            enqueued_at_ms: enqueued,
            delayed_until_ms: if attempt == 0 { 0 } else { enqueued },
        },
    })
}

/// The outputs of every direct dependency, by its name.
async fn upstream(app: &App, leased: &Leased) -> Result<BTreeMap<String, BTreeMap<String, String>>> {
    let keys: Vec<JobKey> = leased.job.spec.parents.iter().map(|&id| JobKey::new(&namespace(), id)).collect();
    let parents = app.engine.store().jobs_named(&keys).await?;
    let told: Vec<JobKey> = parents.iter().filter(|job| job.live.has_result).map(|job| job.key.clone()).collect();
    let results: HashMap<JobKey, Payload> = app.engine.store().results(&told).await?.into_iter().collect();
    let named = parents.iter().filter_map(|job| Some((job.spec.node.as_ref()?.name.to_string(), &job.key)));
    Ok(named.map(|(name, key)| (name, translate::outputs(results.get(key)))).collect())
}

fn holder(caller: &Caller, lease: &str) -> Result<Holder> {
    // What is no lease of ours is as dead as an expired one.
    let lease = lease.parse().map_err(|_| HttpError::bare(StatusCode::CONFLICT))?;
    Ok(Holder { principal: Some(caller.name.clone()), ..Holder::lease(&namespace(), lease) })
}

/// An unknown lease is a dead one: this protocol has one answer for both.
fn dead(error: HttpError) -> HttpError {
    if error.0 == StatusCode::NOT_FOUND { HttpError::bare(StatusCode::CONFLICT) } else { error }
}

pub async fn heartbeat(State(app): State<App>, caller: Caller, Path(lease): Path<String>) -> Result<StatusCode> {
    let renew = Renew { holder: holder(&caller, &lease)?, length: None };
    app.engine.run(renew).await.map_err(|error| dead(error.into()))?;
    Ok(StatusCode::OK)
}

pub async fn complete(
    State(app): State<App>,
    caller: Caller,
    Path(lease): Path<String>,
    Sent(body): Sent<wire::Complete>,
) -> Result<StatusCode> {
    let report = Complete { holder: holder(&caller, &lease)?, result: translate::result(&body.outputs) };
    ended(app.engine.run(report).await.map_err(|error| dead(error.into()))?)
}

pub async fn fail(
    State(app): State<App>,
    caller: Caller,
    Path(lease): Path<String>,
    Sent(body): Sent<wire::Fail>,
) -> Result<StatusCode> {
    let message: Arc<str> = translate::cut(&body.error).into();
    let report =
        Fail { holder: holder(&caller, &lease)?, message, retryable: body.retryable, result: Default::default() };
    ended(app.engine.run(report).await.map_err(|error| dead(error.into()))?)
}

/// Not in the original: a worker that has to stop gives its job back, and no retry is charged for it.
pub async fn release(State(app): State<App>, caller: Caller, Path(lease): Path<String>) -> Result<StatusCode> {
    let release = Release { holder: holder(&caller, &lease)? };
    app.engine.run(release).await.map_err(|error| dead(error.into()))?;
    Ok(StatusCode::OK)
}

/// A second report on the same lease is refused, also when it says the same.
fn ended(report: Ended) -> Result<StatusCode> {
    if report.replayed { Err(HttpError::bare(StatusCode::CONFLICT)) } else { Ok(StatusCode::OK) }
}

pub async fn artifacts_cancelled(state: State<App>, Path(workflow): Path<String>) -> Result<Json<bool>> {
    cancelled(state, Path((workflow, "artifacts".into()))).await
}

/// The poll names no lease, so the answer is about the latest execution; a new one is not begun while an old one drains.
pub async fn cancelled(State(app): State<App>, Path((workflow, job)): Path<(String, String)>) -> Result<Json<bool>> {
    let latest = status::executions(&app, &workflow, &job, 1).await?.pop();
    let cancelled = latest.is_some_and(|job| translate::status(&job) == wire::Status::Cancelled);
    Ok(Json(StatusCode::OK, cancelled))
}
