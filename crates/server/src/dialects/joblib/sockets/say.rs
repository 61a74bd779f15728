//! What happened, in the words of this protocol. It says what the event says, not what has become of the task since.

use super::{
    super::{body::time, names::FullName, show},
    said::{of_job, of_provider, watched},
};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_core::{Event, Job, JobId, Timestamp, What, WorkerId, link};

/// One message to everybody in a room.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub room: String,
    pub name: &'static str,
    pub data: Value,
}

/// Lists that have to be read again. One change may make many of these, so equal ones are told once.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stale {
    pub room: String,
    pub name: &'static str,
}

/// What a task keeps from its beginning to its end, and what was heard of it so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    pub name: Arc<str>,
    pub room: Arc<str>,
    pub created_at: Timestamp,
    pub worker: Option<WorkerId>,
    pub started_at: Option<Timestamp>,
}

impl Task {
    /// None: a job that did not come over this protocol.
    pub fn of(job: &Job) -> Option<Self> {
        Some(Self {
            name: Some(show::name_of(job)).filter(|name| !name.is_empty())?.into(),
            room: show::room_of(job).into(),
            created_at: job.spec.created_at,
            worker: job.live.lease.as_ref().map(|lease| lease.worker.clone()),
            started_at: job.live.started_at,
        })
    }

    pub fn available(&self, id: JobId) -> Message {
        let data = json!({"job_name": self.name, "room_id": self.room, "task_id": id.to_string()});
        Message { room: of_job(&self.name), name: "task_available", data }
    }

    pub fn status(&self, id: JobId, now: &Now) -> Message {
        let at = |moment: Option<Timestamp>| moment.map(time);
        let held = now.status != "pending";
        let data = json!({
            "id": id.to_string(),
            "name": self.name,
            "room_id": self.room,
            "status": now.status,
            "created_at": time(self.created_at),
            "started_at": at(now.started_at),
            "completed_at": at(now.completed_at),
            "queue_position": now.queue_position,
            "worker_id": now.worker.as_ref().or(self.worker.as_ref().filter(|_| held)).map(WorkerId::as_str),
            "error": now.error,
        });
        Message { room: watched(&self.room), name: "task_status_event", data }
    }
}

/// What an event says about a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Now {
    pub status: &'static str,
    pub worker: Option<WorkerId>,
    pub started_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
    pub queue_position: Option<usize>,
    pub error: Option<String>,
}

impl Now {
    /// None: nothing that is told. What the event does not say itself is left to be filled in.
    pub fn of(event: &Event, task: &Task) -> Option<Self> {
        let now = |status: &'static str| Self { status, ..Self::default() };
        let ended = |status: &'static str, error: Option<String>| {
            let started_at = task.started_at;
            Self { completed_at: Some(event.at), started_at, error, ..now(status) }
        };
        let words = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Some(match &event.what {
            What::Submitted { .. } => now("pending"),
            What::Claimed { worker, .. } => Self { worker: Some(worker.clone()), ..now("claimed") },
            What::Started { .. } => Self { started_at: Some(event.at), ..now("running") },
            What::Completed { .. } => ended("completed", None),
            What::Failed { reason, message, .. } => ended("failed", words(&show::failure(*reason, message))),
            What::Cancelled { message, .. } => ended("cancelled", words(message)),
            // Of jobs, what a task never does; of everything else, what is told as a list that is stale, or not at all.
            What::Ready { .. }
            | What::Progress { .. }
            | What::Requeued { .. }
            | What::Released { .. }
            | What::CancelRequested { .. }
            | What::Skipped { .. }
            | What::WorkerRegistered { .. }
            | What::WorkerOnline { .. }
            | What::WorkerUnreachable { .. }
            | What::WorkerOffline { .. }
            | What::WorkerDraining { .. }
            | What::WorkerUndrained { .. }
            | What::WorkerDeleted { .. }
            | What::RunStarted { .. }
            | What::RunGrew { .. }
            | What::RunFinished { .. }
            | What::DefinitionPut { .. }
            | What::DefinitionDeleted { .. }
            | What::Linked { .. }
            | What::Unlinked { .. }
            | What::RecordPut { .. }
            | What::RecordDeleted { .. }
            | What::Told { .. }
            | What::Audit { .. } => return None,
        })
    }
}

/// The list that an event makes stale, if it does.
pub fn stale(what: &What) -> Option<Stale> {
    let (of, name) = if let What::Linked { definition: name, .. }
    | What::Unlinked { definition: name, .. }
    | What::DefinitionDeleted { name } = what
    {
        (name, "jobs_invalidate")
    } else if let What::RecordPut { kind, key } | What::RecordDeleted { kind, key } = what
        && **kind == *link::TIED
    {
        (key, "providers_invalidate")
    } else {
        return None;
    };
    Some(Stale { room: watched(&FullName::parse(of)?.room), name })
}

/// What the dialect told itself about providers: to whom, and what.
pub fn of_providers(topic: &str, data: &str) -> Option<Message> {
    let mut told: Value = serde_json::from_str(data).ok()?;
    let room = told.get("room")?.as_str()?.to_owned();
    let data = told.get_mut("say")?.take();
    match topic {
        "provider_request" => Some(Message { room: of_provider(&room), name: "provider_request", data }),
        "provider_result_ready" => Some(Message { room: watched(&room), name: "provider_result_ready", data }),
        _ => None,
    }
}
