//! A worker asks for work. It is answered at once, with what there is.

use crate::{
    auth::Caller,
    dialects::neops::{
        HttpError, Neops, Result,
        body::{Json, Sent, Whole, created, id},
        context,
        job::JobBrief,
        namespace,
        workers::worker_id,
    },
};
use axum::extract::State;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use std::{sync::Arc, time::Duration};
use windlass_core::{
    Leased, Millis, Refusal, Tags,
    commands::{
        claim::{Claim, Offer, Unknown},
        holder::Holder,
        release::{PassOn, Release},
    },
};
use windlass_engine::{Error, ids};
use windlass_plan::neops::reference::{Reference, Version};

/// Jobs of one answer.
const LIMIT_MAX: u64 = 100;
/// Bytes of one answer: each job brings its run's context. Beyond them jobs go back, all but the first.
const BYTES_MAX: usize = 64 << 20;
/// How long something that cannot be handed out stays out of the way, and how many of such are put there by one poll.
const PUT_ASIDE: Millis = Millis::from_secs(60);
const TRIES: usize = 5;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Poll {
    function_block_ids: Vec<Versionable>,
    worker_id: String,
    limit: Option<Whole>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Versionable {
    name: String,
    package: String,
    major_version: Whole,
    minor_version: Whole,
    patch_version: Whole,
}

impl Versionable {
    /// None: no block can be called so.
    fn id(&self) -> Option<String> {
        let number = |Whole(number): Whole| u32::try_from(number).ok();
        let version =
            Version::new(number(self.major_version)?, number(self.minor_version)?, number(self.patch_version)?);
        let id = Reference::exact(&self.package, &self.name, version).to_string();
        Reference::parse(&id).map(|_| id)
    }
}

/// Every field is needed: a worker drops an answer that lacks one, while the job counts as claimed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobDefinition {
    function_block_id: Arc<str>,
    job_id: String,
    step_label: String,
    parameters: Box<RawValue>,
    #[serde(serialize_with = "shared")]
    context: Arc<RawValue>,
    r#type: &'static str,
    run_on: String,
    entity_id: Option<i64>,
}

/// Not copied for each job.
fn shared<S: Serializer>(text: &Arc<RawValue>, to: S) -> Result<S::Ok, S::Error> {
    text.as_ref().serialize(to)
}

pub async fn poll(
    State(neops): State<Neops>,
    caller: Caller,
    Sent(poll): Sent<Poll>,
) -> Result<Json<Vec<JobDefinition>>> {
    let id = id("workerId", &poll.worker_id)?;
    let limit = match poll.limit {
        None => 1,
        Some(Whole(0)) => return Err(HttpError::bad("limit: must be at least 1")),
        Some(Whole(limit)) => limit.min(LIMIT_MAX) as usize,
    };
    let blocks: Vec<String> = poll.function_block_ids.iter().filter_map(Versionable::id).collect();
    let offered: Tags = blocks.iter().map(String::as_str).collect();
    let claim = |secrets| Claim {
        namespace: namespace(),
        worker: worker_id(id),
        offer: Offer::Tags(offered.clone()),
        secrets,
        lease: None,
        unknown: Unknown::Refuse,
        principal: Some(caller.name.clone()),
        request_id: None,
    };
    for _ in 0..TRIES {
        let leased = match neops.engine.claim(claim(ids::secrets(limit)), Duration::ZERO).await {
            Ok(leased) => leased,
            // Whoever was not heard for too long gets nothing until it pings.
            Err(Error::Refused(Refusal::WorkerNotOnline { .. } | Refusal::WorkerDraining { .. })) => Vec::new(),
            Err(Error::Refused(Refusal::NotFound { .. })) => return Err(HttpError::no_worker(id)),
            Err(error) => return Err(error.into()),
        };
        let claimed = leased.len();
        let jobs = shown(&neops, leased).await?;
        if claimed == 0 || !jobs.is_empty() {
            return Ok(created(jobs));
        }
    }
    Ok(created(Vec::new()))
}

/// What cannot be shown whole goes back, and out of the way of the rest. What does not fit goes back to its place.
async fn shown(app: &Neops, leased: Vec<Leased>) -> Result<Vec<JobDefinition>> {
    let (mut jobs, mut bytes) = (Vec::with_capacity(leased.len()), 0);
    for leased in leased {
        if bytes > BYTES_MAX {
            app.engine.run(Release { holder: Holder::lease(&namespace(), leased.lease) }).await?;
            continue;
        }
        match definition(app, &leased).await {
            Some(job) => {
                bytes += job.context.get().len() + job.parameters.get().len();
                jobs.push(job);
            }
            None => {
                tracing::warn!(job = %leased.job.id(), "a job that is none of the blackboard's was put aside");
                let holder = Holder::lease(&namespace(), leased.lease);
                let why = "it cannot be shown to a worker of this protocol".into();
                app.engine.run(PassOn { holder, delay: PUT_ASIDE, why }).await?;
            }
        }
    }
    Ok(jobs)
}

async fn definition(app: &Neops, leased: &Leased) -> Option<JobDefinition> {
    let told = JobBrief::of(&leased.job)?;
    let parameters = std::str::from_utf8(leased.payload.as_bytes()).ok().filter(|text| text.starts_with('{'))?;
    let context = context::text(app, &told).await.ok()?;
    Some(JobDefinition {
        function_block_id: told.block.clone(),
        job_id: leased.job.id().to_string(),
        step_label: told.label.clone(),
        parameters: RawValue::from_string(parameters.to_owned()).ok()?,
        context,
        r#type: told.kind.as_str(),
        run_on: told.on.clone(),
        entity_id: told.entity,
    })
}
