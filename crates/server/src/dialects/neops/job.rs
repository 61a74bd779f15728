//! What a job on the blackboard is made of. Acquire, execute and rollback jobs are all made here.

use super::{Settings, blocks::Block};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use windlass_api::Uuid;
use windlass_core::{
    Facet, Job, JobId, Payload,
    commands::submit::NewJob,
    link::tags_of,
    policy::{JobPolicy, LeaseEnd, RetryForm, RetryPolicy},
};
use windlass_plan::neops::reference::EntityType;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Type {
    Acquire,
    Execute,
    Rollback,
}

impl Type {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Acquire => "acquire",
            Self::Execute => "execute",
            Self::Rollback => "rollback",
        }
    }
}

/// What is asked of a worker.
pub struct Shape<'a> {
    pub id: JobId,
    /// `workflowExecutionId`.
    pub run: Uuid,
    pub kind: Type,
    pub block: &'a Block,
    pub label: &'a str,
    pub run_on: EntityType,
    pub entity: Option<i64>,
    /// An object.
    pub parameters: &'a Value,
    /// Which state of the run's context it sees. None: an empty one.
    pub context: Option<u32>,
    /// First step and step, where it also sees what its own entity's earlier steps changed.
    pub lane: Option<(usize, usize)>,
}

/// What a job tells about itself, small enough for lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobBrief {
    pub block: Arc<str>,
    pub label: String,
    pub kind: Type,
    pub on: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<i64>,
    pub run: Uuid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<(usize, usize)>,
}

impl JobBrief {
    /// None: a job, but none of the blackboard's. Steps of a run are such.
    pub fn of(job: &Job) -> Option<Self> {
        serde_json::from_str(job.spec.extra.as_deref()?).ok()
    }
}

/// Every job of the blackboard has it, and nothing else does.
pub const BOARD: &str = "board";
pub const RUN: &str = "run";
pub const BLOCK: &str = "block";

/// The first try, and three more.
const ATTEMPTS: u32 = 4;

pub fn new(settings: &Settings, shape: &Shape<'_>) -> NewJob {
    let told = JobBrief {
        block: shape.block.id.clone(),
        label: shape.label.into(),
        kind: shape.kind,
        on: shape.run_on.as_str().into(),
        entity: shape.entity,
        run: shape.run,
        context: shape.context,
        lane: shape.lane,
    };
    NewJob {
        name: Some(shape.label.into()),
        tags: tags_of(&shape.block.id),
        payload: Payload::from(shape.parameters.to_string().as_str()),
        policy: policy(settings, shape),
        facets: vec![
            Facet::new(BOARD, "1"),
            Facet::new(RUN, &shape.run.to_string()),
            Facet::new(BLOCK, &shape.block.id),
        ],
        extra: serde_json::to_string(&told).ok().map(Arc::from),
        ..NewJob::new(shape.id)
    }
}

/// Doing it twice must do no harm, or it is done once. A second try is a job of its own: reports name nothing but the job, so
/// that a late one of the first would otherwise pass for the second's.
fn policy(settings: &Settings, shape: &Shape<'_>) -> JobPolicy {
    let again = shape.kind == Type::Execute && (shape.block.is_pure() || shape.block.is_idempotent());
    let attempts = if again { ATTEMPTS } else { 1 };
    let mut policy = JobPolicy {
        hard_deadline: Some(settings.stuck),
        pending_deadline: Some(settings.pending),
        retry: RetryPolicy { attempts, form: RetryForm::NewJob, losses_max: ATTEMPTS + 1, ..RetryPolicy::default() },
        ..JobPolicy::default()
    };
    policy.lease.ends = LeaseEnd::WithWorker;
    policy
}
